//! Estimates the reciprocal condition number from LU factors, and an error bound from a residual.
//!
//! Method: Higham, *FORTRAN codes for estimating the one-norm of a real or complex matrix*, ACM TOMS 14 (1988), as in LAPACK's
//! `lacn2`, `gecon` and `gerfs`. A few solves with A and Aᵀ give a lower bound of `‖A⁻¹‖₁`, which is seldom less than a third of
//! `‖A⁻¹‖₁`.

use lapidary_core::{Error, MatMut, Op, Result, Scalar};

use crate::equilibrate::{exponent, times_power};
use crate::lu::{Lu, check_system};

/// Maximum number of steps of the estimator.
const MAX_STEPS: usize = 5;

pub(crate) fn rcond<T: Scalar>(lu: &Lu<'_, T>, norm: f64) -> Result<f64> {
    let n = lu.factors().rows();
    check_system("rcond", &lu.factors(), n)?;
    if !(0.0..=f64::MAX).contains(&norm) {
        let hint = "‖A‖₁ is a finite number, zero or above; where it overflows, scale A first (lapidary::Equilibration)";
        return Err(Error::invalid("rcond", format!("norm = {norm}: {hint}")));
    }
    if n == 0 {
        return Ok(1.0);
    }
    if lu.info() != 0 || norm == 0.0 {
        return Ok(0.0);
    }
    // Elements of A⁻¹ may overflow or underflow in T. Since `unit` is about ‖A‖₁, the norm of `unit`·A⁻¹ is about the condition
    // number.
    let unit = unit::<T>(n, norm);
    let scaled_inverse = inverse_norm(n, |op, x: &mut [T]| {
        x.iter_mut().for_each(|value| *value = *value * unit);
        lu.solve_with(op, MatMut::col_major(x, n, 1)?)
    })?;
    let rcond = unit.to_f64() / norm / scaled_inverse;
    // An overflow or an infinite pivot means that the condition number exceeds the range of T.
    let is_known = rcond.is_finite() && lu.pivots("rcond")?.iter().all(|pivot| pivot.is_finite());
    Ok(if is_known { rcond.min(1.0) } else { 0.0 })
}

/// Returns a power of two near `norm`. `1/n` of the returned power of two, and sums of n numbers of its magnitude, stay in the
/// range of T.
fn unit<T: Scalar>(n: usize, norm: f64) -> T {
    let least = exponent(T::MIN_POSITIVE).unwrap_or(0);
    let room = i32::try_from(n.ilog2()).unwrap_or(0) + 2;
    T::from_f64(times_power(1.0, exponent(norm).unwrap_or(0).clamp(least + room, -least - room)))
}

/// Estimates the error bound `max_j units_j·(|A⁻¹|·residual)_j`.
pub(crate) fn error_bound<T: Scalar>(lu: &Lu<'_, T>, residual: &[f64], units: &[f64]) -> Result<f64> {
    let n = lu.factors().rows();
    check_system("error_bound", &lu.factors(), n)?;
    for (name, given) in [("residual", residual), ("units", units)] {
        if given.len() != n {
            return Err(Error::invalid("error_bound", format!("A is of order {n}, {name} holds {} elements", given.len())));
        }
    }
    let ((residual, most), (units, largest)) = (normalised::<T>(residual), normalised::<T>(units));
    if most == 0.0 || largest == 0.0 {
        return Ok(0.0);
    }
    // ‖W·A⁻¹·F‖_∞ = ‖F·A⁻ᵀ·W‖₁ for W = diag(units), F = diag(residual)
    let norm = inverse_norm(n, |op, x: &mut [T]| {
        let (first, then) = if op == Op::NoTrans { (&units, &residual) } else { (&residual, &units) };
        x.iter_mut().zip(first).for_each(|(x, &factor)| *x = *x * factor);
        lu.solve_with(op.flip(), MatMut::col_major(x, n, 1)?)?;
        x.iter_mut().zip(then).for_each(|(x, &factor)| *x = *x * factor);
        Ok(())
    })?;
    let bound = norm * most * largest;
    Ok(if bound.is_nan() { f64::INFINITY } else { bound })
}

/// Divides the magnitudes of `values` by the largest magnitude. Returns the quotients and the largest magnitude.
fn normalised<T: Scalar>(values: &[f64]) -> (Vec<T>, f64) {
    let largest = values.iter().fold(0.0, |most: f64, value| if value.is_nan() { f64::INFINITY } else { most.max(value.abs()) });
    let over = if largest == 0.0 { 1.0 } else { largest };
    (values.iter().map(|value| T::from_f64(value.abs() / over)).collect(), largest)
}

fn one_norm<T: Scalar>(x: &[T]) -> f64 {
    x.iter().map(|v| v.abs().to_f64()).sum()
}

/// Returns the index of the first element with the largest magnitude.
fn largest<T: Scalar>(x: &[T]) -> usize {
    (1..x.len()).fold(0, |best, i| if x[i].abs() > x[best].abs() { i } else { best })
}

fn signs<T: Scalar>(x: &[T]) -> Vec<T> {
    x.iter().map(|&v| if v.to_f64() < 0.0 { -T::ONE } else { T::ONE }).collect()
}

/// Computes a lower bound of `‖M‖₁`, for a matrix M of order n, by ascent along subgradients. `apply(op, x)` computes `x ←
/// op(M)·x`.
fn inverse_norm<T: Scalar>(n: usize, apply: impl Fn(Op, &mut [T]) -> Result<()>) -> Result<f64> {
    #[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
    let mut x = vec![T::from_f64(1.0 / n as f64); n];
    apply(Op::NoTrans, &mut x)?;
    let mut estimate = one_norm(&x);
    let mut sign = signs(&x);
    let mut peak = usize::MAX;
    for _ in 0..MAX_STEPS {
        // z = Mᴴ·sign(y); the index of the largest element of z is the next column of M to try
        let mut z = sign.clone();
        apply(Op::ConjTrans, &mut z)?;
        let steepest = largest(&z);
        if steepest == peak {
            break;
        }
        peak = steepest;
        let mut y = vec![T::ZERO; n];
        y[peak] = T::ONE;
        apply(Op::NoTrans, &mut y)?;
        let (next, next_sign) = (one_norm(&y), signs(&y));
        if next <= estimate || next_sign == sign {
            estimate = estimate.max(next);
            break;
        }
        (estimate, sign) = (next, next_sign);
    }
    let other = alternating(n, apply)?;
    // `f64::max` would discard a NaN
    Ok(if estimate.is_nan() || estimate > other { estimate } else { other })
}

/// Computes a second lower bound of `‖M‖₁` from a vector with elements of alternating sign and growing size. The caller uses the
/// larger of the second bound and the bound from the ascent, since the ascent may miss large columns of M.
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
fn alternating<T: Scalar>(n: usize, apply: impl Fn(Op, &mut [T]) -> Result<()>) -> Result<f64> {
    let entry = |i: usize| (1.0 + i as f64 / (n.max(2) - 1) as f64) * if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    let mut x: Vec<T> = (0..n).map(|i| T::from_f64(entry(i))).collect();
    apply(Op::NoTrans, &mut x)?;
    Ok(2.0 * one_norm(&x) / (3.0 * n as f64))
}
