//! The inverse of a triangular matrix, by recursion.

use lapidary_core::{Diag, Op, Uplo};

use super::gemm::gemm;
use super::simd::Lanes;
use super::transpose::scale;
use crate::reference;
use crate::team::Team;
use crate::tile::Tile;

/// Maximum order of a triangle that the plain loops of the reference path invert.
const ORDER: usize = 16;

/// inverse ← A⁻¹ for a triangular A.
///
/// The triangle of `inverse` opposite to `uplo` becomes zero. If A has a unit diagonal, ones are written to the diagonal of
/// `inverse`.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn trtri<T: Lanes>(team: &Team, uplo: Uplo, diag: Diag, a: Tile<T>, inverse: Tile<T>) {
    let n = a.rows();
    debug_assert!(a.shape() == (n, n) && inverse.shape() == (n, n));
    // SAFETY: the caller guarantees the contract of tiles for each part of A and of `inverse`.
    unsafe {
        if n <= ORDER {
            return reference::trtri(uplo, diag, a, inverse);
        }
        let (h, r) = ((n / 2).next_multiple_of(ORDER), n - (n / 2).next_multiple_of(ORDER));
        let [x11, x22] = [inverse.sub(0, 0, h, h), inverse.sub(h, h, r, r)];
        trtri(team, uplo, diag, a.sub(0, 0, h, h), x11);
        trtri(team, uplo, diag, a.sub(h, h, r, r), x22);
        let [x21, x12] = [inverse.sub(h, 0, r, h), inverse.sub(0, h, h, r)];
        let (a21, below, left, right, beside) = match uplo {
            Uplo::Lower => (a.sub(h, 0, r, h), x21, x22, x11, x12),
            Uplo::Upper => (a.sub(0, h, h, r), x12, x11, x22, x21),
        };
        // the block `beside`, which ends as zero, temporarily holds the transpose of the first product:
        // X12 ← X11ᵀ·A21ᵀ;  X21 ← −X22·X12ᵀ;  X12 ← 0
        gemm(team, Op::Trans, Op::Trans, T::ONE, right, a21, T::ZERO, beside);
        gemm(team, Op::NoTrans, Op::Trans, -T::ONE, left, beside, T::ZERO, below);
        scale(team, T::ZERO, beside);
    }
}
