//! Random cases: printable descriptions from which operands are made.
//!
//! A case holds sizes, flags, storage and a seed, never the numbers, so a
//! shrunk failure prints on one line and can be run again.

pub mod fill;
pub mod gemm;
pub mod getrf;
pub mod laswp;
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
pub use rng::Rng;
pub use solve::SolveCase;
pub use storage::{Storage, Stored};
pub use trsm::TrsmCase;

/// How much is tried: the sizes, and how often.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Block sizes of the subject: one less, equal and one more are tried.
    pub blocks: Vec<usize>,
    /// Largest extent of the random cases.
    pub max: usize,
    /// Random cases of each property.
    pub cases: u32,
    /// Sizes that are checked by checksums and residuals only.
    pub large: Vec<usize>,
    /// Seed of the random cases.
    pub seed: u64,
}

impl Scope {
    /// An extent of a matrix: 0, 1, 2, 7, around a block, or anything up to `max`.
    pub fn extent(&self) -> impl Strategy<Value = usize> + use<> {
        let around: Vec<usize> = self.blocks.iter().flat_map(|&b| [b - 1, b, b + 1]).filter(|&x| x <= self.max).collect();
        let around = if around.is_empty() { vec![self.max] } else { around };
        prop_oneof![
            3 => prop::sample::select(vec![0_usize, 1, 2, 7]),
            3 => prop::sample::select(around),
            4 => 1..=self.max,
        ]
    }

    /// An extent that is not zero.
    pub fn order(&self) -> impl Strategy<Value = usize> + use<> {
        self.extent().prop_map(|n| n.max(1))
    }

    /// Three extents; one time in six one of them is short and the others long, or
    /// the reverse.
    pub fn extents(&self) -> impl Strategy<Value = [usize; 3]> + use<> {
        let (short, long) = (1..=8_usize, self.max..=2 * self.max);
        let skinny = (prop::array::uniform3(short), long, 0..3_usize).prop_map(|(mut sizes, long, at)| {
            sizes[at] = long;
            sizes
        });
        let flat = (prop::array::uniform3(self.max / 2..=self.max), 1..=8_usize, 0..3_usize).prop_map(|(mut sizes, short, at)| {
            sizes[at] = short;
            sizes
        });
        prop_oneof![10 => [self.extent(), self.extent(), self.extent()], 1 => skinny, 1 => flat]
    }
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

/// How an operand enters.
pub fn op() -> impl Strategy<Value = Op> {
    prop::sample::select(vec![Op::NoTrans, Op::Trans, Op::ConjTrans])
}

/// A seed; smaller ones are not simpler.
pub(crate) fn seed() -> impl Strategy<Value = u64> {
    any::<u64>().no_shrink()
}
