//! The LU factorisation `A = P·L·U` in place. The algorithm is right-looking, with lookahead.
//!
//! The part of the matrix that step k works on, below the finished rows:
//! ```text
//!   A11 | A12      panel A11, A21: P·L·U of a tall panel
//!   A21 | A22      A12 ← L11⁻¹·P⁻¹·A12,  A22 ← A22 − L21·U12
//! ```
//! The task that updates the columns of the next panel also factors the next panel, so that the factorisation of panel k+1 overlaps
//! the other updates of step k. The order of these tasks and the time of the exchanges on the left of the panels depend on the devices:
//! - If one device holds the matrix, one task updates all other columns as one strip, and also applies the pivots of its panel to the
//!   columns on the left. The task precedes the task of panel k+1, because the host needs less time to submit an update than to submit the
//!   many kernels of a panel. If the matrix lies in host memory, it is loaded panel by panel, and the first updates work panel by panel,
//!   so that they begin before the whole matrix is loaded. After step k the rows beside panel k are final, and are stored.
//! - Otherwise the task of panel k+1 precedes the update tasks of step k, so that no device waits for the panel. The rows on the left
//!   of the panels are exchanged at the end of the plan: for each panel, one task applies the pivots of all panels on its right. A device
//!   that copies would otherwise load the columns on the left in each step.

use std::ops::Range;

use crate::args::{Checked, Getrf};
use crate::blocking::{Blocking, MAX_COUNTED_BLOCKS, Place, block_count, partition};
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
/// (maximum number of tasks of an update), and `place`.
#[must_use]
pub fn plan(p: &Problem, blocking: &Blocking) -> Plan {
    let mut plan = Plan::new(Routine::Getrf.name(), p.dtype);
    let a = plan.output("A", (p.m, p.n), p.layout);
    let ipiv = plan.indices("ipiv", p.order(), true);
    let info = plan.indices("info", 1, true);
    let panels = partition(p.order(), blocking.nb);
    if panels.is_empty() {
        return plan;
    }
    match blocking.place {
        Place::Host => by_strips(&mut plan, p, Matrices { a, ipiv, info }, &panels, blocking),
        Place::Device { loads } => held(&mut plan, p, Matrices { a, ipiv, info }, &panels, loads),
    }
    plan
}

/// Adds the tasks of a factorisation whose matrices lie in host memory. Devices load and store strips of A.
fn by_strips(plan: &mut Plan, p: &Problem, matrices: Matrices, panels: &[Range<usize>], blocking: &Blocking) {
    let first = &panels[0];
    plan.task("panel", region(&(0..p.m), first));
    let strip = plan.ld(matrices.a, &(0..p.m), first);
    factor_strip(plan, p, matrices, first, strip);
    plan.st(strip);
    for (k, panel) in panels.iter().enumerate() {
        let next = next_panel(panels, k);
        lookahead(plan, p, matrices, panel, &next);
        update(plan, p, matrices, panel, &next, blocking);
    }
    if p.pivoting {
        exchange_left_at_end(plan, p, matrices, panels);
    }
}

