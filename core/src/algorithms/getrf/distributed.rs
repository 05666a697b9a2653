//! LU of a matrix that several devices hold together: right-looking, with lookahead. The columns are divided into blocks of the width of a
//! panel. Each device holds groups of consecutive blocks ([`groups`]), whose panels it factors one after the other.
//!
//! The device that has factored a panel sends it with its pivots through host memory to the other devices, and updates the rest of the group. The
//! panels of group g then update group g+1, which is factored next. They update the groups beyond it while the device of group g+1 factors. When
//! the panels of a group have updated all columns, the devices exchange the rows of the columns on the left, and store the rows beside the group,
//! which are final.
//!
//! A device may have several tasks that are ready to run. It takes the one that stands first in the plan. Other devices wait for the panels of group
//! g+1. In the plan, the tasks that factor group g+1 therefore stand before the tasks that update the groups beyond it with the panels of group g.
//!
//! The first group is loaded first. The plan loads each other group just before the panels of the first group update it.

use std::ops::Range;

use super::{Matrices, Panel, Problem, exchange, of_update, region, update_strip};
use crate::blocking::{Group, distributed_blocks, groups};
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

impl<'a> Distribution<'a> {
    fn new(p: &'a Problem, panels: &'a [Range<usize>], shares: &[u32], group_length: usize) -> Self {
        let blocks = distributed_blocks(panels, p.n);
        let groups = groups(blocks.len(), shares, group_length);
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

    /// The columns of some blocks.
    fn cols(&self, blocks: &Range<usize>) -> Range<usize> {
        self.blocks[blocks.start].start..self.blocks[blocks.end - 1].end
    }

    fn groups_with_panels(&self) -> usize {
        self.group_of(self.panels.len() - 1) + 1
    }

    /// The panels of a group.
    fn panels_of(&self, group: usize) -> Range<usize> {
        let blocks = &self.groups[group].blocks;
        blocks.start..blocks.end.min(self.panels.len())
    }

    /// The shape of panel `k`, if there is one.
    fn shape(&self, k: usize) -> Option<PanelShape> {
        self.panels.get(k).map(|panel| PanelShape { rows: self.p.m - panel.start, cols: panel.len() })
    }

    /// The shape of the first panel of the group after `group`. `None` if `device` does not hold that group, or if the group has no panel.
    fn next_panel_on(&self, device: usize, group: usize) -> Option<PanelShape> {
        let next = self.groups.get(group + 1).filter(|next| next.device == device)?;
        self.shape(next.blocks.start)
    }

    /// Whether a device needs the elements of panel `k`, which another device factors.
    fn receives(&self, device: usize, k: usize) -> bool {
        device != self.owner(k) && self.groups_of[device].last().is_some_and(|&last| last > self.group_of(k))
    }

    /// The devices that hold columns, other than the one that factors panel `k`.
    fn others(&self, k: usize) -> impl Iterator<Item = usize> {
        self.devices().filter(move |&device| device != self.owner(k) && !self.groups_of[device].is_empty())
    }

    /// The device that factors the panel after panel `k`.
    fn owner_after(&self, k: usize) -> Option<usize> {
        (k + 1 < self.panels.len()).then(|| self.owner(k + 1))
    }

    /// Whether the device of panel `k` stores `info` in host memory after it has factored the panel. It does so only if another device factors the
    /// next panel, or if there is none. A task begins when the tasks on which it depends are done. The next factorisation writes `info`, so that it
    /// would wait until the task that stores `info` has also stored the panel.
    fn passes_info(&self, k: usize) -> bool {
        self.owner_after(k) != Some(self.owner(k))
    }

    /// The device that stores the rows beside a group late: after it has sent the panels of the group after the next one, for which other devices
    /// wait.
    fn stores_late(&self, group: usize) -> Option<usize> {
        (group + 2 < self.groups_with_panels()).then(|| self.groups[group + 2].device)
    }

    /// The rows beside panel `k`. The last panel also has the rows below it.
    fn rows_beside(&self, k: usize) -> Range<usize> {
        let end = if k + 1 == self.panels.len() { self.p.m } else { self.panels[k].end };
        self.panels[k].start..end
    }
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

/// Adds the tasks of a factorisation to a plan. `shares` are the relative numbers of operations of the devices, and `group_length` is the number of
/// blocks of a group.
pub(super) fn emit(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>], shares: &[u32], group_length: usize) {
    let d = Distribution::new(p, panels, shares, group_length);
    let held = hold(plan, &d, m);
    Emitter { plan, d, held }.emit();
}

/// Number of commands that [`emit`] adds.
pub(super) fn commands(p: &Problem, panels: &[Range<usize>], shares: &[u32], group_length: usize) -> usize {
    let d = Distribution::new(p, panels, shares, group_length);
    let of_panel = |k: usize| {
        let (group, receivers) = (d.group_of(k), d.devices().filter(|&device| d.receives(device, k)).count());
        // The device of the panel stores the pivots. It stores the panel if another device needs it, and `info` if another device factors next.
        let of_send = 1 + usize::from(receivers > 0) + usize::from(d.passes_info(k));
        // Each other device loads the pivots. The devices with columns on the right load the panel, and the device that factors next loads `info`.
        let of_receive = d.others(k).count() + receivers + usize::from(d.owner_after(k).is_some() && d.passes_info(k));
        // A panel updates the rest of its own group, and the next group, in two tasks: one for the first block, and one for the other blocks.
        let of_group = |blocks: Range<usize>| blocks.len().min(2);
        let next = d.groups.get(group + 1).map_or(d.blocks.len()..d.blocks.len(), |next| next.blocks.clone());
        // For each group beyond the next one, there is one task that updates it with the panel. The panels of the first group have a task for each block.
        let beyond = if group == 0 { d.blocks.len() - next.end } else { d.groups.len().saturating_sub(group + 2) };
        let updates = of_group(k + 1..d.groups[group].blocks.end) + of_group(next) + beyond;
        let exchanges = if p.pivoting { group + usize::from(k > d.groups[group].blocks.start) } else { 0 };
        // one command factors the panel, and each group stores the rows beside it
        1 + of_send + of_receive + updates * of_update(p, &panels[k]) + exchanges + d.groups.len()
    };
    // `info` and the blocks are loaded
    (0..panels.len()).map(of_panel).fold(1 + d.blocks.len(), usize::saturating_add)
}

fn hold(plan: &mut Plan, d: &Distribution<'_>, m: Matrices) -> Held {
    let of_group = |group: &Group| plan.hold_from_start(group.device, m.a, &(0..d.p.m), &d.cols(&group.blocks));
    let groups = d.groups.iter().map(of_group).collect();
    let mut panels = Vec::new();
    for (k, cols) in d.panels.iter().enumerate() {
        let mut on = |device| d.receives(device, k).then(|| plan.hold(device, m.a, &(cols.start..d.p.m), cols));
        panels.push(d.devices().map(&mut on).collect());
    }
    let mut on_each = |matrix, rows: &Range<usize>| d.devices().map(|device| plan.hold(device, matrix, rows, &(0..1))).collect();
    let pivots = d.panels.iter().map(|panel| on_each(m.ipiv, panel)).collect();
    Held { groups, panels, pivots, info: on_each(m.info, &(0..1)) }
}

/// A plan, and the registers for which tasks are added to it.
struct Emitter<'p, 'a> {
    plan: &'p mut Plan,
    d: Distribution<'a>,
    held: Held,
}

impl Emitter<'_, '_> {
    fn emit(mut self) {
        let first = self.d.owner(0);
        self.plan.task_on(first, "load info", self.held.info[first].region);
        self.plan.load(self.held.info[first]);
        self.load(0);
        self.begin("panel", 0..self.d.p.m, &(0..1));
        self.factor(0);
        for group in 0..self.d.groups_with_panels() {
            self.factor_group(group);
            if let Some(stored) = group.checked_sub(2) {
                self.store_rows(stored, self.d.groups[group].device);
            }
            if group > 0 {
                self.finish(group - 1);
            }
            if group + 1 < self.d.groups.len() {
                self.update_group(group, group + 1);
            }
        }
        self.finish(self.d.groups_with_panels() - 1);
    }

