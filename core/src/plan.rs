//! A plan: the commands of one call over virtual registers, as a value that prints.
//!
//! Commands are grouped into *tasks*. A task is what one device carries out from
//! beginning to end; its registers are its own. Tasks talk through the matrices
//! only, so that each can be given to any device. In the order in which they
//! are written, the commands are a right sequential program; everything else
//! (queues, devices, physical memory) is found from it.

mod stale;

use std::fmt::{self, Write as _};
use std::ops::{Index, Range};

use crate::command::{Bar, Command, CommandId, Exec, Ld, Mark, Queue, St};
use crate::enums::{Diag, Layout, Op, Side, Uplo};
use crate::instruction::{Instruction, Reg, Region, Swaps, Tile};
use crate::scalar::{DType, Element};
use crate::value::Value;

/// Index of a matrix in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixId(pub u32);

/// A matrix that the plan reads or writes, bound to memory when it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixInfo {
    /// Name in print.
    pub name: &'static str,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Element type.
    pub dtype: DType,
    /// Layout in the caller's memory: registers are column-major always.
    pub layout: Layout,
    /// Whether the plan may write it.
    pub written: bool,
}

/// Where a register's rectangle begins in a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The matrix.
    pub matrix: MatrixId,
    /// First row.
    pub row: usize,
    /// First column.
    pub col: usize,
}

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Number of rows; also the stride of a copy.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Element type.
    pub dtype: DType,
    /// The rectangle it stands for; none for scratch memory.
    pub window: Option<Window>,
}

impl RegisterInfo {
    /// Bytes of its elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows * self.cols * self.dtype.size()
    }
}

/// The registers of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registers {
    infos: Vec<RegisterInfo>,
    /// Bytes of the largest.
    largest: usize,
}

impl Registers {
    /// Number of registers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// Bytes of device memory that a copy takes: the largest register's, or a half
    /// of that, a quarter … Registers of nearly the same size, as the tiles at the
    /// edge or those of a factorisation that shrinks, then use the same memory in
    /// turn, and a device that has granted it once is not asked again.
    #[must_use]
    pub fn footprint(&self, reg: Reg) -> usize {
        footprint(self[reg].bytes(), self.largest)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }
}

/// The largest size, or a half of it, a quarter …: the least that holds `size`.
pub(crate) fn footprint(size: usize, largest: usize) -> usize {
    largest.checked_div(size).map_or(0, |times| largest >> times.ilog2())
}

impl Index<Reg> for Registers {
    type Output = RegisterInfo;
    fn index(&self, reg: Reg) -> &RegisterInfo {
        &self.infos[reg.0 as usize]
    }
}

/// What one device carries out from beginning to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Name in print: what it computes.
    pub label: Label,
    /// Its commands.
    pub commands: Range<CommandId>,
    /// Its registers.
    pub registers: Range<u32>,
}

/// The name of a task: a word and a rectangle, formatted only when printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// What is done.
    pub what: &'static str,
    /// Where.
    pub region: Region,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.region)
    }
}

