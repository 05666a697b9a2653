//! The triangular solves `B ← α·op(A)⁻¹·B` and `B ← α·B·op(A)⁻¹`. One algorithm serves all combinations of side, triangle,
//! operation and diagonal.
//!
//! With `T = op(A)`, the algorithm solves `T·X = α·B` for one block of rows of X after another. If T is lower triangular, it
//! solves for the blocks from top to bottom, and otherwise from bottom to top. A solve from the right, `X·T = α·B`, is equivalent
//! to `Tᵀ·Xᵀ = α·Bᵀ`, so the algorithm then works on blocks of columns instead of rows. The algorithm is left-looking: it loads,
//! completes and stores each block of B once, whatever the size of the device memory.

use std::ops::Range;

use crate::algorithms::gemm::column_major;
use crate::args::{Checked, Trsm};
use crate::blocking::{Blocking, MAX_COUNTED_BLOCKS, Part, block_count, blocks, partition};
use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
use crate::instruction::{Instruction, Region, Tile};
use crate::matrix::RawMat;
use crate::plan::{MatrixId, Plan};
use crate::routine::Routine;
use crate::scalar::{DType, Scalar};
use crate::value::Value;

/// A triangular solve in normal form: all matrices are column-major.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Number of rows of B.
    pub m: usize,
    /// Number of columns of B.
    pub n: usize,
    /// The side from which A multiplies the unknown X.
    pub side: Side,
    /// The triangle of A that the solve reads.
    pub uplo: Uplo,
    /// The operation that is applied to A.
    pub op: Op,
    /// Whether the diagonal of A is stored or consists of ones.
    pub diag: Diag,
    /// The scalar α, by which B is multiplied.
    pub alpha: Value,
    /// How the solve handles the diagonal blocks of A.
    pub mode: TrsmMode,
}

/// The normal form of a triangular solve, with the memory of A and B.
#[must_use]
pub fn normalise<T: Scalar>(args: &Checked<Trsm<'_, T>>) -> (Problem, [RawMat; 2]) {
    let Trsm { side, uplo, op, diag, mode, .. } = **args;
    let ((m, n), alpha) = (args.b.shape(), args.alpha.into());
    normal_form(&Problem { m, n, side, uplo, op, diag, alpha, mode }, [args.a.raw(), args.b.raw()])
}

/// Converts a triangular solve with operands of any layout to an equivalent solve with column-major operands. The memory of a
/// row-major matrix holds the transpose of this matrix in column-major order.
pub(crate) fn normal_form(p: &Problem, [a, b]: [RawMat; 2]) -> (Problem, [RawMat; 2]) {
    let (mut p, mut b) = (*p, b);
    if b.layout == Layout::RowMajor {
        // op(A)·X = α·B is equivalent to Xᵀ·op(A)ᵀ = α·Bᵀ
        b = b.t();
        p = Problem { m: p.n, n: p.m, side: p.side.flip(), op: p.op.flip(), ..p };
    }
    let (op, a) = column_major(p.op, a);
    let uplo = if op == p.op { p.uplo } else { p.uplo.flip() };
    (Problem { uplo, op, ..p }, [a, b])
}

impl Problem {
    /// Element type of the matrices.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.alpha.dtype()
    }

    /// Whether B has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0
    }

    /// Order of A.
    #[must_use]
    pub fn order(&self) -> usize {
        match self.side {
            Side::Left => self.m,
            Side::Right => self.n,
        }
    }

    /// Number of right-hand sides.
    #[must_use]
    pub fn nrhs(&self) -> usize {
        match self.side {
            Side::Left => self.n,
            Side::Right => self.m,
        }
    }

    /// The whole problem as one instruction.
    #[must_use]
    pub fn instruction<O>(&self, [a, b]: [O; 2]) -> Instruction<O> {
        let Problem { side, uplo, op, diag, alpha, mode, .. } = *self;
        Instruction::Trsm { mode, side, uplo, op, diag, alpha, a, b }
    }

    /// Whether the algorithm solves for the blocks in ascending order, from the first row or column on.
    fn is_forward(&self) -> bool {
        (self.uplo.under(self.op) == Uplo::Lower) == (self.side == Side::Left)
    }

    /// The range of the rows (or columns) of X for which the algorithm solves before it solves for the range `along`.
    fn solved(&self, along: &Range<usize>) -> Range<usize> {
        if self.is_forward() { 0..along.start } else { along.end..self.order() }
    }

    /// The rows and the columns of the rectangle of B that consists of the unknowns `along` of the right-hand sides `across`.
    fn rect(&self, along: &Range<usize>, across: &Range<usize>) -> [Range<usize>; 2] {
        match self.side {
            Side::Left => [along.clone(), across.clone()],
            Side::Right => [across.clone(), along.clone()],
        }
    }

    /// The rows and the columns of the rectangle of A that holds the part of T in the rows `along` and the columns `inner`. If A multiplies
    /// from the right, the rectangle holds the part of `Tᵀ`.
    fn rect_of_a(&self, along: &Range<usize>, inner: &Range<usize>) -> [Range<usize>; 2] {
        let is_transposed = self.op.is_trans() != (self.side == Side::Right);
        if is_transposed { [inner.clone(), along.clone()] } else { [along.clone(), inner.clone()] }
    }
}

