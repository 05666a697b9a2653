//! The random system of the benchmark HPL.
//!
//! Source: HPL 2.3, `testing/matgen` (`HPL_rand`, `HPL_xjumpm`, `HPL_jumpit`) and `testing/pmatgen/HPL_pdmatgen.c`. The elements of the
//! n×(n+1) matrix [A | b], column by column, are consecutive values of one linear congruential generator
//! X(k+1) = 6364136223846793005·X(k) + 1 mod 2⁶⁴, where X(0) is the seed. The element with index k has the value ½ − X(k+1)/2⁶⁴, which
//! lies in [-0.5, 0.5]. The value X(k)/2⁶⁴ is rounded once, and the difference is rounded once. Steps of the generator are affine maps, so
//! that several steps together are one affine map (a jump), and threads can begin anywhere in the sequence.

use std::mem::MaybeUninit;
use std::thread;

use lapidary::Layout;

use crate::dense::Dense;
use crate::failure::Result;

/// The seed of HPL (`HPL_ISEED`).
pub const SEED: u64 = 100;

/// A number of steps of the generator: the map X ← a·X + c mod 2⁶⁴.
#[derive(Clone, Copy, Debug)]
struct Jump {
    a: u64,
    c: u64,
}

impl Jump {
    /// One step of the generator.
    const STEP: Jump = Jump { a: 6_364_136_223_846_793_005, c: 1 };

    /// `steps` steps of the generator, as the product of the powers of [`Jump::STEP`] whose exponents are the binary digits of `steps`.
    fn by(mut steps: u64) -> Self {
        let (mut jump, mut power) = (Jump { a: 1, c: 0 }, Jump::STEP);
        while steps > 0 {
            if steps & 1 == 1 {
                jump = jump.then(power);
            }
            power = power.then(power);
            steps >>= 1;
        }
        jump
    }

    /// The jump that makes the steps of `self` and then those of `next`.
    fn then(self, next: Jump) -> Self {
        Jump { a: next.a.wrapping_mul(self.a), c: next.apply(self.c) }
    }

    #[inline]
    fn apply(self, state: u64) -> u64 {
        self.a.wrapping_mul(state).wrapping_add(self.c)
    }
}

/// Consecutive elements of a column of [A | b].
#[derive(Clone, Debug)]
pub struct Elements {
    /// X of the next element.
    state: u64,
}

impl Iterator for Elements {
    type Item = f64;

    #[inline]
    fn next(&mut self) -> Option<f64> {
        const SCALE: f64 = 1.0 / (1_u128 << 64) as f64;
        let value = 0.5 - self.state as f64 * SCALE;
        self.state = Jump::STEP.apply(self.state);
        Some(value)
    }
}

/// The system A·x = b of order n that a seed determines.
#[derive(Clone, Copy, Debug)]
pub struct System {
    seed: u64,
    n: usize,
}

impl System {
    /// The system of order `n`.
    pub fn new(seed: u64, n: usize) -> Self {
        System { seed, n }
    }

    /// Order of the system.
    pub fn order(&self) -> usize {
        self.n
    }

    /// The elements of A and b from the element with index `index` on, column by column.
    fn elements_from(&self, index: u64) -> Elements {
        Elements { state: Jump::by(index.wrapping_add(1)).apply(self.seed) }
    }

    /// For each column of A and then for b, the elements from row `row` on. The iterator takes one operation for each column.
    pub fn columns_from(&self, row: usize) -> impl Iterator<Item = Elements> + use<> {
        let (first, stride) = (self.elements_from(row as u64), Jump::by(self.n as u64));
        std::iter::successors(Some(first), move |column| Some(Elements { state: stride.apply(column.state) })).take(self.n + 1)
    }

    /// Generates A and b. All hardware threads take part, and each thread writes to its part of the memory first.
    pub fn generate(&self) -> Result<[Dense<f64>; 2]> {
        let n = self.n;
        let (mut a, mut b) = (Dense::room(n, n)?, Dense::room(n, 1)?);
        self.fill(0, &mut a.spare_capacity_mut()[..n * n]);
        self.fill((n as u64).wrapping_mul(n as u64), &mut b.spare_capacity_mut()[..n]);
        // SAFETY: `fill` has written the first n·n elements of `a` and the first n elements of `b`.
        unsafe {
            a.set_len(n * n);
            b.set_len(n);
        }
        Ok([Dense::from_vec(a, n, n, Layout::ColMajor), Dense::from_vec(b, n, 1, Layout::ColMajor)])
    }

    /// Fills `out` with consecutive elements of the sequence [A | b], beginning with the element with index `first`.
    fn fill(&self, first: u64, out: &mut [MaybeUninit<f64>]) {
        let share = share(out.len());
        thread::scope(|scope| {
            for (part, out) in out.chunks_mut(share).enumerate() {
                let elements = self.elements_from(first + (part * share) as u64);
                scope.spawn(move || out.iter_mut().zip(elements).for_each(|(out, value)| _ = out.write(value)));
            }
        });
    }
}

/// Number of items for each thread, at least 1, if all hardware threads share `len` items.
pub fn share(len: usize) -> usize {
    len.div_ceil(thread::available_parallelism().map_or(1, usize::from)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those of `HPL_dmatgen(100, 101, A, 100, 100)` of HPL 2.3.
    #[test]
    fn the_elements_are_those_of_hpl() {
        let [a, b] = System::new(SEED, 100).generate().unwrap();
        let expected = [
            (0, -5.159_944_193_766_641e-5),
            (1, 0.384_131_225_312_822_84),
            (2, 0.443_683_667_598_942_7),
            (100, -0.413_338_312_602_039_35),
            (101, -0.150_911_006_696_519_25),
            (5000, 0.201_813_642_436_169_56),
            (9999, -0.428_209_729_687_837_2),
        ];
        for (index, value) in expected {
            assert_eq!(a.data()[index], value, "{index}");
        }
        assert_eq!([b.data()[0], b.data()[99]], [-0.253_380_458_082_262_3, -0.174_412_897_245_176_5]);
    }

    #[test]
    fn columns_begin_at_any_row_with_the_same_elements() {
        for n in [1, 2, 7, 64, 301] {
            let system = System::new(3, n);
            let [a, b] = system.generate().unwrap();
            let both: Vec<f64> = a.data().iter().chain(b.data()).copied().collect();
            for row in [0, n / 2, n - 1] {
                let columns: Vec<Vec<f64>> = system.columns_from(row).map(|column| column.take(n - row).collect()).collect();
                assert_eq!(columns.len(), n + 1);
                assert!(columns.iter().zip(both.chunks(n)).all(|(column, whole)| column == &whole[row..]), "{n} {row}");
            }
        }
    }
}
