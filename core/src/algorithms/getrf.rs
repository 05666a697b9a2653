//! The LU factorisation `A = P·L·U` in place. The algorithm is right-looking, with lookahead.
//!
//! The part of the matrix that step k works on, below the finished rows:
//! ```text
//!   A11 | A12      panel A11, A21: P·L·U of a tall panel
//!   A21 | A22      A12 ← L11⁻¹·P⁻¹·A12,  A22 ← A22 − L21·U12
//! ```
//! The task that updates the columns of the next panel also factors the next panel, so that the factorisation of panel k+1 overlaps
//! the other updates of step k. The order of these tasks and the time of the exchanges on the left of the panels depend on the devices:
//! - If the matrix lies on one device, one task updates all other columns as one strip, and also applies the pivots of its panel to the
//!   columns on the left. The task precedes the task of panel k+1, because the host needs less time to submit an update than to submit the
//!   many kernels of a panel.
//! - Otherwise the task of panel k+1 precedes the update tasks of step k, so that no device waits for the panel. The rows on the left
//!   of the panels are exchanged at the end of the plan: for each panel, one task applies the pivots of all panels on its right. A device
//!   that copies would otherwise load the columns on the left in each step.

use std::ops::Range;

use crate::args::{Checked, Getrf};
use crate::blocking::{Blocking, MAX_COUNTED_BLOCKS, block_count, partition};
use crate::command::{PanelShape, Queue};
use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
use crate::instruction::{Instruction, Region, Swaps, Tile};
use crate::plan::{MatrixId, Plan};
use crate::routine::Routine;
use crate::scalar::{DType, Scalar};
use crate::value::Value;

/// A factorisation in normal form. The matrix A may be row-major, because the instruction has no flag for the factorisation of a
/// transposed matrix. If A is row-major, the registers hold column-major copies of the tiles of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Number of rows of A.
    pub m: usize,
    /// Number of columns of A.
    pub n: usize,
    /// Whether the routine exchanges rows.
    pub pivoting: bool,
    /// Layout of A in the caller's memory.
    pub layout: Layout,
    /// Element type of A.
    pub dtype: DType,
}

impl Problem {
    /// The problem of a checked call.
    #[must_use]
    pub fn new<T: Scalar>(args: &Checked<Getrf<'_, T>>) -> Self {
        let (m, n) = args.a.shape();
        Problem { m, n, pivoting: args.pivoting, layout: args.a.layout(), dtype: T::DTYPE }
    }

    /// The whole problem as one instruction.
    #[must_use]
    pub fn instruction<O>(&self, [a, ipiv, info]: [O; 3]) -> Instruction<O> {
        Instruction::Getrf { pivoting: self.pivoting, first_row: 0, a, ipiv, info }
    }

    /// Number of pivots.
    #[must_use]
    pub fn order(&self) -> usize {
        self.m.min(self.n)
    }
}

/// The matrices that the plan of a factorisation declares.
#[derive(Clone, Copy)]
struct Matrices {
    a: MatrixId,
    ipiv: MatrixId,
    info: MatrixId,
}

/// The plan of a factorisation. Uses the block sizes `nb` (width of a panel), `nc` (width of a strip of the update) and `share`
/// (maximum number of tasks of an update).
#[must_use]
pub fn plan(p: &Problem, blocking: &Blocking) -> Plan {
    let mut plan = Plan::new(Routine::Getrf.name(), p.dtype);
    let a = plan.output("A", (p.m, p.n), p.layout);
    let ipiv = plan.indices("ipiv", p.order(), true);
    let info = plan.indices("info", 1, true);
    let matrices = Matrices { a, ipiv, info };
    let panels = partition(p.order(), blocking.nb);
    if let Some(first) = panels.first() {
        plan.task("panel", region(&(0..p.m), first));
        let strip = plan.ld(a, &(0..p.m), first);
        factor(&mut plan, p, matrices, first, strip);
        plan.st(strip);
    }
    for (k, panel) in panels.iter().enumerate() {
        let next = next_panel(&panels, k);
        if blocking.resident {
            update(&mut plan, p, matrices, panel, &next, blocking);
            if exchanges_left_of(p, panel, blocking) {
                exchange_left_of(&mut plan, p, matrices, panel, &next);
            }
            lookahead(&mut plan, p, matrices, panel, &next);
        } else {
            lookahead(&mut plan, p, matrices, panel, &next);
            update(&mut plan, p, matrices, panel, &next, blocking);
        }
    }
    if p.pivoting && !blocking.resident {
        exchange_left_at_end(&mut plan, p, matrices, &panels);
    }
    plan
}

