//! Argument structs of the routines. Each argument struct has a method `check`, which validates the arguments.
//!
//! Code that receives a [`Checked`] value does not validate the arguments again. Builder methods of the argument structs set
//! optional arguments, for example `Gemm::new(a, b, c).alpha(2.0).trans_a()`.

use std::ops::Deref;

mod batched;

use crate::enums::{Accuracy, Diag, Op, Side, TrsmMode, Uplo};
use crate::error::{Error, Result};
use crate::matrix::{MatMut, MatRef};
use crate::routine::Routine;
use crate::scalar::Scalar;

pub use batched::{GemmBatched, GetrfBatched, GetrsBatched};

/// Arguments whose `check` method has succeeded.
#[must_use]
#[derive(Debug)]
pub struct Checked<A>(A);

impl<A> Checked<A> {
    /// Returns the checked arguments.
    pub fn into_inner(self) -> A {
        self.0
    }
}

impl<A> Deref for Checked<A> {
    type Target = A;
    fn deref(&self) -> &A {
        &self.0
    }
}

/// Arguments of the product `C ← α·op(A)·op(B) + β·C`, where `op(A)` is m×k, `op(B)` is k×n and `C` is m×n.
#[must_use = "arguments compute nothing: pass them to `Machine::gemm`"]
#[derive(Debug)]
pub struct Gemm<'a, T> {
    /// The scalar α of the product. If α is 0, the routine reads neither A nor B.
    pub alpha: T,
    /// The operation that is applied to A.
    pub op_a: Op,
    /// The left operand A of the product.
    pub a: MatRef<'a, T>,
    /// The operation that is applied to B.
    pub op_b: Op,
    /// The right operand B of the product.
    pub b: MatRef<'a, T>,
    /// The scalar β, by which the old C is multiplied. If β is 0, the routine does not read C.
    pub beta: T,
    /// The matrix C, which the routine replaces by the result.
    pub c: MatMut<'a, T>,
}

impl<'a, T: Scalar> Gemm<'a, T> {
    /// Arguments of the product `C ← A·B`.
    pub fn new(a: MatRef<'a, T>, b: MatRef<'a, T>, c: MatMut<'a, T>) -> Self {
        Gemm { alpha: T::ONE, op_a: Op::NoTrans, a, op_b: Op::NoTrans, b, beta: T::ZERO, c }
    }

    /// Sets the scalar α of the product. The default is 1.
    pub fn alpha(self, alpha: T) -> Self {
        Gemm { alpha, ..self }
    }

    /// Sets the scalar β, by which the old C is multiplied. The default is 0.
    pub fn beta(self, beta: T) -> Self {
        Gemm { beta, ..self }
    }

    /// Sets the operation that is applied to A.
    pub fn op_a(self, op_a: Op) -> Self {
        Gemm { op_a, ..self }
    }

    /// Sets the operation that is applied to B.
    pub fn op_b(self, op_b: Op) -> Self {
        Gemm { op_b, ..self }
    }

    /// Sets the operation on A to [`Op::Trans`]: the product uses Aᵀ.
    pub fn trans_a(self) -> Self {
        self.op_a(Op::Trans)
    }

    /// Sets the operation on B to [`Op::Trans`]: the product uses Bᵀ.
    pub fn trans_b(self) -> Self {
        self.op_b(Op::Trans)
    }

    /// The sizes `(m, n, k)` of the product.
    #[inline]
    #[must_use]
    pub fn size(&self) -> (usize, usize, usize) {
        (self.c.rows(), self.c.cols(), self.op_a.shape(self.a.shape()).1)
    }

    /// Checks that the shapes of `op(A)`, `op(B)` and C agree.
    ///
    /// # Errors
    /// Fails unless `op(A)` is m×k, `op(B)` is k×n and C is m×n for some m, n and k.
    #[inline]
    pub fn check(self) -> Result<Checked<Self>> {
        check_product(Routine::Gemm.name(), self.op_a.shape(self.a.shape()), self.op_b.shape(self.b.shape()), self.c.shape())?;
        Ok(Checked(self))
    }
}

/// Checks that the shapes of op(A), op(B) and C agree.
#[inline]
fn check_product(
    operation: &'static str,
    (am, ak): (usize, usize),
    (bk, bn): (usize, usize),
    (m, n): (usize, usize),
) -> Result<()> {
    if (am, bn, bk) == (m, n, ak) {
        return Ok(());
    }
    let message = if am != m {
        format!("op(A) has {am} rows, C has {m}")
    } else if bn != n {
        format!("op(B) has {bn} columns, C has {n}")
    } else {
        format!("op(A) has {ak} columns, op(B) has {bk} rows")
    };
    Err(Error::invalid(operation, message))
}

