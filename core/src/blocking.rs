//! Block sizes, which determine how an algorithm cuts a problem. Block sizes are values, chosen from the sizes of the problem and
//! from the devices of the call.

use std::ops::Range;

use crate::enums::{Side, TrsmMode};
use crate::plan::footprint;
use crate::scalar::DType;

/// Block sizes of one call. The documentation of each algorithm names the block sizes that the algorithm uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Number of rows of a result tile.
    pub mc: usize,
    /// Number of columns of a result tile.
    pub nc: usize,
    /// Inner extent of one product of tiles.
    pub kc: usize,
    /// Order of a diagonal block, or width of a panel.
    pub nb: usize,
    /// Maximum number of tasks into which the update of one step is divided. More tasks balance the load better; fewer tasks load
    /// the panel less often.
    pub share: usize,
}

/// Cuts `0..n` into blocks of length `r`. The last two blocks share the remainder equally, so that no block is much smaller than
/// the others and performance is a smooth function of `n`. This way to cut a range is known as the NIISI partition.
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

/// Number of blocks that [`partition`] returns for the same arguments.
#[must_use]
pub fn block_count(n: usize, r: usize) -> usize {
    n.div_ceil(r.clamp(1, n.max(1)))
}

/// Maximum number of blocks along one side of a problem whose commands are counted one by one. For a larger problem the number of
/// blocks serves as a lower bound. No plan with so many blocks is ever made.
pub(crate) const MAX_COUNTED_BLOCKS: usize = 1 << 20;

/// Half of `n`, rounded up. A result of at least 128 is rounded up to a multiple of 16, so that kernels work on whole vectors.
fn half(n: usize) -> usize {
    let half = n.div_ceil(2);
    if half >= 128 { half.next_multiple_of(16) } else { half }
}

/// The facts about the devices of a call from which block sizes are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Number of devices of the call.
    pub devices: usize,
    /// The smallest memory in bytes of a device that copies, or the size of two of its largest buffers if that is less. `None` if
    /// all devices work in place.
    pub copy_limit: Option<usize>,
    /// The smallest memory in bytes of a device that copies. `None` if all devices work in place.
    pub memory: Option<usize>,
    /// Size of one element in bytes.
    pub element: usize,
    /// Whether the matrices lie on one device, which then works on the problem as a whole.
    pub resident: bool,
}

/// Smallest order of a tile that is ever chosen. A device whose memory cannot hold tiles of the smallest order is refused.
const LEAST_TILE: usize = 8;
/// Largest order of a square tile. Larger square tiles are not faster.
const MAX_TILE: usize = 4096;
/// Maximum number of elements of a tile that has a side longer than [`MAX_TILE`]. The transfer of a tile with this number of
/// elements takes a hundred times as long as a kernel launch.
const MAX_ELEMENTS: usize = 1 << 20;

/// The `step`-th order of a tile, in ascending order: all numbers below 64, then multiples of 16.
fn order(step: usize) -> usize {
    if step < 64 { step } else { (step - 60).saturating_mul(16) }
}

