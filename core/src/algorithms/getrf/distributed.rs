//! LU of a matrix that several devices hold together: right-looking, with lookahead. The columns are divided into blocks of the width of a
//! panel, which the devices take in turn (1-D block-cyclic distribution).
//!
//! The device that holds panel k factors it and sends it with its pivots through host memory to the other devices. Each device then updates its
//! blocks on the right of the panel, and exchanges the rows of its blocks on the left. The device that holds panel k+1 factors it beside its
//! update. After step k the rows beside panel k are final, and are stored.

use std::ops::Range;

use super::{Matrices, Panel, Problem, exchange, of_update, region, update_strip};
use crate::blocking::partition;
use crate::command::PanelShape;
use crate::instruction::{Instruction, Tile};
use crate::plan::Plan;

/// The distribution of a matrix over devices.
struct Distribution<'a> {
    p: &'a Problem,
    devices: usize,
    panels: &'a [Range<usize>],
    /// The columns of all blocks: the panels, and the blocks on the right of the last panel.
    blocks: Vec<Range<usize>>,
}

/// The held registers of a factorisation.
struct Held {
    /// The blocks of A.
    blocks: Vec<Tile>,
    /// For each panel and each device, the part of A below and including the diagonal block of the panel. `None` if the device updates no
    /// block with the panel.
    panels: Vec<Vec<Option<Tile>>>,
    /// For each panel and each device, the pivots of the panel.
    pivots: Vec<Vec<Tile>>,
    /// For each device, the number of the first zero pivot.
    info: Vec<Tile>,
}

impl<'a> Distribution<'a> {
    fn new(p: &'a Problem, panels: &'a [Range<usize>], devices: usize) -> Self {
        let width = panels.iter().map(Range::len).max().unwrap_or(1);
        let beyond = partition(p.n - p.order(), width).into_iter().map(|cols| p.order() + cols.start..p.order() + cols.end);
        Distribution { p, devices, panels, blocks: panels.iter().cloned().chain(beyond).collect() }
    }

    /// The device that holds a block.
    fn owner(&self, block: usize) -> usize {
        block % self.devices
    }

    /// The blocks in a range that a device holds.
    fn own(&self, device: usize, blocks: Range<usize>) -> Vec<usize> {
        blocks.filter(|&block| self.owner(block) == device).collect()
    }

    /// The blocks that a device updates with panel `k`, without panel k+1.
    fn updated(&self, device: usize, k: usize) -> Vec<usize> {
        let first = if k + 1 < self.panels.len() { k + 2 } else { k + 1 };
        self.own(device, first..self.blocks.len())
    }

    /// Whether a device needs the elements of panel `k`, which another device factors.
    fn receives(&self, device: usize, k: usize) -> bool {
        device != self.owner(k) && !self.own(device, k + 1..self.blocks.len()).is_empty()
    }

    /// The devices other than `but`.
    fn others(&self, but: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.devices).filter(move |&device| device != but)
    }

    /// The rows that are final after step `k`. The last step also completes the rows below the last panel.
    fn final_rows(&self, k: usize) -> Range<usize> {
        let end = if k + 1 == self.panels.len() { self.p.m } else { self.panels[k].end };
        self.panels[k].start..end
    }
}

/// Adds the tasks of a factorisation by `devices` devices to a plan.
pub(super) fn emit(plan: &mut Plan, p: &Problem, m: Matrices, panels: &[Range<usize>], devices: usize) {
    let d = Distribution::new(p, panels, devices);
    let held = hold(plan, &d, m);
    load(plan, &d, &held);
    plan.task_on(d.owner(0), "panel", region(&(0..p.m), &panels[0]));
    factor(plan, &d, &held, 0);
    for k in 0..panels.len() {
        send(plan, &d, &held, k);
        (0..devices).for_each(|device| update(plan, &d, &held, k, device));
        if k + 1 < panels.len() {
            let (rows, next) = (panels[k + 1].start..p.m, &panels[k + 1]);
            plan.task_on(d.owner(k + 1), "panel", region(&rows, next));
            update_strip(plan, p, &panel_on(&d, &held, k, d.owner(k + 1)), below(&d, &held, k, k + 1), None);
            factor(plan, &d, &held, k + 1);
        }
        (0..devices).for_each(|device| store_rows(plan, &d, &held, k, device));
    }
}

/// Number of commands that [`emit`] adds.
pub(super) fn commands(p: &Problem, panels: &[Range<usize>], devices: usize) -> usize {
    let d = Distribution::new(p, panels, devices);
    let of_step = |k: usize| {
        let (receivers, has_next) = ((0..devices).filter(|&device| d.receives(device, k)).count(), k + 1 < panels.len());
        // the owner stores the pivots, `info`, and the panel if another device needs it
        let of_send = 2 + usize::from(receivers > 0);
        // the other devices load the pivots, and some of them the panel; the owner of the next panel loads `info`, unless it sent it
        let of_receive = devices - 1 + receivers + usize::from(has_next && d.owner(k + 1) != d.owner(k));
        let of_panel = if has_next { of_update(p, &panels[k]) + 1 } else { 0 };
        let updated = (0..devices).map(|device| d.updated(device, k).len()).sum::<usize>();
        let exchanged = if p.pivoting { k } else { 0 };
        let of_stores = d.blocks.len();
        of_send + of_receive + of_panel + updated * of_update(p, &panels[k]) + exchanged + of_stores
    };
    // `info` and the blocks are loaded, and the first panel is factored
    (0..panels.len()).map(of_step).fold(2 + d.blocks.len(), usize::saturating_add)
}

