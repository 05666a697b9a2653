//! Plans for batches of small problems. Each task of a plan computes several consecutive matrices of the batch.
//!
//! The matrices of an operand lie side by side in one large column-major matrix. The part of an operand that a task accesses is
//! therefore a rectangle of the large matrix.

use crate::algorithms::{gemm, getrf, getrs};
use crate::args::{Checked, GemmBatched, GetrfBatched, GetrsBatched};
use crate::batch::RawBatch;
use crate::blocking::Resources;
use crate::enums::{Layout, Op};
use crate::instruction::{Instruction, Reg, Region, Tile};
use crate::plan::{MatrixId, Plan};
use crate::scalar::{DType, Scalar};

/// Names of the routines for batches.
pub(crate) const OPERATIONS: [&str; 3] = ["gemm_batched", "getrf_batched", "getrs_batched"];

/// A batch of equal small problems in normal form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Number of matrices in the batch.
    pub count: usize,
    /// The small problem that is solved for each matrix of the batch.
    pub each: Each,
}

/// The problem that is solved for one matrix of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Each {
    /// A matrix product.
    Gemm(gemm::Problem),
    /// An LU factorisation.
    Getrf(getrf::Problem),
    /// A solve with LU factors.
    Getrs(Solve),
    /// The search for a zero pivot in LU factors of order `n`.
    ZeroPivots {
        /// Order of the factors.
        n: usize,
        /// Element type of the factors.
        dtype: DType,
    },
}

/// The solve `B ← op(A)⁻¹·B` with column-major LU factors and a column-major B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solve {
    /// Order of A.
    pub n: usize,
    /// Number of columns of B.
    pub nrhs: usize,
    /// The operation that is applied to A.
    pub op: Op,
    /// Element type of the matrices.
    pub dtype: DType,
}

/// How a task accesses its part of an operand of the batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandUse {
    Read,
    Update,
    Overwrite,
}

/// An operand of a batch: its name, the shape of one of its matrices or index vectors, and how a task accesses the operand.
struct Operand {
    name: &'static str,
    shape: Shape,
    used: OperandUse,
}

#[derive(Clone, Copy)]
enum Shape {
    Matrix(usize, usize),
    Indices(usize),
}

/// Number of tasks of a plan for each device. With several tasks per device, slow devices can run fewer tasks than fast devices.
const TASKS: usize = 4;

/// Minimum number of bytes of the operands of a task on devices that copy. The transfer of `TASK_BYTES` bytes takes about a
/// hundred times as long as a kernel launch.
const TASK_BYTES: usize = 4 << 20;

