//! Iterative refinement in working precision.
//!
//! Method: LAPACK's `gerfs`; Higham, *Accuracy and Stability of Numerical Algorithms* (2002), §12. After one or two steps the
//! componentwise backward error `max |b − A·x| / (|A|·|x| + |b|)` is a few units of roundoff, even if the factorisation lost
//! digits to element growth.
//!
//! Right-hand sides are refined in blocks. One product computes the residuals of a block, and one solve computes the corrections
//! of the block. A column that needs no further refinement step is removed from its block.

use lapidary_core::{Error, Gemm, MatMut, MatRef, Result, Scalar};

use crate::equilibrate::{exponent, for_each, times_power};
use crate::lu::{Lu, check_system};
use crate::machine::Machine;

/// Maximum number of refinement steps, as in LAPACK.
const MAX_STEPS: usize = 5;
/// Number of elements in one block of X, and in one panel of rows of |A| that multiplies the block. A block of this size stays in
/// a core's cache between the residual and the solve.
const BLOCK_ELEMENTS: usize = 1 << 15;
/// Minimum number of columns of a block of X, and of rows of a panel of |A|. Blocks must not be narrower, because the computation
/// of each block reads all of A.
const MIN_BLOCK_COLS: usize = 128;

/// Result of a refinement.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Refinement {
    /// Number of correction steps in the result: the maximum over all right-hand sides.
    pub steps: usize,
    /// Componentwise backward error of the result: the maximum over all right-hand sides.
    pub backward_error: f64,
}

pub(crate) fn refine<T: Scalar>(
    machine: &Machine,
    lu: &Lu<'_, T>,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    mut x: MatMut<'_, T>,
) -> Result<Refinement> {
    check_system("refine", &a, b.rows())?;
    if x.shape() != b.shape() || lu.factors().shape() != a.shape() {
        return Err(Error::invalid("refine", {
            let [x, b, a] = [x.shape(), b.shape(), a.shape()].map(|(rows, cols)| format!("{rows}×{cols}"));
            format!("X is {x}, B {b}, A {a}: X and B must be of one shape, A that of the factors")
        }));
    }
    if [a.host_ptr(), b.host_ptr(), x.host_ptr()].contains(&None) {
        return Err(Error::invalid("refine", "A, B and X must lie in host memory"));
    }
    let (n, nrhs) = b.shape();
    let mut worst = Refinement { steps: 0, backward_error: 0.0 };
    if n == 0 {
        return Ok(worst);
    }
    let mut size: f64 = 0.0;
    for_each(a, |_, _, value| size = size.max(value.abs()));
    let system = System { machine, lu, a, size };
    let width = (BLOCK_ELEMENTS / n).max(MIN_BLOCK_COLS);
    for first in (0..nrhs).step_by(width) {
        let cols = first..nrhs.min(first + width);
        for reached in system.refine(b.sub(0..n, cols.clone()), x.reborrow().sub(0..n, cols))? {
            worst.steps = worst.steps.max(reached.steps);
            worst.backward_error = larger(worst.backward_error, reached.backward_error);
        }
    }
    Ok(worst)
}

/// Returns the larger number, or NaN if either number is NaN, so that a NaN error is not lost.
fn larger(most: f64, value: f64) -> f64 {
    if most.is_nan() || value <= most { most } else { value }
}

/// A, its factors, and the largest magnitude of its elements.
struct System<'s, T> {
    machine: &'s Machine,
    lu: &'s Lu<'s, T>,
    a: MatRef<'s, T>,
    size: f64,
}

/// The right-hand sides `b` of a block that may need another refinement step, with their current solutions `x`. The matrices `b`
/// and `x` are packed column-major.
struct Trials<T> {
    x: Vec<T>,
    b: Vec<T>,
    cols: Vec<Trial>,
}

#[derive(Clone, Copy)]
struct Trial {
    /// Index of the column in the block.
    index: usize,
    /// The vectors x and b are stored multiplied by 2^power.
    power: i32,
    /// The backward error of the column before the latest refinement step.
    last: f64,
}

