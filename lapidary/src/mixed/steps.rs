//! The steps of refinement: a correction by the factors in `f32`, and the residual in `f64`.

use lapidary_core::{Gemm, MatMut, MatRef, Op, Result, Scalar, TrsmMode};

use super::convert::{MAX_EXPONENT, Norms, in_parallel, larger, threads};
use super::{FallbackReason, Precision};
use crate::equilibrate::{exponent, times_power};
use crate::lu::Lu;
use crate::machine::Machine;
use crate::refine::keep_columns;

/// Maximum number of refinement steps, as in LAPACK's `dsgesv`.
const MAX_STEPS: usize = 30;
/// Refinement ends without convergence if the largest error has not halved in this number of steps. The error of a matrix that is
/// not too ill-conditioned for `f32` becomes smaller by much more than a half in each step.
const MAX_SLOW_STEPS: usize = 3;
/// Threshold of bound 8 of `docs/numerics.md`, for a residual in the 1-norm.
const BOUND_8: f64 = 30.0;

impl Norms {
    /// Largest backward error ‖b − A·x‖_∞ / (‖A‖_∞·‖x‖_∞) with which a solution is accepted: √n·u, as in LAPACK's `dsgesv`.
    fn limit(&self) -> f64 {
        (self.order as f64).sqrt() * f64::UNIT_ROUNDOFF
    }

    /// Judges a solution x with the residual r, by the limit of `dsgesv` and by bound 8 of `docs/numerics.md`.
    fn judge(&self, x: &[f64], r: &[f64]) -> Judged {
        let largest = |values: &[f64]| values.iter().fold(0.0, |most, value| larger(most, &value.abs()));
        let sum = |values: &[f64]| values.iter().map(|value| value.abs()).sum::<f64>();
        let ratio = |r: f64, x: f64, norm: f64| if r == 0.0 { 0.0 } else { r / x / norm };
        let backward_error = ratio(largest(r), largest(x), self.inf);
        let is_within_bound_8 = ratio(sum(r), sum(x), self.one) < BOUND_8 * 2.0 * f64::UNIT_ROUNDOFF;
        let is_accepted = backward_error <= self.limit() && is_within_bound_8;
        Judged { backward_error, is_accepted, is_finite: (largest(r) + largest(x)).is_finite() }
    }
}

/// A right-hand side after a step of refinement.
struct Judged {
    /// ‖b − A·x‖_∞ / (‖A‖_∞·‖x‖_∞).
    backward_error: f64,
    is_accepted: bool,
    /// Whether all elements of x and of the residual are finite.
    is_finite: bool,
}

/// A system A·X = B with the factors of A in `f32`.
pub(super) struct System<'s> {
    pub machine: &'s Machine,
    /// The matrix A, in host memory or on a device.
    pub a: MatRef<'s, f64>,
    pub norms: Norms,
    pub lu: &'s Lu<'s, f32>,
    /// The right-hand sides, packed column-major.
    pub b: &'s [f64],
}

/// The right-hand sides that have not converged, packed column-major: solutions, residuals, and indices of columns of B.
struct Unconverged {
    x: Vec<f64>,
    r: Vec<f64>,
    cols: Vec<usize>,
}

