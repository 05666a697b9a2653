//! How a problem is cut: block sizes as values, chosen from sizes and devices.

use std::ops::Range;

use crate::enums::{Side, TrsmMode};
use crate::plan::footprint;
use crate::scalar::DType;

/// Block sizes of one call. Which of them an algorithm uses stands in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Rows of a result tile.
    pub mc: usize,
    /// Columns of a result tile.
    pub nc: usize,
    /// Inner extent of one product.
    pub kc: usize,
    /// Order of a diagonal block; width of a panel.
    pub nb: usize,
    /// Into how many tasks, at most, the update of one step is divided: more
    /// tasks balance better, fewer tasks load the panel less often.
    pub share: usize,
}

/// Cuts `0..n` into blocks of `r`, of which the last two share the remainder
/// equally: no block is much smaller than the others, so that performance
/// against `n` is smooth (the NIISI partition).
#[must_use]
pub fn partition(n: usize, r: usize) -> Vec<Range<usize>> {
    let r = r.clamp(1, n.max(1));
    let regular = if n.is_multiple_of(r) { n / r } else { n / r - 1 };
    let mut blocks: Vec<_> = (0..regular).map(|i| i * r..(i + 1) * r).collect();
    let (start, rest) = (regular * r, n - regular * r);
    let middle = start + half(rest).min(r);
    blocks.extend([start..middle, middle..n].into_iter().filter(|block| !block.is_empty()));
    blocks
}

/// How many blocks [`partition`] makes.
#[must_use]
pub fn block_count(n: usize, r: usize) -> usize {
    n.div_ceil(r.clamp(1, n.max(1)))
}

/// With more blocks than this along one side, commands are not counted one by one. A plan has at least one command for
/// each block, and nobody makes a plan of that length.
pub(crate) const MAX_COUNTED_BLOCKS: usize = 1 << 20;

/// Half of `n`. A half of at least 128 is rounded up to a multiple of 16, so that kernels work on whole vectors.
fn half(n: usize) -> usize {
    let half = n.div_ceil(2);
    if half >= 128 { half.next_multiple_of(16) } else { half }
}

/// What the choice of block sizes needs to know about the devices of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Number of devices.
    pub devices: usize,
    /// The smallest memory among devices that copy, in bytes, or two of the largest buffers if that is less; `None` if all
    /// devices work in place.
    pub copy_limit: Option<usize>,
    /// The smallest memory among devices that copy, in bytes.
    pub memory: Option<usize>,
    /// Bytes of one element.
    pub element: usize,
    /// Whether the matrices lie on one device, which then takes the problem as a whole.
    pub resident: bool,
}

/// A smaller tile than this is never chosen: a device without room for it is refused.
const LEAST_TILE: usize = 8;
/// A larger square tile gains nothing.
const MOST_TILE: usize = 4096;
/// Elements of a tile that is longer than that: its transfer takes a hundred times a launch.
const MOST_ELEMENTS: usize = 1 << 20;

/// The `step`-th order of a tile: every one below 64, multiples of 16 from there on.
fn order(step: usize) -> usize {
    if step < 64 { step } else { (step - 60).saturating_mul(16) }
}

impl Resources {
    /// The extents of the largest cube, clipped to `extents` (m, n and k of a product), for which two sets of tiles of A, B and C
    /// fit in the limit: the device computes with one set while the other is transferred. In a cube the tiles of A, B and C have
    /// the same size, so that no operand is loaded much more often than another. If one of `extents` is shorter than the cube,
    /// the other two grow: the tiles still fill the memory, and the plan has few commands.
    fn copied_tile(&self, limit: usize, extents: [usize; 3]) -> [usize; 3] {
        let clipped = |order: usize| extents.map(|extent| extent.min(order));
        let fits = |order: usize| {
            let [m, n, k] = clipped(order);
            let faces = [(m, n), (m, k), (k, n)].map(|(rows, cols)| rows.saturating_mul(cols));
            let largest = faces.into_iter().fold(0, usize::max);
            let taken = faces.map(|face| footprint(face, largest)).into_iter().fold(0, usize::saturating_add);
            taken <= limit / self.element / 2 && (order <= MOST_TILE || largest <= MOST_ELEMENTS)
        };
        let longest = extents.into_iter().fold(LEAST_TILE, usize::max);
        let (mut least, mut most) = (LEAST_TILE, longest.saturating_add(1));
        while most - least > 1 {
            let middle = least.midpoint(most);
            let side = if fits(order(middle)) { &mut least } else { &mut most };
            *side = middle;
        }
        clipped(order(least))
    }

    /// Block sizes for a product of m×k by k×n.
    #[must_use]
    pub fn gemm(&self, m: usize, n: usize, k: usize) -> Blocking {
        let (mut mc, mut nc, mut kc) = (m, n, usize::MAX);
        if self.resident {
            return Blocking { mc, nc, kc, nb: 0, share: usize::MAX };
        }
        let most = if self.copy_limit.is_none() { MOST_TILE } else { usize::MAX };
        let tiles = |mc: usize, nc: usize| m.div_ceil(mc.max(1)).saturating_mul(n.div_ceil(nc.max(1)));
        // halve the longer side until every device has a tile and no tile is too large
        while (tiles(mc, nc) < self.devices || mc.max(nc) > most) && mc.max(nc) > 2 * LEAST_TILE {
            let side = if mc > nc { &mut mc } else { &mut nc };
            *side = half(*side);
        }
        if let Some(limit) = self.copy_limit {
            [mc, nc, kc] = self.copied_tile(limit, [mc, nc, k]);
        }
        Blocking { mc, nc, kc, nb: 0, share: usize::MAX }
    }

