//! Block sizes of triangular solves.

use super::{Blocking, MAX_TILE, Place, Resources, STRIP, half, longest_strip};

/// Order of the diagonal blocks of a triangular solve on devices that work in place. On devices that hold the triangle, it is the minimum order,
/// unless the triangle is smaller.
pub(super) const TRSM_NB: usize = 256;
/// Maximum order of the diagonal blocks if a device copies parts of the triangle. A part of the triangle then has columns of up to 16 KiB, which
/// is long enough for the full speed of a copy, and the known part of X is loaded once for every `COPIED_TRSM_NB` unknowns.
pub(super) const COPIED_TRSM_NB: usize = 2048;
/// Maximum number of right-hand sides in a strip. Kernels that solve with a diagonal block are slow for few right-hand sides: with 4808 unknowns, an
/// H200 computes 12.6 TFLOP/s for 601 right-hand sides, and 31.9 TFLOP/s for 4808 (`bench/profiles/h200.json`).
const WIDE_STRIP: usize = 4096;
/// Number of strips into which a device cuts its right-hand sides, if the strips then have [`STRIP`] to [`WIDE_STRIP`] columns. With fewer strips,
/// the device would wait longer for the first strip to be loaded and for the last strip to be stored.
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
        let per_share = nrhs.div_ceil(self.with_shares().count().max(1));
        // the triangle is cut into several diagonal blocks, so that the transfer of one block overlaps the solve with the
        // preceding block
        let nb = n.div_ceil(HELD_BLOCKS).next_multiple_of(16).max(TRSM_NB).min(n.max(1));
        let widest = (per_share / STRIPS).clamp(STRIP, WIDE_STRIP).max(longest_strip(n)).min(nrhs.max(1));
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

    /// Returns whether the memory of every device that copies has room for a triangle of order `n`, cut into blocks of `nb` rows, and for three
    /// strips of right-hand sides: the device loads one strip, solves for another, and stores the third. A register may take twice the memory
    /// of its elements ([`footprint`](crate::plan::footprint)).
    fn holds_triangle(&self, n: usize, nb: usize, strip: usize) -> bool {
        let (triangle, strips) = (n.saturating_mul(n.saturating_add(nb)), n.saturating_mul(strip).saturating_mul(6));
        let fits = |elements: usize, limit: Option<usize>| limit.is_some_and(|limit| elements <= limit / self.element);
        let largest = n.saturating_mul(nb.max(strip)).saturating_mul(2);
        fits(triangle.saturating_add(strips), self.memory) && fits(largest, self.copy_limit())
    }
}