impl Resources {
    /// Extents of the tiles of a product, for a device that copies. The extents are those of the largest cube, clipped to
    /// `extents` (m, n and k of the product), for which two sets of tiles of A, B and C fit in `limit` bytes: the device computes
    /// with one set while the other set is transferred. The tiles of a cube have equal sizes, so that no operand is loaded much
    /// more often than another operand. If one extent of the product is shorter than the side of the cube, the other two extents
    /// grow, so that the tiles still fill the memory and the plan has few commands.
    fn copied_tile(&self, limit: usize, extents: [usize; 3]) -> [usize; 3] {
        let clipped = |order: usize| extents.map(|extent| extent.min(order));
        let fits = |order: usize| {
            let [m, n, k] = clipped(order);
            let faces = [(m, n), (m, k), (k, n)].map(|(rows, cols)| rows.saturating_mul(cols));
            let largest = faces.into_iter().fold(0, usize::max);
            let taken = faces.map(|face| footprint(face, largest)).into_iter().fold(0, usize::saturating_add);
            taken <= limit / self.element / 2 && (order <= MAX_TILE || largest <= MAX_ELEMENTS)
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

    /// Block sizes of the product of an m×k matrix and a k×n matrix.
    #[must_use]
    pub fn gemm(&self, m: usize, n: usize, k: usize) -> Blocking {
        let (mut mc, mut nc, mut kc) = (m, n, usize::MAX);
        if self.resident {
            return Blocking { mc, nc, kc, nb: 0, share: usize::MAX };
        }
        let most = if self.copy_limit.is_none() { MAX_TILE } else { usize::MAX };
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

    /// Block sizes of a triangular solve with a triangle of order `n` and `nrhs` right-hand sides.
    #[must_use]
    pub fn trsm(&self, n: usize, nrhs: usize, mode: TrsmMode) -> Blocking {
        if self.resident && mode == TrsmMode::Substitution {
            return Blocking { mc: n, nc: nrhs, kc: usize::MAX, nb: n.max(1), share: usize::MAX };
        }
        let per_device = nrhs.div_ceil(self.devices).max(1);
        // the transfers of one block overlap the solve of the preceding block
        let nb = n.div_ceil(HELD_BLOCKS).next_multiple_of(16).max(TRSM_NB).min(n.max(1));
        if mode == TrsmMode::Substitution && self.holds(n.saturating_mul(n.saturating_add(nrhs)), nb.saturating_mul(n.max(nrhs))) {
            return Blocking { mc: nb, nc: per_device, kc: usize::MAX, nb, share: usize::MAX };
        }
        let (nb, nc, kc) = match self.copy_limit {
            None => (TRSM_NB, per_device.min(MAX_TILE).next_multiple_of(8), usize::MAX),
            Some(limit) => {
                let extents = match mode {
                    TrsmMode::Substitution => [n.clamp(1, TRSM_NB), per_device, n],
                    // inverses and copies of right-hand sides take the memory that the tiles of products leave
                    TrsmMode::Inverted => [MAX_TILE; 3],
                };
                let [nb, nc, kc] = self.copied_tile(limit, extents);
                (nb.min(TRSM_NB), nc.min(per_device), kc)
            }
        };
        Blocking { mc: nb, nc, kc, nb: nb.min(n.max(1)), share: usize::MAX }
    }

    /// Block sizes of exchanges of rows (`side` is left) or columns (right) of an m×n matrix. Strips have the full length of the
    /// matrix, and two strips fit in the memory.
    #[must_use]
    pub fn laswp(&self, m: usize, n: usize, side: Side) -> Blocking {
        let (height, across) = if side == Side::Left { (m, n) } else { (n, m) };
        if self.resident {
            return Blocking { mc: m, nc: across.max(1), kc: 0, nb: 0, share: usize::MAX };
        }
        let pivots = height.saturating_mul(DType::I32.size());
        let fits =
            self.copy_limit.map_or(MAX_TILE, |limit| limit.saturating_sub(pivots) / self.element / height.max(1).saturating_mul(2));
        let nc = across.div_ceil(self.devices).min(fits).clamp(1, MAX_TILE.max(longest_strip(height)));
        Blocking { mc: m, nc, kc: 0, nb: 0, share: usize::MAX }
    }

    /// Whether the call has a single device, and this device copies and has memory for twice `elements` elements, of which
    /// `together` elements lie in one buffer.
    fn holds(&self, elements: usize, together: usize) -> bool {
        let fits =
            |elements: usize, limit: Option<usize>| limit.is_some_and(|limit| elements.saturating_mul(self.element) <= limit / 2);
        self.devices == 1 && fits(elements, self.memory) && fits(together, self.copy_limit)
    }

    /// Block sizes of the LU factorisation of an m×n matrix.
    #[must_use]
    pub fn getrf(&self, m: usize, n: usize) -> Blocking {
        // a device whose memory holds the whole matrix factors it faster than panels that are loaded and stored one by one
        if self.resident || self.holds(m.saturating_mul(n), m.saturating_mul(n)) {
            return Blocking { mc: m, nc: n, kc: n, nb: m.min(n).max(1), share: usize::MAX };
        }
        let (nb, nc, share) = match self.copy_limit {
            None => {
                let nb = panel_width(m.min(n));
                (nb, (n / (4 * self.devices)).next_multiple_of(8).clamp(nb.min(128), 512), usize::MAX)
            }
            Some(limit) => {
                // the memory holds a panel and two strips of the trailing matrix: one strip is updated while the other is
                // transferred
                let columns = limit / self.element / m.max(1);
                let nb = (columns / 3).clamp(LEAST_TILE, COPIED_NB);
                let share = UPDATE_TASKS_PER_DEVICE * self.devices;
                // a panel has at most m columns; if m is small, the strips can use the memory that the panel leaves
                let strip = if m < nb { columns.saturating_sub(m) / 2 } else { nb };
                (nb, strip.min(longest_strip(m)).min(n.div_ceil(share)).max(nb), share)
            }
        };
        Blocking { mc: m, nc, kc: nb, nb, share }
    }
}

/// Number of columns at which a strip of `height` rows is long enough to be worth a transfer of its own.
fn longest_strip(height: usize) -> usize {
    MAX_ELEMENTS / height.max(1)
}

/// Order of the diagonal blocks of a triangular solve, if the memory and the triangle are large enough.
const TRSM_NB: usize = 256;
/// Maximum number of diagonal blocks of a triangle, if the call has a single device and this device holds both matrices.
const HELD_BLOCKS: usize = 8;
/// Maximum width of a panel that is streamed through a device: `4·P/B` (P operations and B bytes per second), for a memory bus of
/// a few GB/s per core.
const COPIED_NB: usize = 768;

/// Number of update tasks of a step, for each device that copies. A device that has spent time on the next panel then runs fewer
/// update tasks than the other devices.
const UPDATE_TASKS_PER_DEVICE: usize = 4;

/// Width of a panel of a matrix that is factored in place. The panel is wide enough for a fast product in the update. The panel
/// is narrow enough that its factorisation takes no longer than the update that runs at the same time.
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
