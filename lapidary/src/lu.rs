//! LU factors of a matrix, and operations on them.

use lapidary_core::{Error, Getrs, MatMut, MatRef, Op, Outputs, Result, Scalar, TrsmMode};

use crate::condition;
use crate::copy::DeviceCopy;
use crate::host::HostVec;
use crate::machine::Machine;
use crate::refine::{self, Refinement};
use crate::singular::singular;

/// The factors `A = P·L·U`, stored in the memory of A.
///
/// An `Lu` borrows the matrix of the caller. An [`OwnedLu`](crate::OwnedLu) owns the matrix and can be used wherever a reference to an
/// `Lu` is expected.
///
/// If devices with memory of their own held the whole matrix during the factorisation, each of them keeps its part of the factors, so that
/// solves do not transfer the factors again. If several devices keep parts, only solves with up to 16 right-hand sides in host memory use the
/// parts. A device frees its part when this `Lu` is dropped, when an upload or a call on host matrices needs the memory, at any call on uploaded
/// matrices, and by [`Machine::trim`]. After a device has freed its part, solves take all factors from host memory.
#[must_use = "factors do nothing by themselves: solve with them; if they were wanted in A only, drop this by `let _ =`"]
#[derive(Debug)]
pub struct Lu<'a, T> {
    pub(crate) machine: Machine,
    pub(crate) factors: Factors<'a, T>,
    pub(crate) copy: Option<DeviceCopy>,
    pub(crate) ipiv: Vec<i32>,
    pub(crate) info: usize,
}

