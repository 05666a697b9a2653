//! Argument structs of the routines, each with one `check()`.
//!
//! Nothing below [`Checked`] validates again. The builders read like the call:
//! `Gemm::new(a, b, c).alpha(2.0).trans_a()`.

use std::ops::Deref;

mod batched;

use crate::enums::{Diag, Op, Side, TrsmMode, Uplo};
use crate::error::{Error, Result};
use crate::matrix::{MatMut, MatRef};
use crate::routine::Routine;
use crate::scalar::Scalar;

pub use batched::{GemmBatched, GetrfBatched, GetrsBatched};

/// Arguments that have passed their check.
#[must_use]
#[derive(Debug)]
pub struct Checked<A>(A);

impl<A> Checked<A> {
    /// The arguments.
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

/// `C ← α·op(A)·op(B) + β·C` with `op(A)` m×k, `op(B)` k×n and `C` m×n.
#[must_use = "arguments compute nothing: pass them to `Machine::gemm`"]
#[derive(Debug)]
pub struct Gemm<'a, T> {
    /// Factor of the product; with `0` neither A nor B is read.
    pub alpha: T,
    /// How A enters.
    pub op_a: Op,
    /// The left factor.
    pub a: MatRef<'a, T>,
    /// How B enters.
    pub op_b: Op,
    /// The right factor.
    pub b: MatRef<'a, T>,
    /// Factor of the old C; with `0` C is not read.
    pub beta: T,
    /// The result.
    pub c: MatMut<'a, T>,
}

impl<'a, T: Scalar> Gemm<'a, T> {
    /// `C ← A·B`.
    pub fn new(a: MatRef<'a, T>, b: MatRef<'a, T>, c: MatMut<'a, T>) -> Self {
        Gemm { alpha: T::ONE, op_a: Op::NoTrans, a, op_b: Op::NoTrans, b, beta: T::ZERO, c }
    }

    /// Sets the factor of the product (one unless set).
    pub fn alpha(self, alpha: T) -> Self {
        Gemm { alpha, ..self }
    }

    /// Sets the factor of the old C (zero unless set).
    pub fn beta(self, beta: T) -> Self {
        Gemm { beta, ..self }
    }

    /// Sets how A enters.
    pub fn op_a(self, op_a: Op) -> Self {
        Gemm { op_a, ..self }
    }

    /// Sets how B enters.
    pub fn op_b(self, op_b: Op) -> Self {
        Gemm { op_b, ..self }
    }

    /// `A` enters transposed.
    pub fn trans_a(self) -> Self {
        self.op_a(Op::Trans)
    }

    /// `B` enters transposed.
    pub fn trans_b(self) -> Self {
        self.op_b(Op::Trans)
    }

    /// `(m, n, k)`.
    #[inline]
    #[must_use]
    pub fn size(&self) -> (usize, usize, usize) {
        (self.c.rows(), self.c.cols(), self.op_a.shape(self.a.shape()).1)
    }

    /// Checks the shapes.
    ///
    /// # Errors
    /// A dimension of A or B does not agree with the others.
    #[inline]
    pub fn check(self) -> Result<Checked<Self>> {
        check_product(Routine::Gemm.name(), self.op_a.shape(self.a.shape()), self.op_b.shape(self.b.shape()), self.c.shape())?;
        Ok(Checked(self))
    }
}

/// Checks the shapes of op(A), op(B) and C.
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

/// `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹` for a triangular A; B is m×n.
#[must_use = "arguments compute nothing: pass them to `Machine::trsm`"]
#[derive(Debug)]
pub struct Trsm<'a, T> {
    /// The side on which A stands.
    pub side: Side,
    /// The triangle of A that is read.
    pub uplo: Uplo,
    /// How A enters.
    pub op: Op,
    /// What stands on the diagonal of A.
    pub diag: Diag,
    /// Factor of B; with `0` A is not read and B becomes zero.
    pub alpha: T,
    /// The triangular matrix.
    pub a: MatRef<'a, T>,
    /// The right-hand sides, replaced by the solution.
    pub b: MatMut<'a, T>,
    /// How blocks on the diagonal are treated.
    pub mode: TrsmMode,
}

impl<'a, T: Scalar> Trsm<'a, T> {
    /// `B ← A⁻¹·B` with the lower triangle of A, by substitution.
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

    /// Sets the side on which A stands.
    pub fn side(self, side: Side) -> Self {
        Trsm { side, ..self }
    }