    /// Begins a task with the name `what` on the device that holds some blocks of a group. The task changes or stores these rows of the blocks.
    fn begin(&mut self, what: &'static str, rows: Range<usize>, blocks: &Range<usize>) {
        self.plan.task_on(self.d.owner(blocks.start), what, region(&rows, &self.d.cols(blocks)));
    }

    /// The elements of some blocks of a group from a row on.
    fn rows_from(&self, row: usize, blocks: &Range<usize>) -> Tile {
        let (d, cols) = (&self.d, self.d.cols(blocks));
        let group = d.group_of(blocks.start);
        self.held.groups[group].sub(row, cols.start - d.cols(&d.groups[group].blocks).start, d.p.m - row, cols.len())
    }

    /// Adds the tasks that load the blocks of a group.
    fn load(&mut self, group: usize) {
        for block in self.d.groups[group].blocks.clone() {
            self.begin("load", 0..self.d.p.m, &(block..block + 1));
            self.plan.load(self.rows_from(0, &(block..block + 1)));
        }
    }

    /// Adds the command of the factorisation of panel `k`.
    fn factor(&mut self, k: usize) {
        let (device, first_row) = (self.d.owner(k), self.d.panels[k].start);
        let (a, ipiv, info) = (self.rows_from(first_row, &(k..k + 1)), self.held.pivots[k][device], self.held.info[device]);
        self.plan.exec(Instruction::Getrf { pivoting: self.d.p.pivoting, first_row, a, ipiv, info });
    }

    /// Adds the tasks that move a factored panel through host memory to the other devices.
    fn send(&mut self, k: usize) {
        let panel = self.rows_from(self.d.panels[k].start, &(k..k + 1));
        let Emitter { plan, d, held } = self;
        let (owner, place) = (d.owner(k), region(&(d.panels[k].start..d.p.m), &d.panels[k]));
        plan.task_on(owner, "send", place);
        plan.st(held.pivots[k][owner]);
        if d.devices().any(|device| d.receives(device, k)) {
            plan.st(panel);
        }
        if d.passes_info(k) {
            plan.st(held.info[owner]);
        }
        for device in d.others(k) {
            plan.task_on(device, "receive", place);
            plan.load(held.pivots[k][device]);
            held.panels[k][device].into_iter().for_each(|panel| plan.load(panel));
            if d.owner_after(k) == Some(device) {
                plan.load(held.info[device]);
            }
        }
    }

