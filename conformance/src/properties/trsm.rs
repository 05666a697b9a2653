//! Properties of the triangular solve.

use lapidary_core::{Scalar, TrsmMode};

use super::memory::{completed, read_only, surroundings};
use crate::bounds;
use crate::cases::trsm::System;
use crate::cases::{Fill, TrsmCase};
use crate::failure::ratio;
use crate::oracle::Dense;
use crate::oracle::product::same_class;
use crate::oracle::residual::linear;
use crate::trial::{Evidence, Trial};
use crate::{Failure, Subject};

/// Runs all checks of one call of trsm: canaries, the classes of the elements or the spread of NaN, and bound 7 or 5. If an
/// equation has a special pivot, IEEE division defines the right result.
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_trsm<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &TrsmCase) -> Result<(), Failure> {
    let x = run::<S, T>(trial.subject, case, &case.system::<T>()).map_err(|failure| failure.in_case(case))?;
    solved::<S, T>(trial, case, &case.system_for::<T>(trial.subject.smallest::<T>()), &x)
}

/// Checks that `x` solves the system within the bound of `case.mode`.
fn solved<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    case: &TrsmCase,
    system: &System,
    x: &Dense,
) -> Result<(), Failure> {
    let seen = trial.case(case);
    let plain = system.solve::<T>(case.alpha, case.uplo());
    let verdict = match case.mode {
        TrsmMode::Substitution => substituted::<T>(case, &seen, system, [&plain, x], trial.subject.smallest::<T>()),
        TrsmMode::Inverted => inverted::<T>(case, &seen, system, [&plain, x]),
    };
    verdict.map_err(|failure| failure.in_case(case))
}

/// Calls trsm of the subject, checks the canaries, and returns the solution in the form with one column for each right-hand side.
pub(super) fn run<S: Subject + ?Sized, T: Scalar>(subject: &S, case: &TrsmCase, system: &System) -> Result<Dense, Failure> {
    let (a, mut b) = case.store::<T>(system);
    let before = a.clone();
    completed("trsm: completes", subject.trsm(case.args(&a, &mut b)))?;
    read_only("A", &before, &a)?;
    surroundings("B", &b)?;
    Ok(case.to_side(&b.dense()))
}

fn substituted<T: Scalar>(
    case: &TrsmCase,
    seen: &Evidence<'_>,
    system: &System,
    [plain, x]: [&Dense; 2],
    smallest: f64,
) -> Result<(), Failure> {
    same_classes(plain, x, same_class)?;
    if case.fill == Fill::Integers && plain.is_finite() {
        return seen.exact("trsm: exact integers", exact(plain, x));
    }
    if !plain.is_finite() {
        return Ok(());
    }
    let slack = bounds::underflow(case.order, system.e.max_abs().max(case.alpha.abs()), smallest);
    let residual = linear::<T>(&system.e, x, case.alpha, &system.f);
    let worst = residual.worst(&x.map(|_| 0.0), slack);
    seen.worst("trsm: componentwise", bounds::trsm_substitution::<T>(case.order), worst)
}

fn exact(plain: &Dense, x: &Dense) -> Result<(), Failure> {
    #[allow(clippy::float_cmp, reason = "exact equality is the property")]
    match plain.elements().find(|&((i, j), value)| value != x.at(i, j)) {
        None => Ok(()),
        Some((at, _)) => Err(Failure::new("trsm: exact integers", "not equal").at(at).exceeds(bounds::exact(), f64::NAN)),
    }
}

/// Checks a solution by inverted blocks. A NaN may spread only within its own column. A NaN must not reach another column, and must
/// not disappear.
fn inverted<T: Scalar>(case: &TrsmCase, seen: &Evidence<'_>, system: &System, [plain, x]: [&Dense; 2]) -> Result<(), Failure> {
    same_classes(plain, x, |plain, x| plain.is_finite() || !x.is_finite())?;
    let clean = |a: &Dense, j: usize| a.column(j).iter().all(|x| x.is_finite());
    if let Some(j) = (0..x.cols()).find(|&j| clean(plain, j) && !clean(x, j)) {
        return Err(Failure::new("trsm: class", "NaN or ∞ in a column without any").at((0, j)));
    }
    if !plain.is_finite() || case.fill.is_tiny() {
        return Ok(());
    }
    let residual = linear::<T>(&system.e, x, case.alpha, &system.f).rounded().norm_one();
    let scale = system.e.norm_one() * x.norm_one();
    seen.within("trsm: norm-wise", bounds::trsm_inverted::<T>(case.order), ratio(residual, scale))
}

fn same_classes(plain: &Dense, x: &Dense, same: impl Fn(f64, f64) -> bool) -> Result<(), Failure> {
    match plain.elements().find(|&((i, j), value)| !same(value, x.at(i, j))) {
        None => Ok(()),
        Some(((i, j), value)) => Err(Failure::new("trsm: class", format!("expected {value}, got {}", x.at(i, j))).at((i, j))),
    }
}
