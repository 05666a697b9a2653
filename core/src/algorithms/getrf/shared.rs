//! LU of a matrix in host memory by several devices, or by one device that works in place: right-looking, with lookahead. Devices that copy
//! load and store strips of the matrix.
//!
//! The task that updates the columns of the next panel also factors the next panel, and precedes the other updates of the step, so that no
//! device waits for the panel. The rows on the left of the panels are exchanged at the end of the plan: for each panel, one task applies the
//! pivots of all panels on its right. A device that copies would otherwise load the columns on the left in each step.

use std::ops::Range;

use super::{
    Matrices, OF_FACTOR, Panel, Problem, exchange_left_at_end, factor, next_panel, of_exchanges, of_update, region, update_strip,
};
use crate::blocking::{Blocking, block_count, partition};
use crate::plan::Plan;

/// Adds the tasks of a factorisation to a plan.
pub(super) fn emit(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>], blocking: &Blocking) {
    let first = &panels[0];
    plan.task("panel", region(&(0..p.m), first));
    let strip = plan.ld(m.a, &(0..p.m), first);
    factor(plan, p, m, first, strip);
    plan.st(strip);
    for (k, panel) in panels.iter().enumerate() {
        let next = next_panel(panels, k);
        lookahead(plan, p, m, panel, &next);
        update(plan, p, m, panel, &next, blocking);
    }
    exchange_left_at_end(plan, p, m, panels);
}

/// Number of commands that [`emit`] adds.
pub(super) fn commands(p: &Problem, panels: &[Range<usize>], blocking: &Blocking) -> usize {
    let (of_panel, of_load_and_store) = (2, 2);
    let of_step = |(k, panel): (usize, &Range<usize>)| {
        let next = next_panel(panels, k);
        let of_strip = of_load_and_store + of_update(p, panel);
        let strips = block_count(p.n - next.end, blocking.nc);
        let tasks = strips.div_ceil(strips_of_task(strips, blocking));
        let lookahead = if next.is_empty() { 0 } else { of_panel + of_strip + OF_FACTOR };
        tasks.saturating_mul(of_panel).saturating_add(strips.saturating_mul(of_strip)).saturating_add(lookahead)
    };
    let first = of_load_and_store + OF_FACTOR;
    panels.iter().enumerate().map(of_step).fold(first + of_exchanges(p, panels), usize::saturating_add)
}

/// Number of strips that one task updates, if the trailing matrix has `strips` strips.
fn strips_of_task(strips: usize, blocking: &Blocking) -> usize {
    strips.div_ceil(blocking.share).max(1)
}

/// Adds the commands that load a panel and its pivots, which an update task loads once for all its strips.
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