fn hold(plan: &mut Plan, d: &Distribution<'_>, m: Matrices) -> Held {
    let rows = 0..d.p.m;
    let blocks = d.blocks.iter().enumerate().map(|(j, cols)| plan.hold(d.owner(j), m.a, &rows, cols)).collect();
    let mut panels = Vec::new();
    for (k, cols) in d.panels.iter().enumerate() {
        let mut on = |device| d.receives(device, k).then(|| plan.hold(device, m.a, &(cols.start..d.p.m), cols));
        panels.push((0..d.devices).map(&mut on).collect());
    }
    let mut on_each = |matrix, rows: &Range<usize>| (0..d.devices).map(|device| plan.hold(device, matrix, rows, &(0..1))).collect();
    let pivots = d.panels.iter().map(|panel| on_each(m.ipiv, panel)).collect();
    Held { blocks, panels, pivots, info: on_each(m.info, &(0..1)) }
}

/// Adds the tasks that load the blocks of A and `info`.
fn load(plan: &mut Plan, d: &Distribution<'_>, held: &Held) {
    let first = d.owner(0);
    plan.task_on(first, "load info", held.info[first].region);
    plan.load(held.info[first]);
    for (j, cols) in d.blocks.iter().enumerate() {
        plan.task_on(d.owner(j), "load", region(&(0..d.p.m), cols));
        plan.load(held.blocks[j]);
    }
}

/// The part of a block from the first row of panel `k` on.
fn below(d: &Distribution<'_>, held: &Held, k: usize, block: usize) -> Tile {
    let row = d.panels[k].start;
    held.blocks[block].sub(row, 0, d.p.m - row, d.blocks[block].len())
}

/// Panel `k` in the memory of a device.
fn panel_on(d: &Distribution<'_>, held: &Held, k: usize, device: usize) -> Panel {
    let l = held.panels[k][device].unwrap_or_else(|| below(d, held, k, k));
    Panel { l, ipiv: held.pivots[k][device], first_row: d.panels[k].start }
}

/// Adds the command of the factorisation of panel `k`.
fn factor(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize) {
    let (device, first_row) = (d.owner(k), d.panels[k].start);
    let (a, ipiv, info) = (below(d, held, k, k), held.pivots[k][device], held.info[device]);
    plan.exec(Instruction::Getrf { pivoting: d.p.pivoting, first_row, a, ipiv, info });
}

/// Adds the tasks that move a factored panel through host memory to the other devices.
fn send(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize) {
    let (owner, place) = (d.owner(k), region(&(d.panels[k].start..d.p.m), &d.panels[k]));
    plan.task_on(owner, "send", place);
    plan.st(held.pivots[k][owner]);
    plan.st(held.info[owner]);
    if d.others(owner).any(|device| d.receives(device, k)) {
        plan.st(below(d, held, k, k));
    }
    for device in d.others(owner) {
        plan.task_on(device, "receive", place);
        plan.load(held.pivots[k][device]);
        if k + 1 < d.panels.len() && d.owner(k + 1) == device {
            plan.load(held.info[device]);
        }
        held.panels[k][device].into_iter().for_each(|panel| plan.load(panel));
    }
}

/// Adds the task of a device that updates its blocks with panel `k`, and exchanges the rows of its blocks on the left of the panel.
fn update(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize, device: usize) {
    let (right, left) = (d.updated(device, k), if d.p.pivoting { d.own(device, 0..k) } else { Vec::new() });
    let (Some(first), Some(last)) = (left.iter().chain(&right).next(), left.iter().chain(&right).next_back()) else { return };
    let rows = d.panels[k].start..d.p.m;
    plan.task_on(device, "update", region(&rows, &(d.blocks[*first].start..d.blocks[*last].end)));
    let next = d.panels.get(k + 1).filter(|_| d.owner(k + 1) == device);
    let beside_panel = next.map(|next| PanelShape { rows: d.p.m - next.start, cols: next.len() });
    let panel = panel_on(d, held, k, device);
    right.iter().for_each(|&block| update_strip(plan, d.p, &panel, below(d, held, k, block), beside_panel));
    left.iter().for_each(|&block| exchange(plan, panel.first_row, below(d, held, k, block), panel.ipiv, beside_panel));
}

/// Adds the task of a device that stores the final rows of its blocks after step `k`.
fn store_rows(plan: &mut Plan, d: &Distribution<'_>, held: &Held, k: usize, device: usize) {
    let (rows, own) = (d.final_rows(k), d.own(device, 0..d.blocks.len()));
    let (Some(first), Some(last)) = (own.first(), own.last()) else { return };
    plan.task_on(device, "store", region(&rows, &(d.blocks[*first].start..d.blocks[*last].end)));
    own.iter().for_each(|&block| plan.st(held.blocks[block].sub(rows.start, 0, rows.len(), d.blocks[block].len())));
}
