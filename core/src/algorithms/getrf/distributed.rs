//! LU of a matrix that several devices hold together: right-looking, with lookahead. The columns are divided into blocks of the width of a
//! panel. Each device holds groups of consecutive blocks ([`groups`]).
//!
//! The device that holds panel k factors it and sends it with its pivots through host memory to the other devices. Each device then updates its
//! columns on the right of the panel, and exchanges the rows of its columns on the left. The device that holds panel k+1 factors it beside its
//! update. After step k the rows beside panel k are final, and are stored.
//!
//! While the devices load the matrix, one of them factors the panels of the first group, and the devices update each block that they have
//! loaded with these panels. The steps of these panels therefore update the first group only. The exchanges of rows in these panels wait until
//! all blocks have been updated, since the update of a block exchanges its rows one panel after the other.

use std::ops::Range;

use super::{Matrices, Panel, Problem, exchange, of_update, region, update_strip};
use crate::blocking::{Group, groups, partition};
use crate::command::PanelShape;
use crate::instruction::{Instruction, Tile};
use crate::plan::Plan;

/// The distribution of a matrix over devices.
struct Distribution<'a> {
    p: &'a Problem,
    panels: &'a [Range<usize>],
    /// The columns of all blocks: the panels, and the blocks on the right of the last panel.
    blocks: Vec<Range<usize>>,
    groups: Vec<Group>,
    /// For each device, the indices of its groups.
    groups_of: Vec<Vec<usize>>,
    /// Number of panels in the first group.
    early: usize,
}

/// The held registers of a factorisation.
struct Held {
    /// The groups of columns of A.
    groups: Vec<Tile>,
    /// For each panel and each device, the part of A below and including the diagonal block of the panel. `None` if the device updates no
    /// column with the panel.
    panels: Vec<Vec<Option<Tile>>>,
    /// For each panel and each device, the pivots of the panel.
    pivots: Vec<Vec<Tile>>,
    /// For each device, the number of the first zero pivot.
    info: Vec<Tile>,
}

/// Some columns of a group.
#[derive(Clone)]
struct Part {
    group: usize,
    cols: Range<usize>,
}

impl<'a> Distribution<'a> {
    fn new(p: &'a Problem, panels: &'a [Range<usize>], shares: &[u32]) -> Self {
        let width = panels.iter().map(Range::len).max().unwrap_or(1);
        let beyond = partition(p.n - p.order(), width).into_iter().map(|cols| p.order() + cols.start..p.order() + cols.end);
        let blocks: Vec<_> = panels.iter().cloned().chain(beyond).collect();
        let groups = groups(blocks.len(), shares);
        let mut groups_of = vec![Vec::new(); shares.len()];
        groups.iter().enumerate().for_each(|(at, group)| groups_of[group.device].push(at));
        let early = groups[0].blocks.end.min(panels.len());
        Distribution { p, panels, blocks, groups, groups_of, early }
    }

    /// The indices of all devices.
    fn devices(&self) -> Range<usize> {
        0..self.groups_of.len()
    }

    fn group_of(&self, block: usize) -> usize {
        self.groups.partition_point(|group| group.blocks.end <= block)
    }

    /// The device that holds a block.
    fn owner(&self, block: usize) -> usize {
        self.groups[self.group_of(block)].device
    }

    /// The columns of a group.
    fn cols(&self, group: usize) -> Range<usize> {
        let blocks = &self.groups[group].blocks;
        self.blocks[blocks.start].start..self.blocks[blocks.end - 1].end
    }

    /// The columns in a range that a device holds, group by group.
    fn own(&self, device: usize, cols: &Range<usize>) -> Vec<Part> {
        let parts = self.groups_of[device].iter().map(|&group| {
            let all = self.cols(group);
            Part { group, cols: all.start.max(cols.start)..all.end.min(cols.end) }
        });
        parts.filter(|part| !part.cols.is_empty()).collect()
    }

    /// The columns that step `k` updates after it has updated panel k+1.
    fn updated(&self, k: usize) -> Range<usize> {
        let first = self.panels.get(k + 1).map_or(self.panels[k].end, |next| next.end);
        match () {
            () if k + 1 < self.early => first..self.panels[self.early - 1].end,
            // the blocks are updated when they have been loaded
            () if k + 1 == self.early => first..first,
            () => first..self.p.n,
        }
    }

    /// The panels with whose pivots step `k` exchanges rows on their left.
    fn exchanging(&self, k: usize) -> Range<usize> {
        match () {
            () if !self.p.pivoting || k + 1 < self.early => 0..0,
            () if k + 1 == self.early => 0..self.early,
            () => k..k + 1,
        }
    }

    /// The columns on the left of panel `k` that a device holds.
    fn left(&self, device: usize, k: usize) -> Vec<Part> {
        self.own(device, &(0..self.panels[k].start))
    }

    /// Whether a device holds any columns.
    fn takes_part(&self, device: usize) -> bool {
        !self.groups_of[device].is_empty()
    }