impl<T: Scalar> System<'_, T> {
    /// Refines a block of right-hand sides. A corrected column is stored in X only if its backward error is smaller than that of
    /// the column already stored.
    fn refine(&self, b: MatRef<'_, T>, mut x: MatMut<'_, T>) -> Result<Vec<Refinement>> {
        let n = self.a.rows();
        let mut trials = self.trials(b, x.as_ref());
        let mut best = vec![Refinement { steps: 0, backward_error: f64::INFINITY }; b.cols()];
        for steps in 0..=MAX_STEPS {
            let mut r = self.residuals(&trials)?;
            let errors = self.backward_errors(&trials, &r)?;
            for (c, (trial, &backward_error)) in trials.cols.iter().zip(&errors).enumerate() {
                if steps == 0 {
                    best[trial.index].backward_error = backward_error;
                } else if backward_error < best[trial.index].backward_error {
                    best[trial.index] = Refinement { steps, backward_error };
                    let unscale = |value: T| T::from_f64(times_power(value.to_f64(), -trial.power));
                    (0..n).for_each(|i| x.set(i, trial.index, unscale(trials.x[i + c * n])));
                }
            }
            // a comparison with a NaN error is false, which ends the refinement of the column
            let goes_on = |c: &usize| errors[*c] > 2.0 * T::UNIT_ROUNDOFF && 2.0 * errors[*c] <= trials.cols[*c].last;
            let kept: Vec<usize> = (0..errors.len()).filter(goes_on).collect();
            if kept.is_empty() || steps == MAX_STEPS {
                break;
            }
            trials.cols.iter_mut().zip(&errors).for_each(|(trial, &error)| trial.last = error);
            trials.keep(n, &kept);
            keep_columns(&mut r, n, &kept);
            // update the solutions: x ← x + A⁻¹·r
            self.lu.solve(MatMut::col_major(&mut r, n, kept.len())?)?;
            trials.x.iter_mut().zip(&r).for_each(|(x, &r)| *x += r);
        }
        Ok(best)
    }

    /// Copies a block of X and B. A column is scaled by a power of two if |A|·|x| or b might overflow or underflow.
    fn trials(&self, b: MatRef<'_, T>, x: MatRef<'_, T>) -> Trials<T> {
        let (n, nrhs) = b.shape();
        let mut trials =
            Trials { x: Vec::with_capacity(n * nrhs), b: Vec::with_capacity(n * nrhs), cols: Vec::with_capacity(nrhs) };
        for index in 0..nrhs {
            let column = |m: MatRef<'_, T>| (0..n).map(|i| m.at(i, index).to_f64()).collect::<Vec<_>>();
            let (x, b) = (column(x), column(b));
            let power = power::<T>(self.size, norm_max(&x), norm_max(&b));
            trials.x.extend(x.into_iter().map(|value| T::from_f64(times_power(value, power))));
            trials.b.extend(b.into_iter().map(|value| T::from_f64(times_power(value, power))));
            trials.cols.push(Trial { index, power, last: f64::INFINITY });
        }
        trials
    }

    /// Computes the residuals `b − A·x`.
    fn residuals(&self, trials: &Trials<T>) -> Result<Vec<T>> {
        let (n, nrhs) = (self.a.rows(), trials.cols.len());
        let mut r = trials.b.clone();
        let x = MatRef::col_major(&trials.x, n, nrhs)?;
        self.machine.gemm(Gemm::new(self.a, x, MatMut::col_major(&mut r, n, nrhs)?).alpha(-T::ONE).beta(T::ONE))?;
        Ok(r)
    }

    /// Computes the componentwise backward error `max_i |r|_i / (|A|·|x| + |b|)_i` of each column. A component whose denominator
    /// is zero contributes zero, since its residual is also zero.
    fn backward_errors(&self, trials: &Trials<T>, r: &[T]) -> Result<Vec<f64>> {
        let n = self.a.rows();
        // Underflow alone can cause residuals of up to (n + 1)·`T::MIN_POSITIVE`. LAPACK's `gerfs` calls the same bound `safe1`.
        let underflow = (n + 1) as f64 * T::MIN_POSITIVE;
        let ratio = |(r, scale): (&T, &T)| match (r.abs().to_f64(), scale.to_f64()) {
            (_, 0.0) => 0.0,
            (r, scale) if r <= underflow && scale <= underflow / T::UNIT_ROUNDOFF => 0.0,
            (r, scale) => r / scale,
        };
        let scale = self.scales(trials)?;
        let columns = r.chunks(n).zip(scale.chunks(n));
        Ok(columns.map(|(r, scale)| r.iter().zip(scale).map(ratio).fold(0.0, larger)).collect())
    }

    /// Computes `|A|·|x| + |b|` for each column. A panel of rows of |A| is formed at a time, so that |A| is never stored as a
    /// whole.
    fn scales(&self, trials: &Trials<T>) -> Result<Vec<T>> {
        let (n, nrhs) = (self.a.rows(), trials.cols.len());
        let magnitudes = |values: &[T]| values.iter().map(|&value| magnitude(value)).collect::<Vec<T>>();
        let (x, mut scale) = (magnitudes(&trials.x), magnitudes(&trials.b));
        let height = (BLOCK_ELEMENTS / n).max(MIN_BLOCK_COLS);
        let mut panel = Vec::new();
        for first in (0..n).step_by(height) {
            let rows = first..n.min(first + height);
            panel.clear();
            (0..n).for_each(|j| panel.extend(rows.clone().map(|i| magnitude(self.a.at(i, j)))));
            let (abs_a, abs_x) = (MatRef::col_major(&panel, rows.len(), n)?, MatRef::col_major(&x, n, nrhs)?);
            let target = MatMut::col_major(&mut scale, n, nrhs)?.sub(rows, 0..nrhs);
            self.machine.gemm(Gemm::new(abs_a, abs_x, target).beta(T::ONE))?;
        }
        Ok(scale)
    }
}

impl<T: Scalar> Trials<T> {
    fn keep(&mut self, n: usize, kept: &[usize]) {
        keep_columns(&mut self.x, n, kept);
        keep_columns(&mut self.b, n, kept);
        self.cols = kept.iter().map(|&c| self.cols[c]).collect();
    }
}

/// Moves the columns `kept`, whose indices ascend, to the front and removes the other columns.
pub(crate) fn keep_columns<T: Copy>(data: &mut Vec<T>, n: usize, kept: &[usize]) {
    kept.iter().enumerate().for_each(|(to, &from)| data.copy_within(from * n..(from + 1) * n, to * n));
    data.truncate(kept.len() * n);
}

fn magnitude<T: Scalar>(value: T) -> T {
    T::from_f64(value.abs().to_f64())
}

fn norm_max(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

/// Returns the exponent of the power of two that scales the larger of |A|·|x| and |b| to about one. Returns 0 if the larger of
/// |A|·|x| and |b| lies in the middle half of the exponent range.
fn power<T: Scalar>(a: f64, x: f64, b: f64) -> i32 {
    let ends = -exponent(T::MIN_POSITIVE).unwrap_or(0);
    let ax = exponent(a).zip(exponent(x)).map(|(a, x)| a + x);
    let Some(size) = ax.max(exponent(b)).filter(|size| size.abs() > ends / 2) else { return 0 };
    // the scaled solution must stay in the range of T
    (-size).min(ends - 2 - exponent(x).unwrap_or(0))
}
