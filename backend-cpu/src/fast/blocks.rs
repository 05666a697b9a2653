//! The maximum sizes of the cache blocks of products, as values that a device can replace.

use lapidary_core::{DType, Scalar};

/// Maximum sizes of the cache blocks of a product in one element type. All sizes are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Number of terms (extent along k) of a block. The columns of a micro-tile stay in the first-level cache.
    pub kc: usize,
    /// Number of rows of A, with `kc` terms each, that one thread uses at a time. They take most of the second-level cache.
    pub mc: usize,
    /// Number of columns of B in a block of one thread. A is packed once for each block of B.
    pub nc: usize,
    /// Number of rows of A, with `kc` terms each, in a block that all members of a team share. The block is larger if `mc` rows for each
    /// member are more. The block takes a part of the last-level cache.
    pub team_mc: usize,
    /// Number of columns of B in a block that all members of a team share.
    pub team_nc: usize,
}

impl Blocks {
    /// The number of elements of A that one thread uses at a time.
    #[inline(always)]
    pub(super) fn of_thread(&self) -> usize {
        self.mc * self.kc
    }
}

/// The cache blocks of products in both element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Blocks in single precision.
    pub f32: Blocks,
    /// Blocks in double precision.
    pub f64: Blocks,
}

impl Blocking {
    /// Blocks that are fast on processors with a second-level cache of at least 1 MiB, whose `mc` rows take 768 KiB. With 2 MiB, larger
    /// blocks raise the speed by at most 5 % (f32, order 512; bench/results/2026-11-25-cpu-blocks.txt).
    pub const DEFAULT: Self = Blocking { f32: Self::of_column(1024), f64: Self::of_column(512) };

    const fn of_column(kc: usize) -> Blocks {
        Blocks { kc, mc: 192, nc: 4096, team_mc: 2048, team_nc: 2048 }
    }

    /// The blocks in the element type `T`.
    #[inline(always)]
    pub(crate) fn of<T: Scalar>(&self) -> Blocks {
        match T::DTYPE {
            DType::F32 | DType::I32 => self.f32,
            DType::F64 => self.f64,
        }
    }
}

impl Default for Blocking {
    fn default() -> Self {
        Self::DEFAULT
    }
}
