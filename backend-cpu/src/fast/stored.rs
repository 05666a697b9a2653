//! Column-major and row-major matrices.

use lapidary_core::Op;

use super::gemm::MV;
use super::simd::Simd;
use crate::tile::Tile;

/// A matrix as it lies in memory: it is op(tile).
#[derive(Clone, Copy)]
pub(super) struct Stored<T> {
    pub tile: Tile<T>,
    pub op: Op,
}

impl<T: Copy> Stored<T> {
    /// Rows and columns of the matrix.
    pub fn shape(&self) -> (usize, usize) {
        self.op.shape(self.tile.shape())
    }

    /// The tile of which the `rows` × `cols` part that starts at (i, j) is op(tile).
    pub fn sub(&self, i: usize, j: usize, rows: usize, cols: usize) -> Tile<T> {
        if self.op.is_trans() { self.tile.sub(j, i, cols, rows) } else { self.tile.sub(i, j, rows, cols) }
    }

    /// Rows of a packed panel of L, and columns of one of U. The micro-kernel's first operand is L, or Uᵀ where the matrix is
    /// stored by rows.
    pub fn units<V: Simd>(&self) -> [usize; 2] {
        if self.op.is_trans() { [V::NR, MV * V::LANES] } else { [MV * V::LANES, V::NR] }
    }
}
