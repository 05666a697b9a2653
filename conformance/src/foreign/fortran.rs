//! Calls `?gemm_`, `?trsm_`, `?getrf_`, `?getrs_` and `?laswp_`. All arguments are passed by reference, and all matrices are
//! column-major. The lengths of the character arguments stand at the end of the argument list.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use std::ffi::c_char;

use lapidary_core::{Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, Layout, Op, Result, Routine, Scalar, Trsm};

use super::integer::{Integer, from_one, from_zero, int};
use super::operand::{in_layout, input, output, with_columns, with_columns_mut};
use super::symbols::Interface;

type Flag = *const c_char;
type GemmFn<T, I> = unsafe extern "C" fn(
    Flag,
    Flag,
    *const I,
    *const I,
    *const I,
    *const T,
    *const T,
    *const I,
    *const T,
    *const I,
    *const T,
    *mut T,
    *const I,
    usize,
    usize,
);
type TrsmFn<T, I> = unsafe extern "C" fn(
    Flag,
    Flag,
    Flag,
    Flag,
    *const I,
    *const I,
    *const T,
    *const T,
    *const I,
    *mut T,
    *const I,
    usize,
    usize,
    usize,
    usize,
);
type GetrfFn<T, I> = unsafe extern "C" fn(*const I, *const I, *mut T, *const I, *mut I, *mut I);
type GetrsFn<T, I> = unsafe extern "C" fn(Flag, *const I, *const I, *const T, *const I, *const I, *mut T, *const I, *mut I, usize);
type LaswpFn<T, I> = unsafe extern "C" fn(*const I, *mut T, *const I, *const I, *const I, *const I, *const I);

/// The first letter of a flag.
fn letter(flag: &impl ToString) -> c_char {
    flag.to_string().as_bytes()[0] as c_char
}

/// The letter of an operation. The operation `Conj` changes no real number, so that its letter is that of `NoTrans`.
fn trans(op: Op) -> c_char {
    letter(if op == Op::Conj { &Op::NoTrans } else { &op })
}

/// Calls `?gemm_` for `C ← α·op(A)·op(B) + β·C`, or for `Cᵀ ← α·op(B)ᵀ·op(A)ᵀ + β·Cᵀ` if C is row-major. The caller has
/// checked the arguments.
pub(super) fn gemm<T: Scalar, I: Integer>(interface: &Interface, args: Gemm<'_, T>) -> Result<()> {
    const ROUTINE: Routine = Routine::Gemm;
    let Gemm { alpha, op_a, a, op_b, b, beta, c } = args;
    let (op_a, a, op_b, b, mut c) = match c.layout() {
        Layout::ColMajor => (op_a, a, op_b, b, c),
        Layout::RowMajor => (op_b.flip(), b, op_a.flip(), a, c.t()),
    };
    let k = op_a.shape(a.shape()).1;
    let [m, n, k] = [int::<I>(ROUTINE, "m", c.rows())?, int(ROUTINE, "n", c.cols())?, int(ROUTINE, "k", k)?];
    let ((op_a, a), (op_b, b)) = (in_layout(Layout::ColMajor, op_a, a), in_layout(Layout::ColMajor, op_b, b));
    let (a, b, c) = (input(ROUTINE, "lda", &a)?, input(ROUTINE, "ldb", &b)?, output(ROUTINE, "ldc", &mut c)?);
    let (ta, tb) = (trans(op_a), trans(op_b));
    // SAFETY: `GemmFn` is the type of `?gemm_` with the integers of this library, and the caller has checked the arguments. The
    // views a and b borrow their matrices for reading, and the view c borrows its matrix exclusively, so that no other access
    // conflicts.
    unsafe {
        let gemm: GemmFn<T, I> = interface.find::<T, _>(ROUTINE)?;
        gemm(&ta, &tb, &m, &n, &k, &alpha, a.at, &a.ld, b.at, &b.ld, &beta, c.at, &c.ld, 1, 1);
    }
    Ok(())
}

/// Calls `?trsm_` for `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹`, or for the transposed equation if B is row-major. The caller
/// has checked the arguments.
pub(super) fn trsm<T: Scalar, I: Integer>(interface: &Interface, args: Trsm<'_, T>) -> Result<()> {
    const ROUTINE: Routine = Routine::Trsm;
    let Trsm { side, uplo, op, diag, alpha, a, b, .. } = args;
    let (side, op, mut b) = match b.layout() {
        Layout::ColMajor => (side, op, b),
        Layout::RowMajor => (side.flip(), op.flip(), b.t()),
    };
    let uplo = if a.layout() == Layout::ColMajor { uplo } else { uplo.flip() };
    let (op, a) = in_layout(Layout::ColMajor, op, a);
    let [m, n] = [int::<I>(ROUTINE, "m", b.rows())?, int(ROUTINE, "n", b.cols())?];
    let (a, b) = (input(ROUTINE, "lda", &a)?, output(ROUTINE, "ldb", &mut b)?);
    let (side, uplo, op, diag) = (letter(&side), letter(&uplo), trans(op), letter(&diag));
    // SAFETY: `TrsmFn` is the type of `?trsm_` with the integers of this library, and the caller has checked the arguments. The
    // view a borrows its matrix for reading, and the view b borrows its matrix exclusively, so that no other access conflicts.
    unsafe {
        let trsm: TrsmFn<T, I> = interface.find::<T, _>(ROUTINE)?;
        trsm(&side, &uplo, &op, &diag, &m, &n, &alpha, a.at, &a.ld, b.at, &b.ld, 1, 1, 1, 1);
    }
    Ok(())
}

