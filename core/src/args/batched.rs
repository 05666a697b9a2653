//! Argument structs of the routines on batches.

use super::{Checked, check_product, square};
use crate::batch::{Batch, BatchMut};
use crate::enums::Op;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// `C ← α·op(A)·op(B) + β·C` for each matrix of a batch, as [`Gemm`](crate::Gemm) says.
#[must_use = "arguments compute nothing: pass them to `Machine::gemm_batched`"]
#[derive(Debug)]
pub struct GemmBatched<'a, T> {
    /// Factor of the products; with `0` neither A nor B is read.
    pub alpha: T,
    /// How the matrices of A enter.
    pub op_a: Op,
    /// The left factors.
    pub a: Batch<'a, T>,
    /// How the matrices of B enter.
    pub op_b: Op,
    /// The right factors.
    pub b: Batch<'a, T>,
    /// Factor of the old C; with `0` C is not read.
    pub beta: T,
    /// The results.
    pub c: BatchMut<'a, T>,
}

impl<'a, T: Scalar> GemmBatched<'a, T> {
    /// `C ← A·B`.
    pub fn new(a: Batch<'a, T>, b: Batch<'a, T>, c: BatchMut<'a, T>) -> Self {
        GemmBatched { alpha: T::ONE, op_a: Op::NoTrans, a, op_b: Op::NoTrans, b, beta: T::ZERO, c }
    }

    /// Sets the factor of the products (one unless set).
    pub fn alpha(self, alpha: T) -> Self {
        GemmBatched { alpha, ..self }
    }

    /// Sets the factor of the old C (zero unless set).
    pub fn beta(self, beta: T) -> Self {
        GemmBatched { beta, ..self }
    }

    /// Sets how the matrices of A enter.
    pub fn op_a(self, op_a: Op) -> Self {
        GemmBatched { op_a, ..self }
    }

    /// Sets how the matrices of B enter.
    pub fn op_b(self, op_b: Op) -> Self {
        GemmBatched { op_b, ..self }
    }

    /// The matrices of A enter transposed.
    pub fn trans_a(self) -> Self {
        self.op_a(Op::Trans)
    }

    /// The matrices of B enter transposed.
    pub fn trans_b(self) -> Self {
        self.op_b(Op::Trans)
    }

    /// Checks the numbers of matrices and their shapes.
    ///
    /// # Errors
    /// A and B have another number of matrices than C, or a dimension does not agree with the others.
    pub fn check(self) -> Result<Checked<Self>> {
        for (name, count) in [("A", self.a.count()), ("B", self.b.count())] {
            same_count("gemm_batched", name, count, self.c.count())?;
        }
        // no matrices have no shape: `from_columns` divides no columns among them
        if self.c.count() > 0 {
            check_product("gemm_batched", self.op_a.shape(self.a.shape()), self.op_b.shape(self.b.shape()), self.c.shape())?;
        }
        Ok(Checked(self))
    }
}

/// `A = P·L·U` of each m×n matrix of a batch, in place, as [`Getrf`](crate::Getrf) says.
#[must_use = "arguments compute nothing: pass them to `Machine::getrf_batched`"]
#[derive(Debug)]
pub struct GetrfBatched<'a, T> {
    /// The matrices, replaced by L (unit diagonal not stored) and U.
    pub a: BatchMut<'a, T>,
    /// count·min(m, n) row indices: row `ipiv[i·min(m, n) + j]` of matrix i was exchanged with its row `j`; 0-based.
    pub ipiv: &'a mut [i32],
    /// Output, one element for each matrix: 0, or the number, from 1, of its first pivot that is exactly zero.
    pub info: &'a mut [i32],
    /// Whether rows are exchanged.
    pub pivoting: bool,
}

