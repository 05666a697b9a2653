//! Inverses of the blocks on the diagonal of a triangle, and products with them.

use std::ops::Range;
use std::sync::Arc;

use lapidary_core::{Diag, ErrorKind, Op, Result, Side, Uplo};

use super::Sequence;
use super::batched::Batch;
use crate::call::{Arg, Call, Target, View};
use crate::program::TRIANGLE;
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
        Inverses { v: self.v.sub(range.start, range.start, range.len(), range.len()), ..self }
    }
}

/// Returns the number of elements of the memory for the inverses of blocks of `order` rows, if the triangular matrix has `n` rows.
fn elements(n: usize, order: usize) -> usize {
    n.saturating_mul(order + 1)
}

impl<D: Target> Sequence<'_, D> {
    /// Allocates scratch memory for the inverses of the blocks of a triangular matrix of order `n`. Returns the memory and the order of the
    /// blocks. If memory is short, the order is smaller. Returns `None` if the memory does not suffice for blocks of the smallest order.
    pub(super) fn memory_for_inverses(&mut self, n: usize) -> Result<Option<(Arc<D::Buffer>, usize)>> {
        let size = self.dtype.size();
        let bytes = |order: usize| elements(n, order).saturating_mul(size);
        let mut order = self.threshold(Threshold::InvertedBlock).min(n.next_power_of_two()).max(TRIANGLE);
        while order >= TRIANGLE {
            if let Some(memory) = self.scratch_if_free(Purpose::Inverses, bytes(order))? {
                return Ok(Some((memory, order)));
            }
            order /= 2;
        }
        Ok(None)
    }

    /// Inverts the blocks of `order` rows on the diagonal of A (Du Croz and Higham 1992). The first launch inverts blocks of [`TRIANGLE`]
    /// rows. Each step then joins two neighbouring inverses into the inverse of a block of twice the order. If the device is out of memory
    /// for the products of a step, the steps end, and the blocks have a smaller order.
    pub(super) unsafe fn invert<'a>(
        &mut self,
        uplo: Uplo,
        diag: Diag,
        a: View<'_, D::Buffer>,
        (buffer, order): (&'a D::Buffer, usize),
    ) -> Result<Inverses<'a, D::Buffer>> {
        let n = a.rows;
        let all = View { buffer, at: 0, rows: elements(n, order), cols: 1, ld: elements(n, order) };
        let v = View { rows: n, cols: n, ld: order, ..all };
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
        }
        Ok(Inverses { v, order: s })
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

    /// Computes B ← op(V)·B or B ← B·op(V) for the inverse V of one block.
    pub(super) unsafe fn multiply_by_inverse(
        &mut self,
        (side, op): (Side, Op),
        Inverses { v, .. }: Inverses<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
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
                self.copy(part, copy)?;
                self.gemm(self.value(1.0), left, right, self.value(0.0), part)?;
            }
        }
        Ok(())
    }
}
