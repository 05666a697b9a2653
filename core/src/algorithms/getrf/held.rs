//! LU on one device that holds the matrix: right-looking, with lookahead.
//!
//! One task updates all columns on the right of panel k+1 as one strip, and also applies the pivots of panel k to the columns on the left.
//! The task precedes the task that updates and factors panel k+1, because the host needs less time to submit an update than to submit the many
//! kernels of a panel. The two tasks run in different kernel queues.
//!
//! If the first columns hold factors already, they are the first panel, and the algorithm begins with their update.
//!
//! If the matrix lies in host memory, it is loaded panel by panel. The first updates work panel by panel, so that they begin before the whole
//! matrix is loaded. After step k the rows beside panel k are final, and are stored.

use std::ops::Range;

use super::{Matrices, Panel, Problem, exchange, next_panel, of_update, region, update_strip};
use crate::command::PanelShape;
use crate::instruction::{Instruction, Tile};
use crate::plan::Plan;

/// Number of updates that work panel by panel while a device loads the matrix. Later updates begin when the whole matrix is loaded.
const UPDATES_WHILE_LOADING: usize = 2;

/// The only device of a call.
const DEVICE: usize = 0;

/// The registers of the matrices of a factorisation.
#[derive(Clone, Copy)]
struct Held {
    a: Tile,
    ipiv: Tile,
    info: Tile,
}

/// Adds the tasks of a factorisation to a plan. If `loads`, the matrix is loaded from host memory and stored there.
pub(super) fn emit(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>], loads: bool) {
    let mut whole = |matrix, rows, cols| plan.hold(DEVICE, matrix, &(0..rows), &(0..cols));
    let held = Held { a: whole(m.a, p.m, p.n), ipiv: whole(m.ipiv, p.order(), 1), info: whole(m.info, 1, 1) };
    if loads {
        load(plan, p, held, panels);
    }
    if p.factored == 0 {
        plan.task_on(DEVICE, "panel", region(&(0..p.m), &panels[0]));
        factor(plan, p, held, &panels[0]);
    }
    for (k, panel) in panels.iter().enumerate() {
        let next = next_panel(panels, k);
        let beside_panel = (!next.is_empty()).then_some(PanelShape { rows: p.m - next.start, cols: next.len() });
        for strip in updated(p, panels, k, loads) {
            plan.task_on(DEVICE, "update", region(&(panel.start..p.m), &strip));
            update(plan, p, held, panel, &strip, beside_panel);
        }
        if p.pivoting && panel.start > 0 {
            let left = 0..panel.start;
            if next.end == p.n {
                plan.task_on(DEVICE, "exchange", region(&(panel.start..p.m), &left));
            }
            // the command belongs to the task of the update, if there is an update
            exchange(plan, panel.start, held.below(p, panel, &left), held.pivots(panel), beside_panel);
        }
        if !next.is_empty() {
            plan.task_on(DEVICE, "panel", region(&(next.start..p.m), &next));
            update(plan, p, held, panel, &next, None);
            factor(plan, p, held, &next);
        }
        if loads {
            store_rows(plan, p, held, panels, k);
        }
    }
    if loads {
        plan.task_on(DEVICE, "store pivots", held.ipiv.region);
        plan.st(held.ipiv);
        plan.st(held.info);
    }
}

/// Number of commands that [`emit`] adds.
pub(super) fn commands(p: &Problem, panels: &[Range<usize>], loads: bool) -> usize {
    let of_step = |(k, panel): (usize, &Range<usize>)| {
        let of_panel = if next_panel(panels, k).is_empty() { 0 } else { of_update(p, panel) + 1 };
        let stores = if loads { stored(p, panels, k).len() } else { 0 };
        let of_updates = updated(p, panels, k, loads).len() * of_update(p, panel);
        of_updates + usize::from(p.pivoting && panel.start > 0) + of_panel + stores
    };
    // `info` is loaded and stored, and the pivots are stored
    let of_transfers = if loads { 3 + panels.len() + usize::from(p.n > p.order()) } else { 0 };
    panels.iter().enumerate().map(of_step).fold(usize::from(p.factored == 0) + of_transfers, usize::saturating_add)
}

impl Held {
    /// The columns `cols` of A from the first row of a panel on.
    fn below(&self, p: &Problem, panel: &Range<usize>, cols: &Range<usize>) -> Tile {
        self.a.sub(panel.start, cols.start, p.m - panel.start, cols.len())
    }

    fn pivots(&self, panel: &Range<usize>) -> Tile {
        self.ipiv.sub(panel.start, 0, panel.len(), 1)
    }
}

/// Adds the tasks that load the matrix and `info`.
fn load(plan: &mut Plan, p: &Problem, held: Held, panels: &[Range<usize>]) {
    plan.task_on(DEVICE, "load info", held.info.region);
    plan.load(held.info);
    let rest = p.order()..p.n;
    for cols in panels.iter().chain((!rest.is_empty()).then_some(&rest)) {
        plan.task_on(DEVICE, "load", region(&(0..p.m), cols));
        plan.load(held.a.sub(0, cols.start, p.m, cols.len()));
    }
}

/// Adds the tasks that store the rows beside panel `k`, which do not change any more. The last step also stores the rows below the last panel.
fn store_rows(plan: &mut Plan, p: &Problem, held: Held, panels: &[Range<usize>], k: usize) {
    let end = if k + 1 == panels.len() { p.m } else { panels[k].end };
    let rows = panels[k].start..end;
    for cols in stored(p, panels, k) {
        plan.task_on(DEVICE, "store", region(&rows, &cols));
        plan.st(held.a.sub(rows.start, cols.start, rows.len(), cols.len()));
    }
}

/// The columns that panel `k` updates, without the columns of the next panel, as strips that are updated one after the other.
fn updated(p: &Problem, panels: &[Range<usize>], k: usize, loads: bool) -> Vec<Range<usize>> {
    let (others, beyond) = if loads && k < UPDATES_WHILE_LOADING {
        (panels.get(k + 2..).unwrap_or_default(), p.order()..p.n)
    } else {
        (&[][..], next_panel(panels, k).end..p.n)
    };
    others.iter().chain([&beyond]).filter(|strip| !strip.is_empty()).cloned().collect()
}

/// The strips of columns in which the rows beside panel `k` are stored, one strip after the other. If the device updates the columns panel by
/// panel in this step, it also stores them panel by panel.
fn stored(p: &Problem, panels: &[Range<usize>], k: usize) -> Vec<Range<usize>> {
    let (left, next, updated) = if k < UPDATES_WHILE_LOADING {
        (0..panels[k].end, next_panel(panels, k), updated(p, panels, k, true))
    } else {
        (0..p.n, 0..0, Vec::new())
    };
    [left, next].into_iter().chain(updated).filter(|cols| !cols.is_empty()).collect()
}

/// Adds the command of the factorisation `P·L·U = A(panel.start.., panel)`.
fn factor(plan: &mut Plan, p: &Problem, held: Held, panel: &Range<usize>) {
    let (a, ipiv, info) = (held.below(p, panel, panel), held.pivots(panel), held.info);
    plan.exec(Instruction::Getrf { pivoting: p.pivoting, first_row: panel.start, a, ipiv, info });
}

/// Adds the commands that update the columns `cols` of A with a factored panel.
fn update(plan: &mut Plan, p: &Problem, held: Held, panel: &Range<usize>, cols: &Range<usize>, beside_panel: Option<PanelShape>) {
    let done = Panel { l: held.below(p, panel, panel), ipiv: held.pivots(panel), first_row: panel.start };
    update_strip(plan, p, &done, held.below(p, panel, cols), beside_panel);
}
