//! Properties of getrf followed by getrs.

use lapidary_core::{Getrf, Getrs, Scalar};

use super::memory::{canaries, completed, read_only, surroundings};
use crate::bounds;
use crate::cases::{Pivots, SolveCase, Stored};
use crate::oracle::Dense;
use crate::oracle::residual::{hpl, solution};
use crate::trial::{Evidence, Trial};
use crate::{Failure, Subject};

/// Checks getrf and getrs: the canaries around the operands, the residual of dget02 (bound 8) and the residual of HPL (bound 9).
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_solve<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &SolveCase) -> Result<(), Failure> {
    let ((a, b), seen) = (case.matrices::<T>(), trial.case(case));
    let verdict = run::<S, T>(trial.subject, case, &a, &b).and_then(|x| residuals::<T>(&seen, &a.under(case.op), &x, &b));
    verdict.map_err(|failure| failure.in_case(case))
}

/// Calls getrf and getrs of the subject, checks the canaries, and returns the solution.
pub(super) fn run<S: Subject + ?Sized, T: Scalar>(subject: &S, case: &SolveCase, a: &Dense, b: &Dense) -> Result<Dense, Failure> {
    let mut lu = Stored::<T>::new(a, case.storage[0]);
    let mut ipiv = Pivots::new(case.n);
    let info = completed("getrf: completes", subject.getrf(Getrf::new(lu.view_mut(), ipiv.rows_mut())))?;
    if info != 0 {
        return Err(Failure::new("getrf: info", format!("{info} for a regular matrix")));
    }
    let (factors, mut x) = (lu.clone(), Stored::<T>::new(b, case.storage[1]));
    completed("getrs: completes", subject.getrs(Getrs::new(lu.view(), ipiv.rows(), x.view_mut()).op(case.op)))?;
    read_only("LU", &factors, &lu)?;
    canaries("ipiv", ipiv.damaged())?;
    surroundings("B", &x)?;
    Ok(x.dense())
}

fn residuals<T: Scalar>(seen: &Evidence<'_>, a: &Dense, x: &Dense, b: &Dense) -> Result<(), Failure> {
    seen.within("solve: residual", bounds::solve_residual(), solution::<T>(a, x, b))?;
    seen.within("solve: HPL", bounds::hpl(), hpl::<T>(a, x, b))
}

/// Checks that getrf factors a singular matrix without an error, and that `info` names the first zero pivot. In the matrices of
/// this check, every panel after the first has zero pivots too.
///
/// # Errors
/// The factorisation returns an error, or `info` names another pivot.
pub fn check_singular_is_no_error<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for (order, first) in [(1, 1), (2, 2), (9, 2), (trial.scope.max.max(2), 2)] {
        // if all rows of a matrix are equal, all its pivots after the first are zero
        let a = Dense::from_fn(order, order, |_, _| if order == 1 { 0.0 } else { 1.0 });
        let case = SolveCase::packed(order);
        let (mut lu, mut ipiv) = (Stored::<T>::new(&a, case.storage[0]), vec![-1; order]);
        let seen = trial.case(&case);
        let info = completed("getrf: completes", trial.subject.getrf(Getrf::new(lu.view_mut(), &mut ipiv)))?;
        let wrong = || Failure::new("getrf: info", format!("{info}, expected {first}, for equal rows of order {order}"));
        seen.exact("getrf: info", if info == first { Ok(()) } else { Err(wrong()) })?;
    }
    Ok(())
}
