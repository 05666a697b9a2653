//! The commands of a plan (`Ld`, `St`, `Exec`, `Mark`, `Bar`), and the memory that each command reads and writes.

use enum_dispatch::enum_dispatch;

use crate::enums::Accuracy;
use crate::instruction::{Access, Instruction, Reg, Region, Tile};
use crate::plan::{MatrixId, Registers};

/// Index of a command in its plan.
pub type CommandId = u32;

/// The kind of a device's queue. The queues of a device that have different kinds work in parallel. A queue of kernels executes
/// its commands in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Queue of `Ld` commands, which copy host memory into registers.
    Ld,
    /// Queue of `Exec` commands, which run kernels.
    Exec,
    /// Queue of `St` commands, which copy registers into host memory.
    St,
}

impl Queue {
    /// All kinds of queue.
    pub const ALL: [Queue; 3] = [Queue::Ld, Queue::Exec, Queue::St];
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Queue::Ld => "LD",
            Queue::Exec => "EXEC",
            Queue::St => "ST",
        })
    }
}

/// Memory through which one command of a plan can depend on another command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A register of the plan.
    Register(Reg),
    /// A matrix in the caller's memory or in the memory of a device.
    Matrix(MatrixId),
}

/// The memory that a command reads and writes. The search for dependencies between commands calls the methods of the trait
/// `Effects`.
///
/// A register with a window *stands for* a rectangle of a matrix: a command that reads or writes the register counts as a command
/// that reads or writes the rectangle. A device that can access the matrix directly may therefore work on the rectangle in place,
/// and may run its commands in any order that the dependencies allow. Only a command that transfers a tile of a *held* register counts as a
/// command that reads or writes the rectangle of the tile. A device may work in place on a held register if no other register of the plan stands
/// for the same elements.
#[enum_dispatch]
pub trait Effects {
    /// The kind of queue that executes the command.
    fn queue(&self) -> Queue;
    /// Calls `visit` for each rectangle of memory that the command reads or writes.
    fn effects(&self, registers: &Registers, visit: &mut dyn FnMut(Space, Region, Access));
    /// Calls `visit` for each register that is an operand of the command, in the order of the operands.
    fn registers(&self, visit: &mut dyn FnMut(Reg));
}

/// A command that loads a tile of a register: it copies the rectangle of a matrix for which the tile stands into the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ld {
    /// The tile that is loaded: the whole register, or a tile of a held register.
    pub tile: Tile,
}

/// A command that stores a tile of a register: it copies the tile into the rectangle of a matrix for which the tile stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct St {
    /// The tile that is stored: the whole register, or a tile of a held register.
    pub tile: Tile,
}

/// A command that runs an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exec {
    /// The instruction to run.
    pub instruction: Instruction,
    /// The conditions of the run.
    pub conditions: Conditions,
}

/// The conditions under which a device runs an instruction. The plan states them for each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The panel of LU that another kernel queue of the device factors while the instruction runs. The kernels of the instruction should leave
    /// compute units free for the kernels of the panel. `None` if no queue factors a panel.
    pub beside_panel: Option<PanelShape>,
    /// The error bound that each product A·B which the device computes for the instruction must satisfy.
    pub accuracy: Accuracy,
}

/// The shape of a panel of LU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PanelShape {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
}

/// An empty command that completes when all preceding commands of its task in its queue have completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The queue that contains the `Mark`.
    pub queue: Queue,
}

/// An empty command that completes when all preceding commands of its task have completed, in all queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The queue that contains the `Bar`. The commands of this queue that follow the `Bar` wait for the `Bar`.
    pub queue: Queue,
}

/// One command of a plan.
#[enum_dispatch(Effects)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Loads a tile from the rectangle of a matrix for which the tile stands.
    Ld(Ld),
    /// Stores a tile into the rectangle of a matrix for which the tile stands.
    St(St),
    /// Runs an instruction.
    Exec(Exec),
    /// An empty command that marks a point in a queue.
    Mark(Mark),
    /// An empty command that waits for all preceding commands of its task.
    Bar(Bar),
}

/// Calls `visit` for the two effects of a transfer: `access[0]` is the access to the rectangle of the matrix, and `access[1]` is
/// the access to the tile.
fn transfer(registers: &Registers, tile: Tile, access: [Access; 2], visit: &mut dyn FnMut(Space, Region, Access)) {
    let window = registers[tile.reg].window.expect("only a register with a window is transferred");
    visit(Space::Matrix(window.matrix), tile.region.shifted(window.row, window.col), access[0]);
    visit(Space::Register(tile.reg), tile.region, access[1]);
}

impl Effects for Ld {
    fn queue(&self) -> Queue {
        Queue::Ld
    }
    fn effects(&self, registers: &Registers, visit: &mut dyn FnMut(Space, Region, Access)) {
        transfer(registers, self.tile, [Access::Read, Access::Write], visit);
    }
    fn registers(&self, visit: &mut dyn FnMut(Reg)) {
        visit(self.tile.reg);
    }
}

impl Effects for St {
    fn queue(&self) -> Queue {
        Queue::St
    }
    fn effects(&self, registers: &Registers, visit: &mut dyn FnMut(Space, Region, Access)) {
        transfer(registers, self.tile, [Access::Write, Access::Read], visit);
    }
    fn registers(&self, visit: &mut dyn FnMut(Reg)) {
        visit(self.tile.reg);
    }
}

impl Effects for Exec {
    fn queue(&self) -> Queue {
        Queue::Exec
    }
    fn effects(&self, registers: &Registers, visit: &mut dyn FnMut(Space, Region, Access)) {
        self.instruction.operands(|tile, access| {
            let info = &registers[tile.reg];
            // a kernel accesses a held register only, and transfers copy between the register and the matrix
            if let (Some(window), None) = (info.window, info.holder) {
                visit(Space::Matrix(window.matrix), tile.region.shifted(window.row, window.col), access);
            }
            visit(Space::Register(tile.reg), tile.region, access);
        });
    }
    fn registers(&self, visit: &mut dyn FnMut(Reg)) {
        self.instruction.operands(|tile, _| visit(tile.reg));
    }
}

impl Effects for Mark {
    fn queue(&self) -> Queue {
        self.queue
    }
    fn effects(&self, _: &Registers, _: &mut dyn FnMut(Space, Region, Access)) {}
    fn registers(&self, _: &mut dyn FnMut(Reg)) {}
}

impl Effects for Bar {
    fn queue(&self) -> Queue {
        self.queue
    }
    fn effects(&self, _: &Registers, _: &mut dyn FnMut(Space, Region, Access)) {}
    fn registers(&self, _: &mut dyn FnMut(Reg)) {}
}

/// Calls `visit` once for each register of a command, even if several operands are in one register.
pub fn distinct_registers(command: &Command, mut visit: impl FnMut(Reg)) {
    let (mut seen, mut count) = ([Reg(0); 3], 0);
    command.registers(&mut |reg| {
        if !seen[..count].contains(&reg) {
            seen[count] = reg;
            count += 1;
            visit(reg);
        }
    });
}