impl<'a, T: Scalar> GetrfBatched<'a, T> {
    /// Factorisation with partial pivoting.
    pub fn new(a: BatchMut<'a, T>, ipiv: &'a mut [i32], info: &'a mut [i32]) -> Self {
        GetrfBatched { a, ipiv, info, pivoting: true }
    }

    /// Factorisation without row exchanges.
    pub fn without_pivoting(self) -> Self {
        GetrfBatched { pivoting: false, ..self }
    }

    /// Checks the lengths of `ipiv` and `info`, and that row indices fit `i32`.
    ///
    /// # Errors
    /// `ipiv` is not of length count·min(m, n), `info` not of length count, or m exceeds the range of `i32`.
    pub fn check(self) -> Result<Checked<Self>> {
        let ((m, n), count) = (self.a.shape(), self.a.count());
        let message = if self.info.len() != count {
            format!("info holds {} elements, A has {count} matrices", self.info.len())
        } else if Some(self.ipiv.len()) != count.checked_mul(m.min(n)) {
            format!("ipiv holds {} elements, {count} matrices of {m}×{n} have {count}·{} pivots", self.ipiv.len(), m.min(n))
        } else if i32::try_from(m).is_err() {
            format!("m = {m} exceeds the range of ipiv")
        } else {
            return Ok(Checked(self));
        };
        Err(Error::invalid("getrf_batched", message))
    }
}

/// `B ← op(A)⁻¹·B` from the factors of each matrix of a batch, of order n; B is n×nrhs for each.
#[must_use = "arguments compute nothing: pass them to `Machine::getrs_batched`"]
#[derive(Debug)]
pub struct GetrsBatched<'a, T> {
    /// How A enters.
    pub op: Op,
    /// L and U as left by [`GetrfBatched`].
    pub lu: Batch<'a, T>,
    /// Row exchanges as left by [`GetrfBatched`].
    pub ipiv: &'a [i32],
    /// The right-hand sides, replaced by the solutions.
    pub b: BatchMut<'a, T>,
}

impl<'a, T: Scalar> GetrsBatched<'a, T> {
    /// `B ← A⁻¹·B`.
    pub fn new(lu: Batch<'a, T>, ipiv: &'a [i32], b: BatchMut<'a, T>) -> Self {
        GetrsBatched { op: Op::NoTrans, lu, ipiv, b }
    }

    /// Sets how A enters.
    pub fn op(self, op: Op) -> Self {
        GetrsBatched { op, ..self }
    }

    /// Checks the shapes and the row indices.
    ///
    /// # Errors
    /// The factors are not square, B has another number of matrices or of rows, or `ipiv` is of another length than
    /// count·n or names a row that does not exist.
    pub fn check(self) -> Result<Checked<Self>> {
        const NAME: &str = "getrs_batched";
        let count = self.lu.count();
        same_count(NAME, "B", self.b.count(), count)?;
        // no matrices have no shape
        let n = if count > 0 { square(NAME, self.lu.shape())? } else { self.b.shape().0 };
        let ((rows, _), len) = (self.b.shape(), self.ipiv.len());
        if rows != n {
            return Err(Error::invalid(NAME, format!("A is of order {n}, B has {rows} rows")));
        }
        if Some(len) != count.checked_mul(n) {
            return Err(Error::invalid(
                NAME,
                format!("ipiv holds {len} elements, {count} matrices of order {n} have {count}·{n} pivots"),
            ));
        }
        if let Some(i) = self.ipiv.iter().position(|&p| usize::try_from(p).map_or(true, |p| p >= n)) {
            let message = format!("ipiv[{i}] = {} is no row of {n} (matrix {}, pivot {})", self.ipiv[i], i / n, i % n);
            return Err(Error::invalid(NAME, message));
        }
        Ok(Checked(self))
    }
}

fn same_count(operation: &'static str, name: &str, count: usize, expected: usize) -> Result<()> {
    if count == expected { Ok(()) } else { Err(Error::invalid(operation, format!("{name} has {count} matrices, not {expected}"))) }
}
