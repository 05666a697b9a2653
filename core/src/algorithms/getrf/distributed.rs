//! LU of a matrix that several devices hold together: right-looking, with lookahead. The columns are divided into blocks of the width of a
//! panel. Each device holds groups of consecutive blocks ([`groups`]), whose panels it factors one after the other.
//!
//! The device that has factored a panel sends it with its pivots through host memory to the other devices, and updates the rest of the group. The
//! panels of group g then update group g+1, which is factored next, and only then the groups on the right of it, while the device of group g+1
//! factors. The plan also states the tasks in this order: what the next panel waits for comes before the updates that all devices can make
//! meanwhile. When the panels of group g have updated all columns, the devices exchange the rows of the columns on the left, and store the rows
//! beside the group, which are final.
//!
//! A group is loaded when the panels of the first group update it.

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
        Distribution { p, panels, blocks, groups, groups_of }
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

    /// Number of groups with panels.
    fn factored(&self) -> usize {
        self.group_of(self.panels.len() - 1) + 1
    }

    /// The panels of a group.
    fn panels_of(&self, group: usize) -> Range<usize> {
        let blocks = &self.groups[group].blocks;
        blocks.start..blocks.end.min(self.panels.len())
    }

    /// The strips in which the panels of `group` update another group: block by block while the blocks are loaded.
    fn parts(&self, group: usize, other: usize) -> Vec<Part> {
        match group {
            0 => self.groups[other].blocks.clone().map(|block| self.of_blocks(block..block + 1)).collect(),
            _ => vec![Part { group: other, cols: self.cols(other) }],
        }
    }

    /// The columns of some blocks of a group.
    fn of_blocks(&self, blocks: Range<usize>) -> Part {
        Part { group: self.group_of(blocks.start), cols: self.blocks[blocks.start].start..self.blocks[blocks.end - 1].end }
    }

    /// The shape of the next panel that a device factors while the panels of a group update columns on the right of the next group. `None` if the
    /// device does not hold the next group.
    fn beside(&self, group: usize, device: usize) -> Option<PanelShape> {
        let next = self.groups.get(group + 1).filter(|next| next.device == device)?;
        self.shape(next.blocks.start)
    }

    /// The shape of panel `k`, if there is one.
    fn shape(&self, k: usize) -> Option<PanelShape> {
        self.panels.get(k).map(|panel| PanelShape { rows: self.p.m - panel.start, cols: panel.len() })
    }

    /// Whether a device holds any columns.
    fn takes_part(&self, device: usize) -> bool {
        !self.groups_of[device].is_empty()
    }

    /// Whether a device needs the elements of panel `k`, which another device factors.
    fn receives(&self, device: usize, k: usize) -> bool {
        device != self.owner(k) && self.groups_of[device].last().is_some_and(|&last| last > self.group_of(k))
    }

    /// The device that factors the panel after panel `k`.
    fn owner_after(&self, k: usize) -> Option<usize> {
        (k + 1 < self.panels.len()).then(|| self.owner(k + 1))
    }

    /// Whether `info` leaves the device of panel `k` after this panel. It stays there while the device factors further panels, since the store of
    /// `info` waits for the store of the panel, and the next factorisation would wait for both.
    fn passes_info(&self, k: usize) -> bool {
        self.owner_after(k) != Some(self.owner(k))
    }

    /// The devices other than `but` that hold columns.
    fn others(&self, but: usize) -> impl Iterator<Item = usize> {
        self.devices().filter(move |&device| device != but && self.takes_part(device))
    }

    /// The device that stores the rows beside a group only after it has sent the panels of the group after the next one. A lane runs transfers in
    /// the order of the plan, and other devices wait for these panels.
    fn sends_first(&self, group: usize) -> Option<usize> {
        (group + 2 < self.factored()).then(|| self.groups[group + 2].device)
    }

    /// The rows beside panel `k`. The last panel also has the rows below it.
    fn rows(&self, k: usize) -> Range<usize> {
        let end = if k + 1 == self.panels.len() { self.p.m } else { self.panels[k].end };
        self.panels[k].start..end
    }
}

