//! Exchanges of rows or columns by a pivot vector.

use lapidary_core::{Side, Swaps};

use super::simd::Lanes;
use crate::reference::laswp as plain;
use crate::team::Team;
use crate::tile::Tile;

/// Number of columns whose rows are exchanged together. The number is so small that the cache lines of the pivot rows in these
/// columns stay in the first-level cache.
const STRIP: usize = 4;
/// Number of rows whose columns are exchanged together: 16 cache lines of each column in f32, 32 in f64.
const ROWS: usize = 256;

/// Exchanges rows (or columns) `i` and `ipiv[i] − first_row` for all `i`.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds, and all pivots lie in the tile.
pub unsafe fn laswp<T: Lanes>(team: &Team, swaps: Swaps, a: Tile<T>, ipiv: Tile<i32>) {
    let (lines, step) = match swaps.side {
        Side::Left => (a.cols(), STRIP),
        Side::Right => (a.rows(), ROWS),
    };
    team.in_strips(lines, ipiv.rows() as f64, |strip| {
        for start in strip.clone().step_by(step) {
            let count = step.min(strip.end - start);
            // SAFETY: the caller guarantees the contract of tiles for each part of A.
            unsafe {
                match swaps.side {
                    Side::Left => plain(swaps, a.sub(0, start, a.rows(), count), ipiv),
                    Side::Right => columns(swaps, a.sub(start, 0, count, a.cols()), ipiv),
                }
            }
        }
    });
}

/// Exchanges columns of `a` by the pivots in `ipiv`.
unsafe fn columns<T: Lanes>(Swaps { forward, first_row, .. }: Swaps, a: Tile<T>, ipiv: Tile<i32>) {
    let steps = ipiv.rows();
    for step in 0..steps {
        let i = if forward { step } else { steps - 1 - step };
        // SAFETY: the caller guarantees that all pivots lie in the tile, and two different columns do not overlap.
        unsafe {
            let p = ipiv.get(i, 0) as usize - first_row;
            if i != p {
                std::ptr::swap_nonoverlapping(a.at(0, i), a.at(0, p), a.rows());
            }
        }
    }
}
