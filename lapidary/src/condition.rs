//! The reciprocal condition number from LU factors.
//!
//! Method: Higham, *FORTRAN codes for estimating the one-norm of a real or
//! complex matrix*, ACM TOMS 14 (1988), as in LAPACK's `lacn2` and `gecon`: a
//! lower bound of `‖A⁻¹‖₁` from a few solves with A and Aᵀ, rarely off by more
//! than a factor of three.

use lapidary_core::{Error, MatMut, Op, Result, Scalar};

use crate::lu::{Lu, check_system};

/// Steps after which the estimate is taken as it is.
const MOST_STEPS: usize = 5;

pub(crate) fn rcond<T: Scalar>(lu: &Lu<'_, '_, T>, norm: f64) -> Result<f64> {
    let n = lu.factors().rows();
    check_system("rcond", &lu.factors(), n)?;
    if norm < 0.0 {
        return Err(Error::invalid("rcond", format!("norm = {norm} is negative; pass the 1-norm of A before its factorisation")));
    }
    if n == 0 {
        return Ok(1.0);
    }
    if lu.info() != 0 || norm == 0.0 {
        return Ok(0.0);
    }
    if norm.is_nan() {
        return Ok(f64::NAN);
    }
    let inverse_norm = inverse_norm(n, |op, x| lu.solve_with(op, MatMut::col_major(x, n, 1)?))?;
    Ok(1.0 / inverse_norm / norm)
}

fn one_norm<T: Scalar>(x: &[T]) -> f64 {
    x.iter().map(|v| v.abs().to_f64()).sum()
}

/// The first index of the largest magnitude.
fn largest<T: Scalar>(x: &[T]) -> usize {
    (1..x.len()).fold(0, |best, i| if x[i].abs() > x[best].abs() { i } else { best })
}

fn signs<T: Scalar>(x: &[T]) -> Vec<T> {
    x.iter().map(|&v| if v.to_f64() < 0.0 { -T::ONE } else { T::ONE }).collect()
}

/// A lower bound of `‖A⁻¹‖₁`, by climbing along subgradients.
fn inverse_norm<T: Scalar>(n: usize, solve: impl Fn(Op, &mut [T]) -> Result<()>) -> Result<f64> {
    #[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
    let mut x = vec![T::from_f64(1.0 / n as f64); n];
    solve(Op::NoTrans, &mut x)?;
    let mut estimate = one_norm(&x);
    let mut sign = signs(&x);
    let mut peak = usize::MAX;
    for _ in 0..MOST_STEPS {
        // z = A⁻ᴴ·sign(y): its largest entry is the steepest column
        let mut z = sign.clone();
        solve(Op::ConjTrans, &mut z)?;
        let steepest = largest(&z);
        if steepest == peak {
            break;
        }
        peak = steepest;
        let mut y = vec![T::ZERO; n];
        y[peak] = T::ONE;
        solve(Op::NoTrans, &mut y)?;
        let (next, next_sign) = (one_norm(&y), signs(&y));
        if next <= estimate || next_sign == sign {
            estimate = estimate.max(next);
            break;
        }
        (estimate, sign) = (next, next_sign);
    }
    Ok(estimate.max(alternating(n, solve)?))
}

/// A vector of alternating growing entries catches what the climb misses.
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
fn alternating<T: Scalar>(n: usize, solve: impl Fn(Op, &mut [T]) -> Result<()>) -> Result<f64> {
    let entry = |i: usize| (1.0 + i as f64 / (n.max(2) - 1) as f64) * if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    let mut x: Vec<T> = (0..n).map(|i| T::from_f64(entry(i))).collect();
    solve(Op::NoTrans, &mut x)?;
    Ok(2.0 * one_norm(&x) / (3.0 * n as f64))
}
