//! Plans as text.

use std::fmt::{self, Write};

use crate::command::{Bar, Command, CommandId, Exec, Ld, Mark, PanelShape, St};
use crate::enums::{Diag, Op, Side, TrsmMode, Uplo};
use crate::instruction::{Instruction, Region, Swaps, Tile};
use crate::plan::Plan;
use crate::value::Value;

impl Plan {
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
            Command::Exec(Exec { instruction, conditions }) => {
                let mut operands = String::new();
                instruction.operands(|tile, _| write!(operands, " {}", tile.reg).expect("writing to a string"));
                let call = format!("{}{operands}", instruction.name());
                let beside = conditions
                    .beside_panel
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
        Instruction::Narrow { alpha, a, b } => format!("{b} ← {}{a} in f32", factor(*alpha)),
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
