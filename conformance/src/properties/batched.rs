//! Properties of the batched routines: each matrix of a batch must satisfy the bounds of the single routine, and nothing outside
//! the matrices may be written.

use lapidary_core::{GemmBatched, GetrfBatched, GetrsBatched, Scalar};

use super::memory::{canaries, completed};
use crate::bounds;
use crate::cases::batched::{BatchCase, StoredBatch};
use crate::cases::{Fill, Rng};
use crate::oracle::product::product;
use crate::oracle::residual::{factors, solution, unpack};
use crate::oracle::{Dense, loops};
use crate::trial::{Evidence, Trial};
use crate::{Failure, Subject};

/// Initial value of each row exchange and each `info`. No routine writes this value.
const UNTOUCHED: i32 = -77;

/// Checks that batched products satisfy bound 1, and bound 5 for integers. A NaN or an infinity in one matrix may appear only in
/// the product of this matrix.
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_products<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    case: &BatchCase,
    [alpha, beta]: [f64; 2],
) -> Result<(), Failure> {
    products::<S, T>(trial, case, [alpha, beta]).map_err(|failure| failure.in_case(case))
}

fn products<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    case: &BatchCase,
    [alpha, beta]: [f64; 2],
) -> Result<(), Failure> {
    let (BatchCase { count, m, n, k, ops: [op_a, op_b], .. }, seen) = (*case, trial.case(case));
    let (of_a, of_b, rng) = (op_a.shape((m, k)), op_b.shape((k, n)), &mut Rng::new(case.seed));
    let [a, b, old] = [of_a, of_b, (m, n)].map(|(rows, cols)| case.matrices::<T>(rows, cols, rng));
    let (a_stored, b_stored, mut c) = (case.store::<T>(&a, of_a), case.store::<T>(&b, of_b), case.store::<T>(&old, (m, n)));
    let before = [a_stored.clone(), b_stored.clone()];
    let args = GemmBatched::new(a_stored.view(), b_stored.view(), c.view_mut()).op_a(op_a).op_b(op_b);
    let call = trial.subject.gemm_batched(args.alpha(T::from_f64(alpha)).beta(T::from_f64(beta)));
    completed("batched: completes", call)?;
    unchanged(&[("A", &before[0], &a_stored), ("B", &before[1], &b_stored)])?;
    canaries("C", c.damaged())?;
    for i in 0..count {
        let (exact, got) = (product::<T>(alpha, &a[i].under(op_a), &b[i].under(op_b), beta, &old[i]), c.dense(i));
        if let Some(at) = exact.other_class(&got) {
            let detail = format!("matrix {i}: expected {}, got {}", exact.value(at.0, at.1).value(), got.at(at.0, at.1));
            return Err(Failure::new("batched: class", detail).at(at));
        }
        if case.fill == Fill::Integers {
            let unequal = |at| Failure::new("batched: exact integers", format!("matrix {i}")).at(at);
            seen.exact("batched: exact integers", exact.unequal(&got).map_or(Ok(()), |at| Err(unequal(at))))?;
        }
        seen.worst("batched: componentwise", bounds::gemm_componentwise::<T>(k), exact.worst(&got, 0.0))
            .map_err(|f| of_matrix(f, i))?;
    }
    Ok(())
}

fn of_matrix(failure: Failure, i: usize) -> Failure {
    Failure { detail: format!("matrix {i}: {}", failure.detail), ..failure }
}

fn unchanged<T: Scalar>(operands: &[(&str, &StoredBatch<T>, &StoredBatch<T>)]) -> Result<(), Failure> {
    let changed = operands.iter().find_map(|(name, before, after)| Some((name, after.changed(before)?)));
    let failure = |(name, at): (&&str, usize)| Failure::new("memory: read-only operand", format!("element {at} of {name} changed"));
    changed.map_or(Ok(()), |changed| Err(failure(changed)))
}

