//! Inverses of the blocks on the diagonal of a triangle, and products with them.

use std::ops::Range;
use std::sync::Arc;

use lapidary_core::{Diag, ErrorKind, Op, Result, Side, Uplo};

use super::Sequence;
use super::batched::Batch;
use super::triangle::{Equations, Flags};
use crate::call::{Arg, Call, Target, View};
use crate::program::{Program, SIDE, TRIANGLE, sides_of_copy};
use crate::scratch::Purpose;
use crate::thresholds::Threshold;

/// The inverses of the blocks on the diagonal of a triangular matrix.
pub(super) struct Inverses<'a, B> {
    /// A view of n × n elements, of which only the blocks on the diagonal may be accessed. A block of the triangular matrix and its inverse
    /// begin at the same row and column. The leading dimension is the number of rows of a block, so that the view takes about as much
    /// memory as the blocks. An element of the view outside of the blocks has the same address as an element of a block.
    v: View<'a, B>,
    /// Number of rows, and also of columns, of a block. The last block may be smaller.
    pub order: usize,
    /// Index in the buffer of the flag of the first block: zero if the inverse is accurate enough, else one. The flag of a block whose first
    /// row is row i lies i elements later.
    flags_at: usize,
    /// Kernel `solve_copy`.
    solve_copy: Program,
}

// implemented by hand, because a derived `Clone` would require `B: Clone`
impl<B> Clone for Inverses<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Inverses<'_, B> {}

impl<B> Inverses<'_, B> {
    /// Returns the inverses of the blocks in the rows and columns `range`, which begins with a block.
    pub fn part(self, range: &Range<usize>) -> Self {
        debug_assert!(range.start.is_multiple_of(self.order));
        let v = self.v.sub(range.start, range.start, range.len(), range.len());
        Inverses { v, flags_at: self.flags_at + range.start, ..self }
    }
}

/// Returns the number of elements of the memory for the inverses of blocks of `order` rows, if the triangular matrix has `n` rows.
fn elements(n: usize, order: usize) -> usize {
    n.saturating_mul(order + 1)
}

/// Number of elements for each row of the triangular matrix that [`Sequence::judge`] writes after the inverses: two sums and a flag.
const JUDGEMENTS: usize = 3;
/// Number of work-items in a work-group of the kernels that judge inverses, if a device allows so many.
const JUDGES: usize = 256;
/// Number of work-items in a work-group that copies right-hand sides or solves for them, if a device allows so many. A step waits at a
/// barrier, which takes longer the more work-items there are.
const SOLVERS: usize = 64;
/// Minimum number of blocks of a triangular matrix whose order is at least `BLOCKS * TRIANGLE`. The operations for their inverses are a small
/// part of those of the solve.
const BLOCKS: usize = 8;