/// The columns of the panel after panel `k`, or an empty range if panel `k` is the last panel.
fn next_panel(panels: &[Range<usize>], k: usize) -> Range<usize> {
    panels.get(k + 1).cloned().unwrap_or(panels[k].end..panels[k].end)
}

/// Whether the rows on the left of a panel are exchanged when the columns on its right are updated.
fn exchanges_left_of(p: &Problem, panel: &Range<usize>, blocking: &Blocking) -> bool {
    p.pivoting && blocking.resident && panel.start > 0
}

/// Shape of the panel `next`, which another kernel queue may factor during the update of the other columns.
fn shape_of_next_panel(p: &Problem, next: &Range<usize>) -> Option<PanelShape> {
    (!next.is_empty()).then_some(PanelShape { rows: p.m - next.start, cols: next.len() })
}

/// Number of strips that one task updates, if the trailing matrix has `strips` strips.
fn strips_of_task(strips: usize, blocking: &Blocking) -> usize {
    strips.div_ceil(blocking.share).max(1)
}

/// Computes the number of commands of the plan that [`plan`] would make. For more than a million panels, `commands` returns a
/// lower bound of the number of commands.
#[must_use]
pub fn commands(p: &Problem, blocking: &Blocking) -> usize {
    let count = block_count(p.order(), blocking.nb);
    if count > MAX_COUNTED_BLOCKS {
        return count;
    }
    let panels = partition(p.order(), blocking.nb);
    // the factorisation of a panel has five commands: to load `info`, to run an instruction, to set a mark, and to store the
    // pivots and `info`
    let (of_factor, of_panel, of_load_and_store) = (5, 2, 2);
    let of_step = |(k, panel): (usize, &Range<usize>)| {
        let next = next_panel(&panels, k);
        let of_strip = of_load_and_store + usize::from(p.pivoting) + 1 + usize::from(p.m > panel.end);
        let strips = block_count(p.n - next.end, blocking.nc);
        let tasks = strips.div_ceil(strips_of_task(strips, blocking));
        let lookahead = if next.is_empty() { 0 } else { of_panel + of_strip + of_factor };
        tasks.saturating_mul(of_panel).saturating_add(strips.saturating_mul(of_strip)).saturating_add(lookahead)
    };
    let first = if panels.is_empty() { 0 } else { of_load_and_store + of_factor };
    let exchanges = if p.pivoting { 4 * panels.len().saturating_sub(1) } else { 0 };
    panels.iter().enumerate().map(of_step).fold(first + exchanges, usize::saturating_add)
}

fn region(rows: &Range<usize>, cols: &Range<usize>) -> Region {
    Region { row: rows.start, col: cols.start, rows: rows.len(), cols: cols.len() }
}

/// Adds the commands of the factorisation `P·L·U = A(panel.start.., panel)`. The panel occupies the last rows of the tile
/// `strip`.
fn factor(plan: &mut Plan, p: &Problem, m: Matrices, panel: &Range<usize>, strip: Tile) {
    let rows = p.m - panel.start;
    let a = strip.sub(strip.rows() - rows, 0, rows, panel.len());
    let ipiv = plan.window(m.ipiv, panel, &(0..1));
    let info = plan.ld(m.info, &(0..1), &(0..1));
    plan.exec(Instruction::Getrf { pivoting: p.pivoting, first_row: panel.start, a, ipiv, info });
    plan.mark(Queue::Exec);
    plan.st(ipiv);
    plan.st(info);
}

/// The registers of a factored panel and its pivots, which an update task loads once for all its strips.
struct Panel {
    l: Tile,
    ipiv: Tile,
    first_row: usize,
}

fn load_panel(plan: &mut Plan, p: &Problem, m: Matrices, panel: &Range<usize>) -> Panel {
    let l = plan.ld(m.a, &(panel.start..p.m), panel);
    let ipiv = plan.ld(m.ipiv, panel, &(0..1));
    Panel { l, ipiv, first_row: panel.start }
}

/// Adds the task that updates the columns of the next panel and then factors that panel, unless `panel` is the last panel.
fn lookahead(plan: &mut Plan, p: &Problem, m: Matrices, panel: &Range<usize>, next: &Range<usize>) {
    if next.is_empty() {
        return;
    }
    plan.task("panel", region(&(next.start..p.m), next));
    let done = load_panel(plan, p, m, panel);
    let strip = plan.ld(m.a, &(panel.start..p.m), next);
    update_strip(plan, p, &done, strip, None);
    factor(plan, p, m, next, strip);
    plan.st(strip);
}

