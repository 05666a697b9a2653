//! Properties of the LU factorisation.

use lapidary_core::Scalar;

use super::memory::{canaries, completed, surroundings};
use crate::bounds::{self, real};
use crate::cases::{Fill, GetrfCase, Rng, Shape};
use crate::memory_check::for_elements;
use crate::oracle::residual::{factors, factors_by_checksum, growth, unpack};
use crate::oracle::{Dense, loops};
use crate::trial::{Evidence, Trial};
use crate::{Failure, Subject};

/// The results of one factorisation.
#[derive(Clone, Debug)]
pub struct Factored {
    /// The factors L and U in one matrix, as getrf stores them.
    pub lu: Dense,
    /// The row exchanges, with rows counted from zero.
    pub ipiv: Vec<usize>,
    /// Zero, or the 1-based index of the first zero pivot.
    pub info: usize,
}

/// Runs all checks of one call of getrf: canaries, the range of the row exchanges, and the checks for the kind of matrix.
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_getrf<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &GetrfCase) -> Result<(), Failure> {
    let (a, seen) = (case.matrix::<T>(), trial.case(case));
    let verdict = run::<S, T>(trial.subject, case, &a).and_then(|factored| match case.shape {
        Shape::Random | Shape::Graded | Shape::Hilbert => regular::<T>(&seen, &a, &factored),
        Shape::Exact | Shape::Ties | Shape::TiesBelow | Shape::Singular | Shape::ZeroColumn | Shape::Permuted => {
            exact(&seen, &a, &factored)
        }
        Shape::Wilkinson => exact(&seen, &a, &factored).and_then(|()| grown(case.n, &a, &factored)),
        Shape::Dominant => unpivoted::<T>(&seen, &a, &factored),
        Shape::Nan => poisoned(&a, &factored),
        Shape::NanPivot => poisoned(&a, &factored).and_then(|()| divided(&factored)),
    });
    verdict.map_err(|failure| failure.in_case(case))
}

/// Tests an order at which the residual of all elements takes too long. The function checks the magnitudes of the multipliers, and
/// the product of the residual with a vector.
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_large<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &GetrfCase) -> Result<(), Failure> {
    for_elements(2 * case.m * case.n)?;
    let (a, seen) = (case.matrix::<T>(), trial.case(case));
    let rng = &mut Rng::new(!case.seed);
    let t = Fill::Uniform.matrix::<f64>(case.n, 1, rng);
    let verdict = run::<S, T>(trial.subject, case, &a).and_then(|factored| {
        multipliers::<T>(&seen, &factored)?;
        let residual = factors_by_checksum::<T>(&factored.lu, &factored.ipiv, &a, &t);
        seen.within("getrf: residual", bounds::getrf_residual(), residual)
    });
    verdict.map_err(|failure| failure.in_case(case))
}

/// Tests an order at which the oracle takes too long to factor. The matrix is a product of known factors, so that the pivots and
/// factors of the subject must equal the known ones (bounds 5 and 11).
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_large_exact<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &GetrfCase) -> Result<(), Failure> {
    for_elements(2 * case.m * case.n)?;
    let (a, (lu, ipiv)) = (case.matrix::<T>(), case.known_factors());
    let (right, seen) = (Factored { lu, ipiv, info: 0 }, trial.case(case));
    let verdict = run::<S, T>(trial.subject, case, &a);
    let verdict = verdict.and_then(|factored| seen.exact("getrf: exact factors", equal(&right, &factored)));
    verdict.map_err(|failure| failure.in_case(case))
}

/// Calls getrf of the subject. Fails if a row exchange names a row that is already eliminated.
pub(super) fn run<S: Subject + ?Sized, T: Scalar>(subject: &S, case: &GetrfCase, a: &Dense) -> Result<Factored, Failure> {
    let (mut stored, mut ipiv) = case.store::<T>(a);
    let info = completed("getrf: completes", subject.getrf(case.args(&mut stored, ipiv.rows_mut())))?;
    surroundings("A", &stored)?;
    canaries("ipiv", ipiv.damaged())?;
    let rows = ipiv.rows().iter().enumerate().map(|(i, &p)| row(i, p, case.m)).collect::<Result<_, _>>()?;
    Ok(Factored { lu: stored.dense(), ipiv: rows, info })
}

