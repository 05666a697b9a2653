//! A plan: the commands of one call of a routine, on virtual registers. A plan can be printed.
//!
//! A plan groups its commands into *tasks*. One device executes a task from beginning to end, and no other task uses the task's registers.
//! Tasks exchange data through the matrices of the call, so that any device can execute any task, or through *held* registers. A held
//! register belongs to one device, and all tasks that use the register run on this device. In the order of the plan, the commands form a
//! correct sequential program. The schedule derives the dependencies between the commands from the order of the plan. The dispatcher then
//! chooses the queue, the device and the physical memory of each command.

mod stale;

use std::fmt::{self, Write as _};
use std::ops::{Index, Range};

use crate::command::{Bar, Command, CommandId, Exec, Ld, Mark, PanelShape, Queue, St};
use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
use crate::instruction::{Instruction, Reg, Region, Swaps, Tile};
use crate::scalar::{DType, Element};
use crate::value::Value;

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
        Plan { operation, dtype, matrices: Vec::new(), registers: Registers::default(), tasks: Vec::new(), commands: Vec::new() }
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
        self.begin_task(what, region, None);
    }

    /// Begins a task that uses held registers of the device with the index `device`. The task has kernels only, loads only or stores only. If a
    /// plan has such a task, all its tasks are such tasks.
    pub fn task_on(&mut self, device: usize, what: &'static str, region: Region) {
        self.begin_task(what, region, Some(device));
    }

    fn begin_task(&mut self, what: &'static str, region: Region, device: Option<usize>) {
        let (command, register) = (id(self.commands.len()), id(self.registers.len()));
        self.tasks.push(Task { label: Label { what, region }, commands: command..command, registers: register..register, device });
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
        self.push(Exec { instruction, beside_panel }.into());
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

    /// The matrix and the rectangle for which a tile stands, as text.
    fn algebra(&self, tile: Tile) -> String {
        match self.registers[tile.reg].window {
            None => format!("V{}", tile.region),
            Some(w) => format!("{}{}", self.matrices[w.matrix.0 as usize].name, tile.region.shifted(w.row, w.col)),
        }
    }

    /// A tile as text: the name of its register, and its rectangle unless the tile is the whole register.
    fn part(&self, tile: Tile) -> String {
        let info = &self.registers[tile.reg];
        if tile.region == Region::whole(info.rows, info.cols) {
            tile.reg.to_string()
        } else {
            format!("{}{}", tile.reg, tile.region)
        }
    }

    /// One command as text: the operation on registers, followed by the operation on matrices as a formula.
    #[must_use]
    pub fn describe(&self, command: CommandId) -> String {
        match &self.commands[command as usize] {
            Command::Ld(Ld { tile }) => format!("LD   {:<19}  {} ← {}", tile.reg, self.part(*tile), self.algebra(*tile)),
            Command::St(St { tile }) => format!("ST   {:<19}  {} ← {}", tile.reg, self.algebra(*tile), self.part(*tile)),
            Command::Mark(Mark { queue }) => format!("MARK {queue}"),
            Command::Bar(Bar { queue }) => format!("BAR  {queue}"),
            Command::Exec(Exec { instruction, beside_panel }) => {
                let mut operands = String::new();
                instruction.operands(|tile, _| write!(operands, " {}", tile.reg).expect("writing to a string"));
                let call = format!("{}{operands}", instruction.name());
                let beside = beside_panel
                    .map_or_else(String::new, |PanelShape { rows, cols }| format!(", beside a panel of {rows} × {cols} elements"));
                format!("EXEC {call:<19}  {}{beside}", formula(&instruction.map(|tile| self.algebra(tile))))
            }
        }
    }
}

fn op_name(op: Op, name: &str) -> String {
    match op {
        Op::NoTrans => name.to_owned(),
        Op::Trans => format!("{name}ᵀ"),
        Op::ConjTrans => format!("{name}ᴴ"),
        Op::Conj => format!("conj({name})"),
    }
}

/// The scalar of a term as text: an empty text for 1, a minus sign for −1, and otherwise the number and a multiplication sign.
fn factor(value: Value) -> String {
    if value.is_one() {
        String::new()
    } else if value.equals(-1.0) {
        "−".to_owned()
    } else {
        format!("{value}·")
    }
}

