//! The product `C ← α·op(A)·op(B) + β·C`, computed block by block of C.

use std::ops::Range;

use crate::args::{Checked, Gemm};
use crate::blocking::{Blocking, MAX_COUNTED_BLOCKS, Part, block_count, blocks, partition};
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

/// The plan of a product. Each task computes one block of C, of `mc` × `nc` elements.
///
/// The block stays on the device while panels of A and B, of at most `kc` columns and rows, pass through it. The block consists of strips
/// of `nb` columns. The last panel completes the strips one after another, so that the device stores a strip while it computes the next
/// strip:
/// ```text
///   for each panel k but the last:  for each strip j:  C(j) ← α·op(A)(k)·op(B)(k,j) + β·C(j)
///   for each strip j, with the last panel k:           C(j) ← α·op(A)(k)·op(B)(k,j) + C(j),  then store C(j)
/// ```
#[must_use]
pub fn plan(p: &Problem, blocking: &Blocking) -> Plan {
    let mut plan = Plan::new(Routine::Gemm.name(), p.dtype());
    let a = plan.input("A", p.op_a.shape((p.m, p.k)), Layout::ColMajor);
    let b = plan.input("B", p.op_b.shape((p.k, p.n)), Layout::ColMajor);
    let c = plan.output("C", (p.m, p.n), Layout::ColMajor);
    for Part { rows, cols, device } in blocking.parts(p.m, p.n) {
        for rows in blocks(&rows, blocking.mc) {
            for cols in blocks(&cols, blocking.nc) {
                plan.task_for(device, "C", Region { row: rows.start, col: cols.start, rows: rows.len(), cols: cols.len() });
                let mut block = Block { plan: &mut plan, p, a, b, c, rows: &rows, cols: &cols };
                if p.scales_only() { block.scale(blocking) } else { block.compute(blocking) }
            }
        }
    }
    plan
}

/// Computes the number of commands of the plan that [`plan`] would make. For more than a million columns of blocks, `commands` returns
/// a lower bound of the number of commands.
#[must_use]
pub fn commands(p: &Problem, blocking: &Blocking) -> usize {
    let of_part = |Part { rows, cols, .. }: Part| {
        let (down, across) = (block_count(rows.len(), blocking.mc), block_count(cols.len(), blocking.nc));
        let blocks = down.saturating_mul(across);
        if across > MAX_COUNTED_BLOCKS {
            return blocks;
        }
        let strips_across: usize =
            partition(cols.len(), blocking.nc).into_iter().map(|cols| block_count(cols.len(), blocking.nb)).sum();
        let strips = strips_across.saturating_mul(down);
        // each strip of C has an `ST` command, and also an `LD` command unless β is zero
        let of_c = strips.saturating_mul(if p.beta.is_zero() { 1 } else { 2 });
        if p.scales_only() {
            return strips.saturating_add(of_c);
        }
        let panels = blocking.panel_count(p.k);
        // panels of A and B are loaded once for each block, except that the last panel of B is loaded strip by strip
        let of_a_and_b = blocks.saturating_mul(panels.saturating_mul(2) - 1).saturating_add(strips);
        [of_c, of_a_and_b, strips.saturating_mul(panels)].into_iter().fold(0, usize::saturating_add)
    };
    blocking.parts(p.m, p.n).into_iter().map(of_part).fold(0, usize::saturating_add)
}

/// One block of C, and the plan to which its commands are added.
struct Block<'a> {
    plan: &'a mut Plan,
    p: &'a Problem,
    a: MatrixId,
    b: MatrixId,
    c: MatrixId,
    rows: &'a Range<usize>,
    cols: &'a Range<usize>,
}

impl Block<'_> {
    /// The columns of C in each strip of the block.
    fn strips(&self, blocking: &Blocking) -> Vec<Range<usize>> {
        blocks(self.cols, blocking.nb)
    }

    /// The register of a strip of C, which holds the old elements unless β is zero.
    fn strip(&mut self, cols: &Range<usize>) -> Tile {
        if self.p.beta.is_zero() { self.plan.window(self.c, self.rows, cols) } else { self.plan.ld(self.c, self.rows, cols) }
    }

    /// `C(j) ← β·C(j)` for each strip j.
    fn scale(&mut self, blocking: &Blocking) {
        for strip in self.strips(blocking) {
            let cj = self.strip(&strip);
            self.plan.exec(Instruction::Scale { beta: self.p.beta, c: cj });
            self.plan.st(cj);
        }
    }

    fn compute(&mut self, blocking: &Blocking) {
        let (panels, strips) = (blocking.panels(self.p.k), self.strips(blocking));
        let Some((last, others)) = panels.split_last() else { return };
        let mut tiles = Vec::new();
        for inner in others {
            let (ak, bk) = (self.left(inner), self.right(inner, self.cols));
            for (j, strip) in strips.iter().enumerate() {
                if tiles.len() == j {
                    tiles.push(self.strip(strip));
                }
                let bkj = self.columns_of(bk, strip.start - self.cols.start, strip.len());
                self.multiply(inner, ak, bkj, tiles[j]);
            }
        }
        let ak = self.left(last);
        for (j, strip) in strips.iter().enumerate() {
            let cj = if others.is_empty() { self.strip(strip) } else { tiles[j] };
            let bkj = self.right(last, strip);
            self.multiply(last, ak, bkj, cj);
            self.plan.st(cj);
        }
    }

    /// Loads the columns `inner` of `op(A)`, in the rows of the block.
    fn left(&mut self, inner: &Range<usize>) -> Tile {
        if self.p.op_a.is_trans() { self.plan.ld(self.a, inner, self.rows) } else { self.plan.ld(self.a, self.rows, inner) }
    }

    /// Loads the rows `inner` of `op(B)`, in the columns `cols`.
    fn right(&mut self, inner: &Range<usize>, cols: &Range<usize>) -> Tile {
        if self.p.op_b.is_trans() { self.plan.ld(self.b, cols, inner) } else { self.plan.ld(self.b, inner, cols) }
    }

    /// The columns of `op(B)` from `start` on, `count` of them, in a register that [`Self::right`] has loaded.
    fn columns_of(&self, bk: Tile, start: usize, count: usize) -> Tile {
        if self.p.op_b.is_trans() { bk.sub(start, 0, count, bk.cols()) } else { bk.sub(0, start, bk.rows(), count) }
    }

    /// `C(j) ← α·op(A)(k)·op(B)(k,j) + β·C(j)`, where β is 1 after the first panel.
    fn multiply(&mut self, inner: &Range<usize>, ak: Tile, bkj: Tile, cj: Tile) {
        let Problem { alpha, op_a, op_b, .. } = *self.p;
        let beta = if inner.start == 0 { self.p.beta } else { Value::new(self.p.dtype(), 1.0) };
        self.plan.exec(Instruction::Gemm { alpha, op_a, a: ak, op_b, b: bkj, beta, c: cj });
    }
}
