//! Calls `cblas_?gemm` and `cblas_?trsm` of a library.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use std::ffi::c_int;

use lapidary_core::{Diag, Gemm, Layout, Op, Result, Routine, Scalar, Side, Trsm, Uplo};

use super::integer::{Integer, int};
use super::operand::{in_layout, input, output};
use super::symbols::Interface;

type GemmFn<T, I> = unsafe extern "C" fn(c_int, c_int, c_int, I, I, I, T, *const T, I, *const T, I, T, *mut T, I);
type TrsmFn<T, I> = unsafe extern "C" fn(c_int, c_int, c_int, c_int, c_int, I, I, T, *const T, I, *mut T, I);

fn order(layout: Layout) -> c_int {
    match layout {
        Layout::RowMajor => 101,
        Layout::ColMajor => 102,
    }
}

/// The value of an operation in cblas. The operation `Conj` has no standard value. `Conj` changes no real number, so that the
/// function returns the value of `NoTrans`.
fn trans(op: Op) -> c_int {
    match op {
        Op::NoTrans | Op::Conj => 111,
        Op::Trans => 112,
        Op::ConjTrans => 113,
    }
}

fn uplo(uplo: Uplo) -> c_int {
    match uplo {
        Uplo::Upper => 121,
        Uplo::Lower => 122,
    }
}

fn diag(diag: Diag) -> c_int {
    match diag {
        Diag::NonUnit => 131,
        Diag::Unit => 132,
    }
}

fn side(side: Side) -> c_int {
    match side {
        Side::Left => 141,
        Side::Right => 142,
    }
}

/// Calls `cblas_?gemm` for `C ← α·op(A)·op(B) + β·C` in the layout of C. The caller has checked the arguments.
pub(super) fn gemm<T: Scalar, I: Integer>(interface: &Interface, mut args: Gemm<'_, T>) -> Result<()> {
    const ROUTINE: Routine = Routine::Gemm;
    let (m, n, k) = args.size();
    let [m, n, k] = [int::<I>(ROUTINE, "m", m)?, int(ROUTINE, "n", n)?, int(ROUTINE, "k", k)?];
    let layout = args.c.layout();
    let (op_a, a) = in_layout(layout, args.op_a, args.a);
    let (op_b, b) = in_layout(layout, args.op_b, args.b);
    let (a, b, c) = (input(ROUTINE, "lda", &a)?, input(ROUTINE, "ldb", &b)?, output(ROUTINE, "ldc", &mut args.c)?);
    // SAFETY: `GemmFn` is the type of `cblas_?gemm` with the integers of this library, and the caller has checked the arguments.
    // The views a and b borrow their matrices for reading, and the view c borrows its matrix exclusively, so that no other access
    // conflicts.
    unsafe {
        let gemm: GemmFn<T, I> = interface.find::<T, _>(ROUTINE)?;
        let (order, ta, tb) = (order(layout), trans(op_a), trans(op_b));
        gemm(order, ta, tb, m, n, k, args.alpha, a.at, a.ld, b.at, b.ld, args.beta, c.at, c.ld);
    }
    Ok(())
}

/// Calls `cblas_?trsm` for `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹` in the layout of B. The caller has checked the arguments.
pub(super) fn trsm<T: Scalar, I: Integer>(interface: &Interface, mut args: Trsm<'_, T>) -> Result<()> {
    const ROUTINE: Routine = Routine::Trsm;
    let [m, n] = [int::<I>(ROUTINE, "m", args.b.rows())?, int(ROUTINE, "n", args.b.cols())?];
    let layout = args.b.layout();
    let triangle = if args.a.layout() == layout { args.uplo } else { args.uplo.flip() };
    let (op, a) = in_layout(layout, args.op, args.a);
    let (a, b) = (input(ROUTINE, "lda", &a)?, output(ROUTINE, "ldb", &mut args.b)?);
    // SAFETY: `TrsmFn` is the type of `cblas_?trsm` with the integers of this library, and the caller has checked the arguments.
    // The view a borrows its matrix for reading, and the view b borrows its matrix exclusively, so that no other access conflicts.
    unsafe {
        let trsm: TrsmFn<T, I> = interface.find::<T, _>(ROUTINE)?;
        let (side, uplo, diag) = (side(args.side), uplo(triangle), diag(args.diag));
        trsm(order(layout), side, uplo, trans(op), diag, m, n, args.alpha, a.at, a.ld, b.at, b.ld);
    }
    Ok(())
}