/// The term `β·C` of the instruction `Gemm` as text. The text is empty if β is 0.
fn old(beta: Value, c: &str) -> String {
    if beta.is_zero() { String::new() } else { format!(" + {}{c}", factor(beta)) }
}

/// The triangle of a matrix as text: `L(A)` or `U(A)`, or `L₁(A)` or `U₁(A)` if the diagonal consists of ones.
fn triangle(uplo: Uplo, diag: Diag, a: &str) -> String {
    let letter = if uplo == Uplo::Lower { "L" } else { "U" };
    let unit = if diag == Diag::Unit { "₁" } else { "" };
    format!("{letter}{unit}({a})")
}

/// The text of an instruction as a formula.
fn formula(instruction: &Instruction<String>) -> String {
    match instruction {
        Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c } => {
            format!("{c} ← {}{}·{}{}", factor(*alpha), op_name(*op_a, a), op_name(*op_b, b), old(*beta, c))
        }
        Instruction::Trsm { mode, side, uplo, op, diag, alpha, a, b } => {
            let inverse = format!("{}⁻¹", op_name(*op, &triangle(*uplo, *diag, a)));
            let way = if *mode == TrsmMode::Inverted { " in the mode inverted" } else { "" };
            match side {
                Side::Left => format!("{b} ← {}{inverse}·{b}{way}", factor(*alpha)),
                Side::Right => format!("{b} ← {}{b}·{inverse}{way}", factor(*alpha)),
            }
        }
        Instruction::Getrf { a, ipiv, pivoting: true, .. } => format!("P·L·U = {a}, P → {ipiv}"),
        Instruction::Getrf { a, .. } => format!("L·U = {a}"),
        Instruction::Laswp { swaps: Swaps { side, forward, .. }, a, ipiv } => match (side, forward) {
            (Side::Left, true) => format!("{a} ← P({ipiv})⁻¹·{a}"),
            (Side::Left, false) => format!("{a} ← P({ipiv})·{a}"),
            (Side::Right, true) => format!("{a} ← {a}·P({ipiv})"),
            (Side::Right, false) => format!("{a} ← {a}·P({ipiv})⁻¹"),
        },
        Instruction::Copy { a, b } => format!("{b} ← {a}"),
        Instruction::Scale { beta, c } if beta.is_zero() => format!("{c} ← 0"),
        Instruction::Scale { beta, c } => format!("{c} ← {}{c}", factor(*beta)),
        // a batched instruction prints the number of matrices and the formula of one matrix
        Instruction::GemmBatched { count, alpha, op_a, a, op_b, b, beta, c } => {
            let [a, b, c] = [a, b, c].map(Clone::clone);
            format!("{count} × ({})", formula(&Instruction::Gemm { alpha: *alpha, op_a: *op_a, a, op_b: *op_b, b, beta: *beta, c }))
        }
        Instruction::GetrfBatched { count, pivoting: true, a, ipiv, .. } => format!("{count} × (P·L·U = {a}, P → {ipiv})"),
        Instruction::GetrfBatched { count, a, .. } => format!("{count} × (L·U = {a})"),
        Instruction::GetrsBatched { count, op, lu, ipiv, b } => {
            let factors = format!("(P({ipiv})·L₁({lu})·U({lu}))");
            format!("{count} × ({b} ← {}⁻¹·{b})", op_name(*op, &factors))
        }
        Instruction::ZeroPivots { count, lu, info } => format!("{count} × ({info} ← first zero of diag({lu}))"),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {} {}: {} tasks, {} commands", self.operation, self.dtype, self.tasks.len(), self.commands.len())?;
        for m in &self.matrices {
            let access = if m.written { "read and written" } else { "read" };
            writeln!(f, "matrix {:<5} {}×{} {} {}, {access}", m.name, m.rows, m.cols, m.dtype, m.layout)?;
        }
        for reg in self.registers.held() {
            let info = &self.registers[reg];
            let whole = Tile { reg, region: Region::whole(info.rows, info.cols) };
            let holder = info.holder.unwrap_or_default();
            writeln!(f, "{reg} stands for {}, held by device {holder}", self.algebra(whole))?;
        }
        for (i, task) in self.tasks.iter().enumerate() {
            writeln!(f, "task {i}: {}", task.label)?;
            for command in task.commands.clone() {
                writeln!(f, "{command:>6}  {}", self.describe(command))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