    /// Whether a device needs the elements of panel `k`, which another device factors.
    fn receives(&self, device: usize, k: usize) -> bool {
        device != self.owner(k) && !self.own(device, &(self.panels[k].end..self.p.n)).is_empty()
    }

    /// The devices other than `but` that hold columns.
    fn others(&self, but: usize) -> impl Iterator<Item = usize> {
        self.devices().filter(move |&device| device != but && self.takes_part(device))
    }

    /// The rows that step `k` completes in all columns. The last step also completes the rows below the last panel.
    fn final_rows(&self, k: usize) -> Range<usize> {
        let start = if k + 1 > self.early { self.panels[k].start } else { 0 };
        match () {
            () if k + 1 == self.panels.len() => start..self.p.m,
            () if k + 1 < self.early => 0..0,
            () => start..self.panels[k].end,
        }
    }
}

/// Adds the tasks of a factorisation to a plan. `shares` are the relative numbers of columns that the devices hold.
pub(super) fn emit(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>], shares: &[u32]) {
    let d = Distribution::new(p, panels, shares);
    let held = hold(plan, &d, m);
    plan.task_on(d.owner(0), "load info", held.info[d.owner(0)].region);
    plan.load(held.info[d.owner(0)]);
    (0..d.early).for_each(|block| load(plan, &d, &held, block));
    plan.task_on(d.owner(0), "panel", region(&(0..p.m), &panels[0]));
    factor(plan, &d, &held, 0);
    for k in 0..panels.len() {
        send(plan, &d, &held, k);
        // A lane runs transfers in the order of the plan, so the rows of the step before are stored after panel k, for which other devices
        // wait. They are often ready only at the same time, since the device of panel k updates them in the task of this panel.
        if k > 0 {
            store_rows(plan, &d, &held, k - 1);
        }
        if k + 1 == d.early {
            for block in d.early..d.blocks.len() {
                load(plan, &d, &held, block);
                (0..d.early).for_each(|early| update_block(plan, &d, &held, early, block));
            }
        }
        d.devices().for_each(|device| update(plan, &d, &held, k, device));
        if k + 1 != d.early && k + 1 < panels.len() {
            update_block(plan, &d, &held, k, k + 1);
        }
    }
    store_rows(plan, &d, &held, panels.len() - 1);
}

/// Number of commands that [`emit`] adds.
pub(super) fn commands(p: &Problem, panels: &[Range<usize>], shares: &[u32]) -> usize {
    let d = Distribution::new(p, panels, shares);
    let parts = |cols: &Range<usize>| d.devices().map(|device| d.own(device, cols).len()).sum::<usize>();
    let of_step = |k: usize| {
        let (receivers, has_next) = (d.devices().filter(|&device| d.receives(device, k)).count(), k + 1 < panels.len());
        // the owner stores the pivots, `info`, and the panel if another device needs it
        let of_send = 2 + usize::from(receivers > 0);
        // the other devices load the pivots, and some of them the panel; the owner of the next panel loads `info`, unless it sent it
        let of_receive = d.others(d.owner(k)).count() + receivers + usize::from(has_next && d.owner(k + 1) != d.owner(k));
        // a panel of the first group updates each block of the other groups by commands of its own
        let next = usize::from(has_next && k + 1 != d.early);
        let blocks = next + if k < d.early { d.blocks.len() - d.early } else { 0 };
        let exchanged: usize = d.exchanging(k).map(|panel| parts(&(0..panels[panel].start))).sum();
        let of_updates = (blocks + parts(&d.updated(k))) * of_update(p, &panels[k]) + exchanged;
        let of_stores = if d.final_rows(k).is_empty() { 0 } else { parts(&(0..p.n)) };
        of_send + of_receive + of_updates + usize::from(has_next) + of_stores
    };
    // `info` and the blocks are loaded, and the first panel is factored
    (0..panels.len()).map(of_step).fold(2 + d.blocks.len(), usize::saturating_add)
}

fn hold(plan: &mut Plan, d: &Distribution<'_>, m: Matrices) -> Held {
    let groups =
        d.groups.iter().enumerate().map(|(at, group)| plan.hold_from_start(group.device, m.a, &(0..d.p.m), &d.cols(at))).collect();
    let mut panels = Vec::new();
    for (k, cols) in d.panels.iter().enumerate() {
        let mut on = |device| d.receives(device, k).then(|| plan.hold(device, m.a, &(cols.start..d.p.m), cols));
        panels.push(d.devices().map(&mut on).collect());
    }
    let mut on_each = |matrix, rows: &Range<usize>| d.devices().map(|device| plan.hold(device, matrix, rows, &(0..1))).collect();
    let pivots = d.panels.iter().map(|panel| on_each(m.ipiv, panel)).collect();
    Held { groups, panels, pivots, info: on_each(m.info, &(0..1)) }
}