    /// Adds the tasks that send the panels of a group, of which the first is factored, and update the rest of the group with each panel.
    fn factor_group(&mut self, group: usize) {
        for k in self.d.panels_of(group) {
            self.send(k);
            self.update_blocks(k, k + 1..self.d.groups[group].blocks.end, self.d.shape(k + 1));
        }
    }

    /// Adds the tasks that update the group `other` with the panels of a group, and factor its first panel if it comes next. For the
    /// first group, the method also adds the tasks that load `other`, and updates a group beyond the next one block by block.
    fn update_group(&mut self, group: usize, other: usize) {
        let Group { device, blocks } = self.d.groups[other].clone();
        let beside_panel = self.d.next_panel_on(device, group);
        if group == 0 {
            self.load(other);
        }
        if other == group + 1 {
            self.d.panels_of(group).for_each(|k| self.update_blocks(k, blocks.clone(), beside_panel));
            return;
        }
        let length = if group == 0 { 1 } else { blocks.len() };
        for first in blocks.step_by(length) {
            self.d.panels_of(group).for_each(|k| self.update("update", k, &(first..first + length), beside_panel));
        }
    }

    /// Adds the tasks that update some blocks of a group with panel `k`. The first block is updated by a task of its own. If it is panel k+1, this
    /// task also factors it, so that both run in one kernel queue. The other blocks come first, since a device needs less time to submit an update
    /// than to submit the many kernels of a panel. If the device has two kernel queues, both tasks run at the same time.
    fn update_blocks(&mut self, k: usize, blocks: Range<usize>, beside_panel: Option<PanelShape>) {
        let (first, others) = (blocks.start, blocks.start + 1..blocks.end);
        if !others.is_empty() {
            self.update("update", k, &others, beside_panel);
        }
        if !blocks.is_empty() {
            let is_panel = first == k + 1 && first < self.d.panels.len();
            self.update(if is_panel { "panel" } else { "update" }, k, &(first..first + 1), None);
            if is_panel {
                self.factor(first);
            }
        }
    }

    /// Adds a task with the name `what` that updates some blocks of a group with panel `k`.
    fn update(&mut self, what: &'static str, k: usize, blocks: &Range<usize>, beside_panel: Option<PanelShape>) {
        let (device, row) = (self.d.owner(blocks.start), self.d.panels[k].start);
        self.begin(what, row..self.d.p.m, blocks);
        let l = self.held.panels[k][device].unwrap_or_else(|| self.rows_from(row, &(k..k + 1)));
        let (panel, strip) = (Panel { l, ipiv: self.held.pivots[k][device], first_row: row }, self.rows_from(row, blocks));
        update_strip(self.plan, self.d.p, &panel, strip, beside_panel);
    }

    /// Adds the tasks that update the groups beyond the next one with the panels of a group, exchange rows on the left of the panels, and store the
    /// rows beside them.
    fn finish(&mut self, group: usize) {
        (group + 2..self.d.groups.len()).for_each(|other| self.update_group(group, other));
        if self.d.p.pivoting {
            (0..=group).for_each(|left| self.exchange_left(group, left));
        }
        let late = self.d.stores_late(group);
        self.d.devices().filter(|&device| late != Some(device)).for_each(|device| self.store_rows(group, device));
    }

    /// Adds the task that exchanges rows of the columns of group `left` on the left of the panels of a group.
    fn exchange_left(&mut self, group: usize, left: usize) {
        let Group { device, blocks } = self.d.groups[left].clone();
        let panels: Vec<_> = self.d.panels_of(group).filter(|&k| k > blocks.start).collect();
        let [Some(&first), Some(&last)] = [panels.first(), panels.last()] else { return };
        self.begin("exchange", self.d.panels[first].start..self.d.p.m, &(blocks.start..blocks.end.min(last)));
        for k in panels {
            let (row, beside_panel) = (self.d.panels[k].start, self.d.next_panel_on(device, group));
            let strip = self.rows_from(row, &(blocks.start..blocks.end.min(k)));
            exchange(self.plan, row, strip, self.held.pivots[k][device], beside_panel);
        }
    }

    /// Adds the tasks of a device that store the rows beside the panels of a group. There is a task for each panel and each of the device's
    /// groups, so that a lane can send a panel between two of them.
    fn store_rows(&mut self, group: usize, device: usize) {
        for k in self.d.panels_of(group) {
            for own in self.d.groups_of[device].clone() {
                let (rows, blocks) = (self.d.rows_beside(k), self.d.groups[own].blocks.clone());
                self.begin("store", rows.clone(), &blocks);
                let all = self.rows_from(rows.start, &blocks);
                self.plan.st(all.sub(0, 0, rows.len(), all.cols()));
            }
        }
    }
}
