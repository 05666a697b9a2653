//! A product of few rows and columns but many terms by a team: members claim ranges of the terms, and the partial products are
//! added in order.

use lapidary_core::Scalar;

use super::gemm::{Gemm, KC_BYTES};
use super::pack::Workspace;
use super::simd::Lanes;
use crate::team::{Pieces, Team};
use crate::tile::Tile;

/// With fewer floating-point operations per member and block of terms, members of a product with shared operands
/// ([`super::shared`]) wait too often (bench/results/2026-11-25-cpu-deep.txt).
const FLOPS_OF_BLOCK: f64 = 48e6;
/// Maximum number of rows or columns of C: a longer side can be divided among the members.
const LONGEST: usize = 512;
/// Number of ranges per member. With several, a slow member claims fewer than the others.
const RANGES: usize = 4;
/// Minimum number of terms in a range, as a multiple of the rows or columns of C: to add partial products is little work then.
const DEPTH: usize = 2;
/// Maximum number of elements of all partial products. The calling thread keeps this memory for later calls.
const ROOM: usize = 4 << 20;

/// The number of ranges of terms into which a product is cut; 1 if it is not.
pub(super) fn ranges<T: Scalar>(gemm: &Gemm<T>, members: usize) -> usize {
    let (m, n) = gemm.c.shape();
    let of_block = 2.0 * m as f64 * n as f64 * gemm.k.min(KC_BYTES / size_of::<T>()) as f64;
    let ranges = (RANGES * members).min(gemm.k / (DEPTH * m.max(n))).min(ROOM / (m * n));
    let pays = m.max(n) <= LONGEST && of_block < FLOPS_OF_BLOCK * members as f64;
    if pays && ranges >= members { ranges } else { 1 }
}

/// Computes the product in so many ranges of terms.
///
/// # Safety
/// The [contract of tiles](crate::tile).
pub(super) unsafe fn by_ranges<T: Lanes>(team: &Team, members: usize, ranges: usize, gemm: &Gemm<T>) {
    let ((m, n), length) = (gemm.c.shape(), gemm.k.div_ceil(ranges));
    let ranges = gemm.k.div_ceil(length);
    let mut workspace = Workspace::of_team::<T>(ranges * m * n);
    let partial = Partial(workspace.ptr::<T>());
    let pieces = Pieces::default();
    // SAFETY: the caller's operands; the workspace holds a partial product for each range, which no other member writes.
    team.run_in_time(members, &|_| unsafe {
        while let Some(range) = pieces.take(ranges) {
            let from = range * length;
            let (k, c) = (length.min(gemm.k - from), partial.of(range, m, n));
            Gemm { k, a: gemm.a.at(0, from), b: gemm.b.at(from, 0), beta: T::ZERO, c, ..*gemm }.on_this_thread();
        }
    });
    // SAFETY: all ranges are done, and the strips of C are separate.
    team.in_strips(n, (ranges * m) as f64, |cols| unsafe {
        for j in cols {
            for i in 0..m {
                let sum = (1..ranges).fold(partial.of(0, m, n).get(i, j), |sum, range| sum + partial.of(range, m, n).get(i, j));
                gemm.c.set(i, j, if gemm.beta == T::ZERO { sum } else { gemm.beta * gemm.c.get(i, j) + sum });
            }
        }
    });
}

/// The partial products, one after the other.
struct Partial<T>(*mut T);

// SAFETY: this is an address. Only unsafe functions access the memory; their callers rule out data races.
unsafe impl<T: Sync> Sync for Partial<T> {}

impl<T: Scalar> Partial<T> {
    /// The partial product of a range.
    ///
    /// # Safety
    /// `range` is less than the number of ranges in the workspace.
    unsafe fn of(&self, range: usize, m: usize, n: usize) -> Tile<T> {
        // SAFETY: as the caller promises.
        unsafe { Tile::new(self.0.wrapping_add(range * m * n), m, n, m) }
    }
}