/// The plan of a triangular solve. Uses the block sizes `nb` (order of a diagonal block), `nc` (right-hand sides of a task), `mc`
/// (right-hand sides of a strip) and `kc` (inner extent of a product).
#[must_use]
pub fn plan(p: &Problem, blocking: &Blocking) -> Plan {
    let mut plan = Plan::new(Routine::Trsm.name(), p.dtype());
    let a = plan.input("A", (p.order(), p.order()), Layout::ColMajor);
    let b = plan.output("B", (p.m, p.n), Layout::ColMajor);
    emit(&mut plan, p, [a, b], blocking);
    plan
}

/// Computes the number of commands of the plan that [`plan`] would make. For more than a million blocks or tasks, `commands` returns a
/// lower bound of the number of commands.
#[must_use]
pub fn commands(p: &Problem, blocking: &Blocking) -> usize {
    let parts = blocking.parts(p.order(), p.nrhs());
    let blocks = block_count(p.order(), blocking.nb);
    let tasks: usize = parts.iter().map(|part| block_count(part.cols.len(), blocking.nc)).sum();
    if blocks.max(tasks) > MAX_COUNTED_BLOCKS {
        return blocks.max(tasks);
    }
    if blocking.mc > 0 {
        let of_part = |part: &Part| partition(part.cols.len(), blocking.nc);
        let strips: usize = parts.iter().flat_map(of_part).map(|task| block_count(task.len(), blocking.mc)).sum();
        let (loads, of_strip) = if p.alpha.is_zero() { (0, 2) } else { (blocks, 1 + 2 * blocks) };
        return strips.saturating_mul(of_strip).saturating_add(tasks.saturating_mul(loads));
    }
    let of_block = |along: Range<usize>| match p.alpha.is_zero() {
        true => 2,
        false => block_count(p.solved(&along).len(), blocking.kc).saturating_mul(3).saturating_add(4),
    };
    partition(p.order(), blocking.nb).into_iter().map(of_block).fold(0, usize::saturating_add).saturating_mul(tasks)
}

/// Adds the commands of the triangular solve to a plan, in tasks of at most `nc` right-hand sides each. If `mc` is not 0, a task keeps T in
/// its registers and solves for strips of `mc` right-hand sides, one after another. Otherwise a task loads parts of T and of the known
/// part of X for each block.
pub(crate) fn emit(plan: &mut Plan, p: &Problem, matrices: [MatrixId; 2], blocking: &Blocking) {
    let mut along = partition(p.order(), blocking.nb);
    if !p.is_forward() {
        along.reverse();
    }
    for Part { cols, device, .. } in blocking.parts(p.order(), p.nrhs()) {
        for across in blocks(&cols, blocking.nc) {
            let [rows, cols] = p.rect(&(0..p.order()), &across);
            plan.task_for(device, "X", Region { row: rows.start, col: cols.start, rows: rows.len(), cols: cols.len() });
            if blocking.mc > 0 {
                solve_strips(plan, p, matrices, &along, &across, blocking.mc);
            } else {
                along.iter().for_each(|along| solve_block(plan, p, matrices, along, &across, blocking.kc));
            }
        }
    }
}

