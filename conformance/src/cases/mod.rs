//! Random cases: descriptions that can be printed, from which the operands are computed.
//!
//! A case contains sizes, flags, storage and a seed, but not the numbers. A case is short enough to be printed on the line of a
//! failure, from which a user can run the case again.

pub mod batched;
pub mod fill;
pub mod gemm;
pub mod getrf;
pub mod laswp;
pub mod pinned;
pub mod pivots;
pub mod rng;
pub mod solve;
pub mod storage;
pub mod trsm;

use lapidary_core::Op;
use proptest::prelude::*;

pub use fill::Fill;
pub use gemm::GemmCase;
pub use getrf::{GetrfCase, Shape};
pub use laswp::LaswpCase;
pub use pinned::Pinned;
pub use pivots::Pivots;
pub use rng::Rng;
pub use solve::SolveCase;
pub use storage::{Storage, Stored};
pub use trsm::{Pivot, TrsmCase};

/// The description of the operands of one call. A case is printed on one line, which the module [`pinned`] can read.
pub trait Case: Copy + std::fmt::Display {
    /// Flags of the call, in the letters of the BLAS interface.
    fn flags(&self) -> String;

    /// The size of the operands on which the bounds of the case depend.
    fn size(&self) -> usize;

    /// Cases that differ from this case in one respect and are simpler. The cases with the largest simplification come first.
    fn simpler(&self) -> Vec<Self>;
}

/// Extents that are smaller than `extent`: small numbers next to powers of two, half of `extent`, and `extent` − 1.
pub(crate) fn below(extent: usize) -> impl Iterator<Item = usize> {
    [1, 2, 3, 5, 9, 17, 33, extent / 2, extent.saturating_sub(1)].into_iter().filter(move |&less| less < extent)
}

/// For each operand that is not packed, a copy of `storage` in which this operand is packed.
pub(crate) fn packed<const N: usize>(storage: [Storage; N]) -> impl Iterator<Item = [Storage; N]> {
    let is_plain = move |at: &usize| storage[*at] != Storage::default();
    (0..N).filter(is_plain).map(move |at| std::array::from_fn(|i| if i == at { Storage::default() } else { storage[i] }))
}

/// The sizes and the number of the cases that a run of the suite draws.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Block sizes of the subject. For each block size b the suite draws the extents b − 1, b and b + 1.
    pub blocks: Vec<usize>,
    /// Smallest extent of the random cases. The value is zero, unless another subject already tests the code for small calls.
    pub min: usize,
    /// Largest extent of the random cases, except that [`Scope::extents`] draws a few extents up to twice as large.
    pub max: usize,
    /// Number of random cases of each property.
    pub cases: u32,
    /// Orders of the large matrices. The oracle would take too long for them, so that the suite checks checksums, residuals and
    /// known factors.
    pub large: Vec<usize>,
    /// The matrix that tests 32-bit indices for overflow has a few more than this number of elements.
    pub elements: usize,
    /// Seed of the random cases.
    pub seed: u64,
}

impl Scope {
    /// The scope of a run of all properties that takes about a minute on a driver for the CPU.
    #[must_use]
    pub fn quick(seed: u64) -> Self {
        Scope { blocks: vec![8, 16, 32, 64], min: 0, max: 130, cases: 40, large: vec![257, 520], elements: 1 << 16, seed }
    }

    /// The scope of a run with more cases than the quick run, and with sizes larger than the tiles of a graphics card.
    #[must_use]
    pub fn full(seed: u64) -> Self {
        Scope {
            blocks: vec![8, 16, 32, 64, 96, 128, 192, 256],
            min: 0,
            max: 300,
            cases: 120,
            large: vec![513, 1200],
            elements: 1 << 31,
            seed,
        }
    }