impl Problem {
    /// Name of the routine.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self.each {
            Each::Gemm(_) => OPERATIONS[0],
            Each::Getrf(_) => OPERATIONS[1],
            Each::Getrs(_) | Each::ZeroPivots { .. } => OPERATIONS[2],
        }
    }

    /// Element type of the matrices.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match self.each {
            Each::Gemm(p) => p.dtype(),
            Each::Getrf(p) => p.dtype,
            Each::Getrs(Solve { dtype, .. }) | Each::ZeroPivots { dtype, .. } => dtype,
        }
    }

    /// The sizes on which the time of the problem depends, with their names.
    #[must_use]
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let count = ("count", self.count);
        match self.each {
            Each::Gemm(p) => vec![count, ("m", p.m), ("n", p.n), ("k", p.k)],
            Each::Getrf(p) => vec![count, ("m", p.m), ("n", p.n)],
            Each::Getrs(p) => vec![count, ("n", p.n), ("nrhs", p.nrhs)],
            Each::ZeroPivots { n, .. } => vec![count, ("n", n)],
        }
    }

    /// Whether the problem changes no element of any matrix, so that there is nothing to compute.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_empty = match self.each {
            Each::Gemm(p) => p.is_empty(),
            Each::Getrf(p) => p.order() == 0,
            Each::Getrs(Solve { n, nrhs, .. }) => n == 0 || nrhs == 0,
            Each::ZeroPivots { n, .. } => n == 0,
        };
        is_empty || self.count == 0
    }

    /// The instruction that solves the problem for `count` matrices of the batch, with the operands `operands`.
    #[must_use]
    pub fn instruction<O: Copy>(&self, count: usize, operands: &[O]) -> Instruction<O> {
        match (self.each, operands) {
            (Each::Gemm(p), &[.., c]) if p.scales_only() => Instruction::Scale { beta: p.beta, c },
            (Each::Gemm(p), &[a, b, c]) => {
                let gemm::Problem { alpha, op_a, op_b, beta, .. } = p;
                Instruction::GemmBatched { count, alpha, op_a, a, op_b, b, beta, c }
            }
            (Each::Getrf(p), &[a, ipiv, info]) => Instruction::GetrfBatched { count, pivoting: p.pivoting, a, ipiv, info },
            (Each::Getrs(p), &[lu, ipiv, b]) => Instruction::GetrsBatched { count, op: p.op, lu, ipiv, b },
            (Each::ZeroPivots { .. }, &[lu, info]) => Instruction::ZeroPivots { count, lu, info },
            _ => unreachable!("as many operands as `operands` lists"),
        }
    }

    /// Number of floating-point operations of the whole batch.
    #[must_use]
    pub fn flops(&self) -> f64 {
        let whole = |operand: Operand| {
            let region = match operand.shape {
                Shape::Matrix(rows, cols) => Region::whole(rows, cols * self.count),
                Shape::Indices(rows) => Region::whole(rows * self.count, 1),
            };
            Tile { reg: Reg(0), region }
        };
        let tiles: Vec<Tile> = self.operands().into_iter().map(whole).collect();
        self.instruction(self.count, &tiles).flops()
    }

    /// Number of operands of the instruction that solves the problem.
    #[must_use]
    pub fn operand_count(&self) -> usize {
        self.operands().len()
    }

    fn operands(&self) -> Vec<Operand> {
        let operand = |name, shape, used| Operand { name, shape, used };
        match self.each {
            Each::Gemm(p) => {
                let ((am, ak), (bk, bn)) = (p.op_a.shape((p.m, p.k)), p.op_b.shape((p.k, p.n)));
                let of_c = if p.beta.is_zero() { OperandUse::Overwrite } else { OperandUse::Update };
                vec![
                    operand("A", Shape::Matrix(am, ak), OperandUse::Read),
                    operand("B", Shape::Matrix(bk, bn), OperandUse::Read),
                    operand("C", Shape::Matrix(p.m, p.n), of_c),
                ]
            }
            Each::Getrf(p) => vec![
                operand("A", Shape::Matrix(p.m, p.n), OperandUse::Update),
                operand("ipiv", Shape::Indices(p.order()), OperandUse::Overwrite),
                operand("info", Shape::Indices(1), OperandUse::Overwrite),
            ],
            Each::Getrs(Solve { n, nrhs, .. }) => vec![
                operand("LU", Shape::Matrix(n, n), OperandUse::Read),
                operand("ipiv", Shape::Indices(n), OperandUse::Read),
                operand("B", Shape::Matrix(n, nrhs), OperandUse::Update),
            ],
            Each::ZeroPivots { n, .. } => {
                vec![
                    operand("LU", Shape::Matrix(n, n), OperandUse::Read),
                    operand("info", Shape::Indices(1), OperandUse::Overwrite),
                ]
            }
        }
    }

    /// Whether no task uses the operand `operand`, because it is A or B of a product that only multiplies C by β.
    fn is_skipped(&self, operand: &Operand) -> bool {
        matches!(self.each, Each::Gemm(p) if p.scales_only()) && operand.used == OperandUse::Read
    }

    /// Number of matrices of the batch that one task computes.
    fn matrices_of_task(&self, devices: &Resources) -> usize {
        if devices.resident {
            return self.count.max(1);
        }
        let shared = self.count.div_ceil(TASKS * devices.devices()).max(1);
        let Some(limit) = devices.copy_limit() else { return shared };
        let bytes = |operand: Operand| match operand.shape {
            Shape::Matrix(rows, cols) => rows.saturating_mul(cols).saturating_mul(devices.element),
            Shape::Indices(count) => count.saturating_mul(DType::I32.size()),
        };
        let bytes = self.operands().into_iter().map(bytes).fold(0, usize::saturating_add).max(1);
        // a device works on two tasks at a time, and the device memory that a register occupies may be twice as large as the
        // register
        shared.max(TASK_BYTES / bytes).min(limit / bytes / 4).clamp(1, self.count.max(1))
    }

    /// Computes the number of commands of the plan that [`Problem::plan`] would make for `devices`.
    #[must_use]
    pub fn commands(&self, devices: &Resources) -> usize {
        let of_operand = |operand: Operand| match operand.used {
            _ if self.is_skipped(&operand) => 0,
            OperandUse::Read | OperandUse::Overwrite => 1,
            OperandUse::Update => 2,
        };
        let of_task = 1 + self.operands().into_iter().map(of_operand).sum::<usize>();
        self.count.div_ceil(self.matrices_of_task(devices)).saturating_mul(of_task)
    }

    /// The plan of the batch. Each task of the plan loads a part of each operand, runs one instruction, and stores the results.
    #[must_use]
    pub fn plan(&self, devices: &Resources) -> Plan {
        let (mut plan, operands) = (Plan::new(self.operation(), self.dtype()), self.operands());
        let declare = |operand: &Operand| match (operand.shape, operand.used) {
            (Shape::Matrix(rows, cols), OperandUse::Read) => plan.input(operand.name, (rows, cols * self.count), Layout::ColMajor),
            (Shape::Matrix(rows, cols), _) => plan.output(operand.name, (rows, cols * self.count), Layout::ColMajor),
            (Shape::Indices(rows), used) => plan.indices(operand.name, rows * self.count, used != OperandUse::Read),
        };
        let matrices: Vec<MatrixId> = operands.iter().map(declare).collect();
        let most = self.matrices_of_task(devices);
        for begin in (0..self.count).step_by(most) {
            let count = most.min(self.count - begin);
            plan.task("matrices", self.result(begin, count));
            let used = || operands.iter().zip(&matrices).filter(|(operand, _)| !self.is_skipped(operand));
            let part = |(operand, &matrix): (&Operand, &MatrixId)| {
                let (rows, cols) = match operand.shape {
                    Shape::Matrix(rows, cols) => (0..rows, begin * cols..(begin + count) * cols),
                    Shape::Indices(rows) => (begin * rows..(begin + count) * rows, 0..1),
                };
                match operand.used {
                    OperandUse::Overwrite => plan.window(matrix, &rows, &cols),
                    OperandUse::Read | OperandUse::Update => plan.ld(matrix, &rows, &cols),
                }
            };
            let tiles: Vec<Tile> = used().map(part).collect();
            plan.exec(self.instruction(count, &tiles));
            let written = used().zip(&tiles).filter(|((operand, _), _)| operand.used != OperandUse::Read);
            written.for_each(|(_, &tile)| plan.st(tile));
        }
        plan
    }

    /// The rectangle that the matrices `begin .. begin + count` of the result occupy.
    fn result(&self, begin: usize, count: usize) -> Region {
        let (rows, cols) = match self.each {
            Each::Gemm(p) => (p.m, p.n),
            Each::Getrf(p) => (p.m, p.n),
            Each::Getrs(p) => (p.n, p.nrhs),
            Each::ZeroPivots { .. } => return Region { row: begin, col: 0, rows: count, cols: 1 },
        };
        Region { row: 0, col: begin * cols, rows, cols: count * cols }
    }
}