fn row(i: usize, p: i32, m: usize) -> Result<usize, Failure> {
    let named = usize::try_from(p).ok().filter(|p| (i..m).contains(p));
    named.ok_or_else(|| Failure::new("getrf: pivots", format!("ipiv[{i}] = {p} is not in {i}..{m}")))
}

fn regular<T: Scalar>(seen: &Evidence<'_>, a: &Dense, factored: &Factored) -> Result<(), Failure> {
    expect("getrf: info", factored.info, 0)?;
    multipliers::<T>(seen, factored)?;
    residual::<T>(seen, a, factored)
}

fn residual<T: Scalar>(seen: &Evidence<'_>, a: &Dense, factored: &Factored) -> Result<(), Failure> {
    seen.within("getrf: residual", bounds::getrf_residual(), factors::<T>(&factored.lu, &factored.ipiv, a))
}

/// Checks the largest multiplier `|l_ij|`. The recorded ratio is this multiplier minus one, since every factorisation has a
/// multiplier of about one.
fn multipliers<T: Scalar>(seen: &Evidence<'_>, factored: &Factored) -> Result<(), Failure> {
    let excess = unpack(&factored.lu).0.max_abs() - 1.0;
    // the function `max` would replace an excess that is NaN by zero
    seen.within("getrf: multipliers", bounds::multiplier::<T>(), if excess < 0.0 { 0.0 } else { excess })
}

/// Checks a factorisation without rounding errors: pivots, factors and `info` must equal those of the oracle.
fn exact(seen: &Evidence<'_>, a: &Dense, factored: &Factored) -> Result<(), Failure> {
    let (lu, ipiv, info) = loops::factor(a.clone());
    seen.exact("getrf: exact factors", equal(&Factored { lu, ipiv, info }, factored))
}

fn equal(right: &Factored, factored: &Factored) -> Result<(), Failure> {
    expect("getrf: info", factored.info, right.info)?;
    if let Some((i, expected)) = right.ipiv.iter().enumerate().find(|&(i, &p)| p != factored.ipiv[i]) {
        return Err(Failure::new("getrf: pivots", format!("ipiv[{i}] is {}, expected {expected}", factored.ipiv[i])));
    }
    #[allow(clippy::float_cmp, reason = "exact equality is the property")]
    match right.lu.elements().find(|&((i, j), x)| x != factored.lu.at(i, j)) {
        None => Ok(()),
        Some((at, _)) => Err(Failure::new("getrf: exact factors", "not equal").at(at).exceeds(bounds::exact(), f64::NAN)),
    }
}

fn grown(n: usize, a: &Dense, factored: &Factored) -> Result<(), Failure> {
    let expected = (real(n) - 1.0).exp2();
    let got = growth(&factored.lu, a);
    if (got - expected).abs() > 0.0 { Err(Failure::new("getrf: growth", format!("{got}, expected {expected}"))) } else { Ok(()) }
}

fn unpivoted<T: Scalar>(seen: &Evidence<'_>, a: &Dense, factored: &Factored) -> Result<(), Failure> {
    expect("getrf: info", factored.info, 0)?;
    if let Some(i) = (0..factored.ipiv.len()).find(|&i| factored.ipiv[i] != i) {
        return Err(Failure::new("getrf: pivots", format!("ipiv[{i}] = {} without pivoting", factored.ipiv[i])));
    }
    residual::<T>(seen, a, factored)
}

/// Checks that a NaN in A leaves a NaN or an infinity in the factors.
fn poisoned(a: &Dense, factored: &Factored) -> Result<(), Failure> {
    if !a.is_finite() && factored.lu.is_finite() {
        return Err(Failure::new("getrf: NaN", "a NaN of A left no trace in the factors"));
    }
    Ok(())
}

/// Checks that every element below a pivot that is NaN is NaN too.
fn divided(Factored { lu, .. }: &Factored) -> Result<(), Failure> {
    let is_kept = |i: usize, j: usize| i > j && lu.at(j, j).is_nan() && !lu.at(i, j).is_nan();
    match lu.elements().find(|&((i, j), _)| is_kept(i, j)) {
        None => Ok(()),
        Some((at, x)) => Err(Failure::new("getrf: NaN pivot", format!("{x} below a pivot that is NaN")).at(at)),
    }
}

fn expect(check: &'static str, got: usize, expected: usize) -> Result<(), Failure> {
    if got == expected { Ok(()) } else { Err(Failure::new(check, format!("{got}, expected {expected}"))) }
}