/// The commands of one call.
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

    /// Declares a matrix of scalars that is only read.
    pub fn input(&mut self, name: &'static str, (rows, cols): (usize, usize), layout: Layout) -> MatrixId {
        self.declare(MatrixInfo { name, rows, cols, dtype: self.dtype, layout, written: false })
    }

    /// Declares a matrix of scalars that is written.
    pub fn output(&mut self, name: &'static str, (rows, cols): (usize, usize), layout: Layout) -> MatrixId {
        self.declare(MatrixInfo { name, rows, cols, dtype: self.dtype, layout, written: true })
    }

    /// Declares a column of row indices.
    pub fn indices(&mut self, name: &'static str, rows: usize, written: bool) -> MatrixId {
        self.declare(MatrixInfo { name, rows, cols: 1, dtype: i32::DTYPE, layout: Layout::ColMajor, written })
    }

    fn declare(&mut self, info: MatrixInfo) -> MatrixId {
        self.matrices.push(info);
        MatrixId(id(self.matrices.len() - 1))
    }

    /// Begins a task: following commands and registers belong to it.
    pub fn task(&mut self, what: &'static str, region: Region) {
        let (command, register) = (id(self.commands.len()), id(self.registers.len()));
        self.tasks.push(Task { label: Label { what, region }, commands: command..command, registers: register..register });
    }

    fn register(&mut self, info: RegisterInfo) -> Tile {
        let reg = Reg(id(self.registers.len()));
        self.registers.largest = self.registers.largest.max(info.bytes());
        self.registers.infos.push(info);
        self.tasks.last_mut().expect("a register belongs to a task").registers.end += 1;
        Tile { reg, region: Region::whole(info.rows, info.cols) }
    }

    /// A register that stands for a rectangle of a matrix, not loaded: for
    /// results whose old value is not needed.
    pub fn window(&mut self, matrix: MatrixId, rows: &Range<usize>, cols: &Range<usize>) -> Tile {
        let dtype = self.matrices[matrix.0 as usize].dtype;
        let window = Some(Window { matrix, row: rows.start, col: cols.start });
        self.register(RegisterInfo { rows: rows.len(), cols: cols.len(), dtype, window })
    }

    /// A register of scratch memory.
    pub fn scratch(&mut self, rows: usize, cols: usize) -> Tile {
        self.register(RegisterInfo { rows, cols, dtype: self.dtype, window: None })
    }

    fn push(&mut self, command: Command) {
        self.commands.push(command);
        self.tasks.last_mut().expect("a command belongs to a task").commands.end += 1;
    }

    /// `LD`: a register loaded with a rectangle of a matrix.
    pub fn ld(&mut self, matrix: MatrixId, rows: &Range<usize>, cols: &Range<usize>) -> Tile {
        let tile = self.window(matrix, rows, cols);
        self.push(Ld { reg: tile.reg }.into());
        tile
    }

    /// `ST`: the register of a tile stored into its window.
    pub fn st(&mut self, tile: Tile) {
        self.push(St { reg: tile.reg }.into());
    }

    /// `EXEC`: an instruction run.
    pub fn exec(&mut self, instruction: Instruction) {
        self.push(Exec { instruction }.into());
    }

    /// `MARK`: an empty command in the order of `queue`.
    pub fn mark(&mut self, queue: Queue) {
        self.push(Mark { queue }.into());
    }

    /// `BAR`: `queue` waits for all earlier commands of the task.
    pub fn bar(&mut self, queue: Queue) {
        self.push(Bar { queue }.into());
    }

    /// The routine.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The element type of the matrices, but for indices.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The declared matrices.
    #[must_use]
    pub fn matrices(&self) -> &[MatrixInfo] {
        &self.matrices
    }

    /// The registers.
    #[must_use]
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// The tasks, in an order in which they could run one by one.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The commands, in an order in which they could run one by one.
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Bytes that the plan occupies.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.commands.as_slice()) + size_of_val(self.registers.infos.as_slice()) + size_of_val(self.tasks.as_slice())
    }

    /// The name and rectangle that a tile stands for.
    fn algebra(&self, tile: Tile) -> String {
        match self.registers[tile.reg].window {
            None => format!("V{}", tile.region),
            Some(w) => format!("{}{}", self.matrices[w.matrix.0 as usize].name, tile.region.shifted(w.row, w.col)),
        }
    }

    /// One command as text: the operation on registers, and its algebra.
    #[must_use]
    pub fn describe(&self, command: CommandId) -> String {
        let whole = |reg: Reg| Tile { reg, region: Region::whole(self.registers[reg].rows, self.registers[reg].cols) };
        match &self.commands[command as usize] {
            Command::Ld(Ld { reg }) => format!("LD   {reg:<19}  {reg} ← {}", self.algebra(whole(*reg))),
            Command::St(St { reg }) => format!("ST   {reg:<19}  {} ← {reg}", self.algebra(whole(*reg))),
            Command::Mark(Mark { queue }) => format!("MARK {queue}"),
            Command::Bar(Bar { queue }) => format!("BAR  {queue}"),
            Command::Exec(Exec { instruction }) => {
                let mut operands = String::new();
                instruction.operands(|tile, _| write!(operands, " {}", tile.reg).expect("writing to a string"));
                let call = format!("{}{operands}", instruction.name());
                format!("EXEC {call:<19}  {}", formula(&instruction.map(|tile| self.algebra(tile))))
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

/// A factor in front of a term: nothing for one, a sign for minus one.
fn factor(value: Value) -> String {
    if value.is_one() {
        String::new()
    } else if value.equals(-1.0) {
        "−".to_owned()
    } else {
        format!("{value}·")
    }
}

/// The old value with its factor, as the last term of a sum.
fn old(beta: Value, c: &str) -> String {
    if beta.is_zero() { String::new() } else { format!(" + {}{c}", factor(beta)) }
}

/// The triangle of a matrix: `L(A)`, `U(A)`; `L₁`, `U₁` with a unit diagonal.
fn triangle(uplo: Uplo, diag: Diag, a: &str) -> String {
    let letter = if uplo == Uplo::Lower { "L" } else { "U" };
    let unit = if diag == Diag::Unit { "₁" } else { "" };
    format!("{letter}{unit}({a})")
}

/// An instruction as mathematics.
fn formula(instruction: &Instruction<String>) -> String {
    match instruction {
        Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c } => {
            format!("{c} ← {}{}·{}{}", factor(*alpha), op_name(*op_a, a), op_name(*op_b, b), old(*beta, c))
        }
        Instruction::Trsm { side, uplo, op, diag, alpha, a, b } => {
            let inverse = format!("{}⁻¹", op_name(*op, &triangle(*uplo, *diag, a)));
            match side {
                Side::Left => format!("{b} ← {}{inverse}·{b}", factor(*alpha)),
                Side::Right => format!("{b} ← {}{b}·{inverse}", factor(*alpha)),
            }
        }
        Instruction::Trtri { uplo, diag, a, inverse } => format!("{inverse} ← {}⁻¹", triangle(*uplo, *diag, a)),
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
        // the formula of one matrix, and how many there are
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
