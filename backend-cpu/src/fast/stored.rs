//! One type for column-major and row-major matrices.

use lapidary_core::Op;

use super::gemm::MV;
use super::simd::Simd;
use crate::tile::Tile;

/// A column-major matrix (`op` is `NoTrans`, `tile` is the matrix), or a row-major one (`op` is `Trans`, `tile` is its transpose).
#[derive(Clone, Copy)]
pub(super) struct Stored<T> {
    pub tile: Tile<T>,
    pub op: Op,
}

impl<T: Copy> Stored<T> {
    /// Whether the matrix is row-major.
    pub fn is_by_rows(&self) -> bool {
        self.op.is_trans()
    }

    /// Number of rows and number of columns of the matrix.
    pub fn shape(&self) -> (usize, usize) {
        self.op.shape(self.tile.shape())
    }

    /// The `rows` × `cols` part of the matrix that starts at element (i, j). For a row-major matrix, the result is the transpose of
    /// this part.
    pub fn sub(&self, i: usize, j: usize, rows: usize, cols: usize) -> Tile<T> {
        if self.is_by_rows() { self.tile.sub(j, i, cols, rows) } else { self.tile.sub(i, j, rows, cols) }
    }

    /// Number of rows of L and number of columns of U that the micro-kernel takes at a time. The first operand of the micro-kernel
    /// is L if the matrix is column-major, and Uᵀ if the matrix is row-major.
    pub fn units<V: Simd>(&self) -> [usize; 2] {
        if self.is_by_rows() { [V::NR, MV * V::LANES] } else { [MV * V::LANES, V::NR] }
    }
}
