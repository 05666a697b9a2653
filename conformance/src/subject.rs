//! What the suite grades.

use lapidary_core::{Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm};

/// Anything that computes the routines on host matrices.
///
/// Each method owes what the argument struct's documentation says; the suite
/// assumes nothing else. Wrong shapes are to be answered with
/// [`ErrorKind::InvalidArgument`](lapidary_core::ErrorKind::InvalidArgument)
/// before anything is written.
pub trait Subject {
    /// How reports call it, for example `cpu:0`.
    fn name(&self) -> String;

    /// `C ← α·op(A)·op(B) + β·C`.
    ///
    /// # Errors
    /// Wrong shapes, or a failed device.
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()>;

    /// `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹`.
    ///
    /// # Errors
    /// Wrong shapes, or a failed device.
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()>;

    /// `A = P·L·U` in place. The value is LAPACK's `info`: zero, or the 1-based
    /// index of the first pivot that is exactly zero.
    ///
    /// # Errors
    /// Wrong shapes, or a failed device; never a zero pivot.
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize>;

    /// `B ← op(A)⁻¹·B` from the factors of A.
    ///
    /// # Errors
    /// Wrong shapes or row indices, or a failed device.
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()>;

    /// Row exchanges.
    ///
    /// # Errors
    /// Wrong row indices, or a failed device.
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()>;
}