impl<D: Target> Sequence<'_, D> {
    /// Allocates scratch memory for the inverses of the blocks of a triangular matrix of order `n`, if a solve for `sides` right-hand sides
    /// inverts blocks. Returns the memory and the order of the blocks. If memory is short, the order is smaller. Returns `None` if the
    /// thresholds name no block for this order, if the device cannot run the kernels that judge inverses, or if the memory does not suffice for
    /// blocks of the smallest order.
    pub(super) fn memory_for_inverses(&mut self, n: usize, sides: usize) -> Result<Option<(Arc<D::Buffer>, usize)>> {
        let size = self.dtype.size();
        let bytes = |order: usize| (elements(n, order).saturating_add(JUDGEMENTS * n)).saturating_mul(size);
        let most = self.threshold(Threshold::InvertedBlock);
        let least = self.threshold(Threshold::InvertedSolve);
        if most < TRIANGLE || (n < least && n.saturating_mul(sides) < least.saturating_mul(least)) {
            return Ok(None);
        }
        // the power of two that is at most n / BLOCKS
        let mut order = most.min(1 << (n / BLOCKS).max(1).ilog2()).max(TRIANGLE);
        let [sum_blocks, judge_blocks] = self.judges();
        while order >= TRIANGLE {
            for (program, kernel) in
                [(sum_blocks, "sum_blocks"), (judge_blocks, "judge_blocks"), (self.solve_copy(order), "solve_copy")]
            {
                let fits = program.check(&self.device.facts().limits).is_ok();
                if !fits || !self.device.can_run(&program, kernel)? {
                    return Ok(None);
                }
            }
            if let Some(memory) = self.scratch_if_free(Purpose::Inverses, bytes(order))? {
                return Ok(Some((memory, order)));
            }
            order /= 2;
        }
        Ok(None)
    }

    /// Inverts the blocks of `order` rows on the diagonal of A (Du Croz and Higham 1992). The first launch inverts blocks of [`TRIANGLE`]
    /// rows. Each step then joins two neighbouring inverses into the inverse of a block of twice the order. If the device is out of memory
    /// for the products of a step, the steps end, and the blocks have a smaller order. At last, inverses that are not accurate enough are
    /// replaced.
    pub(super) unsafe fn invert<'a>(
        &mut self,
        flags @ (_, uplo, _, diag): Flags,
        a: View<'_, D::Buffer>,
        (buffer, order): (&'a D::Buffer, usize),
    ) -> Result<Inverses<'a, D::Buffer>> {
        let n = a.rows;
        let all = View { buffer, at: 0, rows: elements(n, order), cols: 1, ld: elements(n, order) };
        let v = View { rows: n, cols: n, ld: order, ..all };
        let solve_copy = self.solve_copy(order);
        let mut s = TRIANGLE;
        // SAFETY: the caller upholds the contract of this module, and the buffer has room for the blocks.
        unsafe {
            // a product reads all elements of a block, so that those outside of the triangle must be zero
            self.scale(self.value(0.0), all)?;
            self.invert_small_blocks(uplo, diag, a, v)?;
            while s < order {
                let (pairs, rest) = (n / (2 * s), n % (2 * s));
                let bytes = (n / (2 * s)).max(1) * s * s * self.dtype.size();
                let Some(memory) = self.scratch_if_free(Purpose::Product, bytes)? else { break };
                self.join_pairs(uplo, a, v, &memory, (0, pairs), [s, s])?;
                if rest > s {
                    self.join_pairs(uplo, a, v, &memory, (n - rest, 1), [s, rest - s])?;
                }
                s *= 2;
            }
            let inverses = Inverses { v, order: s, flags_at: all.at + all.rows + 2 * n, solve_copy };
            self.judge(flags, a, inverses)?;
            Ok(inverses)
        }
    }

    /// Returns the programs of the kernels `sum_blocks` and `judge_blocks`.
    fn judges(&self) -> [Program; 2] {
        let (dtype, items) = (self.dtype, self.items(JUDGES));
        [Program::SumBlocks { dtype, items: items.max(SIDE) }, Program::JudgeBlocks { dtype, items }]
    }

    /// Returns the program that copies right-hand sides of blocks of at most `order` rows.
    fn solve_copy(&self, order: usize) -> Program {
        let items = self.items(SOLVERS).min(order);
        Program::SolveCopy { dtype: self.dtype, items, each: order.div_ceil(items) }
    }

    /// Returns the largest power of two up to `most` that is a number of work-items in a work-group.
    fn items(&self, most: usize) -> usize {
        1 << most.min(self.device.facts().limits.work_group).max(1).ilog2()
    }

    /// Replaces inverses by the identity if solutions with them would not meet bound 7 of `docs/numerics.md`, and writes the flags of the
    /// blocks. Let T be a block, in the orientation in which it multiplies the unknowns, V its computed inverse, and R right-hand sides. The
    /// residual of `X = V·R` satisfies `|R − T·X| ≤ c·u·|T||V||R|` (Du Croz and Higham 1992), where c depends on the order of the block, and
    /// `‖R‖₁ ≤ ‖T‖₁‖X‖₁`. With `s = ‖|T||V|‖₁`, the residual is therefore at most `c·u·s·‖T‖₁‖X‖₁`. The limit is `s ≤ 8·n`, for n unknowns of the
    /// whole triangle. Like bound 2, it is statistical: roundings add up like a random walk, and the largest measured residual was
    /// `1.24·u·s·‖T‖₁‖X‖₁` ([figures](../../../bench/results/2026-11-26-inverted-blocks.txt)). In the worst case, c is of the order of the
    /// block, and a join of inverses of halves multiplies the error by s once more.
    unsafe fn judge(&mut self, flags: Flags, a: View<'_, D::Buffer>, inverses: Inverses<'_, D::Buffer>) -> Result<()> {
        let (Inverses { v, order, flags_at, .. }, equations) = (inverses, Equations::new(flags));
        let n = a.rows;
        let (z_at, y_at) = (flags_at - 2 * n, flags_at - n);
        let upper = Arg::Size(usize::from(!equations.forward));
        let unit = Arg::Size(usize::from(flags.3 == Diag::Unit));
        let [sum_blocks, judge_blocks] = self.judges();
        let sizes = [n, order].map(Arg::Size);
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernels' parameters. The buffer of the inverses
        // has room for the sums and the flags.
        unsafe {
            let mut sum = |x: View<'_, D::Buffer>, unit, [weighted, weights_at, sums_at]: [usize; 3]| {
                let [x_i, x_k] = equations.steps(x.ld);
                let place = [Arg::In(x.buffer), Arg::Size(x.at), Arg::Size(x_i), Arg::Size(x_k)];
                let sums = [Arg::Out(v.buffer), Arg::Size(weights_at), Arg::Size(sums_at)];
                let args = [&sizes[..], &[upper, unit, Arg::Size(weighted)], &place, &sums].concat();
                let global = [n.div_ceil(SIDE) * sum_blocks.local()[0], 1];
                self.device.launch(&Call { program: sum_blocks, kernel: "sum_blocks", global, args: &args })
            };
            // z ← |T|ᵀ·e, y ← |V|ᵀ·z
            sum(a, unit, [0, 0, z_at])?;
            sum(v, Arg::Size(0), [1, z_at, y_at])?;
            let limit = Arg::factor(self.value(8.0 * n as f64));
            let place = [Arg::In(a.buffer), Arg::Size(a.at), Arg::Size(a.ld + 1)];
            let sums = [Arg::Out(v.buffer), Arg::Size(z_at), Arg::Size(y_at), Arg::Size(flags_at)];
            let args = [&sizes[..], &[unit, limit], &place, &Arg::output(v), &sums].concat();
            let global = [n.div_ceil(order) * judge_blocks.local()[0], 1];
            self.device.launch(&Call { program: judge_blocks, kernel: "judge_blocks", global, args: &args })
        }
    }

    unsafe fn invert_small_blocks(&mut self, uplo: Uplo, diag: Diag, a: View<'_, D::Buffer>, v: View<'_, D::Buffer>) -> Result<()> {
        let sizes = [a.rows, usize::from(uplo == Uplo::Upper), usize::from(diag == Diag::Unit)].map(Arg::Size);
        let args = [&sizes[..], &Arg::input(a), &Arg::output(v)].concat();
        let program = self.triangle();
        let global = [TRIANGLE, a.rows.div_ceil(TRIANGLE)];
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
        unsafe { self.device.launch(&Call { program, kernel: "trtri_block", global, args: &args }) }
    }

    /// Joins `count` pairs of neighbouring inverses of orders s and t: computes the block of V below or above the diagonal that completes
    /// the inverse of order s + t. The first pair begins at row o, and a pair begins 2·s rows after the pair before it. `memory` has room
    /// for s × t elements for each pair.
    unsafe fn join_pairs(
        &mut self,
        uplo: Uplo,
        a: View<'_, D::Buffer>,
        v: View<'_, D::Buffer>,
        memory: &D::Buffer,
        (o, count): (usize, usize),
        [s, t]: [usize; 2],
    ) -> Result<()> {
        fn blocks<B>(x: View<'_, B>, row: usize, col: usize, [rows, cols]: [usize; 2], apart: usize) -> Batch<'_, B> {
            Batch { first: x.sub(row, col, rows, cols), step: apart * (x.ld + 1) }
        }
        if count == 0 {
            return Ok(());
        }
        let (v11, v22) = (blocks(v, o, o, [s, s], 2 * s), blocks(v, o + s, o + s, [t, t], 2 * s));
        let (row, col, shape, inner, outer) = match uplo {
            // V21 ← −V22·(A21·V11)
            Uplo::Lower => (o + s, o, [t, s], v11, v22),
            // V12 ← −V11·(A12·V22)
            Uplo::Upper => (o, o + s, [s, t], v22, v11),
        };
        let (beside, result) = (blocks(a, row, col, shape, 2 * s), blocks(v, row, col, shape, 2 * s));
        let [rows, cols] = shape;
        let products = Batch { first: View { buffer: memory, at: 0, rows, cols, ld: rows }, step: rows * cols };
        let [one, minus_one, zero] = [1.0, -1.0, 0.0].map(|number| self.value(number));
        // SAFETY: the caller upholds the contract of this module. The products are written to scratch memory that nothing else uses.
        unsafe {
            self.gemm_each(count, one, (Op::NoTrans, beside), (Op::NoTrans, inner), zero, products)?;
            self.gemm_each(count, minus_one, (Op::NoTrans, outer), (Op::NoTrans, products), zero, result)
        }
    }

    /// Multiplies by the inverse V of one block: B ← op(V)·B or B ← B·op(V). The product reads a copy of B in scratch memory. If the device has
    /// rejected the inverse, V is the identity, and the kernel that copies B also solves with the block by substitution.
    pub(super) unsafe fn multiply_by_inverse(
        &mut self,
        flags @ (side, _, op, _): Flags,
        inverses: Inverses<'_, D::Buffer>,
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let v = inverses.v;
        let nrhs = if side == Side::Left { b.cols } else { b.rows };
        let bytes = v.rows * self.dtype.size();
        // as many right-hand sides at a time as scratch memory holds, but at least one
        let mut most = (self.device.tuning().max_scratch_bytes / bytes.max(1)).clamp(1, nrhs.max(1));
        let memory = loop {
            match self.device.scratch(Purpose::Product, bytes * most) {
                Err(error) if error.kind() == ErrorKind::OutOfMemory && most > 1 => most = most.div_ceil(2),
                memory => break memory?,
            }
        };
        for r in (0..nrhs).step_by(most) {
            let count = most.min(nrhs - r);
            let part = match side {
                Side::Left => b.sub(0, r, v.rows, count),
                Side::Right => b.sub(r, 0, count, v.rows),
            };
            let copy = View { buffer: &*memory, at: 0, ld: part.rows, ..part };
            let (left, right) = match side {
                Side::Left => ((op, v), (Op::NoTrans, copy)),
                Side::Right => ((Op::NoTrans, copy), (op, v)),
            };
            // SAFETY: the caller upholds the contract of this module, and the scratch memory has room for the copy.
            unsafe {
                self.solve_or_copy(flags, inverses, a, (part, copy))?;
                self.gemm(self.value(1.0), left, right, self.value(0.0), part)?;
            }
        }
        Ok(())
    }

    /// Copies the right-hand sides `from` of one block to `to` if the inverse of the block has been kept, and else writes their solutions.
    unsafe fn solve_or_copy(
        &mut self,
        flags @ (side, _, _, diag): Flags,
        Inverses { v, flags_at, solve_copy: program, .. }: Inverses<'_, D::Buffer>,
        a: View<'_, D::Buffer>,
        (from, to): (View<'_, D::Buffer>, View<'_, D::Buffer>),
    ) -> Result<()> {
        let (equations, sides) = (Equations::new(flags), sides_of_copy(self.dtype));
        let nrhs = if side == Side::Left { from.cols } else { from.rows };
        let unit = Arg::Size(usize::from(diag == Diag::Unit));
        self.parts((nrhs, 1), [sides, 1], |device, (r, _, nrhs, _)| {
            let sizes = [Arg::Size(a.rows), Arg::Size(nrhs), unit, Arg::In(v.buffer), Arg::Size(flags_at)];
            let (b, c) = (equations.sides(from, r), equations.sides(to, r));
            let args = [&sizes[..], &equations.triangle(a), &[Arg::In(from.buffer)], &b, &[Arg::Out(to.buffer)], &c].concat();
            let global = [nrhs.div_ceil(sides) * program.local()[0], 1];
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { device.launch(&Call { program, kernel: "solve_copy", global, args: &args }) }
        })
    }
}
