//! The product `C ← α·op(A)·op(B) + β·C`, computed tile by tile of C.

use crate::args::{Checked, Gemm};
use crate::blocking::{Blocking, block_count, partition};
use crate::enums::{Layout, Op};
use crate::instruction::{Instruction, Region, Tile};
use crate::matrix::RawMat;
use crate::plan::{MatrixId, Plan};
use crate::routine::Routine;
use crate::scalar::{DType, Scalar};
use crate::value::Value;

/// A product in normal form: all matrices are column-major.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Number of rows of C.
    pub m: usize,
    /// Number of columns of C.
    pub n: usize,
    /// Inner extent of the product: the number of columns of `op(A)`.
    pub k: usize,
    /// The scalar α of the product.
    pub alpha: Value,
    /// The operation that is applied to A.
    pub op_a: Op,
    /// The operation that is applied to B.
    pub op_b: Op,
    /// The scalar β, by which the old C is multiplied.
    pub beta: Value,
}

/// Converts an operand and its operation to an equivalent column-major operand and operation. The memory of a row-major matrix
/// holds the transpose of this matrix in column-major order.
#[inline]
pub(crate) fn column_major(op: Op, raw: RawMat) -> (Op, RawMat) {
    match raw.layout {
        Layout::ColMajor => (op, raw),
        Layout::RowMajor => (op.flip(), raw.t()),
    }
}

/// The normal form of a product, with the memory of A, B and C.
#[inline]
#[must_use]
pub fn normalise<T: Scalar>(args: &Checked<Gemm<'_, T>>) -> (Problem, [RawMat; 3]) {
    let given = GemmFlags { op_a: args.op_a, op_b: args.op_b, alpha: args.alpha.into(), beta: args.beta.into() };
    given.normalise([args.a.raw(), args.b.raw(), args.c.raw()])
}

/// The operations `op(A)` and `op(B)` and the scalars α and β of a product.
pub(crate) struct GemmFlags {
    pub op_a: Op,
    pub op_b: Op,
    pub alpha: Value,
    pub beta: Value,
}

impl GemmFlags {
    /// The normal form of a product with the operands A, B and C. If C is row-major, `normalise` exchanges A and B, because it
    /// computes `Cᵀ = op(B)ᵀ·op(A)ᵀ`.
    #[inline]
    pub fn normalise(self, [a, b, mut c]: [RawMat; 3]) -> (Problem, [RawMat; 3]) {
        let (mut left, mut right) = ((self.op_a, a), (self.op_b, b));
        if c.layout == Layout::RowMajor {
            // Cᵀ = op(B)ᵀ·op(A)ᵀ
            (left, right, c) = ((right.0.flip(), right.1), (left.0.flip(), left.1), c.t());
        }
        let ((op_a, a), (op_b, b)) = (column_major(left.0, left.1), column_major(right.0, right.1));
        let (m, n, k) = (c.rows, c.cols, op_a.shape((a.rows, a.cols)).1);
        (Problem { m, n, k, alpha: self.alpha, op_a, op_b, beta: self.beta }, [a, b, c])
    }
}

impl Problem {
    /// Element type of the matrices.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.alpha.dtype()
    }

    /// Whether the product leaves C unchanged, so that there is nothing to compute. Netlib's BLAS returns at once if m or n is 0,
    /// or if β is 1 and k or α is 0.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0 || (self.scales_only() && self.beta.is_one())
    }

    /// Whether the product only multiplies C by β, because k or α is zero. A product with k = 0 or α = 0 does not read A and B.
    #[inline]
    #[must_use]
    pub fn scales_only(&self) -> bool {
        self.k == 0 || self.alpha.is_zero()
    }

    /// The whole problem as one instruction.
    #[inline]
    #[must_use]
    pub fn instruction<O>(&self, [a, b, c]: [O; 3]) -> Instruction<O> {
        let Problem { alpha, op_a, op_b, beta, .. } = *self;
        if self.scales_only() {
            return Instruction::Scale { beta, c };
        }
        Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c }
    }
}

/// The plan of a product. Uses the block sizes `mc`, `nc` and `kc`.
#[must_use]
pub fn plan(p: &Problem, blocking: &Blocking) -> Plan {
    let mut plan = Plan::new(Routine::Gemm.name(), p.dtype());
    let a = plan.input("A", p.op_a.shape((p.m, p.k)), Layout::ColMajor);
    let b = plan.input("B", p.op_b.shape((p.k, p.n)), Layout::ColMajor);
    let c = plan.output("C", (p.m, p.n), Layout::ColMajor);
    for rows in partition(p.m, blocking.mc) {
        for cols in partition(p.n, blocking.nc) {
            let region = Region { row: rows.start, col: cols.start, rows: rows.len(), cols: cols.len() };
            plan.task("C", region);
            // C(i,j) ← α·Σ_k op(A)(i,k)·op(B)(k,j) + β·C(i,j)
            let cij = if p.beta.is_zero() { plan.window(c, &rows, &cols) } else { plan.ld(c, &rows, &cols) };
            accumulate(&mut plan, p, blocking.kc, [a, b], region, cij);
            plan.st(cij);
        }
    }
    plan
}

/// Computes the number of commands of the plan that [`plan`] would make.
#[must_use]
pub fn commands(p: &Problem, blocking: &Blocking) -> usize {
    let tiles = block_count(p.m, blocking.mc).saturating_mul(block_count(p.n, blocking.nc));
    // each tile of C has an `ST` command, and also an `LD` command unless β is zero
    let of_c = if p.beta.is_zero() { 1 } else { 2 };
    let of_sum = if p.scales_only() { 1 } else { block_count(p.k, blocking.kc).saturating_mul(3) };
    tiles.saturating_mul(of_sum.saturating_add(of_c))
}

/// Adds the commands that compute one tile of C as a sum over k. The instruction for the first term also adds β times the old C.
fn accumulate(plan: &mut Plan, p: &Problem, kc: usize, [a, b]: [MatrixId; 2], c: Region, cij: Tile) {
    if p.scales_only() {
        plan.exec(Instruction::Scale { beta: p.beta, c: cij });
        return;
    }
    let (rows, cols) = (c.row..c.row + c.rows, c.col..c.col + c.cols);
    let mut beta = p.beta;
    for inner in partition(p.k, kc) {
        let aik = if p.op_a.is_trans() { plan.ld(a, &inner, &rows) } else { plan.ld(a, &rows, &inner) };
        let bkj = if p.op_b.is_trans() { plan.ld(b, &cols, &inner) } else { plan.ld(b, &inner, &cols) };
        // C(i,j) ← α·op(A)(i,k)·op(B)(k,j) + β·C(i,j), where β is 1 after the first term
        plan.exec(Instruction::Gemm { alpha: p.alpha, op_a: p.op_a, a: aik, op_b: p.op_b, b: bkj, beta, c: cij });
        beta = Value::new(p.dtype(), 1.0);
    }
}
