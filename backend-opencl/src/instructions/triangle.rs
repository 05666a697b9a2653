//! Triangular solves and inverses: blocks on the diagonal, products for the rest.

use lapidary_core::{Diag, Op, Result, Scalar, Side, Uplo};
use lapidary_kernels::opencl::{self, TRIANGLE};

use super::{Kernels, Purpose, size};
use crate::conv::View;
use crate::queue::Arg;

impl Kernels {
    /// B ← op(A)⁻¹·B or B·op(A)⁻¹.
    pub(super) unsafe fn trsm<T: Scalar>(
        &mut self,
        (side, uplo, op, diag): (Side, Uplo, Op, Diag),
        a: View<'_>,
        b: View<'_>,
    ) -> Result<()> {
        let n = a.rows;
        // first to last for a lower triangle on the left or an upper one on the right
        let forward = (side == Side::Left) == (uplo.under(op) == Uplo::Lower);
        let starts = (0..n).step_by(TRIANGLE);
        let starts: Vec<usize> = if forward { starts.collect() } else { starts.rev().collect() };
        for s in starts {
            let nb = TRIANGLE.min(n - s);
            let rest = if forward { s + nb..n } else { 0..s };
            let across = if (side == Side::Left) == op.is_trans() {
                a.sub(s, rest.start, nb, rest.len())
            } else {
                a.sub(rest.start, s, rest.len(), nb)
            };
            let part = |at: usize, count: usize| match side {
                Side::Left => b.sub(at, 0, count, b.cols),
                Side::Right => b.sub(0, at, b.rows, count),
            };
            let (solved, rest) = (part(s, nb), part(rest.start, rest.len()));
            // SAFETY: the module's contract; the parts of B do not overlap.
            unsafe {
                self.trsm_block::<T>((side, op, diag, forward), a.sub(s, s, nb, nb), solved)?;
                match side {
                    // B(rest) ← B(rest) − op(A)(rest, s)·X(s)
                    Side::Left => self.gemm(-T::ONE, (op.is_trans(), across), (false, solved), T::ONE, rest)?,
                    // B(rest) ← B(rest) − X(s)·op(A)(s, rest)
                    Side::Right => self.gemm(-T::ONE, (false, solved), (op.is_trans(), across), T::ONE, rest)?,
                }
            }
        }
        Ok(())
    }

    /// One block on the diagonal, by substitution.
    unsafe fn trsm_block<T: Scalar>(
        &mut self,
        (side, op, diag, forward): (Side, Op, Diag, bool),
        a: View<'_>,
        b: View<'_>,
    ) -> Result<()> {
        let (n, nrhs) = (a.rows, if side == Side::Left { b.cols } else { b.rows });
        // backward substitution starts at the last unknown
        let (first, sign) = if forward { (0, 1) } else { (n - 1, -1) };
        let stride = |ld: usize| i64::try_from(ld).expect("a stride fits 63 bits");
        let (lda, ldb) = (stride(a.ld), stride(b.ld));
        let (a_i, a_k) = if (side == Side::Left) == op.is_trans() { (lda, 1) } else { (1, lda) };
        let (b_at, b_i, b_r) = match side {
            Side::Left => (b.element(first, 0), 1, ldb),
            Side::Right => (b.element(0, first), ldb, 1),
        };
        let args = [
            Arg::I32(i32::try_from(n).expect("a block is small")),
            size(nrhs),
            Arg::I32(i32::from(diag == Diag::Unit)),
            Arg::Mem(a.buffer.handle()),
            Arg::U64(a.element(first, first)),
            Arg::I64(sign * a_i),
            Arg::I64(sign * a_k),
            Arg::Mem(b.buffer.handle()),
            Arg::U64(b_at),
            Arg::I64(sign * b_i),
            Arg::I64(b_r),
        ];
        // SAFETY: the module's contract; arguments as the kernel lists them.
        unsafe { self.launch(&opencl::triangle(T::DTYPE), "trsm_block", [nrhs, 1], [self.group(), 1], &args) }
    }

    /// V ← A⁻¹: blocks on the diagonal, then pairs of them of doubling order.
    pub(super) unsafe fn trtri<T: Scalar>(&mut self, uplo: Uplo, diag: Diag, a: View<'_>, v: View<'_>) -> Result<()> {
        let n = a.rows;
        // SAFETY: the module's contract.
        unsafe {
            self.scale(T::ZERO, v)?;
            self.trtri_blocks::<T>(uplo, diag, a, v)?;
        }
        let mut s = TRIANGLE;
        while s < n {
            for o in (0..n - s).step_by(2 * s) {
                // SAFETY: the module's contract.
                unsafe { self.trtri_pair::<T>(uplo, a, v, (o, s, s.min(n - o - s)))? };
            }
            s *= 2;
        }
        Ok(())
    }

    unsafe fn trtri_blocks<T: Scalar>(&mut self, uplo: Uplo, diag: Diag, a: View<'_>, v: View<'_>) -> Result<()> {
        let flag = |set: bool| Arg::I32(i32::from(set));
        let sizes = [size(a.rows), flag(uplo == Uplo::Upper), flag(diag == Diag::Unit)];
        let args = [&sizes[..], &Arg::matrix(a), &Arg::matrix(v)].concat();
        let local = [TRIANGLE.min(self.group()), 1];
        // SAFETY: the module's contract; arguments as the kernel lists them.
        unsafe { self.launch(&opencl::triangle(T::DTYPE), "trtri_block", [TRIANGLE, a.rows.div_ceil(TRIANGLE)], local, &args) }
    }

    /// The block beside two inverted blocks of orders s and t at o.
    unsafe fn trtri_pair<T: Scalar>(
        &mut self,
        uplo: Uplo,
        a: View<'_>,
        v: View<'_>,
        (o, s, t): (usize, usize, usize),
    ) -> Result<()> {
        let product = self.scratch(Purpose::Product, s * t * T::DTYPE.size())?;
        let (v11, v22) = (v.sub(o, o, s, s), v.sub(o + s, o + s, t, t));
        let (at, rows, cols, inner, outer) = match uplo {
            // V21 ← −V22·(A21·V11)
            Uplo::Lower => ((o + s, o), t, s, v11, v22),
            // V12 ← −V11·(A12·V22)
            Uplo::Upper => ((o, o + s), s, t, v22, v11),
        };
        let product = View { buffer: &product, at: 0, rows, cols, ld: rows };
        // SAFETY: the module's contract; the product has memory of its own.
        unsafe {
            self.gemm(T::ONE, (false, a.sub(at.0, at.1, rows, cols)), (false, inner), T::ZERO, product)?;
            self.gemm(-T::ONE, (false, outer), (false, product), T::ZERO, v.sub(at.0, at.1, rows, cols))
        }
    }
}
