//! Triangular solves: substitution or products with inverses for blocks on the diagonal, and products for the rest.

use std::ops::Range;
use std::sync::Arc;

use lapidary_core::{Diag, Op, Result, Side, TrsmMode, Uplo};

use super::Sequence;
use super::inverses::Inverses;
use crate::call::{Arg, Call, Target, View};
use crate::database::Family;
use crate::messages::RECORD_BYTES;
use crate::program::{Program, TRIANGLE, sides_of_group, unknowns_of_group};
use crate::scratch::Purpose;
use crate::thresholds::Threshold;
use crate::trsv;
use crate::tuning::takes_ptx;

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

    /// Returns the number of right-hand sides of B.
    fn nrhs<B>(self, b: View<'_, B>) -> usize {
        if self.side == Side::Left { b.cols } else { b.rows }
    }

    fn start(self, n: usize) -> (usize, isize) {
        if self.forward { (0, 1) } else { (n - 1, -1) }
    }
}

/// The kernel `trsv`, whose work-groups solve one triangular system together and wait for one another.
struct Waiting<'a, B> {
    program: Program,
    /// Maximum number of unknowns of one launch.
    unknowns: usize,
    /// Memory for the messages of the work-groups.
    records: &'a B,
}

// implemented by hand, because a derived `Clone` would require `B: Clone`
impl<B> Clone for Waiting<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Waiting<'_, B> {}

/// How a solve handles the blocks on the diagonal of a triangle.
enum Blocks<'a, B> {
    Substitution(Solver),
    /// Work-groups that wait for one another solve in one launch.
    OneLaunch(Waiting<'a, B>),
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
            Blocks::OneLaunch(waiting) => waiting.unknowns,
            Blocks::Inverses(inverses) => inverses.order,
        }
    }

    /// Returns the row at which a triangle of more than [`order`](Self::order) rows is divided.
    fn division(&self, n: usize, forward: bool) -> usize {
        match self {
            Blocks::Substitution(_) => (n / 2).next_multiple_of(TRIANGLE),
            Blocks::Inverses(inverses) => (n / 2).next_multiple_of(inverses.order),
            // the part that is solved first takes one launch; in backward substitution, it is the remainder
            Blocks::OneLaunch(waiting) if forward => waiting.unknowns,
            Blocks::OneLaunch(waiting) => (n - 1) / waiting.unknowns * waiting.unknowns,
        }
    }

    /// Returns the blocks of the triangle that consists of the rows and columns `range`.
    fn part(self, range: &Range<usize>) -> Self {
        match self {
            Blocks::Substitution(_) | Blocks::OneLaunch(_) => self,
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

    /// Returns the program in which work-groups that wait for one another solve with a triangle for `sides` right-hand sides, and memory for their
    /// messages. `None` if the right-hand sides are many, if the device cannot run the program, or if the memory is short.
    fn waiting_solver(&mut self, is_transposed: bool, sides: usize) -> Result<Option<(Program, Arc<D::Buffer>)>> {
        if sides > self.threshold(Threshold::TrsvSides) {
            return Ok(None);
        }
        let (dtype, uses_ptx) = (self.dtype, takes_ptx(self.device.facts()));
        let program = |items| Program::Trsv { dtype, items, is_transposed, uses_ptx };
        let Some(items) = self.first_that_runs((Family::Trsv, usize::MAX), program, "trsv")? else { return Ok(None) };
        let records = self.scratch_if_free(Purpose::Synchronisation, RECORD_BYTES)?;
        Ok(records.map(|records| (program(items), records)))
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
        let equations = Equations::new(flags);
        let sides = equations.nrhs(b);
        if let Some((program, records)) = self.waiting_solver(equations.is_transposed, sides)? {
            let waiting = Waiting { program, unknowns: trsv::max_unknowns(self.dtype, sides), records: &*records };
            // SAFETY: the caller upholds the contract of this module, and the memory has room for the messages.
            return unsafe { self.trsm_by_parts(Blocks::OneLaunch(waiting), flags, a, b) };
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
                    Blocks::Substitution(solver) => self.trsm_block(solver, diag, equations, a, b),
                    Blocks::OneLaunch(waiting) => self.trsv(waiting, diag, equations, a, b),
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
            let products = s.len().div_ceil(self.threshold(Threshold::TrsmTerms));
            let count = s.len().div_ceil(products).next_multiple_of(TRIANGLE);
            for first in s.clone().step_by(count) {
                let terms = first..s.end.min(first + count);
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
        diag: Diag,
        equations: Equations,
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let nrhs = equations.nrhs(b);
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
        Waiting { program, records, .. }: Waiting<'_, D::Buffer>,
        diag: Diag,
        equations: Equations,
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let sides = equations.nrhs(b);
        // where work-groups might not run at the same time, one work-group has all tasks
        let groups = if takes_ptx(self.device.facts()) { trsv::tasks(a.rows, sides) } else { 1 };
        let sizes = [a.rows, sides, usize::from(diag == Diag::Unit)].map(Arg::Size);
        let (triangle, right) = (equations.triangle(a), equations.sides(b, 0));
        let args = [&sizes[..], &triangle, &[Arg::Out(b.buffer)], &right, &[Arg::Out(records)]].concat();
        let global = [groups * program.local()[0], 1];
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters. The memory for messages was zero
        // at first, and is written by kernels only that clear the messages of the launch before them.
        unsafe { self.device.launch(&Call { program, kernel: "trsv", global, args: &args }) }
    }
}
