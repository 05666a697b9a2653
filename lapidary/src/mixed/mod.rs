//! Solves systems in `f64` with factors in `f32`, by iterative refinement.
//!
//! Method: LAPACK's `dsgesv`; Higham, *Accuracy and Stability of Numerical Algorithms* (2002), §12.2. The factorisation, which has
//! n³ operations, is in `f32`. Each step of refinement has n² operations: it computes a residual in `f64` and a correction in
//! `f32`. If the steps do not converge, the system is solved in `f64`.

mod convert;
mod load;
mod steps;
#[cfg(test)]
mod tests;

use std::fmt;

use lapidary_core::{Accuracy, DType, Error, MatMut, MatRef, Outputs, Result};

use crate::lu::{Factors, Lu, check_system};
use crate::machine::Machine;
use crate::resident::DeviceMatrix;
use crate::singular::singular;
use convert::{Converted, Norms, power_for_f32};
use steps::System;

/// Name of the operation in errors.
const OPERATION: &str = "gesv_mixed";

/// The precision of the factors with which [`Machine::gesv_mixed`] has solved a system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// The factors are in `f32`, and refinement in `f64` has converged.
    #[non_exhaustive]
    Mixed {
        /// Number of refinement steps: the maximum over all right-hand sides. 0 if the first solution was accepted.
        iterations: usize,
        /// Backward error ‖b − A·x‖_∞ / (‖A‖_∞·‖x‖_∞) of the solution: the maximum over all right-hand sides.
        backward_error: f64,
    },
    /// The factors are in `f64`. The solution is the solution of [`Machine::gesv`].
    Full {
        /// Why factors in `f32` did not solve the system.
        reason: FallbackReason,
    },
}

/// Why [`Machine::gesv_mixed`] has solved a system with factors in `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FallbackReason {
    /// A correction, or an element of A that is much larger than most others, exceeds the range of `f32`.
    Overflow,
    /// A pivot of the factors in `f32` is exactly zero.
    ZeroPivot {
        /// Number of the first zero pivot, counted from 1.
        pivot: usize,
    },
    /// A, B or a residual contains NaN or an infinity.
    NotFinite,
    /// Refinement did not reach the accepted backward error.
    NotConverged {
        /// Number of refinement steps.
        iterations: usize,
    },
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precision::Mixed { iterations, backward_error } => {
                write!(f, "factors in f32, {iterations} refinement steps, backward error {backward_error:.1e}")
            }
            Precision::Full { reason } => write!(f, "factors in f64, because {reason}"),
        }
    }
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FallbackReason::Overflow => f.write_str("A or a correction exceeds the range of f32"),
            FallbackReason::ZeroPivot { pivot } => write!(f, "pivot {pivot} is zero in f32"),
            FallbackReason::NotFinite => f.write_str("A, B or a residual contains NaN or an infinity"),
            FallbackReason::NotConverged { iterations } => write!(f, "refinement did not converge in {iterations} steps"),
        }
    }
}

