//! A check of plans: within a task, no command may read outdated elements through a register.
//!
//! If two registers of a task stand for overlapping rectangles, a device that works in place sees in one register what a command
//! wrote to the other register. A device that works on copies sees only the elements that it loaded. A plan that reads outdated
//! elements therefore gives different results in place and on copies.

use crate::command::{Command, CommandId};
use crate::instruction::{Access, Reg, Region};
use crate::plan::{MatrixId, Plan, Task};

/// A rectangle of a matrix.
type Place = (MatrixId, Region);

/// A rectangle that a kernel wrote through a register.
struct Written {
    reg: Reg,
    place: Place,
    /// The last command that wrote the rectangle.
    at: CommandId,
    /// Whether the register has been stored since that command.
    stored: bool,
}

impl Written {
    /// Whether the rectangle `region` of register `reg` overlaps this rectangle of another register.
    fn reaches(&self, reg: Reg, (matrix, region): Place) -> bool {
        self.reg != reg && self.place.0 == matrix && self.place.1.overlaps(&region)
    }
}

impl Plan {
    /// The first command that accesses outdated elements. An `LD` command accesses outdated elements if another register wrote to
    /// the window and has not been stored. Any other command accesses outdated elements if it uses a register that was loaded
    /// before another register wrote to its window.
    #[must_use]
    pub fn stale_read(&self) -> Option<CommandId> {
        self.tasks().iter().find_map(|task| self.stale_read_of(task))
    }

    fn stale_read_of(&self, task: &Task) -> Option<CommandId> {
        let mut written: Vec<Written> = Vec::new();
        // for each register of the task, the command that loaded it
        let mut loads = vec![task.commands.start; task.registers.len()];
        let index = |reg: Reg| (reg.0 - task.registers.start) as usize;
        task.commands.clone().find(|&id| match &self.commands()[id as usize] {
            Command::Ld(ld) => {
                loads[index(ld.reg)] = id;
                let window = self.window_of(ld.reg);
                window.is_some_and(|window| written.iter().any(|w| !w.stored && w.reaches(ld.reg, window)))
            }
            Command::St(st) => {
                written.iter_mut().filter(|w| w.reg == st.reg).for_each(|w| w.stored = true);
                let (window, since) = (self.window_of(st.reg), loads[index(st.reg)]);
                window.is_some_and(|window| written.iter().any(|w| w.at > since && w.reaches(st.reg, window)))
            }
            Command::Exec(exec) => {
                let (mut is_stale, mut writes) = (false, Vec::new());
                exec.instruction.operands(|tile, access| {
                    let info = &self.registers()[tile.reg];
                    let Some(window) = info.window else { return };
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

    /// The rectangle for which a register stands. `None` for scratch memory.
    fn window_of(&self, reg: Reg) -> Option<Place> {
        let info = &self.registers()[reg];
        info.window.map(|window| (window.matrix, Region::whole(info.rows, info.cols).shifted(window.row, window.col)))
    }
}
