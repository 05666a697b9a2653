//! Block sizes of triangular solves.

use super::{Blocking, MAX_TILE, Place, Resources, STRIP, half, longest_strip};

/// Order of the diagonal blocks of a triangular solve on devices that work in place, and minimum order on devices that hold the triangle, unless
/// the triangle is smaller.
pub(super) const TRSM_NB: usize = 256;
/// Maximum order of the diagonal blocks if a device copies parts of the triangle. A part of the triangle then has columns of up to 16 KiB, which
/// is long enough for the full speed of a copy, and the known part of X is loaded once for every `COPIED_TRSM_NB` unknowns.
pub(super) const COPIED_TRSM_NB: usize = 2048;
/// Number of columns of a strip of right-hand sides from which on solves with a diagonal block are hardly faster. An H200 solves with 4808 unknowns
/// for 601 right-hand sides at 12.6 TFLOP/s, and for 4808 at 31.9 TFLOP/s (`bench/profiles/h200.json`).
const WIDE_STRIP: usize = 4096;
/// Minimum number of strips of the right-hand sides of a device, unless they are narrower than [`STRIP`] then. The first strip is loaded and the
/// last one stored while the device computes nothing.
const STRIPS: usize = 4;
/// Maximum number of diagonal blocks of a triangular solve on devices that hold the triangle.
pub(super) const HELD_BLOCKS: usize = 8;

impl Resources {
    /// Block sizes of a triangular solve with a triangle of order `n` and `nrhs` right-hand sides.
    #[must_use]
    pub fn trsm(&self, n: usize, nrhs: usize) -> Blocking {
        if self.resident {
            return Blocking { mc: nrhs, nc: nrhs, kc: usize::MAX, nb: n.max(1), share: usize::MAX, place: Place::Shared };
        }
        let per_device = nrhs.div_ceil(self.devices()).max(1);
        // the triangle is cut into several diagonal blocks, so that the transfer of one block overlaps the solve with the
        // preceding block
        let nb = n.div_ceil(HELD_BLOCKS).next_multiple_of(16).max(TRSM_NB).min(n.max(1));
        let widest = (per_device / STRIPS).clamp(STRIP, WIDE_STRIP).max(longest_strip(n)).min(nrhs.max(1));
        let mut strips = std::iter::successors(Some(widest), |&strip| (strip > STRIP).then(|| half(strip).max(STRIP)));
        if let Some(strip) = strips.find(|&strip| self.holds_triangle(n, nb, strip)) {
            let one = self.devices() == 1;
            let place = if one { Place::Shared } else { Place::Divided { parts: self.divided(n, nrhs, false) } };
            return Blocking { mc: strip, nc: nrhs.max(1), kc: usize::MAX, nb, share: usize::MAX, place };
        }
        let (mc, nb, nc, kc) = match self.copy_limit() {
            None => {
                let nc = per_device.min(MAX_TILE).next_multiple_of(8);
                (nc, TRSM_NB, nc, usize::MAX)
            }
            Some(limit) => {
                let [nb, nc, kc] = self.copied_tile(limit, [n.clamp(1, COPIED_TRSM_NB), per_device, n]);
                (0, nb, nc.min(per_device), kc)
            }
        };
        Blocking { mc, nc, kc, nb: nb.min(n.max(1)), share: usize::MAX, place: Place::Shared }
    }

    /// Whether each device that copies can hold a triangle of order `n` in blocks of `nb` rows, together with three
    /// strips of right-hand sides: one that is loaded, one for which it solves, and one that is stored. The memory of a register may be
    /// twice as large as its elements ([`footprint`]).
    fn holds_triangle(&self, n: usize, nb: usize, strip: usize) -> bool {
        let (triangle, strips) = (n.saturating_mul(n.saturating_add(nb)), n.saturating_mul(strip).saturating_mul(6));
        let fits = |elements: usize, limit: Option<usize>| limit.is_some_and(|limit| elements <= limit / self.element);
        let largest = n.saturating_mul(nb.max(strip)).saturating_mul(2);
        fits(triangle.saturating_add(strips), self.memory) && fits(largest, self.copy_limit())
    }
}
