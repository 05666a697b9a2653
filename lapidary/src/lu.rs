//! Factors of a matrix, and what can be done with them.

use lapidary_core::{Error, Getrs, MatMut, MatRef, Op, Result, Scalar};

use crate::condition;
use crate::machine::Machine;
use crate::refine::{self, Refinement};

/// `A = P·L·U`, in the memory that held A.
#[derive(Debug)]
pub struct Lu<'m, 'a, T> {
    machine: &'m Machine,
    factors: MatMut<'a, T>,
    ipiv: Vec<i32>,
    info: usize,
}

/// Refuses a system that is not square or whose right-hand side has other rows.
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

impl<'m, 'a, T: Scalar> Lu<'m, 'a, T> {
    pub(crate) fn new(machine: &'m Machine, factors: MatMut<'a, T>, ipiv: Vec<i32>, info: usize) -> Self {
        Lu { machine, factors, ipiv, info }
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

    /// `B ← A⁻¹·B`.
    ///
    /// # Errors
    /// A is singular or not square, B has another number of rows, or a device failed.
    pub fn solve(&self, b: MatMut<'_, T>) -> Result<()> {
        self.solve_with(Op::NoTrans, b)
    }

    /// `B ← op(A)⁻¹·B`.
    ///
    /// # Errors
    /// As [`Lu::solve`].
    pub fn solve_with(&self, op: Op, b: MatMut<'_, T>) -> Result<()> {
        check_system("solve", &self.factors(), b.rows())?;
        if self.info != 0 {
            return Err(Error::invalid("solve", format!("A is singular: U({0}, {0}) is exactly zero", self.info)));
        }
        self.machine.getrs(Getrs::new(self.factors(), &self.ipiv, b).op(op))
    }

    /// Estimates the reciprocal condition number `1 / (‖A‖₁·‖A⁻¹‖₁)`, as LAPACK's
    /// `gecon` does; `norm` is `‖A‖₁` of the matrix before factorisation.
    ///
    /// # Errors
    /// A is not square, or a device failed.
    pub fn rcond(&self, norm: f64) -> Result<f64> {
        condition::rcond(self, norm)
    }

    /// Improves a solution x of A·x = b step by step; `a` is the matrix before
    /// factorisation.
    ///
    /// # Errors
    /// The shapes do not agree, or a device failed.
    pub fn refine(&self, a: MatRef<'_, T>, b: MatRef<'_, T>, x: MatMut<'_, T>) -> Result<Refinement> {
        refine::refine(self.machine, self, a, b, x)
    }
}
