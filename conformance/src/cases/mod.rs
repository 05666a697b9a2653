//! Random cases: printable descriptions from which operands are made.
//!
//! A case holds sizes, flags, storage and a seed, never the numbers, so a
//! shrunk failure prints on one line and can be run again.

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

/// A case of a routine: it prints on one line, from which it can be [read](pinned) again.
pub trait Case: Copy + std::fmt::Display {
    /// The flags in the letters of the BLAS interface.
    fn flags(&self) -> String;

    /// The size on which its bounds depend.
    fn size(&self) -> usize;

    /// Cases that are simpler by one step, the larger steps first.
    fn simpler(&self) -> Vec<Self>;
}

/// Extents below one: small ones next to powers of two, half of it, and one less.
pub(crate) fn below(extent: usize) -> impl Iterator<Item = usize> {
    [1, 2, 3, 5, 9, 17, 33, extent / 2, extent.saturating_sub(1)].into_iter().filter(move |&less| less < extent)
}

/// The storages with one of them packed.
pub(crate) fn packed<const N: usize>(storage: [Storage; N]) -> impl Iterator<Item = [Storage; N]> {
    let is_plain = move |at: &usize| storage[*at] != Storage::default();
    (0..N).filter(is_plain).map(move |at| std::array::from_fn(|i| if i == at { Storage::default() } else { storage[i] }))
}

/// How much is tried: the sizes, and how often.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Block sizes of the subject: one less, equal and one more are tried.
    pub blocks: Vec<usize>,
    /// Smallest extent of the random cases; zero but where a subject treats small
    /// calls in another way and that way is not to be graded again.
    pub min: usize,
    /// Largest extent of the random cases.
    pub max: usize,
    /// Random cases of each property.
    pub cases: u32,
    /// Sizes that are checked by checksums and residuals only.
    pub large: Vec<usize>,
    /// Elements of a matrix that shows whether indices wrap: it has some more.
    pub elements: usize,
    /// Seed of the random cases.
    pub seed: u64,
}

impl Scope {
    /// Every property in about a minute on a device that a processor stands in for.
    #[must_use]
    pub fn quick(seed: u64) -> Self {
        Scope { blocks: vec![8, 16, 32, 64], min: 0, max: 130, cases: 40, large: vec![257, 520], elements: 1 << 16, seed }
    }

    /// More cases, beyond the tiles of a graphics card.
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

    /// An extent of a matrix: 0, 1, 2, 7, around a block, or anything up to `max`.
    pub fn extent(&self) -> impl Strategy<Value = usize> + use<> {
        let around = self.blocks.iter().flat_map(|&block| [block.saturating_sub(1), block, block + 1]);
        let least = self.min.max(1);
        prop_oneof![
            3 => self.one_of([0, 1, 2, 7]),
            3 => self.one_of(around),
            4 => least..=self.max,
        ]
    }

    /// The scope up to extents of 64: a processor takes a hundred times longer
    /// for an operation on subnormal numbers.
    #[must_use]
    pub fn short(&self) -> Scope {
        Scope { min: 0, max: self.max.min(64), ..self.clone() }
    }

    /// The scope with one case in `divisor`.
    #[must_use]
    pub fn part(&self, divisor: u32) -> Scope {
        Scope { cases: self.cases.div_ceil(divisor), ..self.clone() }
    }

    /// Extents one less, equal and one more than each block within the scope: all alike, and
    /// each beside the two others.
    #[must_use]
    pub fn edges(&self) -> Vec<[usize; 3]> {
        let blocks = self.blocks.iter().filter(|&&block| (self.min + 1..self.max).contains(&block));
        let around = |&block: &usize| {
            let [less, more] = [block - 1, block + 1];
            [[less; 3], [block; 3], [more; 3], [less, block, more], [block, more, less], [more, less, block]]
        };
        blocks.flat_map(around).collect()
    }

    /// One of the extents that lie in the scope; the largest if none does.
    fn one_of(&self, extents: impl IntoIterator<Item = usize>) -> prop::sample::Select<usize> {
        let mut within: Vec<usize> = extents.into_iter().filter(|x| (self.min..=self.max).contains(x)).collect();
        if within.is_empty() {
            within.push(self.max);
        }
        prop::sample::select(within)
    }

    /// Three extents; sometimes one of them is long and the others short, or the reverse, and
    /// sometimes all are alike: what confuses rows and columns may show there alone.
    pub fn extents(&self) -> impl Strategy<Value = [usize; 3]> + use<> {
        let (short, long) = (self.min.max(1)..=self.min + 8, self.max..=2 * self.max);
        let skinny = one_unlike(short.clone(), long.clone());
        let flat = one_unlike(self.max / 2..=self.max, short);
        let alike = self.extent().prop_map(|n| [n; 3]);
        prop_oneof![9 => [self.extent(), self.extent(), self.extent()], 2 => alike, 1 => skinny, 1 => flat]
    }
}

type Extents = std::ops::RangeInclusive<usize>;

/// Two extents of one range and one of another, in any order.
fn one_unlike(two: Extents, one: Extents) -> impl Strategy<Value = [usize; 3]> {
    (prop::array::uniform3(two), one, 0..3_usize).prop_map(|(mut extents, unlike, at)| {
        extents[at] = unlike;
        extents
    })
}

/// A factor: 0, 1, −1, or a random one that both precisions hold exactly.
pub fn factor() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => Just(1.0),
        1 => Just(0.0),
        1 => Just(-1.0),
        2 => (-2.0_f32..2.0).prop_map(f64::from),
    ]
}

/// As `factor`, but never zero.
pub fn nonzero_factor() -> impl Strategy<Value = f64> {
    factor().prop_map(|factor| if factor == 0.0 { 1.0 } else { factor })
}

/// How an operand enters.
pub fn op() -> impl Strategy<Value = Op> {
    prop::sample::select(vec![Op::NoTrans, Op::Trans, Op::ConjTrans, Op::Conj])
}

/// A seed; smaller ones are not simpler.
pub(crate) fn seed() -> impl Strategy<Value = u64> {
    any::<u64>().no_shrink()
}