    /// Block sizes for a triangle of order `n` and `nrhs` right-hand sides.
    #[must_use]
    pub fn trsm(&self, n: usize, nrhs: usize, mode: TrsmMode) -> Blocking {
        if self.resident && mode == TrsmMode::Substitution {
            return Blocking { mc: n, nc: nrhs, kc: usize::MAX, nb: n.max(1), share: usize::MAX };
        }
        let per_device = nrhs.div_ceil(self.devices).max(1);
        // the transfers of one block hide behind the solve of the one before
        let nb = n.div_ceil(HELD_BLOCKS).next_multiple_of(16).max(TRSM_NB).min(n.max(1));
        if mode == TrsmMode::Substitution && self.holds(n.saturating_mul(n.saturating_add(nrhs)), nb.saturating_mul(n.max(nrhs))) {
            return Blocking { mc: nb, nc: per_device, kc: usize::MAX, nb, share: usize::MAX };
        }
        let (nb, nc, kc) = match self.copy_limit {
            None => (TRSM_NB, per_device.min(MOST_TILE).next_multiple_of(8), usize::MAX),
            Some(limit) => {
                let extents = match mode {
                    TrsmMode::Substitution => [n.clamp(1, TRSM_NB), per_device, n],
                    // inverses and the old right-hand sides take the memory that products leave
                    TrsmMode::Inverted => [MOST_TILE; 3],
                };
                let [nb, nc, kc] = self.copied_tile(limit, extents);
                (nb.min(TRSM_NB), nc.min(per_device), kc)
            }
        };
        Blocking { mc: nb, nc, kc, nb: nb.min(n.max(1)), share: usize::MAX }
    }

    /// Block sizes for exchanges of whole rows of m×n (of columns, from the
    /// right): strips of full height, of which two fit.
    #[must_use]
    pub fn laswp(&self, m: usize, n: usize, side: Side) -> Blocking {
        let (height, across) = if side == Side::Left { (m, n) } else { (n, m) };
        if self.resident {
            return Blocking { mc: m, nc: across.max(1), kc: 0, nb: 0, share: usize::MAX };
        }
        let pivots = height.saturating_mul(DType::I32.size());
        let fits = self
            .copy_limit
            .map_or(MOST_TILE, |limit| limit.saturating_sub(pivots) / self.element / height.max(1).saturating_mul(2));
        let nc = across.div_ceil(self.devices).min(fits).clamp(1, MOST_TILE.max(longest_strip(height)));
        Blocking { mc: m, nc, kc: 0, nb: 0, share: usize::MAX }
    }

    /// Whether the only device copies, and has memory for so many elements, of which `together` lie in one buffer, and for as
    /// many again.
    fn holds(&self, elements: usize, together: usize) -> bool {
        let fits =
            |elements: usize, limit: Option<usize>| limit.is_some_and(|limit| elements.saturating_mul(self.element) <= limit / 2);
        self.devices == 1 && fits(elements, self.memory) && fits(together, self.copy_limit)
    }

    /// Block sizes for a factorisation of m×n.
    #[must_use]
    pub fn getrf(&self, m: usize, n: usize) -> Blocking {
        // a device that holds the matrix factors it faster than what is streamed in panels
        if self.resident || self.holds(m.saturating_mul(n), m.saturating_mul(n)) {
            return Blocking { mc: m, nc: n, kc: n, nb: m.min(n).max(1), share: usize::MAX };
        }
        let (nb, nc, share) = match self.copy_limit {
            None => {
                let nb = panel_width(m.min(n));
                (nb, (n / (4 * self.devices)).next_multiple_of(8).clamp(nb.min(128), 512), usize::MAX)
            }
            Some(limit) => {
                // a panel, and two strips of the trailing matrix: one at work, one on its way
                let columns = limit / self.element / m.max(1);
                let nb = (columns / 3).clamp(LEAST_TILE, COPIED_NB);
                let share = SHARES * self.devices;
                // a panel of few rows has few columns, and leaves memory for wider strips
                let strip = if m < nb { columns.saturating_sub(m) / 2 } else { nb };
                (nb, strip.min(longest_strip(m)).min(n.div_ceil(share)).max(nb), share)
            }
        };
        Blocking { mc: m, nc, kc: nb, nb, share }
    }
}

/// Columns of the longest strip of `height` rows that is worth a transfer of its own.
fn longest_strip(height: usize) -> usize {
    MOST_ELEMENTS / height.max(1)
}

/// Order of the diagonal blocks of a triangular solve in place.
const TRSM_NB: usize = 256;
/// Maximum number of diagonal blocks of a triangle on the only device, if that device holds both matrices.
const HELD_BLOCKS: usize = 8;
/// Widest panel that is streamed: `4·P/B` for a memory bus of a few GB/s per core.
const COPIED_NB: usize = 768;

/// Number of update tasks of a step for each device that copies. With several tasks per device, a device that has spent its time
/// on the next panel runs fewer of them than the others.
const SHARES: usize = 4;

/// Width of a panel of a matrix that is factored in place: wide enough for a fast product in the update, narrow enough that the
/// factorisation of the panel takes no longer than the update that runs beside it.
fn panel_width(n: usize) -> usize {
    match n {
        0..512 => 32,
        512..2048 => 64,
        2048..6000 => 128,
        _ => 256,
    }
}

#[cfg(test)]
mod tests;
