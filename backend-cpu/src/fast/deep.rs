//! A product with few rows and columns but a large k, computed by a team. Members claim ranges of the k terms of each sum, and
//! compute a partial product for each range. The partial products of all ranges are added in a fixed order.

use lapidary_core::Scalar;

use super::gemm::Gemm;
use super::pack::Workspace;
use super::simd::Lanes;
use crate::team::{Team, WorkCounter};
use crate::tile::Tile;

/// If a block of terms takes fewer floating-point operations per member than this number, the terms are divided into ranges. With
/// so few operations, the members of a product with shared operands ([`super::shared`]) would wait for each other too often
/// (bench/results/2026-11-25-cpu-deep.txt).
const FLOPS_OF_BLOCK: f64 = 48e6;
/// Maximum number of rows, and of columns, of C if the terms are divided into ranges. A longer side of C can be divided among the
/// members instead of the terms.
const LONGEST: usize = 512;
/// Number of ranges per member. With several ranges per member, a slow member claims fewer ranges than the other members.
const RANGES: usize = 4;
/// Minimum number of terms in a range, as a multiple of the longer side of C. If the ranges are long, adding the partial products
/// takes little time compared with computing them.
const DEPTH: usize = 2;
/// Maximum number of elements of all partial products together. The calling thread keeps the memory of the partial products for
/// later calls.
const ROOM: usize = 4 << 20;

/// Number of ranges into which the terms of a product are divided; 1 if a division into ranges would not save time.
pub(super) fn ranges<T: Scalar>(gemm: &Gemm<T>, members: usize) -> usize {
    let (m, n) = gemm.c.shape();
    let of_block = 2.0 * m as f64 * n as f64 * gemm.k.min(gemm.max.kc) as f64;
    let ranges = (RANGES * members).min(gemm.k / (DEPTH * m.max(n))).min(ROOM / (m * n));
    let pays = m.max(n) <= LONGEST && of_block < FLOPS_OF_BLOCK * members as f64;
    if pays && ranges >= members { ranges } else { 1 }
}

/// Computes the product in `ranges` ranges of terms.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub(super) unsafe fn by_ranges<T: Lanes>(team: &Team, members: usize, ranges: usize, gemm: &Gemm<T>) {
    let ((m, n), length) = (gemm.c.shape(), gemm.k.div_ceil(ranges));
    let ranges = gemm.k.div_ceil(length);
    let mut workspace = Workspace::of_team::<T>(ranges * m * n);
    let partial = Partial(workspace.ptr::<T>());
    let pieces = WorkCounter::default();
    // SAFETY: the caller guarantees the contract of tiles. Each range has a partial product, which only one member writes.
    team.run_in_time(members, &|_| unsafe {
        while let Some(range) = pieces.take(ranges) {
            let from = range * length;
            let (k, c) = (length.min(gemm.k - from), partial.of(range, m, n));
            Gemm { k, a: gemm.a.at(0, from), b: gemm.b.at(from, 0), beta: T::ZERO, c, ..*gemm }.on_this_thread();
        }
    });
    // SAFETY: the members have computed the partial products of all ranges, and each member writes its own strip of C.
    team.in_strips(n, (ranges * m) as f64, |cols| unsafe {
        for j in cols {
            for i in 0..m {
                let sum = (1..ranges).fold(partial.of(0, m, n).get(i, j), |sum, range| sum + partial.of(range, m, n).get(i, j));
                gemm.c.set(i, j, if gemm.beta == T::ZERO { sum } else { gemm.beta * gemm.c.get(i, j) + sum });
            }
        }
    });
}

/// The partial products, stored one after the other.
struct Partial<T>(*mut T);

// SAFETY: only unsafe functions access the memory behind the pointer, and their callers rule out data races.
unsafe impl<T: Sync> Sync for Partial<T> {}

impl<T: Scalar> Partial<T> {
    /// The partial product of one range of terms.
    ///
    /// # Safety
    /// `range` is less than the number of ranges in the workspace.
    unsafe fn of(&self, range: usize, m: usize, n: usize) -> Tile<T> {
        // SAFETY: the caller guarantees that the partial product of `range` lies in the workspace.
        unsafe { Tile::new(self.0.wrapping_add(range * m * n), m, n, m) }
    }
}
