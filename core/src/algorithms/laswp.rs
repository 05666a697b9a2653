//! Exchanges of rows of a matrix according to pivots. Each task exchanges the rows of one strip of columns.

use crate::args::{Checked, Laswp};
use crate::blocking::{Blocking, block_count, partition};
use crate::enums::{Layout, Side};
use crate::instruction::{Instruction, Region, Swaps};
use crate::matrix::RawMat;
use crate::plan::{MatrixId, Plan};
use crate::routine::Routine;
use crate::scalar::{DType, Scalar};

/// Row exchanges in normal form: the matrix is column-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Number of rows of A.
    pub m: usize,
    /// Number of columns of A.
    pub n: usize,
    /// Number of exchanges.
    pub pivots: usize,
    /// Whether the problem exchanges rows (left) or columns (right) of A. The problem exchanges columns if A is the transpose of
    /// the caller's matrix.
    pub side: Side,
    /// Whether the exchanges are made in ascending order of the pivots.
    pub forward: bool,
    /// Element type of A.
    pub dtype: DType,
}

impl Problem {
    /// Number of elements of an exchanged row or column.
    fn across(&self) -> usize {
        if self.side == Side::Left { self.n } else { self.m }
    }

    /// The whole problem as one instruction.
    #[must_use]
    pub fn instruction<O>(&self, [a, ipiv]: [O; 2]) -> Instruction<O> {
        Instruction::Laswp { swaps: Swaps { side: self.side, forward: self.forward, first_row: 0 }, a, ipiv }
    }

    /// Whether the problem exchanges no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0 || self.pivots == 0
    }
}

/// The normal form of row exchanges, with the memory of A.
#[must_use]
pub fn normalise<T: Scalar>(args: &Checked<Laswp<'_, T>>) -> (Problem, RawMat) {
    normal_form(args.a.raw(), args.ipiv.len(), args.forward)
}

/// The normal form of the exchanges of rows of `a`, of any layout, by the first `pivots` pivots.
#[must_use]
pub fn normal_form(a: RawMat, pivots: usize, forward: bool) -> (Problem, RawMat) {
    let (side, a) = oriented(a);
    (Problem { m: a.rows, n: a.cols, pivots, side, forward, dtype: a.dtype }, a)
}

/// Converts a view of a matrix to a column-major view of the same memory. Also returns whether pivots exchange rows (left) or
/// columns (right) of this view: the rows of a row-major matrix are the columns of the column-major view.
pub(crate) fn oriented(a: RawMat) -> (Side, RawMat) {
    match a.layout {
        Layout::ColMajor => (Side::Left, a),
        Layout::RowMajor => (Side::Right, a.t()),
    }
}

/// The plan of row exchanges. Uses the block size `nc` as the width of a strip.
#[must_use]
pub fn plan(p: &Problem, blocking: &Blocking) -> Plan {
    let mut plan = Plan::new(Routine::Laswp.name(), p.dtype);
    let a = plan.output("A", (p.m, p.n), Layout::ColMajor);
    let ipiv = plan.indices("ipiv", p.pivots, false);
    emit(&mut plan, p, [a, ipiv], blocking);
    plan
}

/// Computes the number of commands of the plan that [`plan`] would make.
#[must_use]
pub fn commands(p: &Problem, blocking: &Blocking) -> usize {
    block_count(p.across(), blocking.nc).saturating_mul(4)
}

/// Adds the commands of the exchanges to a plan, with one task for each strip.
pub(crate) fn emit(plan: &mut Plan, p: &Problem, [a, ipiv]: [MatrixId; 2], blocking: &Blocking) {
    for strip in partition(p.across(), blocking.nc) {
        let (rows, cols) = if p.side == Side::Left { (0..p.m, strip) } else { (strip, 0..p.n) };
        plan.task("exchange", Region { row: rows.start, col: cols.start, rows: rows.len(), cols: cols.len() });
        let pivots = plan.ld(ipiv, &(0..p.pivots), &(0..1));
        let tile = plan.ld(a, &rows, &cols);
        // A ← P⁻¹·A, or A ← P·A in descending order
        let swaps = Swaps { side: p.side, forward: p.forward, first_row: 0 };
        plan.exec(Instruction::Laswp { swaps, a: tile, ipiv: pivots });
        plan.st(tile);
    }
}