/// Adds the tasks of a factorisation to a plan. `shares` are the relative numbers of columns that the devices hold.
pub(super) fn emit(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>], shares: &[u32]) {
    let d = Distribution::new(p, panels, shares);
    let held = hold(plan, &d, m);
    plan.task_on(d.owner(0), "load info", held.info[d.owner(0)].region);
    plan.load(held.info[d.owner(0)]);
    d.groups[0].blocks.clone().for_each(|block| load(plan, &d, &held, block));
    plan.task_on(d.owner(0), "panel", region(&(0..p.m), &panels[0]));
    factor(plan, &d, &held, 0);
    for group in 0..d.factored() {
        factor_group(plan, &d, &held, group);
        if group > 0 {
            finish(plan, &d, &held, group - 1);
        }
        if group + 1 < d.groups.len() {
            update_group(plan, &d, &held, group, group + 1);
        }
    }
    finish(plan, &d, &held, d.factored() - 1);
}

/// Number of commands that [`emit`] adds.
pub(super) fn commands(p: &Problem, panels: &[Range<usize>], shares: &[u32]) -> usize {
    let d = Distribution::new(p, panels, shares);
    let of_panel = |k: usize| {
        let (group, receivers) = (d.group_of(k), d.devices().filter(|&device| d.receives(device, k)).count());
        // the owner stores the pivots, the panel if another device needs it, and `info` if it passes on
        let of_send = 1 + usize::from(receivers > 0) + usize::from(d.passes_info(k));
        // the other devices load the pivots, and some of them the panel; another owner of the next panel loads `info`
        let of_receive = d.others(d.owner(k)).count() + receivers + usize::from(d.owner_after(k).is_some() && d.passes_info(k));
        // in its own group and the next one, the first block and the others
        let of_blocks = |blocks: Range<usize>| blocks.len().min(2);
        let next = d.groups.get(group + 1).map_or(0, |next| of_blocks(next.blocks.clone()));
        let beyond = (group + 2..d.groups.len()).map(|other| d.parts(group, other).len()).sum::<usize>();
        let updates = of_blocks(k + 1..d.groups[group].blocks.end) + next + beyond;
        let exchanges = if p.pivoting { group + usize::from(k > d.groups[group].blocks.start) } else { 0 };
        // the panel is factored, and the rows beside it are stored
        1 + of_send + of_receive + updates * of_update(p, &panels[k]) + exchanges + d.groups.len()
    };
    // `info` and the blocks are loaded
    (0..panels.len()).map(of_panel).fold(1 + d.blocks.len(), usize::saturating_add)
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
    plan.load(from_row(d, held, 0, &d.of_blocks(block..block + 1)));
}

/// The elements of some columns from a row on.
fn from_row(d: &Distribution<'_>, held: &Held, row: usize, part: &Part) -> Tile {
    let first = d.cols(part.group).start;
    held.groups[part.group].sub(row, part.cols.start - first, d.p.m - row, part.cols.len())
}

/// Panel `k` in the memory of a device.
fn panel_on(d: &Distribution<'_>, held: &Held, k: usize, device: usize) -> Panel {
    let first_row = d.panels[k].start;
    let l = held.panels[k][device].unwrap_or_else(|| from_row(d, held, first_row, &d.of_blocks(k..k + 1)));
    Panel { l, ipiv: held.pivots[k][device], first_row }
}

/// Adds the command of the factorisation of panel `k`.
fn factor(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize) {
    let (device, first_row) = (d.owner(k), d.panels[k].start);
    let (a, ipiv, info) = (from_row(d, held, first_row, &d.of_blocks(k..k + 1)), held.pivots[k][device], held.info[device]);
    plan.exec(Instruction::Getrf { pivoting: d.p.pivoting, first_row, a, ipiv, info });
}

/// Adds the tasks that move a factored panel through host memory to the other devices.
fn send(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize) {
    let (owner, place) = (d.owner(k), region(&(d.panels[k].start..d.p.m), &d.panels[k]));
    plan.task_on(owner, "send", place);
    plan.st(held.pivots[k][owner]);
    if d.others(owner).any(|device| d.receives(device, k)) {
        plan.st(from_row(d, held, d.panels[k].start, &d.of_blocks(k..k + 1)));
    }
    if d.passes_info(k) {
        plan.st(held.info[owner]);
    }
    for device in d.others(owner) {
        plan.task_on(device, "receive", place);
        plan.load(held.pivots[k][device]);
        held.panels[k][device].into_iter().for_each(|panel| plan.load(panel));
        if d.owner_after(k) == Some(device) {
            plan.load(held.info[device]);
        }
    }
}

/// Adds the tasks that send the panels of a group, of which the first is factored, and update the rest of the group with each panel.
fn factor_group(plan: &mut Plan, d: &Distribution<'_>, held: &Held, group: usize) {
    let blocks = &d.groups[group].blocks;
    for k in d.panels_of(group) {
        send(plan, d, held, k);
        update_blocks(plan, d, held, k, k + 1..blocks.end, d.shape(k + 1));
    }
    if let Some(stored) = group.checked_sub(2) {
        store_rows(plan, d, held, stored, d.groups[group].device);
    }
}

