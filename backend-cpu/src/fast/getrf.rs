//! LU with partial pivoting: recursion on the columns.

use lapidary_core::{Diag, Op, Side, Swaps, Uplo};

use super::gemm::gemm;
use super::laswp::laswp;
use super::panel::{COLUMNS, panel};
use super::simd::Lanes;
use super::trsm::trsm;
use crate::tile::Tile;

/// P·A = L·U of an m × n tile, as in [`reference::getrf`](crate::reference::getrf).
///
/// # Safety
/// The [contract of tiles](crate::tile).
pub unsafe fn getrf<T: Lanes>(pivoting: bool, first_row: usize, a: Tile<T>, ipiv: Tile<i32>, info: &mut i32) {
    let (m, n) = a.shape();
    let steps = m.min(n);
    debug_assert!(ipiv.rows() >= steps);
    // SAFETY: the caller's contract for parts of A and of the pivots.
    unsafe {
        if n <= COLUMNS {
            return panel(pivoting, first_row, a, ipiv, info);
        }
        let left = if m < n { steps } else { (n / 2).next_multiple_of(COLUMNS) };
        if left == 0 {
            return;
        }
        let right = n - left;
        let [a1, a2] = [a.sub(0, 0, m, left), a.sub(0, left, m, right)];
        let (p1, p2) = (ipiv.sub(0, 0, left, 1), ipiv.sub(left, 0, steps - left, 1));
        let swap = |part, pivots, first_row| {
            if pivoting {
                laswp(Swaps { side: Side::Left, forward: true, first_row }, part, pivots);
            }
        };
        // P1·A1 = L1·U11
        getrf(pivoting, first_row, a1, p1, info);
        // A2 ← P1·A2;  U12 = L11⁻¹·A12
        swap(a2, p1, first_row);
        let u12 = a2.sub(0, 0, left, right);
        trsm(Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit, T::ONE, a.sub(0, 0, left, left), u12);
        // A22 ← A22 − L21·U12;  P2·A22 = L22·U22;  L21 ← P2·L21
        let (l21, a22) = (a.sub(left, 0, m - left, left), a2.sub(left, 0, m - left, right));
        gemm(Op::NoTrans, Op::NoTrans, -T::ONE, l21, u12, T::ONE, a22);
        getrf(pivoting, first_row + left, a22, p2, info);
        swap(l21, p2, first_row + left);
    }
}
