//! The solve `B ← op(A)⁻¹·B` with the LU factors of `A = P·L·U`.

use crate::algorithms::{laswp, trsm};
use crate::args::{Checked, Getrs};
use crate::blocking::Blocking;
use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
use crate::instruction::Instruction;
use crate::matrix::RawMat;
use crate::plan::Plan;
use crate::routine::Routine;
use crate::scalar::{DType, Scalar};
use crate::value::Value;

/// A solve in normal form: all matrices are column-major.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// The exchanges of rows of B.
    exchanges: laswp::Problem,
    /// The solve with the triangle L.
    lower: trsm::Problem,
    /// The solve with the triangle U.
    upper: trsm::Problem,
    /// Whether the system to solve is `Aᵀ·X = B` instead of `A·X = B`.
    transposed: bool,
}

impl Problem {
    /// The solve of a system of order `n` with `nrhs` right-hand sides by substitution, where all matrices are column-major.
    #[must_use]
    pub fn new(n: usize, nrhs: usize, op: Op, dtype: DType) -> Self {
        let triangle = |uplo, diag| trsm::Problem {
            m: n,
            n: nrhs,
            side: Side::Left,
            uplo,
            op,
            diag,
            alpha: Value::new(dtype, 1.0),
            mode: TrsmMode::Substitution,
        };
        let forward = !op.is_trans();
        Problem {
            exchanges: laswp::Problem { m: n, n: nrhs, pivots: n, side: Side::Left, forward, dtype },
            lower: triangle(Uplo::Lower, Diag::Unit),
            upper: triangle(Uplo::Upper, Diag::NonUnit),
            transposed: op.is_trans(),
        }
    }

    /// Returns the same solve with another way to handle the diagonal blocks of L and U.
    #[must_use]
    pub fn with_mode(self, mode: TrsmMode) -> Self {
        let [lower, upper] = [self.lower, self.upper].map(|triangle| trsm::Problem { mode, ..triangle });
        Problem { lower, upper, ..self }
    }

    /// Element type of the matrices.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.lower.dtype()
    }

    /// Whether B has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lower.is_empty()
    }

    /// The exchanges of rows of B.
    #[must_use]
    pub fn exchanges(&self) -> &laswp::Problem {
        &self.exchanges
    }

    /// The whole problem as a sequence of instructions.
    #[must_use]
    pub fn instructions<O: Copy>(&self, [lu, ipiv, b]: [O; 3]) -> [Instruction<O>; 3] {
        let exchange = self.exchanges.instruction([b, ipiv]);
        let (lower, upper) = (self.lower.instruction([lu, b]), self.upper.instruction([lu, b]));
        if self.transposed { [upper, lower, exchange] } else { [exchange, lower, upper] }
    }

    /// The order of A and the number of right-hand sides.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.lower.order(), self.lower.nrhs())
    }
}

/// The normal form of a solve, with the memory of the LU factors and of B.
#[must_use]
pub fn normalise<T: Scalar>(args: &Checked<Getrs<'_, T>>) -> (Problem, [RawMat; 2]) {
    let (problem, memory) = normal_form(args.op, [args.lu.raw(), args.b.raw()]);
    (problem.with_mode(args.mode), memory)
}

/// The normal form of a solve with the LU factors `lu` and the right-hand sides `b`, of any layout.
#[must_use]
pub fn normal_form(op: Op, [lu, b]: [RawMat; 2]) -> (Problem, [RawMat; 2]) {
    let (n, nrhs) = (b.rows, b.cols);
    let column_major = Problem::new(n, nrhs, op, b.dtype);
    let (lower, memory) = trsm::normal_form(&column_major.lower, [lu, b]);
    let (upper, _) = trsm::normal_form(&column_major.upper, [lu, b]);
    let (side, oriented) = laswp::oriented(b);
    let exchanges = laswp::Problem { m: oriented.rows, n: oriented.cols, side, ..column_major.exchanges };
    (Problem { exchanges, lower, upper, ..column_major }, memory)
}

/// Computes the number of commands of the plan that [`plan`] would make.
#[must_use]
pub fn commands(p: &Problem, blocking: &Blocking, exchanges: &Blocking) -> usize {
    let solves = [p.lower, p.upper].iter().map(|triangle| trsm::commands(triangle, blocking)).fold(0, usize::saturating_add);
    solves.saturating_add(laswp::commands(&p.exchanges, exchanges))
}

/// The plan of a solve. Uses the block sizes `blocking` for the two triangular solves, and the block sizes `exchanges` for the
/// row exchanges.
#[must_use]
pub fn plan(p: &Problem, blocking: &Blocking, exchanges: &Blocking) -> Plan {
    let mut plan = Plan::new(Routine::Getrs.name(), p.dtype());
    let n = p.lower.order();
    let lu = plan.input("LU", (n, n), Layout::ColMajor);
    let ipiv = plan.indices("ipiv", p.exchanges.pivots, false);
    let b = plan.output("B", (p.lower.m, p.lower.n), Layout::ColMajor);
    if p.transposed {
        // Uᵀ·Y = B, Lᵀ·Z = Y, X = P·Z
        trsm::emit(&mut plan, &p.upper, [lu, b], blocking);
        trsm::emit(&mut plan, &p.lower, [lu, b], blocking);
        laswp::emit(&mut plan, &p.exchanges, [b, ipiv], exchanges);
    } else {
        // Z = P⁻¹·B, L·Y = Z, U·X = Y
        laswp::emit(&mut plan, &p.exchanges, [b, ipiv], exchanges);
        trsm::emit(&mut plan, &p.lower, [lu, b], blocking);
        trsm::emit(&mut plan, &p.upper, [lu, b], blocking);
    }
    plan
}