/// The columns of the panel after panel `k`, or an empty range if panel `k` is the last panel.
fn next_panel(panels: &[Range<usize>], k: usize) -> Range<usize> {
    panels.get(k + 1).cloned().unwrap_or(panels[k].end..panels[k].end)
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
    if let (Place::Device { loads }, false) = (blocking.place, panels.is_empty()) {
        return held_commands(p, &panels, loads);
    }
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

/// Number of commands of the plan that [`held`] makes.
fn held_commands(p: &Problem, panels: &[Range<usize>], loads: bool) -> usize {
    let of_step = |(k, panel): (usize, &Range<usize>)| {
        let next = next_panel(panels, k);
        let of_strip = usize::from(p.pivoting) + 1 + usize::from(p.m > panel.end);
        let strips = strips_held(p, panels, k, loads).len();
        let lookahead = if next.is_empty() { 0 } else { of_strip + 1 };
        let stores = if loads { stored_strips(p, panels, k).len() } else { 0 };
        strips * of_strip + usize::from(p.pivoting && panel.start > 0) + lookahead + stores
    };
    // `info` is loaded and stored, and the pivots are stored
    let of_transfers = if loads { 3 + panels.len() + usize::from(p.n > p.order()) } else { 0 };
    1 + of_transfers + panels.iter().enumerate().map(of_step).sum::<usize>()
}

fn region(rows: &Range<usize>, cols: &Range<usize>) -> Region {
    Region { row: rows.start, col: cols.start, rows: rows.len(), cols: cols.len() }
}

/// Adds the commands of the factorisation `P·L·U = A(panel.start.., panel)`. The panel occupies the last rows of the tile
/// `strip`.
fn factor_strip(plan: &mut Plan, p: &Problem, m: Matrices, panel: &Range<usize>, strip: Tile) {
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
    factor_strip(plan, p, m, next, strip);
    plan.st(strip);
}

/// Adds the tasks that update the columns to the right of the next panel, strip by strip.
fn update(plan: &mut Plan, p: &Problem, m: Matrices, panel: &Range<usize>, next: &Range<usize>, blocking: &Blocking) {
    let cols = next.end..p.n;
    let strips = partition(cols.len(), blocking.nc);
    let group = strips_of_task(strips.len(), blocking);
    for strips in strips.chunks(group) {
        let whole = cols.start + strips[0].start..cols.start + strips[strips.len() - 1].end;
        plan.task("update", region(&(panel.start..p.m), &whole));
        let done = load_panel(plan, p, m, panel);
        for strip in strips {
            let tile = plan.ld(m.a, &(panel.start..p.m), &(cols.start + strip.start..cols.start + strip.end));
            update_strip(plan, p, &done, tile, None);
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

/// Number of updates that work panel by panel while a device loads the matrix. Later updates begin when the whole matrix is loaded.
const UPDATES_WHILE_LOADING: usize = 2;

/// The registers of the matrices of a factorisation whose matrix one device holds.
#[derive(Clone, Copy)]
struct Held {
    a: Tile,
    ipiv: Tile,
    info: Tile,
}

/// The only device of a call.
const DEVICE: usize = 0;

/// Adds the tasks of a factorisation whose matrix one device holds. If `loads`, the matrix is loaded from host memory and stored there.
fn held(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>], loads: bool) {
    let mut whole = |matrix, rows, cols| plan.hold(DEVICE, matrix, &(0..rows), &(0..cols));
    let held = Held { a: whole(m.a, p.m, p.n), ipiv: whole(m.ipiv, p.order(), 1), info: whole(m.info, 1, 1) };
    if loads {
        let rest = p.order()..p.n;
        plan.task_on(DEVICE, "load info", held.info.region);
        plan.load(held.info);
        for cols in panels.iter().chain((!rest.is_empty()).then_some(&rest)) {
            plan.task_on(DEVICE, "load", region(&(0..p.m), cols));
            plan.load(held.a.sub(0, cols.start, p.m, cols.len()));
        }
    }
    plan.task_on(DEVICE, "panel", region(&(0..p.m), &panels[0]));
    factor(plan, p, held, &panels[0]);
    for (k, panel) in panels.iter().enumerate() {
        let next = next_panel(panels, k);
        let beside_panel = shape_of_next_panel(p, &next);
        for strip in strips_held(p, panels, k, loads) {
            plan.task_on(DEVICE, "update", region(&(panel.start..p.m), &strip));
            update_held(plan, p, held, panel, &strip, beside_panel);
        }
        if p.pivoting && panel.start > 0 {
            if next.end == p.n {
                plan.task_on(DEVICE, "exchange", region(&(panel.start..p.m), &(0..panel.start)));
            }
            // in the task of the update, if there is one
            exchange_left_of(plan, p, held, panel, beside_panel);
        }
        if !next.is_empty() {
            plan.task_on(DEVICE, "panel", region(&(next.start..p.m), &next));
            update_held(plan, p, held, panel, &next, None);
            factor(plan, p, held, &next);
        }
        if loads {
            // the rows beside the panel do not change any more; the last step also completes the rows below the last panel
            let rows = panel.start..if next.is_empty() { p.m } else { panel.end };
            for cols in stored_strips(p, panels, k) {
                plan.task_on(DEVICE, "store", region(&rows, &cols));
                plan.st(held.a.sub(rows.start, cols.start, rows.len(), cols.len()));
            }
        }
    }
    if loads {
        plan.task_on(DEVICE, "store pivots", held.ipiv.region);
        plan.st(held.ipiv);
        plan.st(held.info);
    }
}

/// The strips into which [`held`] divides the columns that panel `k` updates, without those of the next panel.
fn strips_held(p: &Problem, panels: &[Range<usize>], k: usize, loads: bool) -> Vec<Range<usize>> {
    let (start, rest) = (next_panel(panels, k).end, p.order()..p.n);
    let strips = if loads && k < UPDATES_WHILE_LOADING {
        panels.iter().skip(k + 2).chain([&rest]).cloned().collect()
    } else {
        vec![start..p.n]
    };
    strips.into_iter().filter(|strip| !strip.is_empty()).collect()
}

/// The columns whose rows beside panel `k` are stored together. If the update of the step works panel by panel, so do the stores.
fn stored_strips(p: &Problem, panels: &[Range<usize>], k: usize) -> Vec<Range<usize>> {
    if k >= UPDATES_WHILE_LOADING {
        return vec![0..p.n];
    }
    let left = [0..panels[k].end, next_panel(panels, k)];
    left.into_iter().filter(|cols| !cols.is_empty()).chain(strips_held(p, panels, k, true)).collect()
}

/// Adds the command of the factorisation `P·L·U = A(panel.start.., panel)`.
fn factor(plan: &mut Plan, p: &Problem, held: Held, panel: &Range<usize>) {
    let a = held.a.sub(panel.start, panel.start, p.m - panel.start, panel.len());
    let ipiv = held.ipiv.sub(panel.start, 0, panel.len(), 1);
    plan.exec(Instruction::Getrf { pivoting: p.pivoting, first_row: panel.start, a, ipiv, info: held.info });
}

/// Adds the commands that update the columns `cols` of A with a factored panel.
fn update_held(
    plan: &mut Plan,
    p: &Problem,
    held: Held,
    panel: &Range<usize>,
    cols: &Range<usize>,
    beside_panel: Option<PanelShape>,
) {
    let of_a = |cols: &Range<usize>| held.a.sub(panel.start, cols.start, p.m - panel.start, cols.len());
    let done = Panel { l: of_a(panel), ipiv: held.ipiv.sub(panel.start, 0, panel.len(), 1), first_row: panel.start };
    update_strip(plan, p, &done, of_a(cols), beside_panel);
}

/// Adds the command that computes `L ← P⁻¹·L` for all columns L on the left of a panel, with the pivots of this panel.
fn exchange_left_of(plan: &mut Plan, p: &Problem, held: Held, panel: &Range<usize>, beside_panel: Option<PanelShape>) {
    let ipiv = held.ipiv.sub(panel.start, 0, panel.len(), 1);
    let l = held.a.sub(panel.start, 0, p.m - panel.start, panel.start);
    let swaps = Swaps { side: Side::Left, forward: true, first_row: panel.start };
    plan.exec_beside_panel(Instruction::Laswp { swaps, a: l, ipiv }, beside_panel);
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
