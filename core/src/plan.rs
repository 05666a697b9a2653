//! A plan: the commands of one call of a routine, on virtual registers. A plan can be printed.
//!
//! A plan groups its commands into *tasks*. One device executes a task from beginning to end, and no other task uses the task's registers.
//! Tasks exchange data through the matrices of the call, so that any device can execute any task, or through *held* registers. A held
//! register belongs to one device, and all tasks that use the register run on this device. In the order of the plan, the commands form a
//! correct sequential program. The schedule derives the dependencies between the commands from the order of the plan. The dispatcher then
//! chooses the queue, the device and the physical memory of each command.

mod print;
mod stale;

use std::fmt;
use std::ops::{Index, Range};

use crate::command::{Bar, Command, CommandId, Conditions, Exec, Ld, Mark, PanelShape, Queue, St};
use crate::enums::{Accuracy, Layout};
use crate::instruction::{Instruction, Reg, Region, Tile};
use crate::scalar::{DType, Element};

/// Index of a matrix in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixId(pub u32);

/// A matrix that a plan reads or writes. The engine assigns memory to the matrix when the plan runs.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixInfo {
    /// Name of the matrix in printed plans.
    pub name: &'static str,
    /// Number of rows of the matrix.
    pub rows: usize,
    /// Number of columns of the matrix.
    pub cols: usize,
    /// Element type of the matrix.
    pub dtype: DType,
    /// Layout of the matrix in the caller's memory. Registers are always column-major.
    pub layout: Layout,
    /// Whether the plan may write the matrix.
    pub written: bool,
}

/// The matrix and the first element of the rectangle for which a register stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The matrix that contains the rectangle for which the register stands.
    pub matrix: MatrixId,
    /// First row of the rectangle in the matrix.
    pub row: usize,
    /// First column of the rectangle in the matrix.
    pub col: usize,
}

/// The size, the element type and the window of a virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Number of rows of the register. If the register holds a copy of its rectangle, the number of rows is also the leading
    /// dimension of the copy.
    pub rows: usize,
    /// Number of columns of the register.
    pub cols: usize,
    /// Element type of the register.
    pub dtype: DType,
    /// The position of the rectangle of a matrix for which the register stands. `None` if the register is scratch memory.
    pub window: Option<Window>,
    /// Index of the device that holds the register. `None` if the register belongs to a task.
    pub holder: Option<usize>,
    /// Whether the register has memory from the start of the run on, before the first command that uses it.
    pub from_start: bool,
}

impl RegisterInfo {
    /// Size of all elements of the register together, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows * self.cols * self.dtype.size()
    }
}

/// The registers of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registers {
    /// The held registers come first.
    infos: Vec<RegisterInfo>,
    /// Number of held registers.
    held: u32,
    /// Size in bytes of the largest held register, and of the largest register of a task.
    largest: [usize; 2],
}

impl Registers {
    /// Number of registers of the plan.
    #[must_use]
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// The held registers of the plan.
    pub fn held(&self) -> impl Iterator<Item = Reg> + use<> {
        (0..self.held).map(Reg)
    }

    /// Number of bytes that the register `reg` occupies in the memory of a device that copies. The size of a held register of at least a
    /// sixteenth of the largest held register is rounded up to a multiple of this sixteenth. The sizes of smaller held registers, and of
    /// registers of tasks, are rounded up to the size of the largest such register divided by a power of two. Registers of similar sizes occupy the same number of bytes, for example the tiles at the edge of a matrix, or the
    /// shrinking tiles of a factorisation. Registers that occupy the same number of bytes can use the same device memory one after another,
    /// so that the engine allocates this memory only once.
    #[must_use]
    pub fn footprint(&self, reg: Reg) -> usize {
        let (bytes, [largest_held, largest]) = (self[reg].bytes(), self.largest);
        if self[reg].holder.is_some() { held_footprint(bytes, largest_held) } else { footprint(bytes, largest) }
    }

    /// Whether the plan has no registers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }
}

/// The smallest number of the sequence `largest`, `largest / 2`, `largest / 4`, … that is not below `size`.
pub(crate) fn footprint(size: usize, largest: usize) -> usize {
    largest.checked_div(size).map_or(0, |times| largest >> times.ilog2())
}

/// The size that a held register of `size` bytes occupies, if the largest held register has `largest` bytes. Held registers may take most of
/// the memory of a device, so that a size is rounded up to a power of two only if it is small.
pub(crate) fn held_footprint(size: usize, largest: usize) -> usize {
    let step = largest.div_ceil(16);
    if size < step { footprint(size, largest) } else { size.div_ceil(step.max(1)).saturating_mul(step).min(largest) }
}

impl Index<Reg> for Registers {
    type Output = RegisterInfo;
    fn index(&self, reg: Reg) -> &RegisterInfo {
        &self.infos[reg.0 as usize]
    }
}