/// Arguments of the triangular solve `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹`, where A is triangular and B is m×n.
#[must_use = "arguments compute nothing: pass them to `Machine::trsm`"]
#[derive(Debug)]
pub struct Trsm<'a, T> {
    /// The side from which A multiplies the solution.
    pub side: Side,
    /// The triangle of A that the routine reads.
    pub uplo: Uplo,
    /// The operation that is applied to A.
    pub op: Op,
    /// Whether the diagonal of A is stored or consists of ones.
    pub diag: Diag,
    /// The scalar α, by which B is multiplied. If α is 0, the routine does not read A and sets B to zero.
    pub alpha: T,
    /// The triangular matrix A.
    pub a: MatRef<'a, T>,
    /// The right-hand sides B, which the routine replaces by the solution.
    pub b: MatMut<'a, T>,
    /// How the solve handles the diagonal blocks of A.
    pub mode: TrsmMode,
}

impl<'a, T: Scalar> Trsm<'a, T> {
    /// Arguments of `B ← A⁻¹·B` with the lower triangle of A, in the default mode.
    pub fn new(a: MatRef<'a, T>, b: MatMut<'a, T>) -> Self {
        Trsm {
            side: Side::Left,
            uplo: Uplo::Lower,
            op: Op::NoTrans,
            diag: Diag::NonUnit,
            alpha: T::ONE,
            a,
            b,
            mode: TrsmMode::default(),
        }
    }

    /// Sets the side from which A multiplies the solution.
    pub fn side(self, side: Side) -> Self {
        Trsm { side, ..self }
    }

    /// Sets the triangle of A that the routine reads.
    pub fn uplo(self, uplo: Uplo) -> Self {
        Trsm { uplo, ..self }
    }

    /// Sets the operation that is applied to A.
    pub fn op(self, op: Op) -> Self {
        Trsm { op, ..self }
    }

    /// Sets whether the diagonal of A is stored or consists of ones.
    pub fn diag(self, diag: Diag) -> Self {
        Trsm { diag, ..self }
    }

    /// Sets the scalar α, by which B is multiplied. The default is 1.
    pub fn alpha(self, alpha: T) -> Self {
        Trsm { alpha, ..self }
    }

    /// Sets how the solve handles the diagonal blocks of A.
    pub fn mode(self, mode: TrsmMode) -> Self {
        Trsm { mode, ..self }
    }

    /// Checks that A is square and that the shapes of A and B agree.
    ///
    /// # Errors
    /// Fails if A is not square. With A on the left side, the call also fails if B has another number of rows than A. With A on
    /// the right side, the call also fails if B has another number of columns than A.
    #[inline]
    pub fn check(self) -> Result<Checked<Self>> {
        let order = square(Routine::Trsm.name(), self.a.shape())?;
        let (extent, what) = match self.side {
            Side::Left => (self.b.rows(), "rows"),
            Side::Right => (self.b.cols(), "columns"),
        };
        if extent != order {
            return Err(Error::invalid(Routine::Trsm.name(), format!("A is of order {order}, B has {extent} {what}")));
        }
        Ok(Checked(self))
    }
}

/// Arguments of the LU factorisation `A = P·L·U` in place, where A is m×n and `ipiv` has min(m, n) elements.
#[must_use = "arguments compute nothing: pass them to `Machine::getrf_into`"]
#[derive(Debug)]
pub struct Getrf<'a, T> {
    /// The matrix A, which the routine replaces by its factors L and U. The unit diagonal of L is not stored.
    pub a: MatMut<'a, T>,
    /// Output: the routine exchanged row `i` with row `ipiv[i]`. Row indices count from 0.
    pub ipiv: &'a mut [i32],
    /// Whether the routine exchanges rows. A factorisation without row exchanges is accurate only for some matrices, for example
    /// for diagonally dominant matrices.
    pub pivoting: bool,
    /// The error bound that the device must keep in each product A·B of the routine.
    pub accuracy: Accuracy,
}

impl<'a, T: Scalar> Getrf<'a, T> {
    /// Arguments of a factorisation with partial pivoting.
    pub fn new(a: MatMut<'a, T>, ipiv: &'a mut [i32]) -> Self {
        Getrf { a, ipiv, pivoting: true, accuracy: Accuracy::default() }
    }

    /// Changes the call to a factorisation without row exchanges.
    pub fn without_pivoting(self) -> Self {
        Getrf { pivoting: false, ..self }
    }

    /// Sets the error bound that the device must keep in each product of the factorisation. The default is [`Accuracy::Componentwise`]. With [`Accuracy::Normwise`], the factors may violate
    /// bound 8 of `docs/numerics.md`: scale A so that its largest elements are near 8, and refine the solution. A device that factors a small
    /// matrix by one instruction ignores the accuracy.
    pub fn accuracy(self, accuracy: Accuracy) -> Self {
        Getrf { accuracy, ..self }
    }

    /// Checks that `ipiv` has min(m, n) elements, and that the row indices of A fit in `i32`.
    ///
    /// # Errors
    /// Fails if the length of `ipiv` is not min(m, n), or if m exceeds the range of `i32`.
    #[inline]
    pub fn check(self) -> Result<Checked<Self>> {
        let (m, n) = self.a.shape();
        if self.ipiv.len() != m.min(n) {
            return Err(Error::invalid(
                Routine::Getrf.name(),
                format!("ipiv holds {} elements, min(m, n) is {}", self.ipiv.len(), m.min(n)),
            ));
        }
        if i32::try_from(m).is_err() {
            return Err(Error::invalid(Routine::Getrf.name(), format!("m = {m} exceeds the range of ipiv")));
        }
        Ok(Checked(self))
    }
}

