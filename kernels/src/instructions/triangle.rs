//! Triangular solves: substitution or products with inverses for blocks on the diagonal, and products for the rest.

use std::ops::Range;

use lapidary_core::{Diag, Op, Result, Side, TrsmMode, Uplo};

use super::Sequence;
use super::inverses::Inverses;
use crate::call::{Arg, Call, Target, View};
use crate::database::Family;
use crate::held_rows::RECORD_BYTES;
use crate::program::{Program, TRIANGLE, sides_of_group, unknowns_of_group};
use crate::scratch::Purpose;
use crate::thresholds::Threshold;
use crate::trsv;

/// Maximum number of terms of a product in a triangular solve. A longer sum is less accurate: in a solve of order 32768 for 64 right-hand sides, the
/// products of all halves gave a residual of 51 in the measure of bound 8, which is 30
/// (bench/results/opencl/2026-11-29-h200-trsv.txt).
const MAX_TERMS: usize = 1024;

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

/// The flags of a triangular solve.
pub(super) type Flags = (Side, Uplo, Op, Diag);

/// The order in which a solve finds its unknowns, and the distances between its coefficients. With `T = op(A)` on the left side, or
/// `T = op(A)ᵀ` on the right side, the equations are `T·X = B`.
#[derive(Clone, Copy)]
pub(super) struct Equations {
    side: Side,
    /// Whether T is a lower triangle, which is solved from the first unknown to the last.
    pub forward: bool,
    /// Whether T is the transpose of A.
    pub is_transposed: bool,
}

impl Equations {
    pub fn new((side, uplo, op, _): Flags) -> Self {
        Equations {
            side,
            forward: (side == Side::Left) == (uplo.under(op) == Uplo::Lower),
            is_transposed: (side == Side::Left) == op.is_trans(),
        }
    }

    /// Returns the distances between two rows and between two columns of T, if A has the leading dimension `ld`.
    pub fn steps(self, ld: usize) -> [usize; 2] {
        if self.is_transposed { [ld, 1] } else { [1, ld] }
    }

    /// Returns the arguments by which a kernel for substitution reads A. Backward substitution starts at the last unknown.
    pub fn triangle<B>(self, a: View<'_, B>) -> [Arg<'_, B>; 4] {
        let (first, sign) = self.start(a.rows);
        let [a_i, a_k] = self.steps(a.ld).map(|step| Arg::Stride(sign * step.cast_signed()));
        [Arg::In(a.buffer), Arg::Size(a.element(first, first)), a_i, a_k]
    }

    /// Returns the arguments by which a kernel for substitution accesses the right-hand sides of B from the right-hand side `r` on, after the
    /// argument for the buffer.
    pub fn sides<'a, B>(self, b: View<'a, B>, r: usize) -> [Arg<'a, B>; 3] {
        let ld = b.ld.cast_signed();
        let (n, b_i, b_r) = match self.side {
            Side::Left => (b.rows, 1, ld),
            Side::Right => (b.cols, ld, 1),
        };
        let (first, sign) = self.start(n);
        let at = b.at + first * b_i.unsigned_abs() + r * b_r.unsigned_abs();
        [Arg::Size(at), Arg::Stride(sign * b_i), Arg::Stride(b_r)]
    }

    fn start(self, n: usize) -> (usize, isize) {
        if self.forward { (0, 1) } else { (n - 1, -1) }
    }
}

