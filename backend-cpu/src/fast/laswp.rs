//! Exchanges of rows or columns by a pivot vector.

use lapidary_core::{Side, Swaps};

use super::simd::Lanes;
use crate::reference::laswp as plain;
use crate::team::Team;
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
pub unsafe fn laswp<T: Lanes>(team: &Team, swaps: Swaps, a: Tile<T>, ipiv: Tile<i32>) {
    let (lines, step) = match swaps.side {
        Side::Left => (a.cols(), STRIP),
        Side::Right => (a.rows(), ROWS),
    };
    team.in_strips(lines, ipiv.rows() as f64, |strip| {
        for start in strip.clone().step_by(step) {
            let count = step.min(strip.end - start);
            let part = match swaps.side {
                Side::Left => a.sub(0, start, a.rows(), count),
                Side::Right => a.sub(start, 0, count, a.cols()),
            };
            // SAFETY: the caller's contract for parts of A.
            unsafe { plain(swaps, part, ipiv) }
        }
    });
}
