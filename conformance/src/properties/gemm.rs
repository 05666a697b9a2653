//! Properties of the matrix product.

use lapidary_core::{Gemm, Scalar};

use super::memory::{completed, read_only, surroundings};
use crate::bounds::{self, real};
use crate::cases::gemm::GemmData;
use crate::cases::{Fill, GemmCase, Rng, Storage, Stored};
use crate::failure::{Worst, ratio};
use crate::memory_check::for_elements;
use crate::oracle::Dense;
use crate::oracle::product::{Product, product};
use crate::oracle::residual::times;
use crate::trial::{Evidence, Trial};
use crate::{Failure, Subject};

/// Checks one call of gemm: the memory around the operands, the class of each element (finite, NaN, +∞, −∞), bounds 1, 2 and 3, and
/// bound 5 for integers.
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_gemm<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &GemmCase) -> Result<(), Failure> {
    checked::<S, T>(trial.subject, &trial.case(case), case).map_err(|failure| failure.in_case(case))
}

fn checked<S: Subject + ?Sized, T: Scalar>(subject: &S, seen: &Evidence<'_>, case: &GemmCase) -> Result<(), Failure> {
    let data = case.data::<T>();
    let c = run(subject, case, &data)?;
    let (a, b, old) = data.operands(case);
    let exact = product::<T>(case.alpha, &a, &b, case.beta, &old);
    accurate::<T>(case, seen, &exact, &c.dense(), bounds::underflow(case.k, case.alpha, subject.smallest::<T>()))?;
    if exact.rounded().is_finite() && !case.fill.is_tiny() {
        let ratio = normwise(case, [&a, &b, &old], &exact.error(&c.dense()));
        seen.within("gemm: norm-wise", bounds::gemm_normwise::<T>(), ratio)?;
    }
    Ok(())
}

/// Calls gemm of the subject, checks the canaries around the operands, and returns C.
pub(super) fn run<S: Subject + ?Sized, T: Scalar>(subject: &S, case: &GemmCase, data: &GemmData<T>) -> Result<Stored<T>, Failure> {
    let before = data.clone();
    let mut c = data.c.clone();
    completed("gemm: completes", subject.gemm(data.args(case, &mut c)))?;
    read_only("A", &before.a, &data.a)?;
    read_only("B", before.b(), data.b())?;
    surroundings("C", &c)?;
    Ok(c)
}

fn accurate<T: Scalar>(case: &GemmCase, seen: &Evidence<'_>, exact: &Product, c: &Dense, slack: f64) -> Result<(), Failure> {
    classes(exact, c)?;
    if case.fill == Fill::Integers {
        let unequal = |at| Failure::new("gemm: exact integers", "not equal").at(at).exceeds(bounds::exact(), f64::NAN);
        return seen.exact("gemm: exact integers", exact.unequal(c).map_or(Ok(()), |at| Err(unequal(at))));
    }
    let worst = exact.worst(c, slack);
    seen.worst("gemm: componentwise", bounds::gemm_componentwise::<T>(case.k), worst)?;
    // bound 3 holds for numbers of either sign. If all numbers have the same sign, even the sums of plain loops exceed bound 3 as k
    // grows
    if case.fill == Fill::Positive { Ok(()) } else { seen.worst("gemm: Netlib", bounds::netlib_gemm::<T>(), worst) }
}

/// Checks that each element of C has the class of the exact result: finite, NaN, +∞ or −∞.
fn classes(exact: &Product, c: &Dense) -> Result<(), Failure> {
    let Some(at) = exact.other_class(c) else { return Ok(()) };
    let detail = format!("expected {}, got {}", exact.value(at.0, at.1).value(), c.at(at.0, at.1));
    Err(Failure::new("gemm: class", detail).at(at))
}

