//! Triangular solves: substitution or products with inverses for blocks on the diagonal, and products for the rest.

use std::ops::Range;

use lapidary_core::{Diag, Op, Result, Side, TrsmMode, Uplo};

use super::Sequence;
use super::inverses::Inverses;
use crate::call::{Arg, Call, Target, View};
use crate::database::Family;
use crate::program::{Program, TRIANGLE, sides_of_group, unknowns_of_group};
use crate::thresholds::Threshold;

/// A kernel for triangular solves by substitution.
#[derive(Clone, Copy)]
struct Solver {
    program: Program,
    kernel: &'static str,
    /// Maximum number of unknowns of one call.
    unknowns: usize,
    /// Number of right-hand sides per work-group.
    sides: usize,
}

/// How a solve handles the blocks on the diagonal of a triangle.
enum Blocks<'a, B> {
    Substitution(Solver),
    /// The blocks have been inverted.
    Inverses(Inverses<'a, B>),
}

// implemented by hand, because a derived `Clone` would require `B: Clone`
impl<B> Clone for Blocks<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Blocks<'_, B> {}

impl<B> Blocks<'_, B> {
    /// Returns the maximum order of a block.
    fn order(&self) -> usize {
        match self {
            Blocks::Substitution(solver) => solver.unknowns,
            Blocks::Inverses(inverses) => inverses.order,
        }
    }

    /// Returns the number whose multiples are the rows at which a triangle may be divided.
    fn unit(&self) -> usize {
        match self {
            Blocks::Substitution(_) => TRIANGLE,
            Blocks::Inverses(inverses) => inverses.order,
        }
    }

    /// Returns the blocks of the triangle that consists of the rows and columns `range`.
    fn part(self, range: &Range<usize>) -> Self {
        match self {
            Blocks::Substitution(_) => self,
            Blocks::Inverses(inverses) => Blocks::Inverses(inverses.part(range)),
        }
    }
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
    pub(super) fn triangle(&self) -> Program {
        Program::Triangle { dtype: self.dtype, group: self.device.tuning().group(Family::Triangle, self.dtype) }
    }

    /// Computes B ← op(A)⁻¹·B or B ← B·op(A)⁻¹ by substitution.
    pub(super) unsafe fn trsm(
        &mut self,
        flags: (Side, Uplo, Op, Diag),
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        // SAFETY: the caller upholds the contract of this module.
        unsafe { self.trsm_in_mode(TrsmMode::Substitution, flags, a, b) }
    }

    /// Computes B ← op(A)⁻¹·B or B ← B·op(A)⁻¹. Without memory for the inverses, substitution takes their place.
    pub(super) unsafe fn trsm_in_mode(
        &mut self,
        mode: TrsmMode,
        flags @ (_, uplo, _, diag): (Side, Uplo, Op, Diag),
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let memory = if mode == TrsmMode::Inverted { self.memory_for_inverses(a.rows)? } else { None };
        // SAFETY: the caller upholds the contract of this module, and the memory has room for the inverses.
        unsafe {
            let blocks = match &memory {
                Some((buffer, order)) => Blocks::Inverses(self.invert(uplo, diag, a, (buffer, *order))?),
                None => Blocks::Substitution(self.solver()?),
            };
            self.trsm_by_halves(blocks, flags, a, b)
        }
    }

    /// Computes B ← op(A)⁻¹·B or B ← B·op(A)⁻¹ by recursive halving, so that most of the work is products with many terms.
    unsafe fn trsm_by_halves(
        &mut self,
        blocks: Blocks<'_, D::Buffer>,
        flags @ (side, uplo, op, _): (Side, Uplo, Op, Diag),
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let n = a.rows;
        // a lower triangle on the left, or an upper triangle on the right, is solved from the first unknown to the last
        let forward = (side == Side::Left) == (uplo.under(op) == Uplo::Lower);
        if n <= blocks.order() {
            // SAFETY: the caller upholds the contract of this module.
            return unsafe {
                match blocks {
                    Blocks::Substitution(solver) => self.trsm_block(solver, flags, forward, a, b),
                    Blocks::Inverses(inverses) => self.multiply_by_inverse((side, op), inverses, b),
                }
            };
        }
        let n1 = (n / 2).next_multiple_of(blocks.unit());
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
            self.trsm_by_halves(blocks.part(&s), flags, block(&s, &s), solved)?;
            match side {
                // B(t) ← B(t) − op(A)(t, s)·X(s)
                Side::Left => self.gemm(self.value(-1.0), (op, across), (Op::NoTrans, solved), self.value(1.0), rest)?,
                // B(t) ← B(t) − X(s)·op(A)(s, t)
                Side::Right => self.gemm(self.value(-1.0), (Op::NoTrans, solved), (op, across), self.value(1.0), rest)?,
            }
            self.trsm_by_halves(blocks.part(&t), flags, block(&t, &t), rest)
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
}
