//! A check of plans: no command of a task may read outdated elements of a matrix through a register.
//!
//! If two registers of a task stand for overlapping rectangles of a matrix, a write to one register changes the other register on
//! a device that works in place. On a device that copies, the write does not change the other register, which keeps the elements
//! that were loaded. A plan that reads outdated elements therefore gives different results on the two kinds of device. The check
//! does not cover held registers.

use crate::command::{Command, CommandId, Ld, St};
use crate::instruction::{Access, Reg, Region, Tile};
use crate::plan::{MatrixId, Plan, Task};

/// A rectangle of a matrix.
type Place = (MatrixId, Region);

/// A rectangle that a kernel wrote through a register.
struct Written {
    reg: Reg,
    place: Place,
    /// The last command that wrote the rectangle `place` through the register `reg`.
    at: CommandId,
    /// Whether the register `reg` has been stored after the command `at`.
    stored: bool,
}

impl Written {
    /// Whether a command that accesses `region` of `matrix` through the register `reg` accesses elements that were written
    /// through another register.
    fn reaches(&self, reg: Reg, (matrix, region): Place) -> bool {
        self.reg != reg && self.place.0 == matrix && self.place.1.overlaps(&region)
    }
}

impl Plan {
    /// The first command of the plan that accesses outdated elements. An `LD` command loads outdated elements if a preceding
    /// command wrote to the loaded rectangle through another register, and this other register has not been stored since. A
    /// command other than `LD` accesses outdated elements of a register if a command wrote these elements through another
    /// register after the accessed register had been loaded.
    #[must_use]
    pub fn stale_read(&self) -> Option<CommandId> {
        self.tasks().iter().find_map(|task| self.stale_read_of(task))
    }

    fn stale_read_of(&self, task: &Task) -> Option<CommandId> {
        let mut written: Vec<Written> = Vec::new();
        // for each register of the task, the last command that loaded the register
        let mut loads = vec![task.commands.start; task.registers.len()];
        let index = |reg: Reg| (reg.0 - task.registers.start) as usize;
        let is_held = |reg: Reg| self.registers()[reg].holder.is_some();
        task.commands.clone().find(|&id| match &self.commands()[id as usize] {
            Command::Ld(Ld { tile }) | Command::St(St { tile }) if is_held(tile.reg) => false,
            Command::Ld(Ld { tile: Tile { reg, .. } }) => {
                loads[index(*reg)] = id;
                let window = self.window_of(*reg);
                window.is_some_and(|window| written.iter().any(|w| !w.stored && w.reaches(*reg, window)))
            }
            Command::St(St { tile: Tile { reg, .. } }) => {
                written.iter_mut().filter(|w| w.reg == *reg).for_each(|w| w.stored = true);
                let (window, since) = (self.window_of(*reg), loads[index(*reg)]);
                window.is_some_and(|window| written.iter().any(|w| w.at > since && w.reaches(*reg, window)))
            }
            Command::Exec(exec) => {
                let (mut is_stale, mut writes) = (false, Vec::new());
                exec.instruction.operands(|tile, access| {
                    let info = &self.registers()[tile.reg];
                    let (Some(window), None) = (info.window, info.holder) else { return };
                    let place = (window.matrix, tile.region.shifted(window.row, window.col));
                    is_stale |= written.iter().any(|w| w.at > loads[index(tile.reg)] && w.reaches(tile.reg, place));
                    if access == Access::Write {
                        writes.push(Written { reg: tile.reg, place, at: id, stored: false });
                    }
                });
                written.retain(|w| !writes.iter().any(|new| (w.reg, w.place) == (new.reg, new.place)));
                written.extend(writes);
                is_stale
            }
            Command::Mark(_) | Command::Bar(_) => false,
        })
    }

    /// The matrix and the rectangle for which a register stands. `None` for a register of scratch memory.
    fn window_of(&self, reg: Reg) -> Option<Place> {
        let info = &self.registers()[reg];
        info.window.map(|window| (window.matrix, Region::whole(info.rows, info.cols).shifted(window.row, window.col)))
    }
}