/// The ratio that bound 2 limits.
fn normwise(case: &GemmCase, [a, b, c]: [&Dense; 3], error: &Dense) -> f64 {
    let norm = |factor: f64, norm: &dyn Fn() -> f64| if factor == 0.0 { 0.0 } else { factor.abs() * norm() };
    let product = norm(case.alpha, &|| a.norm_frobenius() * b.norm_frobenius());
    let old = norm(case.beta, &|| c.norm_frobenius());
    ratio(error.norm_frobenius(), bounds::gemm_normwise_scale(case.k, product, old))
}

/// Tests bound 4 with products of matrices whose elements are all `1 + δ`. A computation in a lower precision loses δ.
///
/// # Errors
/// The computation lost δ, so that a lower precision was used.
pub fn check_precision<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    // δ = 2^-25 is lost when 1 + δ is rounded to f32, and δ = 2^-12 is lost when 1 + δ is rounded to TF32, f16 or bf16
    let delta = if T::UNIT_ROUNDOFF < 1e-10 { (-25.0_f64).exp2() } else { (-12.0_f64).exp2() };
    for size in [1, 16, 96] {
        let ones = Stored::<T>::new(&Dense::from_fn(size, size, |_, _| 1.0 + delta), Storage::default());
        let mut c = ones.clone();
        completed("gemm: completes", trial.subject.gemm(Gemm::new(ones.view(), ones.view(), c.view_mut())))?;
        let expected = real(size) * (1.0 + 2.0 * delta + delta * delta);
        let error = c.dense().map(|x| x - expected).max_abs() / expected;
        trial.ledger.evidence("NN", size).within("gemm: precision", bounds::precision::<T>(size), error)?;
    }
    Ok(())
}

/// Tests bound 6: compares `C·t` with `α·A·(B·t) + β·C₀·t` in O(n²) operations. Then the function replaces the numbers of the case
/// by integers, for which `C·t` must equal `α·A·(B·t) + β·C₀·t` (bound 5). The comparison with integers finds an error in a single
/// element that bound 6 would allow.
///
/// # Errors
/// An element of the checksum exceeds its bound, or memory outside C was written.
pub fn check_checksum<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &GemmCase) -> Result<(), Failure> {
    for_elements(case.m * case.k + case.k * case.n + case.m * case.n)?;
    checksum::<S, T>(trial, case, "gemm: checksum", bounds::checksum::<T>(case.k))?;
    let exact = GemmCase { fill: Fill::Integers, ..*case };
    checksum::<S, T>(trial, &exact, "gemm: exact checksum", bounds::exact())
}

fn checksum<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    case: &GemmCase,
    check: &'static str,
    bound: bounds::Bound,
) -> Result<(), Failure> {
    let (data, seen) = (case.data::<T>(), trial.case(case));
    let verdict =
        run(trial.subject, case, &data).and_then(|c| seen.worst(check, bound, checksum_error::<T>(case, &data, &c.dense())));
    verdict.map_err(|failure| failure.in_case(case))
}

fn checksum_error<T: Scalar>(case: &GemmCase, data: &GemmData<T>, c: &Dense) -> Worst {
    let (a, b, old) = data.operands(case);
    // a zero in the vector t would leave a column of C out of the checksum
    let t = case.fill.matrix::<f64>(case.n, 1, &mut Rng::new(!case.seed)).map(|t| if t == 0.0 { 1.0 } else { t });
    let checksum = |alpha, beta, [a, b, c, t]: [&Dense; 4]| product::<T>(alpha, a, &times::<T>(b, t), beta, &times::<T>(c, t));
    let expected = checksum(case.alpha, case.beta, [&a, &b, &old, &t]);
    let sizes = [&a, &b, &old, &t].map(|x| x.map(f64::abs));
    let scale = checksum(case.alpha.abs(), case.beta.abs(), sizes.each_ref());
    let mut worst = Worst::default();
    for ((i, j), x) in times::<T>(c, &t).elements() {
        worst.record(ratio(expected.value(i, j).distance(x), scale.value(i, j).value()), (i, j));
    }
    worst
}
