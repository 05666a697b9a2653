//! The LU factorisation `A = P·L·U` in place, with partial pivoting.
//!
//! The part of the matrix that step k works on, below the finished rows:
//! ```text
//!   A11 | A12      panel A11, A21: P·L·U of a tall panel
//!   A21 | A22      A12 ← L11⁻¹·P⁻¹·A12,  A22 ← A22 − L21·U12
//! ```
//! There is a plan for each place where the matrix may lie during the call ([`Place`]):
//! - `held`: one device holds the matrix. The algorithm is right-looking, with lookahead: the device factors panel k+1 while it updates the
//!   other columns with panel k.
//! - `streamed`: the only device has memory for two panels. The algorithm is left-looking: the device loads a panel, updates it with all panels
//!   on its left, which pass through the device, factors it and stores it.
//! - `distributed`: several devices hold the matrix together, each with groups of panels. The algorithm is right-looking: the panels of a group
//!   update the next group first. The device that has factored a panel sends it to the other devices through host memory.
//! - `shared`: the matrix stays in host memory, and all devices work on strips of it. The algorithm is right-looking, with lookahead.

mod distributed;
mod held;
mod shared;
mod streamed;

use std::ops::Range;

use crate::args::{Checked, Getrf};
use crate::blocking::{Blocking, MAX_COUNTED_BLOCKS, Place, block_count, partition};
use crate::command::{PanelShape, Queue};
use crate::enums::{Accuracy, Diag, Layout, Op, Side, TrsmMode, Uplo};
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
    /// The error bound that the devices must keep in each product of the updates.
    pub accuracy: Accuracy,
    /// Number of columns on the left that hold factors before the call, with their pivots in `ipiv`. If the number is not zero, A lies on a device.
    pub factored: usize,
    /// Layout of A in the caller's memory.
    pub layout: Layout,
    /// Element type of A.
    pub dtype: DType,
}

impl Problem {
    /// The problem of a checked call.
    #[must_use]
    pub fn new<T: Scalar>(args: &Checked<Getrf<'_, T>>) -> Self {
        let problem = Problem::pivoted(args.a.shape(), args.a.layout(), T::DTYPE);
        Problem { pivoting: args.pivoting, accuracy: args.accuracy, ..problem }
    }

    /// The factorisation with partial pivoting of an m×n matrix, of which no column is factored, with the default accuracy.
    #[must_use]
    pub fn pivoted((m, n): (usize, usize), layout: Layout, dtype: DType) -> Self {
        Problem { m, n, pivoting: true, accuracy: Accuracy::default(), factored: 0, layout, dtype }
    }

    /// The whole problem as one instruction.
    #[must_use]
    pub fn instruction<O>(&self, [a, ipiv, info]: [O; 3]) -> Instruction<O> {
        Instruction::Getrf { pivoting: self.pivoting, first_row: 0, a, ipiv, info }
    }

    /// The problem as a sequence of instructions. No instruction continues a factorisation: if columns are factored, no device runs the
    /// sequence, which then only shows that a call reads the pivots.
    #[must_use]
    pub fn instructions<O: Copy>(&self, [a, ipiv, info]: [O; 3]) -> Vec<Instruction<O>> {
        let swaps = Swaps { side: Side::Left, forward: true, first_row: 0 };
        let exchange = (self.factored > 0).then_some(Instruction::Laswp { swaps, a, ipiv });
        exchange.into_iter().chain([self.instruction([a, ipiv, info])]).collect()
    }

