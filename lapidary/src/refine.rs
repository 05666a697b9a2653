//! Iterative refinement in working precision.
//!
//! Method: LAPACK's `gerfs`; Higham, *Accuracy and Stability of Numerical
//! Algorithms* (2002), §12. After one or two steps the componentwise backward
//! error `max |b − A·x| / (|A|·|x| + |b|)` is a few units of roundoff, also
//! where the factorisation lost digits to growth.

use lapidary_core::{Error, Gemm, MatMut, MatRef, Result, Scalar};

use crate::lu::{Lu, check_system};
use crate::machine::Machine;

/// Steps after which refinement stops, as in LAPACK.
const MOST_STEPS: usize = 5;

/// What a refinement reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refinement {
    /// Corrections applied.
    pub steps: usize,
    /// Componentwise backward error of the result, the largest over the right-hand sides.
    pub backward_error: f64,
}

pub(crate) fn refine<T: Scalar>(
    machine: &Machine,
    lu: &Lu<'_, '_, T>,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    mut x: MatMut<'_, T>,
) -> Result<Refinement> {
    check_system("refine", &a, b.rows())?;
    if x.shape() != b.shape() || lu.factors().shape() != a.shape() {
        return Err(Error::invalid("refine", format!("X is {:?}, B is {:?}, A is {:?}", x.shape(), b.shape(), a.shape())));
    }
    if [a.host_ptr(), b.host_ptr(), x.host_ptr()].contains(&None) {
        return Err(Error::invalid("refine", "A, B and X must lie in host memory"));
    }
    let mut worst = Refinement { steps: 0, backward_error: 0.0 };
    if b.rows() == 0 {
        // of no rows there may be any number of columns
        return Ok(worst);
    }
    for j in 0..b.cols() {
        let (rows, col) = (0..b.rows(), j..j + 1);
        let one = column(machine, lu, a, b.sub(rows.clone(), col.clone()), x.reborrow().sub(rows, col))?;
        worst.steps = worst.steps.max(one.steps);
        worst.backward_error = larger(worst.backward_error, one.backward_error);
    }
    Ok(worst)
}

fn column<T: Scalar>(
    machine: &Machine,
    lu: &Lu<'_, '_, T>,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    mut x: MatMut<'_, T>,
) -> Result<Refinement> {
    let n = a.rows();
    let (mut last, mut steps) = (f64::INFINITY, 0);
    loop {
        // r ← b − A·x
        let mut r: Vec<T> = (0..n).map(|i| b.at(i, 0)).collect();
        machine.gemm(Gemm::new(a, x.as_ref(), MatMut::col_major(&mut r, n, 1)?).alpha(-T::ONE).beta(T::ONE))?;
        let backward_error = backward_error(a, b, &x, &r);
        if backward_error.is_nan() || backward_error <= T::UNIT_ROUNDOFF * 2.0 || 2.0 * backward_error > last || steps == MOST_STEPS
        {
            return Ok(Refinement { steps, backward_error });
        }
        // x ← x + A⁻¹·r
        lu.solve(MatMut::col_major(&mut r, n, 1)?)?;
        (0..n).for_each(|i| x.set(i, 0, x.at(i, 0) + r[i]));
        (last, steps) = (backward_error, steps + 1);
    }
}

/// The larger one; NaN if either is: a result that is no number is not right.
fn larger(most: f64, value: f64) -> f64 {
    if value.is_nan() || value > most { value } else { most }
}

/// `max |r| / (|A|·|x| + |b|)`; rows of zeros do not count.
fn backward_error<T: Scalar>(a: MatRef<'_, T>, b: MatRef<'_, T>, x: &MatMut<'_, T>, r: &[T]) -> f64 {
    let n = a.rows();
    let mut scale: Vec<f64> = (0..n).map(|i| b.at(i, 0).abs().to_f64()).collect();
    for k in 0..n {
        let xk = x.at(k, 0).abs().to_f64();
        scale.iter_mut().enumerate().for_each(|(i, s)| *s += a.at(i, k).abs().to_f64() * xk);
    }
    let ratios = r.iter().zip(&scale).filter(|(_, s)| **s != 0.0).map(|(r, s)| r.abs().to_f64() / s);
    ratios.fold(0.0, larger)
}