/// The factors, the row exchanges and the `info` of each matrix of a batch.
struct Factored<T> {
    lu: StoredBatch<T>,
    ipiv: Vec<i32>,
    info: Vec<i32>,
}

/// Factors the matrices by `getrf_batched` of the subject. The function fails if a canary was overwritten, or if a pivot is a row
/// that is already eliminated.
fn factored<S: Subject + ?Sized, T: Scalar>(subject: &S, case: &BatchCase, a: &[Dense]) -> Result<Factored<T>, Failure> {
    let BatchCase { count, m, n, .. } = *case;
    let (mut lu, order) = (case.store::<T>(a, (m, n)), m.min(n));
    let (mut ipiv, mut info) = (vec![UNTOUCHED; count * order], vec![UNTOUCHED; count]);
    completed("batched: completes", subject.getrf_batched(GetrfBatched::new(lu.view_mut(), &mut ipiv, &mut info)))?;
    canaries("A", lu.damaged())?;
    for (at, &p) in ipiv.iter().enumerate() {
        let (i, j) = (at / order, at % order);
        if !usize::try_from(p).is_ok_and(|p| (j..m).contains(&p)) {
            return Err(Failure::new("batched: pivots", format!("pivot {j} of matrix {i} = {p} is not in {j}..{m}")));
        }
    }
    Ok(Factored { lu, ipiv, info })
}

impl<T: Scalar> Factored<T> {
    fn rows(&self, i: usize, order: usize) -> Vec<usize> {
        self.ipiv[i * order..][..order].iter().map(|&p| usize::try_from(p).expect("checked")).collect()
    }
}

/// Checks that batched factors satisfy bound 8. If the batch has several matrices, the second one has a column of zeros: its `info`
/// must name the zero pivot, and the factors of all other matrices must satisfy bound 8.
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_factors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &BatchCase) -> Result<(), Failure> {
    let seen = trial.case(case);
    factors_of::<S, T>(trial, &seen, case).map_err(|failure| failure.in_case(case))
}

fn factors_of<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, seen: &Evidence<'_>, case: &BatchCase) -> Result<(), Failure> {
    let (BatchCase { count, m, n, .. }, rng) = (*case, &mut Rng::new(case.seed));
    let (order, mut a) = (m.min(n), case.matrices::<T>(m, n, rng));
    let zero = (count > 1 && order > 0).then(|| rng.below(order));
    if let Some(zero) = zero {
        (0..m).for_each(|i| a[1].set(i, zero, 0.0));
    }
    let computed = factored::<S, T>(trial.subject, case, &a)?;
    for (i, a) in a.iter().enumerate() {
        let expected = zero.filter(|_| i == 1).map_or(0, |zero| zero + 1);
        let info = usize::try_from(computed.info[i]).ok();
        let wrong = || Failure::new("batched: info", format!("{} of matrix {i}, expected {expected}", computed.info[i]));
        seen.exact("batched: info", if info == Some(expected) { Ok(()) } else { Err(wrong()) })?;
        if order == 0 {
            continue;
        }
        let (lu, rows) = (computed.lu.dense(i), computed.rows(i, order));
        let excess = unpack(&lu).0.max_abs() - 1.0;
        let excess = if excess < 0.0 { 0.0 } else { excess };
        seen.within("batched: multipliers", bounds::multiplier::<T>(), excess).map_err(|failure| of_matrix(failure, i))?;
        let residual = factors::<T>(&lu, &rows, a);
        seen.within("batched: getrf", bounds::getrf_residual(), residual).map_err(|failure| of_matrix(failure, i))?;
    }
    Ok(())
}

