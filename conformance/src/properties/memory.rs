//! Checks of memory: which elements a routine may write, and which elements must keep their bits.

use std::fmt::Display;

use lapidary_core::{Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, Result as CoreResult, Scalar, Side, Trsm, TrsmMode};

use crate::cases::{Fill, Rng, Storage, Stored};
use crate::trial::Trial;
use crate::{Failure, Subject};

/// Converts the error of a call that should succeed to the failure of `check`.
///
/// # Errors
/// The call of the subject returned an error.
pub fn completed<R>(check: &'static str, result: CoreResult<R>) -> Result<R, Failure> {
    result.map_err(|error| Failure::of_call(check, &error))
}

/// Checks that a read-only operand and the elements around it have the same bits as before the call.
///
/// # Errors
/// An element of the operand, or of the buffer around it, changed.
pub fn read_only<T: Scalar>(name: &str, before: &Stored<T>, after: &Stored<T>) -> Result<(), Failure> {
    match after.changed(before) {
        None => Ok(()),
        Some(at) => Err(Failure::new("memory: read-only operand", format!("{name} changed at element {at} of its buffer"))),
    }
}

/// Checks that a call has not changed the elements outside the matrix: the gaps, the elements around a sub-view, and the canaries
/// after the end of the matrix.
///
/// # Errors
/// An element outside the matrix changed.
pub fn surroundings<T: Scalar>(name: &str, after: &Stored<T>) -> Result<(), Failure> {
    canaries(name, after.damaged())
}

/// Checks that no canary around an operand was overwritten.
///
/// # Errors
/// The canary with index `damaged` was overwritten.
pub fn canaries(name: &str, damaged: Option<usize>) -> Result<(), Failure> {
    match damaged {
        None => Ok(()),
        Some(at) => Err(Failure::new("memory: canaries", format!("element {at} of the buffer around {name} changed"))),
    }
}

/// Checks that a call with wrong arguments returns `InvalidArgument` and writes nothing.
fn refused<T: Scalar, R>(
    case: impl Display,
    before: &Stored<T>,
    mut call: impl FnMut(&mut Stored<T>) -> CoreResult<R>,
) -> Result<(), Failure> {
    let mut after = before.clone();
    let fail = |detail: &str| Err(Failure::new("errors: wrong arguments", format!("{case}: {detail}")));
    match call(&mut after).map_err(|e: Error| e.kind()) {
        Ok(_) => fail("accepted"),
        Err(ErrorKind::InvalidArgument) if after.changed(before).is_none() => Ok(()),
        Err(ErrorKind::InvalidArgument) => fail("refused, but the output changed"),
        Err(kind) => fail(&format!("refused as {kind}, not as an invalid argument")),
    }
}

fn stored<T: Scalar>(rows: usize, cols: usize) -> Stored<T> {
    Stored::new(&Fill::Uniform.matrix::<T>(rows, cols, &mut Rng::new(1)), Storage::default())
}

/// Checks that gemm refuses operands whose extents do not agree.
///
/// # Errors
/// The subject accepts the operands, returns an error of another kind, or writes to C.
pub fn gemm_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for (a, b) in [((5, 3), (3, 6)), ((4, 3), (3, 5)), ((4, 2), (3, 6)), ((0, 0), (3, 6)), ((3, 4), (3, 6))] {
        let (left, right) = (stored::<T>(a.0, a.1), stored::<T>(b.0, b.1));
        let case = format!("gemm A {}×{} B {}×{} C 4×6", a.0, a.1, b.0, b.1);
        refused(case, &stored::<T>(4, 6), |c| trial.subject.gemm(Gemm::new(left.view(), right.view(), c.view_mut())))?;
    }
    Ok(())
}

/// Checks that trsm refuses a triangular matrix that is not square or has the wrong order.
///
/// # Errors
/// The subject accepts the matrix, returns an error of another kind, or writes to B.
pub fn trsm_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for (rows, cols, side) in [(4, 3, Side::Left), (5, 5, Side::Left), (4, 4, Side::Right), (0, 0, Side::Left)] {
        let a = stored::<T>(rows, cols);
        let case = format!("trsm {side} A {rows}×{cols} B 4×6");
        refused(case, &stored::<T>(4, 6), |b| {
            trial.subject.trsm(Trsm::new(a.view(), b.view_mut()).side(side).mode(TrsmMode::Substitution))
        })?;
    }
    Ok(())
}

/// Checks that getrf refuses an array for row exchanges whose length is wrong.
///
/// # Errors
/// The subject accepts the array, returns an error of another kind, or writes to A.
pub fn getrf_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for len in [3, 5, 0] {
        let mut ipiv = vec![0; len];
        refused(format!("getrf A 4×6 ipiv {len}"), &stored::<T>(4, 6), |a| {
            trial.subject.getrf(Getrf::new(a.view_mut(), &mut ipiv))
        })?;
    }
    Ok(())
}

/// Checks that getrs refuses operands whose shapes do not agree, and row indices outside the matrix.
///
/// # Errors
/// The subject accepts the arguments, returns an error of another kind, or writes to B.
pub fn getrs_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let wrong: [(usize, usize, &[i32]); 5] =
        [(4, 3, &[0, 1, 2]), (3, 3, &[0, 1, 2]), (4, 4, &[0, 1, 2]), (4, 4, &[0, 1, 2, 4]), (4, 4, &[-1, 1, 2, 3])];
    for (rows, cols, ipiv) in wrong {
        let lu = stored::<T>(rows, cols);
        let case = format!("getrs A {rows}×{cols} B 4×2 ipiv {ipiv:?}");
        refused(case, &stored::<T>(4, 2), |b| trial.subject.getrs(Getrs::new(lu.view(), ipiv, b.view_mut())))?;
    }
    Ok(())
}

/// Checks that laswp refuses row indices outside the matrix, and more exchanges than the matrix has rows.
///
/// # Errors
/// The subject accepts an `ipiv` with an index outside A or with more entries than A has rows, returns an error other than
/// `InvalidArgument`, or writes to A.
pub fn laswp_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let wrong: [&[i32]; 3] = [&[0, 4], &[-1], &[0, 1, 2, 3, 0]];
    for ipiv in wrong {
        refused(format!("laswp A 4×3 ipiv {ipiv:?}"), &stored::<T>(4, 3), |a| {
            trial.subject.laswp(Laswp::new(a.view_mut(), ipiv))
        })?;
    }
    Ok(())
}
