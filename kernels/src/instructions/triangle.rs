//! Triangular solves and inverses: special kernels for blocks on the diagonal, and products for the rest.

use std::ops::Range;

use lapidary_core::{Diag, Op, Result, Side, Uplo};

use super::Sequence;
use crate::call::{Arg, Call, Target, View};
use crate::database::Family;
use crate::program::{Program, TRIANGLE, sides_of_group, unknowns_of_group};
use crate::scratch::Purpose;
use crate::thresholds::Threshold;

/// A kernel for triangular solves.
#[derive(Clone, Copy)]
struct Solver {
    program: Program,
    kernel: &'static str,
    /// Maximum number of unknowns of one call.
    unknowns: usize,
    /// Number of right-hand sides per work-group.
    sides: usize,
}

impl<D: Target> Sequence<'_, D> {
    /// Returns the kernel for triangular solves: one in which a work-group solves together, if the device can run it, else one in
    /// which each work-item solves for one right-hand side.
    fn solver(&mut self) -> Result<Solver> {
        let dtype = self.dtype;
        let together = self.first_that_runs((Family::Solve, usize::MAX), |items| Program::Solve { dtype, items }, "solve")?;
        Ok(match together {
            Some(items) => {
                let program = Program::Solve { dtype, items };
                let unknowns = unknowns_of_group(items).min(self.threshold(Threshold::TrsmBlock));
                Solver { program, kernel: "solve", unknowns, sides: sides_of_group(dtype) }
            }
            None => {
                let program = self.triangle();
                Solver { program, kernel: "trsm_block", unknowns: TRIANGLE, sides: program.local()[0] }
            }
        })
    }

    /// Returns the program in which each work-item solves with a triangle, or inverts a triangle, alone.
    fn triangle(&self) -> Program {
        Program::Triangle { dtype: self.dtype, group: self.device.tuning().group(Family::Triangle, self.dtype) }
    }

    /// Computes B ← op(A)⁻¹·B or B ← B·op(A)⁻¹.
    pub(super) unsafe fn trsm(
        &mut self,
        flags: (Side, Uplo, Op, Diag),
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let solver = self.solver()?;
        // SAFETY: the caller upholds the contract of this module.
        unsafe { self.trsm_by_halves(solver, flags, a, b) }
    }

    /// Computes B ← op(A)⁻¹·B or B ← B·op(A)⁻¹ by recursive halving, so that most of the work is products with many terms.
    unsafe fn trsm_by_halves(
        &mut self,
        solver: Solver,
        flags @ (side, uplo, op, _): (Side, Uplo, Op, Diag),
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let n = a.rows;
        // a lower triangle on the left, or an upper triangle on the right, is solved from the first unknown to the last
        let forward = (side == Side::Left) == (uplo.under(op) == Uplo::Lower);
        if n <= solver.unknowns {
            // SAFETY: the caller upholds the contract of this module.
            return unsafe { self.trsm_block(solver, flags, forward, a, b) };
        }
        let n1 = (n / 2).next_multiple_of(TRIANGLE);
        // the kernels solve for the unknowns `s` first, then for the unknowns `t`
        let (s, t) = if forward { (0..n1, n1..n) } else { (n1..n, 0..n1) };
        let part = |range: &Range<usize>| match side {
            Side::Left => b.sub(range.start, 0, range.len(), b.cols),
            Side::Right => b.sub(0, range.start, b.rows, range.len()),
        };
        let block = |rows: &Range<usize>, cols: &Range<usize>| a.sub(rows.start, cols.start, rows.len(), cols.len());
        let across = if (side == Side::Left) == op.is_trans() { block(&s, &t) } else { block(&t, &s) };
        let (solved, rest) = (part(&s), part(&t));
        // SAFETY: the caller upholds the contract of this module, and the parts of B do not overlap.
        unsafe {
            self.trsm_by_halves(solver, flags, block(&s, &s), solved)?;
            match side {
                // B(t) ← B(t) − op(A)(t, s)·X(s)
                Side::Left => self.gemm(self.value(-1.0), (op, across), (Op::NoTrans, solved), self.value(1.0), rest)?,
                // B(t) ← B(t) − X(s)·op(A)(s, t)
                Side::Right => self.gemm(self.value(-1.0), (Op::NoTrans, solved), (op, across), self.value(1.0), rest)?,
            }
            self.trsm_by_halves(solver, flags, block(&t, &t), rest)
        }
    }

    /// Solves a triangular system with one block on the diagonal by substitution.
    unsafe fn trsm_block(
        &mut self,
        Solver { program, kernel, sides, .. }: Solver,
        (side, _, op, diag): (Side, Uplo, Op, Diag),
        forward: bool,
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let (n, nrhs) = (a.rows, if side == Side::Left { b.cols } else { b.rows });
        // backward substitution starts at the last unknown
        let (first, sign) = if forward { (0, 1) } else { (n - 1, -1) };
        let (lda, ldb) = (a.ld.cast_signed(), b.ld.cast_signed());
        let (a_i, a_k) = if (side == Side::Left) == op.is_trans() { (lda, 1) } else { (1, lda) };
        let (b_at, b_i, b_r) = match side {
            Side::Left => (b.element(first, 0), 1, ldb),
            Side::Right => (b.element(0, first), ldb, 1),
        };
        let unit = Arg::Size(usize::from(diag == Diag::Unit));
        let triangle = [Arg::In(a.buffer), Arg::Size(a.element(first, first)), Arg::Stride(sign * a_i), Arg::Stride(sign * a_k)];
        self.parts((nrhs, 1), [sides, 1], |device, (r, _, nrhs, _)| {
            let b_at = Arg::Size(b_at + r * b_r.unsigned_abs());
            let unknowns = [Arg::Out(b.buffer), b_at, Arg::Stride(sign * b_i), Arg::Stride(b_r)];
            let args = [&[Arg::Size(n), Arg::Size(nrhs), unit][..], &triangle, &unknowns].concat();
            let global = [nrhs.div_ceil(sides) * program.local()[0], 1];
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernels' parameters.
            unsafe { device.launch(&Call { program, kernel, global, args: &args }) }
        })
    }

    /// Computes V ← A⁻¹: first the inverses of blocks on the diagonal, then the block beside each pair of inverted blocks, whose
    /// order doubles each time.
    pub(super) unsafe fn trtri(&mut self, uplo: Uplo, diag: Diag, a: View<'_, D::Buffer>, v: View<'_, D::Buffer>) -> Result<()> {
        let n = a.rows;
        // SAFETY: the caller upholds the contract of this module.
        unsafe {
            self.scale(self.value(0.0), v)?;
            self.trtri_blocks(uplo, diag, a, v)?;
        }
        let mut s = TRIANGLE;
        while s < n {
            for o in (0..n - s).step_by(2 * s) {
                // SAFETY: the caller upholds the contract of this module.
                unsafe { self.trtri_pair(uplo, a, v, (o, s, s.min(n - o - s)))? };
            }
            s *= 2;
        }
        Ok(())
    }

    unsafe fn trtri_blocks(&mut self, uplo: Uplo, diag: Diag, a: View<'_, D::Buffer>, v: View<'_, D::Buffer>) -> Result<()> {
        let sizes = [a.rows, usize::from(uplo == Uplo::Upper), usize::from(diag == Diag::Unit)].map(Arg::Size);
        let args = [&sizes[..], &Arg::input(a), &Arg::output(v)].concat();
        let program = self.triangle();
        let global = [TRIANGLE, a.rows.div_ceil(TRIANGLE)];
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
        unsafe { self.device.launch(&Call { program, kernel: "trtri_block", global, args: &args }) }
    }

    /// Computes the block of V beside two inverted blocks of orders s and t, the first of which begins at row o.
    unsafe fn trtri_pair(
        &mut self,
        uplo: Uplo,
        a: View<'_, D::Buffer>,
        v: View<'_, D::Buffer>,
        (o, s, t): (usize, usize, usize),
    ) -> Result<()> {
        let (v11, v22) = (v.sub(o, o, s, s), v.sub(o + s, o + s, t, t));
        let (at, rows, cols, inner, outer) = match uplo {
            // V21 ← −V22·(A21·V11)
            Uplo::Lower => ((o + s, o), t, s, v11, v22),
            // V12 ← −V11·(A12·V22)
            Uplo::Upper => ((o, o + s), s, t, v22, v11),
        };
        let (a, v) = (a.sub(at.0, at.1, rows, cols), v.sub(at.0, at.1, rows, cols));
        let column = rows * self.dtype.size();
        // the product is computed in as many columns at a time as scratch memory holds
        let most = (self.device.tuning().max_scratch_bytes / column).clamp(1, cols);
        for j in (0..cols).step_by(most) {
            let cols = most.min(cols - j);
            let product = self.device.scratch(Purpose::Product, column * cols)?;
            let product = View { buffer: &*product, at: 0, rows, cols, ld: rows };
            let (inner, v) = (inner.sub(0, j, inner.rows, cols), v.sub(0, j, rows, cols));
            // SAFETY: the caller upholds the contract of this module. The product is written to scratch memory that nothing else
            // uses.
            unsafe {
                self.gemm(self.value(1.0), (Op::NoTrans, a), (Op::NoTrans, inner), self.value(0.0), product)?;
                self.gemm(self.value(-1.0), (Op::NoTrans, outer), (Op::NoTrans, product), self.value(0.0), v)?;
            }
        }
        Ok(())
    }
}