impl Machine {
    /// Solves A·X = B in `f64` with factors in `f32`, as LAPACK's `dsgesv` does: factors A in `f32`, and improves X by iterative
    /// refinement in `f64`. If refinement does not converge, or if numbers exceed the range of `f32` although powers of two have scaled A and B,
    /// the method solves the system with factors in `f64`, as [`Machine::gesv`] does. The returned [`Precision`] states which factors were used.
    ///
    /// The method is faster than `gesv` if a device computes much faster in `f32` than in `f64`, A is large and well-conditioned
    /// (the condition number is below about 10⁷), and the right-hand sides are few, because each step of refinement computes A·X in
    /// `f64` and solves with the factors. A refined solution satisfies `‖b − A·x‖_∞ ≤ √n·u·‖A‖_∞·‖x‖_∞` for each right-hand side,
    /// and bound 8 of `docs/numerics.md`. There are at most 30 refinement steps.
    ///
    /// A and B are not changed. X is written only when the solution is complete. If one device with memory of its own runs the
    /// call and has enough memory, A stays in its memory during the call, in `f64` and in `f32`. The device converts A, and factors the
    /// columns on the left while it loads the others. Otherwise, or if A is outside the range of `f32`, the host holds a copy of A: in `f32`, and
    /// then in `f64` if factors in `f32` do not solve the system.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, MatRef, Precision, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (a, b, mut x) = ([4.0, 1.0, 2.0, 3.0], [6.0, 4.0], [0.0; 2]);
    /// let (a, b) = (MatRef::col_major(&a, 2, 2)?, MatRef::col_major(&b, 2, 1)?);
    /// let precision = machine.gesv_mixed(a, b, MatMut::col_major(&mut x, 2, 1)?)?;
    /// assert!(matches!(precision, Precision::Mixed { .. }));
    /// assert!((x[0] - 1.0).abs() < 1e-15 && (x[1] - 1.0).abs() < 1e-15);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot of the factors in `f64` is exactly zero. Another error
    /// is returned if the shapes of A, B and X do not agree, one of them does not lie in host memory, the host has no memory for a
    /// copy of A, or a device failed. X is not changed if an error is returned.
    pub fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, mut x: MatMut<'_, f64>) -> Result<Precision> {
        check(a, b, &x).map_err(Error::untouched)?;
        let (n, nrhs) = b.shape();
        if n == 0 || nrhs == 0 {
            return Ok(Precision::Mixed { iterations: 0, backward_error: 0.0 });
        }
        let (solution, precision) = self.solve_mixed(a, b).map_err(|error| error.with_outputs(Outputs::Unchanged))?;
        for (j, column) in solution.chunks(n).enumerate() {
            column.iter().enumerate().for_each(|(i, &value)| x.set(i, j, value));
        }
        Ok(precision)
    }

    /// Solves the system. Returns X, packed column-major.
    fn solve_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Result<(Vec<f64>, Precision)> {
        let all: Vec<usize> = (0..self.runtimes().len()).collect();
        self.capable_devices(DType::F64, OPERATION, &all)?;
        let (n, nrhs) = b.shape();
        let b: Vec<f64> = (0..nrhs).flat_map(|j| (0..n).map(move |i| b.at(i, j))).collect();
        if !b.iter().all(|value| value.is_finite()) {
            return self.solve_in_full(a, b, FallbackReason::NotFinite);
        }
        if let Some(device) = self.device_for_mixed(a)? {
            match self.solve_on(device, a, &b) {
                Err(error) if error.kind().is_recoverable_elsewhere() => {}
                Ok(Err(misfit)) => return self.solve_in_full(a, b, misfit),
                Ok(Ok(solved)) => return Ok(solved),
                Err(error) => return Err(error),
            }
        }
        let mut narrow = Converted::<f32>::new(a, power_for_f32(a))?;
        let norms = narrow.norms;
        let refined = match norms.misfit::<f32>() {
            Some(misfit) => Err(misfit),
            None => self.refine_mixed(a, norms, &self.getrf_with(Accuracy::Normwise, narrow.view_mut()?)?, &b)?,
        };
        match refined {
            Ok(solved) => Ok(solved),
            Err(reason) => {
                drop(narrow);
                self.solve_in_full(a, b, reason)
            }
        }
    }

    /// Returns the device that is to hold A in both precisions during the call. Returns `None` if A is to stay in host memory:
    /// if several devices factor A, if the CPU factors A, if the device has too little memory, or if the call is reproducible.
    fn device_for_mixed(&self, a: MatRef<'_, f64>) -> Result<Option<usize>> {
        if self.settings().reproducible {
            return Ok(None);
        }
        let n = a.rows();
        let (factorisation, memory) = self.factorisation(n, a.layout(), DType::F32);
        let chosen = self.devices_of(&factorisation, &memory)?;
        let &[device] = chosen.as_slice() else { return Ok(None) };
        let (runtime, wide) = (&self.runtimes()[device], n * n * DType::F64.size());
        let facts = runtime.facts();
        // besides A in both precisions, kernels need scratch memory, and columns of B and X
        let needed = wide + wide / 2 + wide / 8;
        let fits = wide <= facts.limits.buffer && needed <= runtime.free_memory();
        Ok(Some(device).filter(|_| !facts.host_memory && facts.computes(DType::F64) && fits))
    }

    /// Solves the system with A in the memory of a device. Returns X and the precision, or the reason why A has no copy in `f32`.
    fn solve_on(&self, device: usize, a: MatRef<'_, f64>, b: &[f64]) -> Result<Result<(Vec<f64>, Precision), FallbackReason>> {
        let n = a.rows();
        let mut factors = self.allocate_on::<f32>(OPERATION, device, n, n)?;
        let mut wide = self.allocate_on::<f64>(OPERATION, device, n, n)?;
        let (ipiv, info, norms) = self.factor_while_loading(a, &wide, &mut factors)?;
        if let Some(misfit) = norms.misfit::<f32>() {
            return Ok(Err(misfit));
        }
        let lu = Lu { machine: self.clone(), factors: Factors::Borrowed(factors.view_mut()), copy: None, ipiv, info };
        let reason = match self.refine_mixed(wide.view(), norms, &lu, b)? {
            Ok(solved) => return Ok(Ok(solved)),
            Err(reason) => reason,
        };
        drop(lu);
        drop::<DeviceMatrix<f32>>(factors);
        let lu = self.getrf(wide.view_mut())?;
        solve_with(&lu, b.to_vec(), reason).map(Ok)
    }

    /// Refines with factors in `f32`, unless the factors have a zero pivot.
    fn refine_mixed(
        &self,
        a: MatRef<'_, f64>,
        norms: Norms,
        lu: &Lu<'_, f32>,
        b: &[f64],
    ) -> Result<Result<(Vec<f64>, Precision), FallbackReason>> {
        match lu.info() {
            0 => System { machine: self, a, norms, lu, b }.refine(),
            pivot => Ok(Err(FallbackReason::ZeroPivot { pivot })),
        }
    }

    /// Solves the system with factors in `f64`, from a copy of A in host memory.
    fn solve_in_full(&self, a: MatRef<'_, f64>, b: Vec<f64>, reason: FallbackReason) -> Result<(Vec<f64>, Precision)> {
        let mut factors = Converted::<f64>::new(a, 0)?;
        let lu = self.getrf(factors.view_mut()?)?;
        solve_with(&lu, b, reason)
    }
}