/// Calls `?getrf_` for `A = P·L·U` and returns `info`. The caller has checked the arguments.
pub(super) fn getrf<T: Scalar, I: Integer>(interface: &Interface, args: Getrf<'_, T>) -> Result<usize> {
    const ROUTINE: Routine = Routine::Getrf;
    let Getrf { a, ipiv, pivoting, .. } = args;
    if !pivoting {
        return Err(Error::new(ErrorKind::Unsupported, ROUTINE.name(), "LAPACK has no factorisation without pivoting"));
    }
    // LAPACK counts rows from one, so that zero marks a pivot that the library did not write. The array has one more element than
    // pivots, which detects a write past the end
    let (mut pivots, mut info) = (vec![I::from(0); ipiv.len() + 1], I::from(0));
    with_columns_mut(a, |mut a| {
        let [m, n] = [int::<I>(ROUTINE, "m", a.rows())?, int(ROUTINE, "n", a.cols())?];
        let a = output(ROUTINE, "lda", &mut a)?;
        // SAFETY: `GetrfFn` is the type of `?getrf_` with the integers of this library. The view borrows the matrix exclusively,
        // and this function owns `pivots`, which has more than min(m, n) elements.
        unsafe {
            let getrf: GetrfFn<T, I> = interface.find::<T, _>(ROUTINE)?;
            getrf(&m, &n, a.at, &a.ld, pivots.as_mut_ptr(), &mut info);
        }
        Ok(())
    })?;
    if from_zero(pivots[ipiv.len()]) != -1 {
        return Err(Error::new(ErrorKind::DeviceFailed, ROUTINE.name(), "the library writes past the end of ipiv"));
    }
    for (ours, theirs) in ipiv.iter_mut().zip(pivots) {
        *ours = from_zero(theirs);
    }
    answer(ROUTINE, info)
}

/// Calls `?getrs_` for `B ← op(A)⁻¹·B` from the factors. The caller has checked the arguments.
pub(super) fn getrs<T: Scalar, I: Integer>(interface: &Interface, args: Getrs<'_, T>) -> Result<()> {
    const ROUTINE: Routine = Routine::Getrs;
    let Getrs { op, lu, ipiv, b, .. } = args;
    let (op, pivots, mut info) = (trans(op), from_one::<I>(ipiv), I::from(0));
    with_columns(lu, |lu| {
        with_columns_mut(b, |mut b| {
            let [n, nrhs] = [int::<I>(ROUTINE, "n", b.rows())?, int(ROUTINE, "nrhs", b.cols())?];
            let (lu, b) = (input(ROUTINE, "lda", &lu)?, output(ROUTINE, "ldb", &mut b)?);
            // SAFETY: `GetrsFn` is the type of `?getrs_` with the integers of this library. The view lu borrows the factors for
            // reading, the view b borrows its matrix exclusively, and this function owns the n `pivots`, which are rows of A.
            unsafe {
                let getrs: GetrsFn<T, I> = interface.find::<T, _>(ROUTINE)?;
                getrs(&op, &n, &nrhs, lu.at, &lu.ld, pivots.as_ptr(), b.at, &b.ld, &mut info, 1);
            }
            Ok(())
        })
    })?;
    answer(ROUTINE, info).map(|_| ())
}

/// Calls `?laswp_` for row exchanges. The caller has checked the arguments.
pub(super) fn laswp<T: Scalar, I: Integer>(interface: &Interface, args: Laswp<'_, T>) -> Result<()> {
    const ROUTINE: Routine = Routine::Laswp;
    let Laswp { a, ipiv, forward } = args;
    let pivots = from_one::<I>(ipiv);
    with_columns_mut(a, |mut a| {
        let [n, last] = [int::<I>(ROUTINE, "n", a.cols())?, int(ROUTINE, "k2", ipiv.len())?];
        let (first, step) = (I::from(1), I::from(if forward { 1 } else { -1 }));
        let a = output(ROUTINE, "lda", &mut a)?;
        // SAFETY: `LaswpFn` is the type of `?laswp_` with the integers of this library. The view borrows the matrix exclusively,
        // and this function owns `pivots`, which are rows of A.
        unsafe {
            let laswp: LaswpFn<T, I> = interface.find::<T, _>(ROUTINE)?;
            laswp(&n, a.at, &a.ld, &first, &last, pivots.as_ptr(), &step);
        }
        Ok(())
    })
}

/// Returns `info`, or an error if `info` is negative, because LAPACK refuses an argument by a negative `info`.
fn answer<I: Integer>(routine: Routine, info: I) -> Result<usize> {
    let info: i64 = info.into();
    let refused =
        |_| Error::new(ErrorKind::DeviceFailed, routine.name(), format!("the library refuses argument {}", info.wrapping_neg()));
    usize::try_from(info).map_err(refused)
}
