//! Solves a system of equations and measures the error of its solution.

use std::any::Any;
use std::time::Instant;

use lapidary::{Equilibration, Lu, Machine, Rounding, Scalar};

use crate::accuracy::{Measured, Reference};
use crate::dense::Dense;
use crate::failure::Result;
use crate::memory;
use crate::progress::Progress;

/// Number of floating-point operations above which the program shows a progress bar.
const LONG: f64 = 1e10;

/// The system A·X = B as it was read from files, and the scales with which it is solved.
pub struct System<S> {
    /// The matrix A.
    pub a: Dense<S>,
    /// The right-hand sides B.
    pub b: Dense<S>,
    /// Powers of two by which the rows and columns of A are multiplied.
    pub scales: Equilibration,
}

/// A solution with its error measures and its times.
pub struct Solved<T> {
    /// The solution X, in the units of A and B.
    pub x: Dense<T>,
    /// Seconds that the factorisation took.
    pub factor_seconds: f64,
    /// Seconds that the solve and the refinement took.
    pub solve_seconds: f64,
    /// Seconds that the computation of the error measures took.
    pub check_seconds: f64,
    /// Number of refinement steps. `None` if refinement was not requested.
    pub refinement_steps: Option<usize>,
    /// Backward error (bound 8) with respect to A and B as they were read from files.
    pub backward_error: f64,
    /// Reciprocal condition number of the scaled matrix.
    pub rcond: f64,
    /// Upper bound of the relative error of X (bound 13).
    pub error_bound: f64,
    /// How many elements of A, B and X were rounded to the element type of the computation.
    pub rounding: [Rounding; 3],
}

/// Outcome of solving a system.
pub enum Outcome<T> {
    /// A solution was computed, which may be inaccurate.
    Solved(Box<Solved<T>>),
    /// The matrix is singular: a pivot is exactly zero.
    Singular {
        /// Index of the zero pivot, counted from 1.
        info: usize,
        /// Whether A was rounded to the element type of the computation.
        rounded: bool,
    },
}

impl<S: Scalar> System<S> {
    /// Takes a system that is solved in the precision of `T`, and computes the scales of A.
    pub fn new<T: Scalar>(a: Dense<S>, b: Dense<S>) -> Result<Self> {
        let scales = Equilibration::new(a.view(), T::DTYPE)?;
        Ok(System { a, b, scales })
    }

    /// Equilibrates A, factors it, solves the system, refines X if `refine` is set, and measures the errors of X.
    pub fn solve<T: Scalar>(&self, machine: &Machine, refine: bool) -> Result<Outcome<T>> {
        let (n, nrhs) = (self.a.rows() as f64, self.b.cols() as f64);
        let progress = (n * n * (n + nrhs) >= LONG).then(|| Progress::new(3));
        let begin = |what: &str| progress.iter().for_each(|p| p.begin(what));
        let done = || progress.iter().for_each(Progress::done);

        begin("factor");
        let start = Instant::now();
        self.check_memory::<T>(refine)?;
        let mut factors = Dense::zeros(self.a.rows(), self.a.cols())?;
        let of_a = self.scales.scale_matrix(self.a.view(), factors.view_mut())?;
        let unfactored = if refine && !self.is_stored::<T>() { Some(factors.to_col_major()?) } else { None };
        let lu = machine.getrf(factors.view_mut())?;
        let factor_seconds = start.elapsed().as_secs_f64();
        done();
        if lu.info() > 0 {
            return Ok(Outcome::Singular { info: lu.info(), rounded: of_a.inexact > 0 });
        }

        begin("solve");
        let start = Instant::now();
        let mut x = Dense::zeros(self.b.rows(), self.b.cols())?;
        let rhs = self.scales.scale_rhs(self.b.view(), x.view_mut())?;
        let scaled_b = if refine { Some(x.to_col_major()?) } else { None };
        lu.solve(x.view_mut())?;
        let refined = match &scaled_b {
            Some(b) => Some(refined(&lu, unfactored.as_ref().or_else(|| self.stored()).expect("kept above"), b, &x)?),
            None => None,
        };
        let solve_seconds = start.elapsed().as_secs_f64();
        done();

        begin("check");
        let start = Instant::now();
        let reference = Reference::new(&self.a, &self.b, &self.scales);
        let unscale = |mut x: Dense<T>| -> Result<_> {
            let rounding = self.scales.unscale(x.view_mut(), &rhs.exponents)?;
            Ok((x, rounding))
        };
        let plain = unscale(x)?;
        let ((x, of_x), measured, refinement_steps) = match refined {
            Some((refined, steps @ 1..)) => {
                let (x, measured, is_refined) = better(&reference, plain, unscale(refined)?);
                (x, measured, Some(if is_refined { steps } else { 0 }))
            }
            Some((_, 0)) | None => {
                let measured = reference.measure(&plain.0);
                (plain, measured, scaled_b.is_some().then_some(0))
            }
        };
        let rcond = lu.rcond(reference.norm_one())?;
        let error_bound = measured.error_bound(&lu, reference.growth(&lu), rcond)?;
        let (backward_error, rounding) = (measured.backward_error(), [of_a, rhs.rounding, of_x]);
        let check_seconds = start.elapsed().as_secs_f64();
        let solved = Solved {
            x,
            factor_seconds,
            solve_seconds,
            check_seconds,
            refinement_steps,
            backward_error,
            rcond,
            error_bound,
            rounding,
        };
        Ok(Outcome::Solved(Box::new(solved)))
    }

