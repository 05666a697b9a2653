//! Memory: what may be written and what must stay as it was, bit for bit.

use std::fmt::Display;

use lapidary_core::{Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, Result as CoreResult, Scalar, Side, Trsm};

use crate::cases::{Fill, Rng, Storage, Stored};
use crate::trial::Trial;
use crate::{Failure, Subject};

/// A call that should succeed did.
///
/// # Errors
/// It did not.
pub fn completed<R>(check: &'static str, result: CoreResult<R>) -> Result<R, Failure> {
    result.map_err(|error| Failure::of_call(check, &error))
}

/// An operand that is only read is bit for bit what it was, with its surroundings.
///
/// # Errors
/// An element changed.
pub fn read_only<T: Scalar>(name: &str, before: &Stored<T>, after: &Stored<T>) -> Result<(), Failure> {
    match after.changed(before) {
        None => Ok(()),
        Some(at) => Err(Failure::new("memory: read-only operand", format!("{name} changed at element {at} of its buffer"))),
    }
}

/// Gap rows, the surroundings of a sub-view and the canaries past the end are
/// bit for bit what they were.
///
/// # Errors
/// An element outside the matrix changed.
pub fn surroundings<T: Scalar>(name: &str, after: &Stored<T>) -> Result<(), Failure> {
    canaries(name, after.damaged())
}

/// No canary around an operand was damaged.
///
/// # Errors
/// One was, at this place.
pub fn canaries(name: &str, damaged: Option<usize>) -> Result<(), Failure> {
    match damaged {
        None => Ok(()),
        Some(at) => Err(Failure::new("memory: canaries", format!("element {at} of the buffer around {name} changed"))),
    }
}

/// A call with wrong arguments says so and writes nothing.
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

/// gemm refuses operands whose extents do not agree.
///
/// # Errors
/// It accepts them, calls it something else, or writes to C.
pub fn gemm_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for (a, b) in [((5, 3), (3, 6)), ((4, 3), (3, 5)), ((4, 2), (3, 6)), ((0, 0), (3, 6)), ((3, 4), (3, 6))] {
        let (left, right) = (stored::<T>(a.0, a.1), stored::<T>(b.0, b.1));
        let case = format!("gemm A {}×{} B {}×{} C 4×6", a.0, a.1, b.0, b.1);
        refused(case, &stored::<T>(4, 6), |c| trial.subject.gemm(Gemm::new(left.view(), right.view(), c.view_mut())))?;
    }
    Ok(())
}

/// trsm refuses a matrix that is not square or of the wrong order.
///
/// # Errors
/// It accepts it, calls it something else, or writes to B.
pub fn trsm_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for (rows, cols, side) in [(4, 3, Side::Left), (5, 5, Side::Left), (4, 4, Side::Right), (0, 0, Side::Left)] {
        let a = stored::<T>(rows, cols);
        let case = format!("trsm {side} A {rows}×{cols} B 4×6");
        refused(case, &stored::<T>(4, 6), |b| trial.subject.trsm(Trsm::new(a.view(), b.view_mut()).side(side)))?;
    }
    Ok(())
}

/// getrf refuses room for another number of row exchanges.
///
/// # Errors
/// It accepts it, calls it something else, or writes to A.
pub fn getrf_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for len in [3, 5, 0] {
        let mut ipiv = vec![0; len];
        refused(format!("getrf A 4×6 ipiv {len}"), &stored::<T>(4, 6), |a| {
            trial.subject.getrf(Getrf::new(a.view_mut(), &mut ipiv))
        })?;
    }
    Ok(())
}

/// getrs refuses wrong shapes and rows that do not exist.
///
/// # Errors
/// It accepts them, calls it something else, or writes to B.
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

/// laswp refuses rows that do not exist and more exchanges than rows.
///
/// # Errors
/// It accepts them, calls it something else, or writes to A.
pub fn laswp_errors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let wrong: [&[i32]; 3] = [&[0, 4], &[-1], &[0, 1, 2, 3, 0]];
    for ipiv in wrong {
        refused(format!("laswp A 4×3 ipiv {ipiv:?}"), &stored::<T>(4, 3), |a| {
            trial.subject.laswp(Laswp::new(a.view_mut(), ipiv))
        })?;
    }
    Ok(())
}