    /// Draws an extent of a matrix: 0, 1, 2, 7, a block size b, b − 1 or b + 1, or any number up to `max`.
    pub fn extent(&self) -> impl Strategy<Value = usize> + use<> {
        let around = self.blocks.iter().flat_map(|&block| [block.saturating_sub(1), block, block + 1]);
        let least = self.min.max(1);
        prop_oneof![
            3 => self.one_of([0, 1, 2, 7]),
            3 => self.one_of(around),
            4 => least..=self.max,
        ]
    }

    /// This scope with extents of at most 64, for operands with subnormal numbers: an operation on subnormal numbers can take a CPU
    /// a hundred times longer than an operation on normal numbers.
    #[must_use]
    pub fn short(&self) -> Scope {
        Scope { min: 0, max: self.max.min(64), ..self.clone() }
    }

    /// This scope with the number of cases divided by `divisor`, rounded up.
    #[must_use]
    pub fn part(&self, divisor: u32) -> Scope {
        Scope { cases: self.cases.div_ceil(divisor), ..self.clone() }
    }

    /// Triples of extents around each block size b of the scope: three equal extents (b − 1, b or b + 1), and the extents b − 1, b
    /// and b + 1 in three orders.
    #[must_use]
    pub fn edges(&self) -> Vec<[usize; 3]> {
        let blocks = self.blocks.iter().filter(|&&block| (self.min + 1..self.max).contains(&block));
        let around = |&block: &usize| {
            let [less, more] = [block - 1, block + 1];
            [[less; 3], [block; 3], [more; 3], [less, block, more], [block, more, less], [more, less, block]]
        };
        blocks.flat_map(around).collect()
    }

    /// Draws one of those `extents` that lie between the smallest and the largest extent of the scope. If no such extent exists,
    /// the function returns the largest extent of the scope.
    fn one_of(&self, extents: impl IntoIterator<Item = usize>) -> prop::sample::Select<usize> {
        let mut within: Vec<usize> = extents.into_iter().filter(|x| (self.min..=self.max).contains(x)).collect();
        if within.is_empty() {
            within.push(self.max);
        }
        prop::sample::select(within)
    }

    /// Draws three extents. In some draws one extent is long and two are short, or one is short and two are long; in some draws all
    /// three are equal. Code that confuses rows with columns may fail only for such extents.
    pub fn extents(&self) -> impl Strategy<Value = [usize; 3]> + use<> {
        let (short, long) = (self.min.max(1)..=self.min + 8, self.max..=2 * self.max);
        let skinny = one_unlike(short.clone(), long.clone());
        let flat = one_unlike(self.max / 2..=self.max, short);
        let alike = self.extent().prop_map(|n| [n; 3]);
        prop_oneof![9 => [self.extent(), self.extent(), self.extent()], 2 => alike, 1 => skinny, 1 => flat]
    }
}

type Extents = std::ops::RangeInclusive<usize>;

/// Draws two extents from the range `two` and one extent from the range `one`, in any order.
fn one_unlike(two: Extents, one: Extents) -> impl Strategy<Value = [usize; 3]> {
    (prop::array::uniform3(two), one, 0..3_usize).prop_map(|(mut extents, unlike, at)| {
        extents[at] = unlike;
        extents
    })
}

/// Draws a scalar α or β: 0, 1, −1, or a random number that is exact in both precisions.
pub fn factor() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => Just(1.0),
        1 => Just(0.0),
        1 => Just(-1.0),
        2 => (-2.0_f32..2.0).prop_map(f64::from),
    ]
}

/// Draws a scalar α or β as [`factor`] does, but never zero.
pub fn nonzero_factor() -> impl Strategy<Value = f64> {
    factor().prop_map(|factor| if factor == 0.0 { 1.0 } else { factor })
}

/// Draws an operation on an operand.
pub fn op() -> impl Strategy<Value = Op> {
    prop::sample::select(vec![Op::NoTrans, Op::Trans, Op::ConjTrans, Op::Conj])
}

/// Draws a seed. Shrinking does not change the seed, because a smaller seed is not a simpler case.
pub(crate) fn seed() -> impl Strategy<Value = u64> {
    any::<u64>().no_shrink()
}