    /// Fails if the copies of matrices that the solution needs exceed the available host memory.
    fn check_memory<T: Scalar>(&self, refine: bool) -> Result<()> {
        let (a, x) = ((self.a.rows(), self.a.cols()), (self.b.rows(), self.b.cols()));
        let copies = match (refine, self.is_stored::<T>()) {
            (false, _) => &[a, x][..],
            (true, true) => &[a, x, x, x],
            (true, false) => &[a, a, x, x, x],
        };
        memory::check_matrices::<T>("the copy of A that is factored, with X,", copies)
    }

    /// Returns A itself, if the factorisation starts from the elements of A without scaling and in their own precision.
    fn stored<T: Scalar>(&self) -> Option<&Dense<T>> {
        (&self.a as &dyn Any).downcast_ref().filter(|_| !self.scales.is_needed())
    }

    fn is_stored<T: Scalar>(&self) -> bool {
        self.stored::<T>().is_some()
    }
}

/// Refines a copy of X. Returns this copy and the number of refinement steps.
fn refined<T: Scalar>(lu: &Lu<'_, T>, a: &Dense<T>, b: &Dense<T>, x: &Dense<T>) -> Result<(Dense<T>, usize)> {
    let mut refined = x.to_col_major()?;
    let steps = lu.refine(a.view(), b.view(), refined.view_mut())?.steps;
    Ok((refined, steps))
}

/// Combines the plain solution and the refined solution. Refinement reduces the residual of the system after its elements were
/// rounded to type `T`, but the check measures the system as it was read. If refinement has made the backward error of a column
/// larger, the plain column is kept. The last returned value states whether any refined column is kept.
fn better<S: Scalar, T: Scalar>(
    reference: &Reference<'_, S>,
    (plain, rounding_of_plain): (Dense<T>, Rounding),
    (mut refined, rounding): (Dense<T>, Rounding),
) -> ((Dense<T>, Rounding), Measured, bool) {
    let (before, after) = (reference.measure(&plain), reference.measure(&refined));
    let errors = before.backward_errors.iter().zip(&after.backward_errors);
    let is_worse = |before: f64, after: f64| after > before || (after.is_nan() && !before.is_nan());
    let worse: Vec<usize> = errors.enumerate().filter(|&(_, (&before, &after))| is_worse(before, after)).map(|(k, _)| k).collect();
    if worse.is_empty() {
        return ((refined, rounding), after, true);
    }
    if worse.len() == before.backward_errors.len() {
        return ((plain, rounding_of_plain), before, false);
    }
    let n = plain.rows();
    for column in worse.into_iter().map(|k| k * n..(k + 1) * n) {
        refined.data_mut()[column.clone()].copy_from_slice(&plain.data()[column]);
    }
    let measured = reference.measure(&refined);
    ((refined, rounding), measured, true)
}

#[cfg(test)]
mod tests {
    use lapidary::{Layout, Select};

    use super::*;