/// A group of commands that one device executes from beginning to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Name of the task in printed plans. The name states what the task computes.
    pub label: Label,
    /// Indices of the commands of the task.
    pub commands: Range<CommandId>,
    /// Indices of the registers of the task, which do not include held registers.
    pub registers: Range<u32>,
    /// Index of the device that must execute the task. `None` if any device can execute the task.
    pub device: Option<usize>,
    /// Index of the device that should execute the task. An idle device may take the task from its owner. `None` if any device may execute
    /// the task, or if `device` names the device that must.
    pub owner: Option<usize>,
}

/// The name of a task: a word and a rectangle of the result. The name becomes text only when the plan is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// A word that tells what the task computes.
    pub what: &'static str,
    /// The rectangle of the result that the task computes.
    pub region: Region,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.region)
    }
}

/// The commands of one call of a routine, grouped into tasks.
#[derive(Clone, Debug)]
pub struct Plan {
    operation: &'static str,
    dtype: DType,
    accuracy: Accuracy,
    matrices: Vec<MatrixInfo>,
    registers: Registers,
    tasks: Vec<Task>,
    commands: Vec<Command>,
}

fn id(len: usize) -> u32 {
    u32::try_from(len).expect("a plan holds fewer than 2^32 commands")
}

impl Plan {
    /// An empty plan of `operation` on matrices of `dtype`.
    #[must_use]
    pub fn new(operation: &'static str, dtype: DType) -> Self {
        let (matrices, tasks, commands) = (Vec::new(), Vec::new(), Vec::new());
        Plan { operation, dtype, accuracy: Accuracy::default(), matrices, registers: Registers::default(), tasks, commands }
    }

    /// Sets the error bound that devices must keep in each product of the plan. The default is [`Accuracy::Componentwise`].
    #[must_use]
    pub fn with_accuracy(self, accuracy: Accuracy) -> Self {
        Plan { accuracy, ..self }
    }

    /// Declares a matrix that the plan only reads. The elements of the matrix have the plan's element type.
    pub fn input(&mut self, name: &'static str, (rows, cols): (usize, usize), layout: Layout) -> MatrixId {
        self.declare(MatrixInfo { name, rows, cols, dtype: self.dtype, layout, written: false })
    }

    /// Declares a matrix that the plan writes. The elements of the matrix have the plan's element type.
    pub fn output(&mut self, name: &'static str, (rows, cols): (usize, usize), layout: Layout) -> MatrixId {
        self.declare(MatrixInfo { name, rows, cols, dtype: self.dtype, layout, written: true })
    }

    /// Declares a matrix of one column whose elements are row indices of type `i32`.
    pub fn indices(&mut self, name: &'static str, rows: usize, written: bool) -> MatrixId {
        self.declare(MatrixInfo { name, rows, cols: 1, dtype: i32::DTYPE, layout: Layout::ColMajor, written })
    }

    fn declare(&mut self, info: MatrixInfo) -> MatrixId {
        self.matrices.push(info);
        MatrixId(id(self.matrices.len() - 1))
    }

    /// Begins a task. The commands and registers that are added before the next call of `task` belong to this task.
    pub fn task(&mut self, what: &'static str, region: Region) {
        self.task_for(None, what, region);
    }

    /// Begins a task that the device with the index `owner` should run, if an owner is given. Another device may take the task from its owner
    /// when the other device is idle. Without an owner, any device may take the task.
    pub fn task_for(&mut self, owner: Option<usize>, what: &'static str, region: Region) {
        self.begin_task(what, region, None, owner);
    }

    /// Begins a task that uses held registers of the device with the index `device`. The task has kernels only, loads only or stores only. If a
    /// plan has such a task, all its tasks are such tasks.
    pub fn task_on(&mut self, device: usize, what: &'static str, region: Region) {
        self.begin_task(what, region, Some(device), None);
    }

    /// Gives the tasks and the held registers of the device with the index `i` to the device with the index `of(i)`, which must be the index of a
    /// device of the schedule.
    pub fn assign(&mut self, of: impl Fn(usize) -> usize) {
        self.tasks.iter_mut().for_each(|task| (task.device, task.owner) = (task.device.map(&of), task.owner.map(&of)));
        self.registers.infos.iter_mut().for_each(|info| info.holder = info.holder.map(&of));
    }

    fn begin_task(&mut self, what: &'static str, region: Region, device: Option<usize>, owner: Option<usize>) {
        let (command, register) = (id(self.commands.len()), id(self.registers.len()));
        let (commands, registers) = (command..command, register..register);
        self.tasks.push(Task { label: Label { what, region }, commands, registers, device, owner });
    }

    /// Adds a register that [`Self::hold`] would add, and that has memory from the start of the run on. If a device lacks the memory, the
    /// run ends before it writes any output.
    ///
    /// # Panics
    /// Panics if a task has begun.
    pub fn hold_from_start(&mut self, device: usize, matrix: MatrixId, rows: &Range<usize>, cols: &Range<usize>) -> Tile {
        let tile = self.hold(device, matrix, rows, cols);
        self.registers.infos[tile.reg.0 as usize].from_start = true;
        tile
    }

