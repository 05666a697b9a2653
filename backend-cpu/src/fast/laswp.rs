//! Exchanges of rows or columns by a pivot vector.

use lapidary_core::{Side, Swaps};

use super::simd::Lanes;
use crate::reference::laswp as plain;
use crate::tile::Tile;

/// Columns that are exchanged together: few enough that the lines of their
/// pivot rows stay in the first-level cache.
const STRIP: usize = 4;
/// Rows of a strip whose columns are exchanged: a few cache lines.
const ROWS: usize = 256;

/// Exchanges rows (or columns) `i` and `ipiv[i] − first_row` for all `i`.
///
/// # Safety
/// The [contract of tiles](crate::tile); all pivots lie in the tile.
pub unsafe fn laswp<T: Lanes>(swaps: Swaps, a: Tile<T>, ipiv: Tile<i32>) {
    // SAFETY: the caller's contract for parts of A.
    unsafe {
        match swaps.side {
            Side::Right => {
                for i in (0..a.rows()).step_by(ROWS) {
                    plain(swaps, a.sub(i, 0, ROWS.min(a.rows() - i), a.cols()), ipiv);
                }
            }
            Side::Left => {
                for j in (0..a.cols()).step_by(STRIP) {
                    plain(swaps, a.sub(0, j, a.rows(), STRIP.min(a.cols() - j)), ipiv);
                }
            }
        }
    }
}