/// Adds the tasks that update the group `other` with the panels of a group, and factor its first panel if it comes next. The first group also
/// loads the other one.
fn update_group(plan: &mut Plan, d: &Distribution<'_>, held: &Held, group: usize, other: usize) {
    let (blocks, beside_panel) = (d.groups[other].blocks.clone(), d.beside(group, d.groups[other].device));
    if group == 0 {
        blocks.clone().for_each(|block| load(plan, d, held, block));
    }
    if other == group + 1 {
        d.panels_of(group).for_each(|k| update_blocks(plan, d, held, k, blocks.clone(), beside_panel));
        return;
    }
    for part in d.parts(group, other) {
        d.panels_of(group).for_each(|k| update(plan, d, held, "update", k, &part, beside_panel));
    }
}

/// Adds the tasks that update some blocks of a group with panel `k`. The task of the first block also factors it if it is panel k+1, so that both
/// run in one kernel queue. The other blocks are updated `beside_panel`.
fn update_blocks(
    plan: &mut Plan,
    d: &Distribution<'_>,
    held: &Held,
    k: usize,
    blocks: Range<usize>,
    beside_panel: Option<PanelShape>,
) {
    let (first, others) = (blocks.start, blocks.start + 1..blocks.end);
    if !others.is_empty() {
        update(plan, d, held, "update", k, &d.of_blocks(others), beside_panel);
    }
    if !blocks.is_empty() {
        let is_panel = first == k + 1 && first < d.panels.len();
        update(plan, d, held, if is_panel { "panel" } else { "update" }, k, &d.of_blocks(first..first + 1), None);
        if is_panel {
            factor(plan, d, held, first);
        }
    }
}

/// Adds the task `what` that updates some columns of a group with panel `k`.
fn update(
    plan: &mut Plan,
    d: &Distribution<'_>,
    held: &Held,
    what: &'static str,
    k: usize,
    part: &Part,
    beside_panel: Option<PanelShape>,
) {
    let (device, row) = (d.groups[part.group].device, d.panels[k].start);
    plan.task_on(device, what, region(&(row..d.p.m), &part.cols));
    update_strip(plan, d.p, &panel_on(d, held, k, device), from_row(d, held, row, part), beside_panel);
}

/// Adds the tasks that update the groups beyond the next one with the panels of a group, exchange rows on the left of the panels, and store the
/// rows beside them.
fn finish(plan: &mut Plan, d: &Distribution<'_>, held: &Held, group: usize) {
    (group + 2..d.groups.len()).for_each(|other| update_group(plan, d, held, group, other));
    if d.p.pivoting {
        (0..=group).for_each(|left| exchange_left(plan, d, held, group, left));
    }
    for device in d.devices().filter(|&device| d.sends_first(group) != Some(device)) {
        store_rows(plan, d, held, group, device);
    }
}

/// Adds the task that exchanges rows of the columns of group `left` on the left of the panels of a group.
fn exchange_left(plan: &mut Plan, d: &Distribution<'_>, held: &Held, group: usize, left: usize) {
    let (device, cols) = (d.groups[left].device, d.cols(left));
    let panels: Vec<_> = d.panels_of(group).filter(|&k| d.panels[k].start > cols.start).collect();
    let Some(&first) = panels.first() else { return };
    plan.task_on(device, "exchange", region(&(d.panels[first].start..d.p.m), &cols));
    for k in panels {
        let (row, part) = (d.panels[k].start, Part { group: left, cols: cols.start..cols.end.min(d.panels[k].start) });
        exchange(plan, row, from_row(d, held, row, &part), held.pivots[k][device], d.beside(group, device));
    }
}

/// Adds the tasks of a device that store the rows beside the panels of a group. There is a task for each panel and each of the device's groups, so
/// that a lane can send a panel between two of them.
fn store_rows(plan: &mut Plan, d: &Distribution<'_>, held: &Held, group: usize, device: usize) {
    for (k, part) in d.panels_of(group).flat_map(|k| d.groups_of[device].iter().map(move |&own| (k, own))) {
        let (rows, cols) = (d.rows(k), d.cols(part));
        plan.task_on(device, "store", region(&rows, &cols));
        plan.st(from_row(d, held, rows.start, &Part { group: part, cols: cols.clone() }).sub(0, 0, rows.len(), cols.len()));
    }
}
