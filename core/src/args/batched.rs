//! Argument structs of the routines on batches of matrices.

use super::{Checked, check_product, square};
use crate::batch::{Batch, BatchMut};
use crate::enums::Op;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// Arguments of the products `C ← α·op(A)·op(B) + β·C` of the matrices of three batches. For a single product, see
/// [`Gemm`](crate::Gemm).
#[must_use = "arguments compute nothing: pass them to `Machine::gemm_batched`"]
#[derive(Debug)]
pub struct GemmBatched<'a, T> {
    /// The scalar α of the products. If α is 0, the routine reads neither A nor B.
    pub alpha: T,
    /// The operation that is applied to each matrix of A.
    pub op_a: Op,
    /// The batch of the left operands A of the products.
    pub a: Batch<'a, T>,
    /// The operation that is applied to each matrix of B.
    pub op_b: Op,
    /// The batch of the right operands B of the products.
    pub b: Batch<'a, T>,
    /// The scalar β, by which the old C is multiplied. If β is 0, the routine does not read C.
    pub beta: T,
    /// The batch of the matrices C, which the routine replaces by the results.
    pub c: BatchMut<'a, T>,
}

impl<'a, T: Scalar> GemmBatched<'a, T> {
    /// Arguments of the products `C ← A·B`.
    pub fn new(a: Batch<'a, T>, b: Batch<'a, T>, c: BatchMut<'a, T>) -> Self {
        GemmBatched { alpha: T::ONE, op_a: Op::NoTrans, a, op_b: Op::NoTrans, b, beta: T::ZERO, c }
    }

    /// Sets the scalar α of the products. The default is 1.
    pub fn alpha(self, alpha: T) -> Self {
        GemmBatched { alpha, ..self }
    }

    /// Sets the scalar β, by which the old C is multiplied. The default is 0.
    pub fn beta(self, beta: T) -> Self {
        GemmBatched { beta, ..self }
    }

    /// Sets the operation that is applied to each matrix of A.
    pub fn op_a(self, op_a: Op) -> Self {
        GemmBatched { op_a, ..self }
    }

    /// Sets the operation that is applied to each matrix of B.
    pub fn op_b(self, op_b: Op) -> Self {
        GemmBatched { op_b, ..self }
    }

    /// Sets the operation on each matrix of A to [`Op::Trans`].
    pub fn trans_a(self) -> Self {
        self.op_a(Op::Trans)
    }

    /// Sets the operation on each matrix of B to [`Op::Trans`].
    pub fn trans_b(self) -> Self {
        self.op_b(Op::Trans)
    }

    /// Checks that the batches A, B and C contain the same number of matrices, and that the shapes of the matrices agree.
    ///
    /// # Errors
    /// Fails if A or B has another number of matrices than C. If C contains a matrix, the call also fails unless each `op(A)` is
    /// m×k, each `op(B)` is k×n and each C is m×n for some m, n and k.
    pub fn check(self) -> Result<Checked<Self>> {
        for (name, count) in [("A", self.a.count()), ("B", self.b.count())] {
            same_count("gemm_batched", name, count, self.c.count())?;
        }
        // the shape of the matrices of an empty batch is not checked, because `from_columns` computes the shape from the columns
        // of the batch
        if self.c.count() > 0 {
            check_product("gemm_batched", self.op_a.shape(self.a.shape()), self.op_b.shape(self.b.shape()), self.c.shape())?;
        }
        Ok(Checked(self))
    }
}

/// Arguments of the LU factorisation `A = P·L·U` of each m×n matrix A of a batch, in place. For a single factorisation, see
/// [`Getrf`](crate::Getrf).
#[must_use = "arguments compute nothing: pass them to `Machine::getrf_batched`"]
#[derive(Debug)]
pub struct GetrfBatched<'a, T> {
    /// The batch of the matrices A. The routine replaces each matrix A by its factors L and U, and does not store the unit
    /// diagonal of L.
    pub a: BatchMut<'a, T>,
    /// Output: count·min(m, n) row indices, counted from 0, for `count` matrices. In matrix i, the routine exchanged row `j` with
    /// row `ipiv[i·min(m, n) + j]`.
    pub ipiv: &'a mut [i32],
    /// Output, one element for each matrix: 0, or the number, counted from 1, of the first pivot of the matrix that is exactly
    /// zero.
    pub info: &'a mut [i32],
    /// Whether the routine exchanges rows.
    pub pivoting: bool,
}

impl<'a, T: Scalar> GetrfBatched<'a, T> {
    /// Arguments of factorisations with partial pivoting.
    pub fn new(a: BatchMut<'a, T>, ipiv: &'a mut [i32], info: &'a mut [i32]) -> Self {
        GetrfBatched { a, ipiv, info, pivoting: true }
    }

    /// Changes the call to factorisations without row exchanges.
    pub fn without_pivoting(self) -> Self {
        GetrfBatched { pivoting: false, ..self }
    }

    /// Checks the lengths of `ipiv` and `info`, and that the row indices of A fit in `i32`.
    ///
    /// # Errors
    /// Fails if the length of `ipiv` is not count·min(m, n) for a batch of `count` matrices, if the length of `info` is not
    /// count, or if m exceeds the range of `i32`.
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

/// Arguments of the solve `B ← op(A)⁻¹·B` with the LU factors of each matrix of a batch, where A has order n and B is n×nrhs.
#[must_use = "arguments compute nothing: pass them to `Machine::getrs_batched`"]
#[derive(Debug)]
pub struct GetrsBatched<'a, T> {
    /// The operation that is applied to each matrix A.
    pub op: Op,
    /// The batch of matrices that hold the factors L and U, as a call with [`GetrfBatched`] left them.
    pub lu: Batch<'a, T>,
    /// The row indices of the exchanges, as a call with [`GetrfBatched`] wrote them.
    pub ipiv: &'a [i32],
    /// The batch of the right-hand sides B, which the routine replaces by the solutions.
    pub b: BatchMut<'a, T>,
}

impl<'a, T: Scalar> GetrsBatched<'a, T> {
    /// Arguments of the solves `B ← A⁻¹·B`.
    pub fn new(lu: Batch<'a, T>, ipiv: &'a [i32], b: BatchMut<'a, T>) -> Self {
        GetrsBatched { op: Op::NoTrans, lu, ipiv, b }
    }

    /// Sets the operation that is applied to each A.
    pub fn op(self, op: Op) -> Self {
        GetrsBatched { op, ..self }
    }

    /// Checks the shapes of the matrices and the row indices in `ipiv`.
    ///
    /// # Errors
    /// Fails if the matrices of `lu` are not square, if `b` has another number of matrices than `lu` or its matrices have another
    /// number of rows, if the length of `ipiv` is not count·n, or if an element of `ipiv` is no row index.
    pub fn check(self) -> Result<Checked<Self>> {
        const NAME: &str = "getrs_batched";
        let count = self.lu.count();
        same_count(NAME, "B", self.b.count(), count)?;
        // the shape of the matrices of `lu` is not checked if `lu` is an empty batch
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