/// Solves the system with factors in `f64`.
fn solve_with(lu: &Lu<'_, f64>, mut b: Vec<f64>, reason: FallbackReason) -> Result<(Vec<f64>, Precision)> {
    if lu.info() != 0 {
        return Err(singular(OPERATION, lu.info(), Outputs::Unchanged));
    }
    let (n, len) = (lu.factors().rows(), b.len());
    lu.solve(MatMut::col_major(&mut b, n, len / n)?)?;
    Ok((b, Precision::Full { reason }))
}

/// Checks the shapes of A, B and X, and that the matrices lie in host memory.
fn check(a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: &MatMut<'_, f64>) -> Result<()> {
    check_system(OPERATION, &a, b.rows())?;
    if x.shape() != b.shape() {
        let [x, b] = [x.shape(), b.shape()].map(|(rows, cols)| format!("{rows}×{cols}"));
        return Err(Error::invalid(OPERATION, format!("X is {x}, B {b}: X and B must be of one shape")));
    }
    let homes = [("A", a.host_ptr()), ("B", b.host_ptr()), ("X", x.host_ptr())];
    match homes.iter().find(|(_, home)| home.is_none()) {
        Some((name, _)) => Err(Error::invalid(OPERATION, format!("{name} lies on a device: A, B and X must lie in host memory"))),
        None => Ok(()),
    }
}