/// The memory that holds the factors.
#[derive(Debug)]
pub(crate) enum Factors<'a, T> {
    /// The matrix of the caller.
    Borrowed(MatMut<'a, T>),
    /// The elements of a square column-major matrix without gaps, whose order is the number of pivots.
    Owned(HostVec<T>),
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

impl<'a, T> Lu<'a, T> {
    /// Returns the factors in the memory of A, the row exchanges and the number of the first zero pivot, as [`Lu::factors`],
    /// [`Lu::ipiv`] and [`Lu::info`] describe them. A device that keeps a copy of the factors frees its copy.
    /// [`OwnedLu::into_parts`](crate::OwnedLu::into_parts) returns the parts of factors that own their matrix.
    ///
    /// ```
    /// use lapidary::{Getrs, Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = [0.0, 2.0, 4.0, 1.0];
    /// let (factors, ipiv, info) = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?.into_parts();
    /// assert_eq!((ipiv.as_slice(), info), (&[1, 1][..], 0));
    /// let mut x = [4.0, 3.0];
    /// machine.getrs(Getrs::new(factors.as_ref(), &ipiv, MatMut::col_major(&mut x, 2, 1)?))?;
    /// assert_eq!(x, [1.0, 1.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    #[must_use]
    pub fn into_parts(self) -> (MatMut<'a, T>, Vec<i32>, usize) {
        let Lu { factors, ipiv, info, .. } = self;
        match factors {
            Factors::Borrowed(factors) => (factors, ipiv, info),
            Factors::Owned(_) => unreachable!("an `OwnedLu` lends its `Lu` by reference only"),
        }
    }
}

impl<T: Scalar> Lu<'_, T> {
    /// Returns 0 if no pivot is zero, else the index `i`, counted from 1, of the first pivot `U(i, i)` that is exactly zero.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = [1.0, 2.0, 2.0, 4.0]; // the second column is twice the first
    /// let lu = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?;
    /// assert_eq!((lu.info(), lu.ipiv()), (2, &[1, 1][..])); // rows 0 and 1 were exchanged
    /// assert_eq!((lu.factors().at(1, 0), lu.factors().at(1, 1)), (0.5, 0.0)); // L(1, 0) and U(1, 1)
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    #[must_use]
    pub fn info(&self) -> usize {
        self.info
    }

    /// Returns the row exchanges: row `i` was exchanged with row `ipiv[i]`, in ascending order of `i`. Row indices are 0-based. The
    /// documentation of [`Lu::info`] has an example.
    #[must_use]
    pub fn ipiv(&self) -> &[i32] {
        &self.ipiv
    }

    /// Returns L and U in one matrix (example: [`Lu::info`]). The unit diagonal of L is not stored.
    #[must_use]
    pub fn factors(&self) -> MatRef<'_, T> {
        match &self.factors {
            Factors::Borrowed(factors) => factors.as_ref(),
            Factors::Owned(elements) => {
                let n = self.ipiv.len();
                MatRef::col_major(elements, n, n).expect("the elements of a matrix of order n were counted")
            }
        }
    }

    /// Whether a device keeps a copy of the factors.
    #[cfg(test)]
    pub(crate) fn is_kept(&self) -> bool {
        self.copy.as_ref().is_some_and(DeviceCopy::is_kept)
    }

    pub(crate) fn pivots(&self, operation: &'static str) -> Result<Vec<T>> {
        self.machine.pivots(operation, self.factors())
    }

    /// Solves A·X = B: `B ← A⁻¹·B`. X and B may have several columns.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = [4.0, 0.0, 2.0, 1.0];
    /// let lu = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?;
    /// let mut x = [6.0, 1.0, 4.0, 0.0]; // two right-hand sides
    /// lu.solve(MatMut::col_major(&mut x, 2, 2)?)?;
    /// assert_eq!(x, [1.0, 1.0, 1.0, 0.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot is exactly zero; B is not changed. Another error is
    /// returned if A is not square, A and B differ in the number of rows, or a device failed.
    pub fn solve(&self, b: MatMut<'_, T>) -> Result<()> {
        self.solve_with(Op::NoTrans, b)
    }

    /// Solves op(A)·X = B: `B ← op(A)⁻¹·B`.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Op, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = [4.0, 0.0, 2.0, 1.0];
    /// let lu = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?;
    /// let mut x = [4.0, 3.0];
    /// lu.solve_with(Op::Trans, MatMut::col_major(&mut x, 2, 1)?)?;
    /// assert_eq!(x, [1.0, 1.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// This method returns the same errors as [`Lu::solve`].
    pub fn solve_with(&self, op: Op, b: MatMut<'_, T>) -> Result<()> {
        self.solve_in_mode(TrsmMode::Substitution, op, b)
    }

    /// Solves op(A)·X = B. The mode states how the solves with L and U handle the diagonal blocks.
    pub(crate) fn solve_in_mode(&self, mode: TrsmMode, op: Op, b: MatMut<'_, T>) -> Result<()> {
        check_system("solve", &self.factors(), b.rows()).map_err(Error::untouched)?;
        if self.info != 0 {
            return Err(singular("solve", self.info, Outputs::Unchanged));
        }
        self.machine.solve_with_pivots(Getrs::new(self.factors(), &self.ipiv, b).op(op).mode(mode), self.copy.as_ref())
    }

    /// Computes `log |det A|` and the sign of `det A`, which is 1, −1 or 0. The determinant itself may exceed the range of `f64`.
    ///
    /// The logarithm is the sum of `log |U(i, i)|` in `f64`. The sign is the product of the signs of the pivots, times −1 for each row
    /// that was exchanged with another row. If a pivot is zero, the results are −∞ and 0. If a pivot is NaN, both results are NaN. The
    /// determinant of a matrix of order 0 is 1.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = [0.0, 2.0, 4.0, 1.0]; // det A = −8
    /// let (log, sign) = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?.log_abs_det()?;
    /// assert!((log - 8.0_f64.ln()).abs() < 1e-15 && sign == -1.0);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// A is not square, or a device failed.
    pub fn log_abs_det(&self) -> Result<(f64, f64)> {
        const OPERATION: &str = "log_abs_det";
        check_system(OPERATION, &self.factors(), self.factors().rows())?;
        let pivots: Vec<f64> = self.pivots(OPERATION)?.into_iter().map(T::to_f64).collect();
        if pivots.iter().any(|pivot| pivot.is_nan()) {
            return Ok((f64::NAN, f64::NAN));
        }
        if pivots.contains(&0.0) {
            return Ok((f64::NEG_INFINITY, 0.0));
        }
        let exchanges = self.ipiv.iter().enumerate().filter(|&(i, &with)| usize::try_from(with) != Ok(i));
        let negative = pivots.iter().filter(|&&pivot| pivot < 0.0).count() + exchanges.count();
        let log = pivots.iter().map(|pivot| libm::log(pivot.abs())).sum();
        Ok((log, if negative.is_multiple_of(2) { 1.0 } else { -1.0 }))
    }

    /// Estimates the reciprocal condition number `1 / (‖A‖₁·‖A⁻¹‖₁)`, as LAPACK's `gecon` does. `norm` is the norm `‖A‖₁` of the matrix
    /// before the factorisation, which [`MatRef::norm_1`] computes. The estimate is 0 if A is singular or if the condition number exceeds
    /// the range of T. The estimate is never NaN. The estimate may be small only because rows or columns have different scales;
    /// [`Equilibration`](crate::Equilibration) removes these differences.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = [1.0, 0.0, 0.0, 1e-8]; // ‖A‖₁ = 1, ‖A⁻¹‖₁ = 10⁸
    /// let norm = MatRef::col_major(&a, 2, 2)?.norm_1();
    /// let rcond = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?.rcond(norm)?;
    /// assert!((rcond / 1e-8 - 1.0).abs() < 1e-6);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// A is not square, `norm` is negative, infinite or NaN, or a device failed.
    pub fn rcond(&self, norm: f64) -> Result<f64> {
        condition::rcond(self, norm)
    }

    /// Estimates an upper bound of the error of a computed solution x of A·x = b, as LAPACK's `gerfs` does.
    ///
    /// The error bound is `max_j units[j]·(|A⁻¹|·residual)_j`. If `residual[i]` is at least `|b − A·x|_i`, then `max_j
    /// units[j]·|x − A⁻¹·b|_j` does not exceed the error bound. If all `units` are one, the error bound is a bound of the error
    /// in the maximum norm. The result is an estimate of the error bound: it may be smaller than the error bound, but seldom by
    /// more than a factor of three. The result is infinite if the error bound exceeds the range of `f64`.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = [2.0, 1.0, 0.0, 4.0]; // A⁻¹ = [1/2 0; -1/8 1/4]
    /// let lu = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?;
    /// assert_eq!(lu.error_bound(&[4.0, 0.0], &[1.0, 1.0])?, 2.0);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// A is singular or not square, the length of a slice is not the order of A, or a device failed.
    pub fn error_bound(&self, residual: &[f64], units: &[f64]) -> Result<f64> {
        condition::error_bound(self, residual, units)
    }

    /// Improves a solution X of A·X = B by iterative refinement. `a` is the matrix before factorisation. A column of X changes only
    /// if its backward error becomes smaller. The method refines X in blocks of at least 128 columns (the last
    /// block may have fewer columns), and allocates about six times the memory of one block.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (a, b) = ([4.0_f64, 1.0, 2.0, 3.0], [6.0, 4.0]);
    /// let (mut factors, mut x) = (a, b);
    /// let lu = machine.gesv(MatMut::col_major(&mut factors, 2, 2)?, MatMut::col_major(&mut x, 2, 1)?)?;
    /// x[0] += 1e-3; // disturb the solution
    /// let (a, b) = (MatRef::col_major(&a, 2, 2)?, MatRef::col_major(&b, 2, 1)?);
    /// let refined = lu.refine(a, b, MatMut::col_major(&mut x, 2, 1)?)?;
    /// assert!(refined.backward_error < 1e-15 && (x[0] - 1.0).abs() < 1e-15);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes of A, B and X do not agree, one of them does not lie in host memory, or a device failed.
    pub fn refine(&self, a: MatRef<'_, T>, b: MatRef<'_, T>, x: MatMut<'_, T>) -> Result<Refinement> {
        refine::refine(&self.machine, self, a, b, x)
    }
}