/// Arguments of the solve `B ← op(A)⁻¹·B` with the LU factors of A, where A has order n and B is n×nrhs.
#[must_use = "arguments compute nothing: pass them to `Machine::getrs`"]
#[derive(Debug)]
pub struct Getrs<'a, T> {
    /// The operation that is applied to A.
    pub op: Op,
    /// The matrix that holds the factors L and U, as a call with [`Getrf`] left it.
    pub lu: MatRef<'a, T>,
    /// The row indices of the exchanges, as a call with [`Getrf`] wrote them.
    pub ipiv: &'a [i32],
    /// The right-hand sides B, which the routine replaces by the solution.
    pub b: MatMut<'a, T>,
    /// How the solves with L and U handle the diagonal blocks.
    pub mode: TrsmMode,
}

impl<'a, T: Scalar> Getrs<'a, T> {
    /// Arguments of the solve `B ← A⁻¹·B` by substitution.
    pub fn new(lu: MatRef<'a, T>, ipiv: &'a [i32], b: MatMut<'a, T>) -> Self {
        Getrs { op: Op::NoTrans, lu, ipiv, b, mode: TrsmMode::Substitution }
    }

    /// Sets the operation that is applied to A.
    pub fn op(self, op: Op) -> Self {
        Getrs { op, ..self }
    }

    /// Sets how the solves with L and U handle the diagonal blocks. The default is [`TrsmMode::Substitution`]. With [`TrsmMode::Inverted`], each
    /// of the two solves keeps bound 7 of `docs/numerics.md` for this mode, and the solution may violate bound 8.
    pub fn mode(self, mode: TrsmMode) -> Self {
        Getrs { mode, ..self }
    }

    /// Checks the shapes of the matrices and the row indices in `ipiv`.
    ///
    /// # Errors
    /// Fails if the matrix of the LU factors is not square, if B has another number of rows than this matrix, if the length of
    /// `ipiv` is not n, or if an element of `ipiv` is no row index.
    #[inline]
    pub fn check(self) -> Result<Checked<Self>> {
        let n = square(Routine::Getrs.name(), self.lu.shape())?;
        if self.b.rows() != n {
            return Err(Error::invalid(Routine::Getrs.name(), format!("A is of order {n}, B has {} rows", self.b.rows())));
        }
        check_pivots(Routine::Getrs.name(), self.ipiv, n, n)?;
        Ok(Checked(self))
    }
}

/// Arguments of exchanges of rows of A: the routine exchanges row `i` with row `ipiv[i]`, in ascending or descending order of
/// `i`.
#[must_use = "arguments compute nothing: pass them to `Machine::laswp`"]
#[derive(Debug)]
pub struct Laswp<'a, T> {
    /// The matrix A, whose rows the routine exchanges.
    pub a: MatMut<'a, T>,
    /// The indices of the rows with which rows 0, 1, … are exchanged, counted from 0.
    pub ipiv: &'a [i32],
    /// Whether the routine exchanges the rows in ascending order, which computes `P⁻¹·A` for the P of [`Getrf`]. The value
    /// `false` means descending order, which computes `P·A`.
    pub forward: bool,
}

impl<'a, T: Scalar> Laswp<'a, T> {
    /// Arguments of row exchanges in ascending order.
    pub fn new(a: MatMut<'a, T>, ipiv: &'a [i32]) -> Self {
        Laswp { a, ipiv, forward: true }
    }

    /// Changes the order of the exchanges to descending. Exchanges in descending order undo the same exchanges in ascending
    /// order.
    pub fn backward(self) -> Self {
        Laswp { forward: false, ..self }
    }

    /// Checks the length of `ipiv` and the row indices in `ipiv`.
    ///
    /// # Errors
    /// Fails if `ipiv` has more elements than A has rows, or if an element of `ipiv` is no row index of A.
    #[inline]
    pub fn check(self) -> Result<Checked<Self>> {
        let (held, rows) = (self.ipiv.len(), self.a.rows());
        if held > rows {
            return Err(Error::invalid(Routine::Laswp.name(), format!("ipiv holds {held} elements, at most {rows} (rows of A)")));
        }
        check_pivots(Routine::Laswp.name(), self.ipiv, held, rows)?;
        Ok(Checked(self))
    }
}

fn square(operation: &'static str, (rows, cols): (usize, usize)) -> Result<usize> {
    if rows == cols { Ok(rows) } else { Err(Error::invalid(operation, format!("A is {rows}×{cols}, not square"))) }
}

fn check_pivots(operation: &'static str, ipiv: &[i32], len: usize, rows: usize) -> Result<()> {
    if ipiv.len() != len {
        return Err(Error::invalid(operation, format!("ipiv holds {} elements, not {len}", ipiv.len())));
    }
    match ipiv.iter().position(|&p| usize::try_from(p).map_or(true, |p| p >= rows)) {
        None => Ok(()),
        Some(i) => Err(Error::invalid(operation, format!("ipiv[{i}] = {} is no row of {rows}", ipiv[i]))),
    }
}