/// A call on batches in two forms: as one problem of the whole batch, and as a separate problem of each matrix.
#[derive(Clone, Copy, Debug)]
pub struct Normal<const MATRICES: usize> {
    /// The problem of the whole batch. The problem of the whole batch is used if the matrices of every operand lie side by side.
    pub problem: Problem,
    /// The memory of the operands of `problem`.
    pub memory: [RawBatch; MATRICES],
    /// The problem of one matrix. The problem of one matrix is used if the matrices of an operand do not lie side by side.
    pub each: super::Problem,
    /// The memory of the operands of `each`. The operands of `each` are column-major, except that the LU factorisation also
    /// accepts row-major matrices.
    pub memory_of_each: [RawBatch; MATRICES],
}

/// The two forms of a call of batched products, with the memory of A, B and C.
#[must_use]
pub fn gemm<T: Scalar>(args: &Checked<GemmBatched<'_, T>>) -> Normal<3> {
    let (a, b, c) = (args.a.raw(), args.b.raw(), args.c.raw());
    let given = gemm::GemmFlags { op_a: args.op_a, op_b: args.op_b, alpha: args.alpha.into(), beta: args.beta.into() };
    let (each, [a_first, b_first, c_first]) = given.normalise([a.first, b.first, c.first]);
    // if C is row-major, the normal form exchanges A and B
    let [a, b] = if c.first.layout == Layout::RowMajor { [b, a] } else { [a, b] };
    let memory = [RawBatch { first: a_first, ..a }, RawBatch { first: b_first, ..b }, RawBatch { first: c_first, ..c }];
    let problem = Problem { count: c.count, each: Each::Gemm(each) };
    Normal { problem, memory, each: super::Problem::Gemm(each), memory_of_each: memory }
}

/// The two forms of a call of batched LU factorisations, with the memory of A.
#[must_use]
pub fn getrf<T: Scalar>(args: &Checked<GetrfBatched<'_, T>>) -> Normal<1> {
    let ((m, n), a) = (args.a.shape(), args.a.raw());
    let each = getrf::Problem { pivoting: args.pivoting, ..getrf::Problem::pivoted((m, n), a.first.layout, T::DTYPE) };
    let problem = Problem { count: a.count, each: Each::Getrf(each) };
    Normal { problem, memory: [a], each: super::Problem::Getrf { problem: each, nb: None }, memory_of_each: [a] }
}

/// The two forms of a call of batched solves, with the memory of the LU factors and of B.
#[must_use]
pub fn getrs<T: Scalar>(args: &Checked<GetrsBatched<'_, T>>) -> Normal<2> {
    let ((n, nrhs), lu, b) = (args.b.shape(), args.lu.raw(), args.b.raw());
    let solve = Solve { n, nrhs, op: args.op, dtype: T::DTYPE };
    let problem = Problem { count: b.count, each: Each::Getrs(solve) };
    let (each, [lu_first, b_first]) = getrs::normal_form(args.op, [lu.first, b.first]);
    let memory_of_each = [RawBatch { first: lu_first, ..lu }, RawBatch { first: b_first, ..b }];
    Normal { problem, memory: [lu, b], each: super::Problem::Getrs(each), memory_of_each }
}