    /// Sets the triangle that is read.
    pub fn uplo(self, uplo: Uplo) -> Self {
        Trsm { uplo, ..self }
    }

    /// Sets how A enters.
    pub fn op(self, op: Op) -> Self {
        Trsm { op, ..self }
    }

    /// Sets what stands on the diagonal.
    pub fn diag(self, diag: Diag) -> Self {
        Trsm { diag, ..self }
    }

    /// Sets the factor of B (one unless set).
    pub fn alpha(self, alpha: T) -> Self {
        Trsm { alpha, ..self }
    }

    /// Sets how blocks on the diagonal are treated.
    pub fn mode(self, mode: TrsmMode) -> Self {
        Trsm { mode, ..self }
    }

    /// Checks the shapes.
    ///
    /// # Errors
    /// A is not square, or its order is not B's extent on that side.
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

/// `A = P·L·U`, in place: A is m×n, `ipiv` holds min(m, n) row indices.
#[must_use = "arguments compute nothing: pass them to `Machine::getrf_into`"]
#[derive(Debug)]
pub struct Getrf<'a, T> {
    /// The matrix, replaced by L (unit diagonal not stored) and U.
    pub a: MatMut<'a, T>,
    /// Row `ipiv[i]` was exchanged with row `i`; 0-based.
    pub ipiv: &'a mut [i32],
    /// Whether rows are exchanged. Without it the matrix must allow it, for
    /// example by diagonal dominance.
    pub pivoting: bool,
}

impl<'a, T: Scalar> Getrf<'a, T> {
    /// Factorisation with partial pivoting.
    pub fn new(a: MatMut<'a, T>, ipiv: &'a mut [i32]) -> Self {
        Getrf { a, ipiv, pivoting: true }
    }

    /// Factorisation without row exchanges.
    pub fn without_pivoting(self) -> Self {
        Getrf { pivoting: false, ..self }
    }

    /// Checks the length of `ipiv` and that row indices fit it.
    ///
    /// # Errors
    /// `ipiv` is not of length min(m, n), or m exceeds the range of `i32`.
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

/// `B ← op(A)⁻¹·B` from the factors of A of order n; B is n×nrhs.
#[must_use = "arguments compute nothing: pass them to `Machine::getrs`"]
#[derive(Debug)]
pub struct Getrs<'a, T> {
    /// How A enters.
    pub op: Op,
    /// L and U as left by [`Getrf`].
    pub lu: MatRef<'a, T>,
    /// Row exchanges as left by [`Getrf`].
    pub ipiv: &'a [i32],
    /// The right-hand sides, replaced by the solution.
    pub b: MatMut<'a, T>,
}

impl<'a, T: Scalar> Getrs<'a, T> {
    /// `B ← A⁻¹·B`.
    pub fn new(lu: MatRef<'a, T>, ipiv: &'a [i32], b: MatMut<'a, T>) -> Self {
        Getrs { op: Op::NoTrans, lu, ipiv, b }
    }

    /// Sets how A enters.
    pub fn op(self, op: Op) -> Self {
        Getrs { op, ..self }
    }

    /// Checks the shapes and the row indices.
    ///
    /// # Errors
    /// The factors are not square, B has another number of rows, or `ipiv` is
    /// of another length or names a row that does not exist.
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

/// Rows of A exchanged as `ipiv` says: row `i` with row `ipiv[i]`, in order or back.
#[must_use = "arguments compute nothing: pass them to `Machine::laswp`"]
#[derive(Debug)]
pub struct Laswp<'a, T> {
    /// The matrix whose rows are exchanged.
    pub a: MatMut<'a, T>,
    /// 0-based row indices.
    pub ipiv: &'a [i32],
    /// In order (`P⁻¹·A` for the P of [`Getrf`]) or in reverse order.
    pub forward: bool,
}

impl<'a, T: Scalar> Laswp<'a, T> {
    /// Exchanges in order.
    pub fn new(a: MatMut<'a, T>, ipiv: &'a [i32]) -> Self {
        Laswp { a, ipiv, forward: true }
    }

    /// Exchanges in reverse order, which undoes [`Laswp::new`].
    pub fn backward(self) -> Self {
        Laswp { forward: false, ..self }
    }

    /// Checks the row indices.
    ///
    /// # Errors
    /// `ipiv` is longer than A has rows or names a row that does not exist.
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
