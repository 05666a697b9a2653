//! Exchanges of rows or columns by a pivot vector.

use super::simd::Lanes;
use crate::reference::{Axis, Order, laswp as plain};
use crate::tile::Tile;

/// Columns that are exchanged together: few enough that the lines of their
/// pivot rows stay in the first-level cache.
const STRIP: usize = 4;

/// Exchanges rows (or columns) `i` and `ipiv[i] − first_row` for all `i`.
///
/// # Safety
/// The [contract of tiles](crate::tile); all pivots lie in the tile.
pub unsafe fn laswp<T: Lanes>(axis: Axis, order: Order, first_row: usize, a: Tile<T>, ipiv: Tile<i32>) {
    // SAFETY: the caller's contract for parts of A.
    unsafe {
        match axis {
            Axis::Cols => {
                for i in (0..a.rows()).step_by(ROWS) {
                    plain(axis, order, first_row, a.sub(i, 0, ROWS.min(a.rows() - i), a.cols()), ipiv);
                }
            }
            Axis::Rows => {
                for j in (0..a.cols()).step_by(STRIP) {
                    plain(axis, order, first_row, a.sub(0, j, a.rows(), STRIP.min(a.cols() - j)), ipiv);
                }
            }
        }
    }
}

/// Rows of a strip whose columns are exchanged: a few cache lines.
const ROWS: usize = 256;
