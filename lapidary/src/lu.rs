//! Factors of a matrix, and what can be done with them.

use lapidary_core::{Error, Getrs, MatMut, MatRef, Op, Result, Scalar};

use crate::condition;
use crate::copy::DeviceCopy;
use crate::machine::Machine;
use crate::refine::{self, Refinement};
use crate::singular::{B_STAYS, singular};

/// `A = P·L·U`, in the memory that held A. If a device with memory of its own has factored A as a whole, it keeps the factors while
/// this lives, so that solves do not move them again. It frees them when an upload or a call on host matrices needs the memory, at any
/// call on matrices that were uploaded, and by [`Machine::trim`]. From then on solves take the factors from host memory.
#[must_use = "factors do nothing by themselves: solve with them; if they were wanted in A only, drop this by `let _ =`"]
#[derive(Debug)]
pub struct Lu<'a, T> {
    machine: Machine,
    factors: MatMut<'a, T>,
    copy: Option<DeviceCopy>,
    ipiv: Vec<i32>,
    info: usize,
}

/// Returns an error if A is not square, or if `rows`, the number of rows of B, is not the order of A.
pub(crate) fn check_system<T: Scalar>(operation: &'static str, a: &MatRef<'_, T>, rows: usize) -> Result<()> {
    let (m, n) = a.shape();
    if m != n {
        return Err(Error::invalid(operation, format!("A is {m}×{n}, not square")));
    }
    if rows != n {
        return Err(Error::invalid(operation, format!("A is of order {n}, B has {rows} rows")));
    }
    Ok(())
}

impl<'a, T: Scalar> Lu<'a, T> {
    pub(crate) fn new(machine: Machine, factors: MatMut<'a, T>, copy: Option<DeviceCopy>, ipiv: Vec<i32>, info: usize) -> Self {
        Lu { machine, factors, copy, ipiv, info }
    }

    /// 0, or `i` if `U(i, i)`, counted from 1, is exactly zero.
    #[must_use]
    pub fn info(&self) -> usize {
        self.info
    }

    /// Row exchanges: row `i` with row `ipiv[i]`, 0-based, in order.
    #[must_use]
    pub fn ipiv(&self) -> &[i32] {
        &self.ipiv
    }

    /// L (unit diagonal not stored) and U.
    #[must_use]
    pub fn factors(&self) -> MatRef<'_, T> {
        self.factors.as_ref()
    }

    /// Whether a device has a copy of the factors.
    #[cfg(test)]
    pub(crate) fn is_kept(&self) -> bool {
        self.copy.as_ref().is_some_and(DeviceCopy::is_kept)
    }

    pub(crate) fn pivots(&self, operation: &'static str) -> Result<Vec<T>> {
        self.machine.pivots(operation, self.factors())
    }

    /// `B ← A⁻¹·B`.
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot is exactly zero; B stays as it
    /// is. A is not square, B has another number of rows, or a device failed.
    pub fn solve(&self, b: MatMut<'_, T>) -> Result<()> {
        self.solve_with(Op::NoTrans, b)
    }

    /// `B ← op(A)⁻¹·B`.
    ///
    /// # Errors
    /// As [`Lu::solve`].
    pub fn solve_with(&self, op: Op, b: MatMut<'_, T>) -> Result<()> {
        check_system("solve", &self.factors(), b.rows()).map_err(Error::untouched)?;
        if self.info != 0 {
            return Err(singular("solve", self.info, B_STAYS));
        }
        self.machine.solve_with_pivots(Getrs::new(self.factors(), &self.ipiv, b).op(op), self.copy.as_ref())
    }

    /// Estimates the reciprocal condition number `1 / (‖A‖₁·‖A⁻¹‖₁)`, as LAPACK's
    /// `gecon` does; `norm` is `‖A‖₁` of the matrix before factorisation. 0 if A is
    /// singular or beyond the range of numbers; never NaN. Rows or columns of unlike
    /// sizes make it small for no other reason: see [`Equilibration`](crate::Equilibration).
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = [1.0, 0.0, 0.0, 1e-8]; // ‖A‖₁ = 1, ‖A⁻¹‖₁ = 10⁸
    /// let rcond = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?.rcond(1.0)?;
    /// assert!((rcond / 1e-8 - 1.0).abs() < 1e-6);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// A is not square, `norm` is negative, infinite or NaN, or a device failed.
    pub fn rcond(&self, norm: f64) -> Result<f64> {
        condition::rcond(self, norm)
    }

    /// Estimates how far a computed solution x of A·x = b is off, as LAPACK's `gerfs` does:
    /// `max_j units[j]·(|A⁻¹|·residual)_j`, an upper bound of `max_j units[j]·|x − A⁻¹·b|_j`
    /// where `residual[i]` is at least `|b − A·x|_i`. With units of one it is the error in
    /// the maximum norm. The result is an estimate, as that of [`rcond`](Self::rcond): it may be smaller than
    /// the upper bound, but seldom by more than a factor of three. It is infinite if the bound exceeds the range of `f64`.
    ///
    /// # Errors
    /// A is singular or not square, the slices are not of its order, or a device failed.
    pub fn error_bound(&self, residual: &[f64], units: &[f64]) -> Result<f64> {
        condition::error_bound(self, residual, units)
    }

    /// Improves a solution x of A·x = b step by step; `a` is the matrix before
    /// factorisation. A column of X changes only if that reduces its backward error.
    /// Columns are refined in blocks of at least 128; the workspace is about six blocks.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (a, b) = ([4.0_f64, 1.0, 2.0, 3.0], [6.0, 4.0]);
    /// let (mut factors, mut x) = (a, b);
    /// let lu = machine.gesv(MatMut::col_major(&mut factors, 2, 2)?, MatMut::col_major(&mut x, 2, 1)?)?;
    /// x[0] += 1e-3; // spoiled
    /// let (a, b) = (MatRef::col_major(&a, 2, 2)?, MatRef::col_major(&b, 2, 1)?);
    /// let refined = lu.refine(a, b, MatMut::col_major(&mut x, 2, 1)?)?;
    /// assert!(refined.backward_error < 1e-15 && (x[0] - 1.0).abs() < 1e-15);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes do not agree, or a device failed.
    pub fn refine(&self, a: MatRef<'_, T>, b: MatRef<'_, T>, x: MatMut<'_, T>) -> Result<Refinement> {
        refine::refine(&self.machine, self, a, b, x)
    }
}