/// Checks that a NaN in one matrix of a batch leaves the factors of all other matrices unchanged, bit for bit.
///
/// # Errors
/// The factors of another matrix changed, or the factors of the matrix with the NaN are finite.
pub fn check_nan_stays<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &BatchCase) -> Result<(), Failure> {
    let mut a = case.matrices::<T>(case.m, case.n, &mut Rng::new(case.seed));
    let verdict = factored::<S, T>(trial.subject, case, &a).and_then(|clean| {
        a[1].set(case.m / 2, case.n / 2, f64::NAN);
        let poisoned = factored::<S, T>(trial.subject, case, &a)?;
        let same = |i: usize| clean.lu.dense(i) == poisoned.lu.dense(i) && clean.info[i] == poisoned.info[i];
        match (0..case.count).find(|&i| i != 1 && !same(i)) {
            Some(i) => Err(Failure::new("batched: NaN", format!("a NaN of matrix 1 changed matrix {i}"))),
            None if poisoned.lu.dense(1).is_finite() => Err(Failure::new("batched: NaN", "a NaN left no trace in its factors")),
            None => Ok(()),
        }
    });
    verdict.map_err(|failure| failure.in_case(case))
}

/// Checks that solutions with A and with Aᵀ satisfy bound 8.
///
/// # Errors
/// The subject lacks a property that the function tests; the failure names the first such property.
pub fn check_solutions<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &BatchCase) -> Result<(), Failure> {
    let (case, seen) = (&BatchCase { n: case.m, ..*case }, trial.case(case));
    solutions::<S, T>(trial, &seen, case).map_err(|failure| failure.in_case(case))
}

fn solutions<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, seen: &Evidence<'_>, case: &BatchCase) -> Result<(), Failure> {
    let (BatchCase { n, k: nrhs, ops: [op, _], .. }, rng) = (*case, &mut Rng::new(case.seed));
    let (a, b) = (case.matrices::<T>(n, n, rng), case.matrices::<T>(n, nrhs, rng));
    let Factored { lu, ipiv, .. } = factored::<S, T>(trial.subject, case, &a)?;
    let (before, mut x) = (lu.clone(), case.store::<T>(&b, (n, nrhs)));
    completed("batched: completes", trial.subject.getrs_batched(GetrsBatched::new(lu.view(), &ipiv, x.view_mut()).op(op)))?;
    unchanged(&[("LU", &before, &lu)])?;
    canaries("B", x.damaged())?;
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        let residual = solution::<T>(&a.under(op), &x.dense(i), b);
        seen.within("batched: getrs", bounds::solve_residual(), residual).map_err(|failure| of_matrix(failure, i))?;
    }
    Ok(())
}

/// Checks that batched pivots and factors equal those of the oracle, for matrices whose factorisation has no rounding errors (bound
/// 11). Of several candidates with the same magnitude, the first row must be the pivot.
///
/// # Errors
/// A pivot or a factor differs from that of the oracle.
pub fn check_exact_factors<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &BatchCase) -> Result<(), Failure> {
    // the factorisation of a matrix with one column only divides by a power of two, so that it has no rounding errors; this matrix
    // has many equal candidates
    let case = &BatchCase { n: 1, ..*case };
    let rng = &mut Rng::new(case.seed);
    let a: Vec<Dense> =
        (0..case.count).map(|_| Dense::from_fn(case.m, 1, |_, _| rng.sign() * [1.0, 2.0, 4.0][rng.below(3)])).collect();
    let seen = trial.case(case);
    let verdict = factored::<S, T>(trial.subject, case, &a).and_then(|computed| {
        (0..case.count).try_for_each(|i| {
            let (lu, ipiv, _) = loops::factor(a[i].clone());
            let is_right = computed.rows(i, 1) == ipiv && computed.lu.dense(i) == lu;
            let wrong =
                || Failure::new("batched: exact factors", format!("matrix {i}: pivot {}, expected {ipiv:?}", computed.ipiv[i]));
            seen.exact("batched: exact factors", if is_right { Ok(()) } else { Err(wrong()) })
        })
    });
    verdict.map_err(|failure| failure.in_case(case))
}
