//! The commands of a plan, `Ld St Exec Mark Bar`, and the memory that they read and write.

use enum_dispatch::enum_dispatch;

use crate::instruction::{Access, Instruction, Reg, Region};
use crate::plan::{MatrixId, Registers};

/// Index of a command in its plan.
pub type CommandId = u32;

/// The three queues of a device. They work in parallel; EXEC works in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Host memory to registers.
    Ld,
    /// Kernels.
    Exec,
    /// Registers to host memory.
    St,
}

impl Queue {
    /// All queues of a device.
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

/// Memory through which commands can depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A register.
    Register(Reg),
    /// A matrix of the caller.
    Matrix(MatrixId),
}

/// The memory that a command reads and writes: the input of the dependency search.
///
/// A register with a window *stands for* its rectangle: a kernel that reads or
/// writes the register counts as one that reads or writes the rectangle. So a
/// device that reaches the matrix may work on it in place, without a copy, in
/// any order that the dependencies allow.
#[enum_dispatch]
pub trait Effects {
    /// The queue that carries the command out.
    fn queue(&self) -> Queue;
    /// Reports each piece of memory that is read or written.
    fn effects(&self, registers: &Registers, visit: &mut dyn FnMut(Space, Region, Access));
    /// Reports each register, in the order of the operands.
    fn registers(&self, visit: &mut dyn FnMut(Reg));
}

/// Loads a register from its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ld {
    /// The register.
    pub reg: Reg,
}

/// Stores a register into its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct St {
    /// The register.
    pub reg: Reg,
}

/// Runs an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exec {
    /// The instruction.
    pub instruction: Instruction,
}

/// An empty command that is done when all earlier commands of its queue and task are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The queue in whose order it stands.
    pub queue: Queue,
}

/// An empty command that waits for all earlier commands of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The queue that it holds up.
    pub queue: Queue,
}

/// One command of a plan.
#[enum_dispatch(Effects)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Loads a register from its window.
    Ld(Ld),
    /// Stores a register into its window.
    St(St),
    /// Runs an instruction.
    Exec(Exec),
    /// An empty command to depend on.
    Mark(Mark),
    /// An empty command that waits.
    Bar(Bar),
}

/// Effects of a transfer between a register and its window.
fn transfer(registers: &Registers, reg: Reg, access: [Access; 2], visit: &mut dyn FnMut(Space, Region, Access)) {
    let info = &registers[reg];
    let window = info.window.expect("only a register with a window is transferred");
    let whole = Region::whole(info.rows, info.cols);
    visit(Space::Matrix(window.matrix), whole.shifted(window.row, window.col), access[0]);
    visit(Space::Register(reg), whole, access[1]);
}

impl Effects for Ld {
    fn queue(&self) -> Queue {
        Queue::Ld
    }
    fn effects(&self, registers: &Registers, visit: &mut dyn FnMut(Space, Region, Access)) {
        transfer(registers, self.reg, [Access::Read, Access::Write], visit);
    }
    fn registers(&self, visit: &mut dyn FnMut(Reg)) {
        visit(self.reg);
    }
}

impl Effects for St {
    fn queue(&self) -> Queue {
        Queue::St
    }
    fn effects(&self, registers: &Registers, visit: &mut dyn FnMut(Space, Region, Access)) {
        transfer(registers, self.reg, [Access::Write, Access::Read], visit);
    }
    fn registers(&self, visit: &mut dyn FnMut(Reg)) {
        visit(self.reg);
    }
}

impl Effects for Exec {
    fn queue(&self) -> Queue {
        Queue::Exec
    }
    fn effects(&self, registers: &Registers, visit: &mut dyn FnMut(Space, Region, Access)) {
        self.instruction.operands(|tile, access| {
            if let Some(window) = registers[tile.reg].window {
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

/// Visits each register of a command once, also when operands share one.
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