/// How a solve handles the blocks on the diagonal of a triangle.
enum Blocks<'a, B> {
    Substitution(Solver),
    /// Work-groups of the kernel `trsv` wait for one another. The program has a launch for at most this number of unknowns.
    Waiting(Program, usize),
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
            Blocks::Waiting(_, unknowns) => *unknowns,
            Blocks::Inverses(inverses) => inverses.order,
        }
    }

    /// Returns the row at which a triangle of more than [`order`](Self::order) rows is divided.
    fn division(&self, n: usize, forward: bool) -> usize {
        match self {
            Blocks::Substitution(_) => (n / 2).next_multiple_of(TRIANGLE),
            Blocks::Inverses(inverses) => (n / 2).next_multiple_of(inverses.order),
            // the part that is solved first is one block
            Blocks::Waiting(_, order) if forward => *order,
            Blocks::Waiting(_, order) => (n - 1) / order * order,
        }
    }

    /// Returns the blocks of the triangle that consists of the rows and columns `range`.
    fn part(self, range: &Range<usize>) -> Self {
        match self {
            Blocks::Substitution(_) | Blocks::Waiting(..) => self,
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

    /// Returns the program in which work-groups that wait for one another solve with a triangle for `sides` right-hand sides, and the maximum
    /// number of unknowns of a launch. `None` if the right-hand sides are many, or if the device cannot run the program.
    fn waiting_solver(&mut self, is_transposed: bool, sides: usize) -> Result<Option<(Program, usize)>> {
        if sides > self.threshold(Threshold::TrsvSides) || RECORD_BYTES > self.device.tuning().max_scratch_bytes {
            return Ok(None);
        }
        let (dtype, uses_ptx) = (self.dtype, self.device.tuning().held_rows.uses_ptx);
        let program = |items| Program::Trsv { dtype, items, is_transposed, uses_ptx };
        let items = self.first_that_runs((Family::Trsv, usize::MAX), program, "trsv")?;
        Ok(items.map(|items| (program(items), trsv::max_unknowns(dtype, sides))))
    }

    /// Returns the program in which each work-item solves with a triangle, or inverts a triangle, alone.
    pub(super) fn triangle(&self) -> Program {
        Program::Triangle { dtype: self.dtype, group: self.device.tuning().group(Family::Triangle, self.dtype) }
    }

    /// Computes B ← op(A)⁻¹·B or B ← B·op(A)⁻¹ by substitution.
    pub(super) unsafe fn trsm(&mut self, flags: Flags, a: View<'_, D::Buffer>, b: View<'_, D::Buffer>) -> Result<()> {
        // SAFETY: the caller upholds the contract of this module.
        unsafe { self.trsm_in_mode(TrsmMode::Substitution, flags, a, b) }
    }

    /// Computes B ← op(A)⁻¹·B or B ← B·op(A)⁻¹. If the right-hand sides are few, work-groups wait for one another where they can. Otherwise blocks
    /// are inverted if the mode permits inverses, if the thresholds of the device name a block for the order of the triangle, and if there is
    /// memory for the inverses.
    pub(super) unsafe fn trsm_in_mode(
        &mut self,
        mode: TrsmMode,
        flags: Flags,
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let sides = if flags.0 == Side::Left { b.cols } else { b.rows };
        if let Some((program, unknowns)) = self.waiting_solver(Equations::new(flags).is_transposed, sides)? {
            // SAFETY: the caller upholds the contract of this module.
            return unsafe { self.trsm_by_parts(Blocks::Waiting(program, unknowns), flags, a, b) };
        }
        let memory = if mode == TrsmMode::Inverted { self.memory_for_inverses(a.rows, sides)? } else { None };
        // SAFETY: the caller upholds the contract of this module, and the memory has room for the inverses.
        unsafe {
            let blocks = match &memory {
                Some((buffer, order)) => Blocks::Inverses(self.invert(flags, a, (buffer, *order))?),
                None => Blocks::Substitution(self.solver()?),
            };
            self.trsm_by_parts(blocks, flags, a, b)
        }
    }

    /// Computes B ← op(A)⁻¹·B or B ← B·op(A)⁻¹ recursively: solves for a part of the unknowns, updates the right-hand sides of the others by a
    /// product, and solves for the others. The parts are halves except with [`Blocks::Waiting`].
    unsafe fn trsm_by_parts(
        &mut self,
        blocks: Blocks<'_, D::Buffer>,
        flags @ (side, _, op, diag): Flags,
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let n = a.rows;
        let equations = Equations::new(flags);
        if n <= blocks.order() {
            // SAFETY: the caller upholds the contract of this module.
            return unsafe {
                match blocks {
                    Blocks::Substitution(solver) => self.trsm_block(solver, (side, diag), equations, a, b),
                    Blocks::Waiting(program, _) => self.trsv(program, (side, diag), equations, a, b),
                    Blocks::Inverses(inverses) => self.multiply_by_inverse(flags, inverses, a, b),
                }
            };
        }
        let n1 = blocks.division(n, equations.forward);
        // the kernels solve for the unknowns `s` first, then for the unknowns `t`
        let (s, t) = if equations.forward { (0..n1, n1..n) } else { (n1..n, 0..n1) };
        let part = |range: &Range<usize>| match side {
            Side::Left => b.sub(range.start, 0, range.len(), b.cols),
            Side::Right => b.sub(0, range.start, b.rows, range.len()),
        };
        let block = |rows: &Range<usize>, cols: &Range<usize>| a.sub(rows.start, cols.start, rows.len(), cols.len());
        let (minus_one, one, rest) = (self.value(-1.0), self.value(1.0), part(&t));
        // SAFETY: the caller upholds the contract of this module, and the parts of B do not overlap.
        unsafe {
            self.trsm_by_parts(blocks.part(&s), flags, block(&s, &s), part(&s))?;
            for first in s.clone().step_by(MAX_TERMS) {
                let terms = first..s.end.min(first + MAX_TERMS);
                let across = if equations.is_transposed { block(&terms, &t) } else { block(&t, &terms) };
                let (across, solved) = ((op, across), (Op::NoTrans, part(&terms)));
                match side {
                    // B(t) ← B(t) − op(A)(t, s)·X(s)
                    Side::Left => self.gemm(minus_one, across, solved, one, rest)?,
                    // B(t) ← B(t) − X(s)·op(A)(s, t)
                    Side::Right => self.gemm(minus_one, solved, across, one, rest)?,
                }
            }
            self.trsm_by_parts(blocks.part(&t), flags, block(&t, &t), rest)
        }
    }

    /// Solves a triangular system with one block on the diagonal by substitution.
    unsafe fn trsm_block(
        &mut self,
        Solver { program, kernel, sides, .. }: Solver,
        (side, diag): (Side, Diag),
        equations: Equations,
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let nrhs = if side == Side::Left { b.cols } else { b.rows };
        let unit = Arg::Size(usize::from(diag == Diag::Unit));
        self.parts((nrhs, 1), [sides, 1], |device, (r, _, nrhs, _)| {
            let sizes = [Arg::Size(a.rows), Arg::Size(nrhs), unit];
            let args = [&sizes[..], &equations.triangle(a), &[Arg::Out(b.buffer)], &equations.sides(b, r)].concat();
            let global = [nrhs.div_ceil(sides) * program.local()[0], 1];
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernels' parameters.
            unsafe { device.launch(&Call { program, kernel, global, args: &args }) }
        })
    }

    /// Solves a triangular system for few right-hand sides by substitution, in one launch.
    unsafe fn trsv(
        &mut self,
        program: Program,
        (side, diag): (Side, Diag),
        equations: Equations,
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let sides = if side == Side::Left { b.cols } else { b.rows };
        // where work-groups do not run at the same time, one work-group takes all turns
        let groups = if self.device.tuning().held_rows.uses_ptx { trsv::turns(a.rows, sides) } else { 1 };
        let records = self.device.scratch(Purpose::Synchronisation, RECORD_BYTES)?;
        let sizes = [a.rows, sides, usize::from(diag == Diag::Unit)].map(Arg::Size);
        let (triangle, right) = (equations.triangle(a), equations.sides(b, 0));
        let args = [&sizes[..], &triangle, &[Arg::Out(b.buffer)], &right, &[Arg::Out(&*records)]].concat();
        let global = [groups * program.local()[0], 1];
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters. The scratch memory has room
        // for the messages, was zero at first, and is written by kernels only that clear the messages of the launch before them.
        unsafe { self.device.launch(&Call { program, kernel: "trsv", global, args: &args }) }
    }
}