    /// A random system of small integers with a known solution. In half of the systems the last row is nearly a combination of all
    /// other rows. In half of the systems the rows and columns are multiplied by powers of two.
    fn known(rng: &mut fastrand::Rng, nrhs: usize) -> (Dense<f64>, Dense<f64>, Vec<f64>) {
        let n = rng.usize(2..14);
        let mut integer = |most: i32| f64::from(rng.i32(-most..=most));
        let mut a: Vec<f64> = (0..n * n).map(|_| integer(1000)).collect();
        let x: Vec<f64> = (0..n * nrhs).map(|_| integer(1000)).collect();
        if rng.bool() {
            let size = 1 << rng.u32(0..9);
            for j in 0..n {
                a[n - 1 + j * n] = (0..n - 1).map(|i| a[i + j * n]).sum::<f64>() * 65536.0 + f64::from(rng.i32(-size..=size));
            }
        }
        let spread = if rng.bool() { 0 } else { 200 };
        let mut powers = || (0..n).map(|_| 2.0_f64.powi(rng.i32(-spread..=spread))).collect::<Vec<_>>();
        let (rows, cols) = (powers(), powers());
        let b = (0..n * nrhs).map(|e| (0..n).map(|j| a[e % n + j * n] * x[j + e / n * n]).sum::<f64>() * rows[e % n]);
        let b = Dense::from_vec(b.collect(), n, nrhs, Layout::ColMajor);
        a.iter_mut().enumerate().for_each(|(e, a)| *a *= rows[e % n] * cols[e / n]);
        let x = x.iter().enumerate().map(|(e, x)| x / cols[e % n]).collect();
        (Dense::from_vec(a, n, n, Layout::ColMajor), b, x)
    }

    /// The largest error of a column, divided by the largest element of this column, over all columns.
    fn error<T: Scalar>(x: &Dense<T>, exact: &[f64]) -> f64 {
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |most: f64, value| most.max(value.abs()));
        let columns = x.data().chunks(x.rows()).zip(exact.chunks(x.rows()));
        let of_column = |(x, y): (&[T], &[f64])| {
            let size = most(&mut y.iter().copied());
            most(&mut x.iter().zip(y).map(|(x, y)| x.to_f64() - y)) / if size == 0.0 { 1.0 } else { size }
        };
        most(&mut columns.map(of_column))
    }

    fn claims_hold<T: Scalar>(seeds: std::ops::Range<u64>, refine: bool) {
        let machine = Machine::open(&"cpu:0".parse::<Select>().unwrap()).unwrap();
        let (mut solved, mut sharp) = (0, 0);
        for seed in seeds {
            let (a, b, exact) = known(&mut fastrand::Rng::with_seed(seed), 1 + seed as usize % 6);
            let system = System::new::<T>(a, b).unwrap();
            let Outcome::Solved(found) = system.solve::<T>(&machine, refine).unwrap() else { continue };
            // The test cannot judge a solution that overflows in f32, since it has no correct digits.
            if !found.x.data().iter().all(|x| x.is_finite()) || exact.iter().any(|x| x.abs() > 1e30) {
                continue;
            }
            let (error, bound) = (error(&found.x, &exact), found.error_bound);
            // An error bound of 1 claims nothing about the error.
            assert!(
                error <= bound || bound == 1.0,
                "seed {seed}: error {error:e}, at most {bound:e} claimed, rcond {:e}",
                found.rcond
            );
            solved += 1;
            sharp += usize::from(bound < 1000.0 * (error + T::UNIT_ROUNDOFF / found.rcond));
        }
        assert!(solved > 100 && sharp * 10 > solved * 9, "{sharp} of {solved} bounds are sharp");
    }

    #[test]
    fn x_of_which_no_column_gets_better_is_not_refined() {
        let dense = |data: &[f64], cols| Dense::from_vec(data.to_vec(), 2, cols, Layout::ColMajor);
        let system = System::new::<f64>(dense(&[1.0, 0.0, 0.0, 1.0], 2), dense(&[1.0, 2.0], 1)).unwrap();
        let reference = Reference::new(&system.a, &system.b, &system.scales);
        for (plain, refined, is_refined) in [([1.0, 2.0], [1.0, 3.0], false), ([1.0, 3.0], [1.0, 2.0], true)] {
            let x = |data| (dense(data, 1), Rounding::default());
            let ((found, _), _, is) = better(&reference, x(&plain), x(&refined));
            assert_eq!((found.data(), is), (&[1.0, 2.0][..], is_refined));
        }
    }

    #[test]
    fn claimed_errors_are_never_below_real_ones() {
        claims_hold::<f64>(0..400, false);
        claims_hold::<f64>(400..600, true);
        claims_hold::<f32>(600..1000, false);
        claims_hold::<f32>(1000..1200, true);
    }
}
