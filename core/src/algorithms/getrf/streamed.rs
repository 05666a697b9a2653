//! LU of a matrix in host memory by one device whose memory holds two panels of the matrix: left-looking.
//!
//! The device loads a panel, updates it with all panels on its left, factors it and stores it. The panels on the left pass through the device
//! in strips, from left to right. The rows of panel j have the order in which the factorisation of panel j has left them. The device therefore
//! applies the row exchanges of panel j+1 to the updated panel only after the update with panel j. At the end of the plan, the device exchanges
//! the rows on the left of each panel.
//!
//! Before these exchanges, the device loads an element of L once for each panel on its right, and stores each element once. A right-looking
//! factorisation would load and store an element once for each panel on its left.

use std::ops::Range;

use super::{Matrices, OF_FACTOR, Problem, eliminate, exchange, exchange_left_at_end, factor, of_eliminate, of_exchanges, region};
use crate::blocking::{Blocking, block_count, partition};
use crate::plan::Plan;

/// Adds the tasks of a factorisation to a plan. All panels belong to one task, so that a panel is loaded while the panel before it is factored.
pub(super) fn emit(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>], blocking: &Blocking) {
    plan.task("factors", region(&(0..p.m), &(0..p.n)));
    for cols in panels.iter().chain(&beyond(p, blocking)) {
        let panel = plan.ld(m.a, &(0..p.m), cols);
        for left in panels.iter().take_while(|left| left.end <= cols.start) {
            let below = |row: usize| panel.sub(row, 0, p.m - row, cols.len());
            if p.pivoting {
                let ipiv = plan.ld(m.ipiv, left, &(0..1));
                exchange(plan, left.start, below(left.start), ipiv, None);
            }
            for strip in strips(left, blocking) {
                let l = plan.ld(m.a, &(strip.start..p.m), &strip);
                eliminate(plan, p, l, below(strip.start), None);
            }
        }
        if cols.end <= p.order() {
            factor(plan, p, m, cols, panel);
        }
        plan.st(panel);
    }
    exchange_left_at_end(plan, p, m, panels);
}

/// Number of commands that [`emit`] adds. For many panels, a lower bound of the number of commands.
pub(super) fn commands(p: &Problem, panels: &[Range<usize>], blocking: &Blocking) -> usize {
    let others = block_count(p.n - p.order(), blocking.nc);
    if panels.len() > MAX_COUNTED_PANELS || others > MAX_COUNTED_PANELS {
        return panels.len().saturating_mul(panels.len() / 2 + others);
    }
    let of_pivots = if p.pivoting { 2 } else { 0 };
    let of_left = |left: &Range<usize>| {
        let of_strips = strips(left, blocking).iter().map(|strip| 1 + of_eliminate(p, strip)).sum::<usize>();
        of_pivots + of_strips
    };
    // panel j updates all panels on its right, and all columns beyond them
    let of_updates = panels.iter().rev().enumerate().map(|(right, left)| (right + others) * of_left(left)).sum::<usize>();
    panels.len() * (2 + OF_FACTOR) + 2 * others + of_updates + of_exchanges(p, panels)
}

/// Maximum number of panels whose commands are counted panel by panel.
const MAX_COUNTED_PANELS: usize = 1 << 12;

/// The columns beyond the last panel, in blocks of `nc` columns.
fn beyond(p: &Problem, blocking: &Blocking) -> Vec<Range<usize>> {
    let blocks = partition(p.n - p.order(), blocking.nc).into_iter();
    blocks.map(|cols| p.order() + cols.start..p.order() + cols.end).collect()
}

/// The strips in which a panel passes through the device.
fn strips(panel: &Range<usize>, blocking: &Blocking) -> Vec<Range<usize>> {
    let strips = partition(panel.len(), blocking.kc).into_iter();
    strips.map(|cols| panel.start + cols.start..panel.start + cols.end).collect()
}