/// Adds the tasks that update the columns to the right of the next panel, strip by strip. Another kernel queue of the same device
/// may factor the next panel at the same time.
fn update(plan: &mut Plan, p: &Problem, m: Matrices, panel: &Range<usize>, next: &Range<usize>, blocking: &Blocking) {
    let cols = next.end..p.n;
    let beside_panel = shape_of_next_panel(p, next);
    let strips = partition(cols.len(), blocking.nc);
    let group = strips_of_task(strips.len(), blocking);
    for strips in strips.chunks(group) {
        // the task may also exchange the rows of all columns on the left
        let first = if exchanges_left_of(p, panel, blocking) { 0 } else { cols.start + strips[0].start };
        let whole = first..cols.start + strips[strips.len() - 1].end;
        plan.task("update", region(&(panel.start..p.m), &whole));
        let done = load_panel(plan, p, m, panel);
        for strip in strips {
            let tile = plan.ld(m.a, &(panel.start..p.m), &(cols.start + strip.start..cols.start + strip.end));
            update_strip(plan, p, &done, tile, beside_panel);
            plan.st(tile);
        }
    }
}

/// Adds the commands that update the columns `strip`. `beside_panel` is the shape of a panel that is factored meanwhile.
fn update_strip(plan: &mut Plan, p: &Problem, panel: &Panel, strip: Tile, beside_panel: Option<PanelShape>) {
    let (m, nb, n) = (strip.rows(), panel.l.cols(), strip.cols());
    let (l11, l21) = (panel.l.sub(0, 0, nb, nb), panel.l.sub(nb, 0, m - nb, nb));
    let (a12, a22) = (strip.sub(0, 0, nb, n), strip.sub(nb, 0, m - nb, n));
    if p.pivoting {
        // [A12; A22] ← P⁻¹·[A12; A22]
        let swaps = Swaps { side: Side::Left, forward: true, first_row: panel.first_row };
        plan.exec_beside_panel(Instruction::Laswp { swaps, a: strip, ipiv: panel.ipiv }, beside_panel);
    }
    let [one, minus_one] = [1.0, -1.0].map(|number| Value::new(p.dtype, number));
    // A12 ← L11⁻¹·A12
    let (mode, side, uplo, op, diag) = (TrsmMode::Inverted, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
    plan.exec_beside_panel(Instruction::Trsm { mode, side, uplo, op, diag, alpha: one, a: l11, b: a12 }, beside_panel);
    if m > nb {
        // A22 ← A22 − L21·A12
        let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
        plan.exec_beside_panel(Instruction::Gemm { alpha: minus_one, op_a, a: l21, op_b, b: a12, beta: one, c: a22 }, beside_panel);
    }
}

/// Adds the commands that compute `L ← P⁻¹·L` for all columns L on the left of a panel, with the pivots of this panel. The commands
/// belong to the task that updates the columns on the right of the panel `next`, or to a task of their own if there are no such columns.
fn exchange_left_of(plan: &mut Plan, p: &Problem, m: Matrices, panel: &Range<usize>, next: &Range<usize>) {
    let (rows, cols) = (panel.start..p.m, 0..panel.start);
    if next.end == p.n {
        plan.task("exchange", region(&rows, &cols));
    }
    let ipiv = plan.ld(m.ipiv, panel, &(0..1));
    let l = plan.ld(m.a, &rows, &cols);
    let swaps = Swaps { side: Side::Left, forward: true, first_row: panel.start };
    plan.exec_beside_panel(Instruction::Laswp { swaps, a: l, ipiv }, shape_of_next_panel(p, next));
    plan.st(l);
}

/// Adds the tasks that exchange rows to the left of the panels. The task of panel j computes `L ← P⁻¹·L` for the part L of panel
/// j below its triangle, with the pivots of all panels after panel j.
fn exchange_left_at_end(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>]) {
    for panel in panels.iter().filter(|panel| panel.end < p.order()) {
        let rows = panel.end..p.m;
        plan.task("exchange", region(&rows, panel));
        let ipiv = plan.ld(m.ipiv, &(panel.end..p.order()), &(0..1));
        let l = plan.ld(m.a, &rows, panel);
        let swaps = Swaps { side: Side::Left, forward: true, first_row: panel.end };
        plan.exec(Instruction::Laswp { swaps, a: l, ipiv });
        plan.st(l);
    }
}