/// Adds the commands that solve for the right-hand sides `across`, in strips of `width` right-hand sides. Each strip is loaded and stored
/// once, and each part of T is loaded once for all strips.
fn solve_strips(plan: &mut Plan, p: &Problem, [a, b]: [MatrixId; 2], along: &[Range<usize>], across: &Range<usize>, width: usize) {
    let mut rows_of_t = Vec::new();
    for strip in blocks(across, width) {
        let [rows, cols] = p.rect(&(0..p.order()), &strip);
        if p.alpha.is_zero() {
            set_to_zero(plan, p, b, [&rows, &cols]);
            continue;
        }
        let x = plan.ld(b, &rows, &cols);
        let part_of_x = |along: &Range<usize>| part(x, p.rect(along, &(0..strip.len())));
        for (i, along) in along.iter().enumerate() {
            let solved = p.solved(along);
            let reach = solved.start.min(along.start)..solved.end.max(along.end);
            if rows_of_t.len() == i {
                let [rows, cols] = p.rect_of_a(along, &reach);
                rows_of_t.push(plan.ld(a, &rows, &cols));
            }
            let part_of_t = |inner: &Range<usize>| {
                let inner = inner.start - reach.start..inner.end - reach.start;
                part(rows_of_t[i], p.rect_of_a(&(0..along.len()), &inner))
            };
            let xi = part_of_x(along);
            let mut alpha = p.alpha;
            if !solved.is_empty() {
                // X(i) ← α·B(i) − T(i,k)·X(k), where k are the unknowns of the blocks before block i
                subtract(plan, p, [part_of_t(&solved), part_of_x(&solved)], alpha, xi);
                alpha = Value::new(p.dtype(), 1.0);
            }
            // X(i) ← α·T(i,i)⁻¹·X(i)
            plan.exec(Problem { alpha, ..*p }.instruction([part_of_t(along), xi]));
        }
        plan.st(x);
    }
}

/// The rectangle of a tile with the given rows and columns.
fn part(tile: Tile, [rows, cols]: [Range<usize>; 2]) -> Tile {
    tile.sub(rows.start, cols.start, rows.len(), cols.len())
}

/// Adds the commands that solve for block i: `X(i) ← T(i,i)⁻¹·(α·B(i) − Σ_k T(i,k)·X(k))`. The sum is over all blocks k for which
/// preceding commands have solved.
fn solve_block(plan: &mut Plan, p: &Problem, [a, b]: [MatrixId; 2], along: &Range<usize>, across: &Range<usize>, kc: usize) {
    let [rows, cols] = p.rect(along, across);
    if p.alpha.is_zero() {
        return set_to_zero(plan, p, b, [&rows, &cols]);
    }
    let bi = plan.ld(b, &rows, &cols);
    let solved = p.solved(along);
    let mut alpha = p.alpha;
    for inner in partition(solved.len(), kc) {
        let inner = solved.start + inner.start..solved.start + inner.end;
        let [rows, cols] = p.rect_of_a(along, &inner);
        let t = plan.ld(a, &rows, &cols);
        let [rows, cols] = p.rect(&inner, across);
        let x = plan.ld(b, &rows, &cols);
        subtract(plan, p, [t, x], alpha, bi);
        alpha = Value::new(p.dtype(), 1.0);
    }
    let aii = plan.ld(a, along, along);
    // B(i) ← α·T(i,i)⁻¹·B(i), or B(i) ← α·B(i)·T(i,i)⁻¹ if A multiplies from the right
    plan.exec(Problem { alpha, ..*p }.instruction([aii, bi]));
    plan.st(bi);
}

/// Adds the product `B(i) ← α·B(i) − T(i,k)·X(k)`, or `B(i) ← α·B(i) − X(k)·T(k,i)` if A multiplies from the right.
fn subtract(plan: &mut Plan, p: &Problem, [t, x]: [Tile; 2], alpha: Value, bi: Tile) {
    let (op_a, a, op_b, b) = match p.side {
        Side::Left => (p.op, t, Op::NoTrans, x),
        Side::Right => (Op::NoTrans, x, p.op, t),
    };
    plan.exec(Instruction::Gemm { alpha: Value::new(p.dtype(), -1.0), op_a, a, op_b, b, beta: alpha, c: bi });
}

/// Adds the commands that set a rectangle of B to zero.
fn set_to_zero(plan: &mut Plan, p: &Problem, b: MatrixId, [rows, cols]: [&Range<usize>; 2]) {
    let tile = plan.window(b, rows, cols);
    plan.exec(Instruction::Scale { beta: Value::new(p.dtype(), 0.0), c: tile });
    plan.st(tile);
}