    /// Adds a register that the device with the index `device` holds from the first task that uses the register to the last one. The register
    /// stands for a rectangle of a matrix. `LD` commands load tiles of the register, and `ST` commands store tiles of it.
    ///
    /// # Panics
    /// Panics if a task has begun.
    pub fn hold(&mut self, device: usize, matrix: MatrixId, rows: &Range<usize>, cols: &Range<usize>) -> Tile {
        assert!(self.tasks.is_empty(), "held registers come before tasks");
        let info = RegisterInfo { holder: Some(device), ..self.info_of_window(matrix, rows, cols) };
        self.registers.held += 1;
        self.registers.largest[0] = self.registers.largest[0].max(info.bytes());
        self.registers.infos.push(info);
        Tile { reg: Reg(self.registers.held - 1), region: Region::whole(info.rows, info.cols) }
    }

    fn register(&mut self, info: RegisterInfo) -> Tile {
        let reg = Reg(id(self.registers.len()));
        self.registers.largest[1] = self.registers.largest[1].max(info.bytes());
        self.registers.infos.push(info);
        self.tasks.last_mut().expect("a register belongs to a task").registers.end += 1;
        Tile { reg, region: Region::whole(info.rows, info.cols) }
    }

    /// Adds a register that stands for a rectangle of a matrix, without an `LD` command. The register of a result needs no `LD`
    /// command if the old elements of the result are not read.
    pub fn window(&mut self, matrix: MatrixId, rows: &Range<usize>, cols: &Range<usize>) -> Tile {
        self.register(self.info_of_window(matrix, rows, cols))
    }

    fn info_of_window(&self, matrix: MatrixId, rows: &Range<usize>, cols: &Range<usize>) -> RegisterInfo {
        let dtype = self.matrices[matrix.0 as usize].dtype;
        let window = Some(Window { matrix, row: rows.start, col: cols.start });
        RegisterInfo { rows: rows.len(), cols: cols.len(), dtype, window, holder: None, from_start: false }
    }

    /// Adds a register of scratch memory. No routine of this crate uses scratch memory in its plans at present.
    pub fn scratch(&mut self, rows: usize, cols: usize) -> Tile {
        self.register(RegisterInfo { rows, cols, dtype: self.dtype, window: None, holder: None, from_start: false })
    }

    fn push(&mut self, command: Command) {
        self.commands.push(command);
        self.tasks.last_mut().expect("a command belongs to a task").commands.end += 1;
    }

    /// Adds a register that stands for a rectangle of a matrix, and an `LD` command that loads the register.
    pub fn ld(&mut self, matrix: MatrixId, rows: &Range<usize>, cols: &Range<usize>) -> Tile {
        let tile = self.window(matrix, rows, cols);
        self.load(tile);
        tile
    }

    /// Adds an `LD` command that loads `tile` from the rectangle of a matrix for which the tile stands. `tile` is a whole register, or a
    /// tile of a held register.
    pub fn load(&mut self, tile: Tile) {
        self.push(Ld { tile }.into());
    }

    /// Adds an `ST` command that stores `tile` into the rectangle of a matrix for which the tile stands. `tile` is a whole register, or a
    /// tile of a held register.
    pub fn st(&mut self, tile: Tile) {
        self.push(St { tile }.into());
    }

    /// Adds an `EXEC` command that runs `instruction`.
    pub fn exec(&mut self, instruction: Instruction) {
        self.exec_beside_panel(instruction, None);
    }

    /// Adds an `EXEC` command that runs `instruction` while another kernel queue factors the panel `beside_panel`, if there is one.
    pub fn exec_beside_panel(&mut self, instruction: Instruction, beside_panel: Option<PanelShape>) {
        let conditions = Conditions { beside_panel, accuracy: self.accuracy };
        self.push(Exec { instruction, conditions }.into());
    }

    /// Adds a `MARK` command to `queue`: it completes when the preceding commands of the task in `queue` have completed.
    pub fn mark(&mut self, queue: Queue) {
        self.push(Mark { queue }.into());
    }

    /// Adds a `BAR` command: the commands of the task that follow in `queue` wait for all preceding commands of the task.
    pub fn bar(&mut self, queue: Queue) {
        self.push(Bar { queue }.into());
    }

    /// Name of the routine that the plan computes.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Element type of the matrices, except for matrices of row indices.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The matrices that the plan declares.
    #[must_use]
    pub fn matrices(&self) -> &[MatrixInfo] {
        &self.matrices
    }

    /// The registers of the plan.
    #[must_use]
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// The tasks of the plan, in an order in which they may run one after another.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The commands of the plan, in an order in which they may run one after another.
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Number of bytes of host memory that the plan occupies.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.commands.as_slice()) + size_of_val(self.registers.infos.as_slice()) + size_of_val(self.tasks.as_slice())
    }

    /// Size of all elements of a tile together, in bytes.
    #[must_use]
    pub fn bytes_of(&self, tile: Tile) -> usize {
        tile.rows() * tile.cols() * self.registers[tile.reg].dtype.size()
    }
}

#[cfg(test)]
mod tests;