    /// The columns of the panels, from left to right. Factored columns form the first panel. Each other panel has at most `nb` columns.
    fn panels(&self, nb: usize) -> Vec<Range<usize>> {
        let rest = partition(self.order() - self.factored, nb).into_iter();
        let rest = rest.map(|panel| panel.start + self.factored..panel.end + self.factored);
        (self.factored > 0).then_some(0..self.factored).into_iter().chain(rest).collect()
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

/// The plan of a factorisation. Uses the block sizes `nb` (width of a panel), `nc` and `kc` (widths of strips of the update), `share` (maximum
/// number of tasks of an update) and `place`.
#[must_use]
pub fn plan(p: &Problem, blocking: &Blocking) -> Plan {
    let mut plan = Plan::new(Routine::Getrf.name(), p.dtype).with_accuracy(p.accuracy);
    let a = plan.output("A", (p.m, p.n), p.layout);
    let ipiv = plan.indices("ipiv", p.order(), true);
    let info = plan.indices("info", 1, true);
    let continues = p.factored <= p.order() && matches!(blocking.place, Place::Held { loads: false });
    assert!(p.factored == 0 || continues, "a factorisation continues on a device that holds the matrix");
    let (matrices, panels) = (Matrices { a, ipiv, info }, p.panels(blocking.nb));
    if !panels.is_empty() {
        match &blocking.place {
            Place::Shared | Place::Divided { .. } => shared::emit(&mut plan, p, matrices, &panels, blocking),
            Place::Streamed => streamed::emit(&mut plan, p, matrices, &panels, blocking),
            Place::Held { loads } => held::emit(&mut plan, p, matrices, &panels, *loads),
            Place::Distributed { shares, group_length } => {
                distributed::emit(&mut plan, p, matrices, &panels, shares, *group_length);
            }
        }
    }
    plan
}

/// Computes the number of commands of the plan that [`plan`] would make. For many panels, `commands` returns a lower bound of the number of
/// commands.
#[must_use]
pub fn commands(p: &Problem, blocking: &Blocking) -> usize {
    let count = block_count(p.order(), blocking.nb);
    if count > MAX_COUNTED_BLOCKS {
        return count;
    }
    let panels = p.panels(blocking.nb);
    match &blocking.place {
        _ if panels.is_empty() => 0,
        Place::Shared | Place::Divided { .. } => shared::commands(p, &panels, blocking),
        Place::Streamed => streamed::commands(p, &panels, blocking),
        Place::Held { loads } => held::commands(p, &panels, *loads),
        Place::Distributed { shares, group_length } => distributed::commands(p, &panels, shares, *group_length),
    }
}

/// The columns of the panel after panel `k`, or an empty range if panel `k` is the last panel.
fn next_panel(panels: &[Range<usize>], k: usize) -> Range<usize> {
    panels.get(k + 1).cloned().unwrap_or(panels[k].end..panels[k].end)
}

fn region(rows: &Range<usize>, cols: &Range<usize>) -> Region {
    Region { row: rows.start, col: cols.start, rows: rows.len(), cols: cols.len() }
}

/// Number of commands that [`factor`] adds.
const OF_FACTOR: usize = 5;

/// Adds the commands of the factorisation `P·L·U = A(panel.start.., panel)`, and the commands that store its pivots and `info`. The panel
/// occupies the last rows of the tile `strip`.
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

/// The registers of a factored panel and its pivots.
struct Panel {
    l: Tile,
    ipiv: Tile,
    first_row: usize,
}

/// Adds the commands that update the columns `strip` with a panel. `beside_panel` is the shape of a panel that is factored meanwhile.
fn update_strip(plan: &mut Plan, p: &Problem, panel: &Panel, strip: Tile, beside_panel: Option<PanelShape>) {
    if p.pivoting {
        exchange(plan, panel.first_row, strip, panel.ipiv, beside_panel);
    }
    eliminate(plan, p, panel.l, strip, beside_panel);
}

/// Number of commands that [`update_strip`] adds if the panel has the columns `panel`.
fn of_update(p: &Problem, panel: &Range<usize>) -> usize {
    usize::from(p.pivoting) + of_eliminate(p, panel)
}

/// Adds the command `strip ← P⁻¹·strip`. Row 0 of the tile is row `first_row` of A.
fn exchange(plan: &mut Plan, first_row: usize, strip: Tile, ipiv: Tile, beside_panel: Option<PanelShape>) {
    let swaps = Swaps { side: Side::Left, forward: true, first_row };
    plan.exec_beside_panel(Instruction::Laswp { swaps, a: strip, ipiv }, beside_panel);
}

/// Adds the commands `A12 ← L11⁻¹·A12` and `A22 ← A22 − L21·A12`, where L11 and L21 are the parts of `l`, and A12 and A22 the parts of
/// `strip`.
fn eliminate(plan: &mut Plan, p: &Problem, l: Tile, strip: Tile, beside_panel: Option<PanelShape>) {
    let (m, nb, n) = (strip.rows(), l.cols(), strip.cols());
    let (l11, l21) = (l.sub(0, 0, nb, nb), l.sub(nb, 0, m - nb, nb));
    let (a12, a22) = (strip.sub(0, 0, nb, n), strip.sub(nb, 0, m - nb, n));
    let [one, minus_one] = [1.0, -1.0].map(|number| Value::new(p.dtype, number));
    let (mode, side, uplo, op, diag) = (TrsmMode::Inverted, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
    plan.exec_beside_panel(Instruction::Trsm { mode, side, uplo, op, diag, alpha: one, a: l11, b: a12 }, beside_panel);
    if m > nb {
        let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
        plan.exec_beside_panel(Instruction::Gemm { alpha: minus_one, op_a, a: l21, op_b, b: a12, beta: one, c: a22 }, beside_panel);
    }
}

/// Number of commands that [`eliminate`] adds for the columns `cols` of L.
fn of_eliminate(p: &Problem, cols: &Range<usize>) -> usize {
    1 + usize::from(p.m > cols.end)
}

/// Adds the tasks that exchange rows to the left of the panels. The task of panel j computes `L ← P⁻¹·L` for the part L of panel
/// j below its triangle, with the pivots of all panels after panel j.
fn exchange_left_at_end(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>]) {
    for panel in panels.iter().filter(|panel| p.pivoting && panel.end < p.order()) {
        let rows = panel.end..p.m;
        plan.task("exchange", region(&rows, panel));
        let ipiv = plan.ld(m.ipiv, &(panel.end..p.order()), &(0..1));
        let l = plan.ld(m.a, &rows, panel);
        exchange(plan, panel.end, l, ipiv, None);
        plan.st(l);
    }
}

/// Number of commands that [`exchange_left_at_end`] adds.
fn of_exchanges(p: &Problem, panels: &[Range<usize>]) -> usize {
    if p.pivoting { 4 * (panels.len() - 1) } else { 0 }
}