impl System<'_> {
    /// Solves the system by refinement. Returns X, packed column-major, or the reason why refinement cannot solve the system.
    pub fn refine(&self) -> Result<Result<(Vec<f64>, Precision), FallbackReason>> {
        let (n, nrhs) = (self.norms.order, self.b.len() / self.norms.order);
        let mut solution = vec![0.0; self.b.len()];
        let mut left = Unconverged { x: solution.clone(), r: self.b.to_vec(), cols: (0..nrhs).collect() };
        let (mut backward_error, mut last, mut slow_steps) = (0.0, f64::INFINITY, 0);
        for iterations in 0..=MAX_STEPS {
            if !self.correct(&mut left)? {
                return Ok(Err(FallbackReason::Overflow));
            }
            self.set_residuals(&mut left)?;
            let columns = left.x.chunks(n).zip(left.r.chunks(n));
            let judged = per_column(left.x.len(), columns, |(x, r)| self.norms.judge(x, r));
            if judged.iter().any(|column| !column.is_finite) {
                return Ok(Err(FallbackReason::NotFinite));
            }
            for (c, column) in judged.iter().enumerate().filter(|(_, column)| column.is_accepted) {
                backward_error = larger(backward_error, &column.backward_error);
                solution[left.cols[c] * n..][..n].copy_from_slice(&left.x[c * n..][..n]);
            }
            let kept: Vec<usize> = (0..judged.len()).filter(|&c| !judged[c].is_accepted).collect();
            if kept.is_empty() {
                return Ok(Ok((solution, Precision::Mixed { iterations, backward_error })));
            }
            let worst = judged.iter().map(|column| &column.backward_error).fold(0.0, larger);
            slow_steps += usize::from(2.0 * worst > last);
            if slow_steps == MAX_SLOW_STEPS || iterations == MAX_STEPS {
                return Ok(Err(FallbackReason::NotConverged { iterations }));
            }
            last = worst;
            left.keep(n, &kept);
        }
        unreachable!("the last step returns")
    }

    /// Adds a correction to the solutions: x ← x + A⁻¹·r, where A⁻¹·r is computed in `f32`, from the factors of 2^power·A. A power of two
    /// scales each residual, so that the residual neither overflows nor underflows in `f32`. Returns false if a correction overflows in `f32`.
    fn correct(&self, left: &mut Unconverged) -> Result<bool> {
        let (n, elements) = (self.norms.order, left.r.len());
        let mut d = vec![0.0_f32; elements];
        let scale = |(r, d): (&[f64], &mut [f32])| {
            let largest = r.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            let power = exponent(largest).unwrap_or(0).clamp(-MAX_EXPONENT, MAX_EXPONENT);
            let factor = times_power(1.0, -power);
            #[allow(clippy::cast_possible_truncation, reason = "the correction is computed in single precision")]
            d.iter_mut().zip(r).for_each(|(d, r)| *d = (r * factor) as f32);
            times_power(1.0, power)
        };
        let of_a = times_power(1.0, self.norms.power);
        let factors = per_column(elements, left.r.chunks(n).zip(d.chunks_mut(n)), scale);
        // the next step corrects the errors of this solve, so that inverses of diagonal blocks are accurate enough
        self.lu.solve_in_mode(TrsmMode::Inverted, Op::NoTrans, MatMut::col_major(&mut d, n, left.cols.len())?)?;
        let add = |((x, d), factor): ((&mut [f64], &[f32]), f64)| {
            x.iter_mut().zip(d).for_each(|(x, &d)| *x += f64::from(d) * factor * of_a);
            d.iter().all(|d| d.is_finite())
        };
        let is_finite = per_column(elements, left.x.chunks_mut(n).zip(d.chunks(n)).zip(factors), add);
        Ok(is_finite.into_iter().all(|is_finite| is_finite))
    }

    /// Computes the residuals: r ← b − A·x.
    fn set_residuals(&self, left: &mut Unconverged) -> Result<()> {
        let (n, nrhs) = (self.norms.order, left.cols.len());
        let copies = left.r.chunks_mut(n).zip(left.cols.iter().map(|col| &self.b[col * n..][..n]));
        per_column(nrhs * n, copies, |(r, b)| r.copy_from_slice(b));
        let (x, r) = (MatRef::col_major(&left.x, n, nrhs)?, MatMut::col_major(&mut left.r, n, nrhs)?);
        self.machine.gemm(Gemm::new(self.a, x, r).alpha(-1.0).beta(1.0))
    }
}

impl Unconverged {
    /// Removes all columns except the columns `kept`, whose indices ascend.
    fn keep(&mut self, n: usize, kept: &[usize]) {
        keep_columns(&mut self.x, n, kept);
        keep_columns(&mut self.r, n, kept);
        self.cols = kept.iter().map(|&c| self.cols[c]).collect();
    }
}

/// Calls `f` for each column of a matrix with `elements` elements, on several threads if the matrix is large. Returns the results in
/// the order of the columns.
fn per_column<C: Send, R: Send>(elements: usize, columns: impl Iterator<Item = C>, f: impl Fn(C) -> R + Sync) -> Vec<R> {
    let mut columns = columns.collect::<Vec<C>>().into_iter();
    let count = columns.len().div_ceil(threads(elements)).max(1);
    let parts = std::iter::from_fn(|| Some(columns.by_ref().take(count).collect::<Vec<C>>()).filter(|part| !part.is_empty()));
    in_parallel(parts.collect(), |part: Vec<C>| part.into_iter().map(&f).collect::<Vec<R>>()).into_iter().flatten().collect()
}