/// Adds the task that loads a block.
fn load(plan: &mut Plan, d: &Distribution<'_>, held: &Held, block: usize) {
    plan.task_on(d.owner(block), "load", region(&(0..d.p.m), &d.blocks[block]));
    plan.load(from_row(d, held, 0, &of_block(d, block)));
}

/// The columns of a block as a part of its group.
fn of_block(d: &Distribution<'_>, block: usize) -> Part {
    Part { group: d.group_of(block), cols: d.blocks[block].clone() }
}

/// The elements of some columns from a row on.
fn from_row(d: &Distribution<'_>, held: &Held, row: usize, part: &Part) -> Tile {
    let first = d.cols(part.group).start;
    held.groups[part.group].sub(row, part.cols.start - first, d.p.m - row, part.cols.len())
}

/// Panel `k` in the memory of a device.
fn panel_on(d: &Distribution<'_>, held: &Held, k: usize, device: usize) -> Panel {
    let first_row = d.panels[k].start;
    let l = held.panels[k][device].unwrap_or_else(|| from_row(d, held, first_row, &of_block(d, k)));
    Panel { l, ipiv: held.pivots[k][device], first_row }
}

/// Adds the command of the factorisation of panel `k`.
fn factor(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize) {
    let (device, first_row) = (d.owner(k), d.panels[k].start);
    let (a, ipiv, info) = (from_row(d, held, first_row, &of_block(d, k)), held.pivots[k][device], held.info[device]);
    plan.exec(Instruction::Getrf { pivoting: d.p.pivoting, first_row, a, ipiv, info });
}

/// Adds the tasks that move a factored panel through host memory to the other devices.
fn send(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize) {
    let (owner, place) = (d.owner(k), region(&(d.panels[k].start..d.p.m), &d.panels[k]));
    plan.task_on(owner, "send", place);
    plan.st(held.pivots[k][owner]);
    if d.others(owner).any(|device| d.receives(device, k)) {
        plan.st(from_row(d, held, d.panels[k].start, &of_block(d, k)));
    }
    // only the factorisation of the next panel waits for `info`
    plan.st(held.info[owner]);
    for device in d.others(owner) {
        plan.task_on(device, "receive", place);
        plan.load(held.pivots[k][device]);
        held.panels[k][device].into_iter().for_each(|panel| plan.load(panel));
        if k + 1 < d.panels.len() && d.owner(k + 1) == device {
            plan.load(held.info[device]);
        }
    }
}

/// Adds the task that updates a block with panel `k`. If the block is panel k+1, the task also factors it, so that both run in one kernel queue.
fn update_block(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize, block: usize) {
    let (owner, row, is_next) = (d.owner(block), d.panels[k].start, block == k + 1 && block < d.panels.len());
    plan.task_on(owner, if is_next { "panel" } else { "update" }, region(&(row..d.p.m), &d.blocks[block]));
    update_strip(plan, d.p, &panel_on(d, held, k, owner), from_row(d, held, row, &of_block(d, block)), None);
    if is_next {
        factor(plan, d, held, block);
    }
}

/// Adds the task of a device that updates its columns with panel `k`, and exchanges the rows of its columns on the left.
fn update(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize, device: usize) {
    let right = d.own(device, &d.updated(k));
    let left: Vec<_> = d.exchanging(k).flat_map(|panel| d.left(device, panel).into_iter().map(move |part| (panel, part))).collect();
    let parts = || left.iter().map(|(_, part)| part).chain(&right).map(|part| &part.cols);
    let (Some(first), Some(last)) = (parts().map(|cols| cols.start).min(), parts().map(|cols| cols.end).max()) else { return };
    let row = d.panels[k].start;
    let top = left.first().map_or(row, |(panel, _)| d.panels[*panel].start);
    plan.task_on(device, "update", region(&(top..d.p.m), &(first..last)));
    let next = d.panels.get(k + 1).filter(|_| d.owner(k + 1) == device);
    let beside_panel = next.map(|next| PanelShape { rows: d.p.m - next.start, cols: next.len() });
    let panel = panel_on(d, held, k, device);
    right.iter().for_each(|part| update_strip(plan, d.p, &panel, from_row(d, held, row, part), beside_panel));
    for (panel, part) in &left {
        let (row, ipiv) = (d.panels[*panel].start, held.pivots[*panel][device]);
        exchange(plan, row, from_row(d, held, row, part), ipiv, beside_panel);
    }
}

/// Adds the tasks of all devices that store the rows that step `k` has completed.
fn store_rows(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize) {
    let rows = d.final_rows(k);
    for device in d.devices().filter(|_| !rows.is_empty()) {
        let own = d.own(device, &(0..d.p.n));
        let (Some(first), Some(last)) = (own.first(), own.last()) else { continue };
        plan.task_on(device, "store", region(&rows, &(first.cols.start..last.cols.end)));
        own.iter().for_each(|part| plan.st(from_row(d, held, rows.start, part).sub(0, 0, rows.len(), part.cols.len())));
    }
}
