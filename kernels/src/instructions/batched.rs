//! Instructions on batches of small matrices. Either one launch computes all matrices, or the kernels of the single instruction
//! compute one matrix after the other.

use lapidary_core::{DType, Diag, Limits, Op, Result, Side, Swaps, Uplo, Value};

use super::Sequence;
use super::gemm::Factor;
use crate::call::{Arg, Call, Target, View};
use crate::database::Family;
use crate::program::Program;
use crate::thresholds::Threshold;
use crate::tuning::Tuning;

/// Number of rows, and also of columns, of a tile per work-item: for small products, and for larger ones.
const MICRO: [usize; 2] = [2, 4];
/// Number of work-items in a work-group of [`Program::LuRows`]. The same number is the largest order of a matrix for this
/// program. Larger matrices would need too many registers, because each work-item holds a row.
const ROWS: usize = 32;
/// Smallest order of a [`Program::LuRows`]. Matrices of a smaller order use the program of order [`LEAST_ROWS`].
const LEAST_ROWS: usize = 4;
/// Minimum number of elements for which [`Program::LuBatched`] has room in local memory, enough for a matrix of order 16.
const LEAST_ROOM: usize = 256;

/// Returns matrix `i` of `count` matrices that lie side by side.
fn matrix<B>(all: View<'_, B>, count: usize, i: usize) -> View<'_, B> {
    let cols = all.cols / count;
    all.sub(0, i * cols, all.rows, cols)
}

/// Returns part `i` of a column that consists of `count` equal parts.
fn piece<B>(column: View<'_, B>, count: usize, i: usize) -> View<'_, B> {
    let rows = column.rows / count;
    column.sub(i * rows, 0, rows, 1)
}

/// Returns `some` matrices, from number `first` on, of `count` matrices that lie side by side.
fn matrices<B>(all: View<'_, B>, count: usize, first: usize, some: usize) -> View<'_, B> {
    let cols = all.cols / count;
    all.sub(0, first * cols, all.rows, some * cols)
}

/// Matrices of the same shape in one buffer. A matrix begins `step` elements after the matrix before it.
pub(super) struct Batch<'a, B> {
    pub first: View<'a, B>,
    pub step: usize,
}

// implemented by hand, because a derived `Clone` would require `B: Clone`
impl<B> Clone for Batch<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Batch<'_, B> {}

impl<'a, B> Batch<'a, B> {
    /// Returns the batch of `count` matrices that lie side by side.
    fn side_by_side(all: View<'a, B>, count: usize) -> Self {
        Batch { first: matrix(all, count, 0), step: all.cols / count * all.ld }
    }

    /// Returns matrix `i`.
    fn at(&self, i: usize) -> View<'a, B> {
        View { at: self.first.at + i * self.step, ..self.first }
    }

    /// Returns the arguments for the matrices from number `i` on: buffer, first element, leading dimension, and the distance between two
    /// matrices.
    fn args(&self, i: usize, is_written: bool) -> [Arg<'a, B>; 4] {
        let [memory, at, ld] = if is_written { Arg::output(self.at(i)) } else { Arg::input(self.at(i)) };
        [memory, at, ld, Arg::Size(self.step)]
    }
}

/// Returns the arguments for matrices that lie side by side: buffer, first element, leading dimension, and the distance between
/// two matrices.
fn args<'a, B>(all: View<'a, B>, count: usize, is_written: bool) -> [Arg<'a, B>; 4] {
    Batch::side_by_side(all, count).args(0, is_written)
}

/// Returns the smallest power of two that is at least `enough`, or `most` (a power of two) if that is less.
fn items(enough: usize, most: usize) -> usize {
    enough.next_power_of_two().min(most)
}

/// Chooses the program that factors matrices of `rows` × `cols`, or solves for `cols` right-hand sides. Returns `None` if one
/// work-group would take too long or exceed the limits. `rounds` is the number of loop iterations of all work-items together.
fn lu_program(tuning: &Tuning, limits: &Limits, dtype: DType, [rows, cols]: [usize; 2], rounds: usize) -> Option<Program> {
    let items = items(rows, tuning.group(Family::Batched, dtype));
    if rows.max(cols) > tuning.threshold(Threshold::BatchedLu, dtype) || rounds.div_ceil(items) > limits.loop_iterations {
        return None;
    }
    let program = |room| Program::LuBatched { dtype, items, room };
    let inside = program((rows * cols).next_power_of_two().max(LEAST_ROOM));
    let fits = |program: &Program| program.check(limits).is_ok();
    Some(inside).filter(fits).or(Some(program(0)).filter(fits))
}

/// Chooses the program that factors all matrices of a batch in one launch.
fn getrf_program(tuning: &Tuning, limits: &Limits, dtype: DType, m: usize, n: usize) -> Option<Program> {
    let (order, items) = (m.max(n).next_power_of_two().max(LEAST_ROWS), ROWS.min(tuning.group(Family::Batched, dtype)));
    let by_rows = Program::LuRows { dtype, items, order };
    if by_rows.check(limits).is_ok() {
        return Some(by_rows);
    }
    // each element of each update takes one loop iteration
    lu_program(tuning, limits, dtype, [m, n], m.min(n) * (m + 1) * (n + 1))
}

/// Chooses the program that solves for all matrices of a batch in one launch.
fn getrs_program(tuning: &Tuning, limits: &Limits, dtype: DType, n: usize, nrhs: usize) -> Option<Program> {
    let rounds = n * (n + 2) * (nrhs + 1);
    lu_program(tuning, limits, dtype, [n, nrhs], rounds)
}

/// Chooses the program that computes all products of a batch in one launch.
fn gemm_program(tuning: &Tuning, limits: &Limits, dtype: DType, size: [usize; 3], trans: [bool; 2]) -> Option<Program> {
    let lanes = 1 << (tuning.group(Family::Batched, dtype).ilog2() / 2);
    let [m, n, k] = size;
    let micro = if m.max(n) <= lanes * MICRO[0] { MICRO[0] } else { MICRO[1] };
    let program = Program::GemmBatched { dtype, lanes, micro, trans_a: trans[0], trans_b: trans[1] };
    let tiles = m.div_ceil(lanes * micro).saturating_mul(n.div_ceil(lanes * micro));
    let most = tuning.threshold(Threshold::BatchedGemm, dtype).saturating_mul(1 << 10);
    let is_large = m.saturating_mul(n).saturating_mul(k) >= most || k > limits.loop_iterations / 2 || tiles > limits.groups;
    Some(program).filter(|program| !is_large && program.check(limits).is_ok())
}

impl<D: Target> Sequence<'_, D> {
    /// Divides the matrices into ranges (first, number). Each range fits one launch, in which each work-group computes `of_group`
    /// matrices.
    fn batches(&self, count: usize, of_group: usize) -> impl Iterator<Item = (usize, usize)> + use<D> {
        let most = self.device.facts().limits.groups.saturating_mul(of_group).min(count.max(1));
        (0..count).step_by(most).map(move |first| (first, most.min(count - first)))
    }

    /// Computes C ← α·op(A)·op(B) + β·C for each of `count` matrices that lie side by side.
    pub(super) unsafe fn gemm_batched(
        &mut self,
        count: usize,
        alpha: Value,
        (op_a, a): Factor<'_, D::Buffer>,
        (op_b, b): Factor<'_, D::Buffer>,
        beta: Value,
        c: View<'_, D::Buffer>,
    ) -> Result<()> {
        if count == 0 || c.is_empty() {
            return Ok(());
        }
        if op_a.shape((a.rows, a.cols / count)).1 == 0 || alpha.is_zero() {
            // SAFETY: the caller upholds the contract of this module.
            return unsafe { self.scale(beta, c) };
        }
        let [a, b, c] = [a, b, c].map(|all| Batch::side_by_side(all, count));
        // SAFETY: the caller upholds the contract of this module.
        unsafe { self.gemm_each(count, alpha, (op_a, a), (op_b, b), beta, c) }
    }

    /// Computes C ← α·op(A)·op(B) + β·C for each matrix of a batch. No matrix is empty.
    pub(super) unsafe fn gemm_each(
        &mut self,
        count: usize,
        alpha: Value,
        (op_a, a): (Op, Batch<'_, D::Buffer>),
        (op_b, b): (Op, Batch<'_, D::Buffer>),
        beta: Value,
        c: Batch<'_, D::Buffer>,
    ) -> Result<()> {
        let (m, n, k) = (c.first.rows, c.first.cols, op_a.shape((a.first.rows, a.first.cols)).1);
        let (tuning, limits) = (self.device.tuning(), &self.device.facts().limits);
        let program = gemm_program(tuning, limits, self.dtype, [m, n, k], [op_a.is_trans(), op_b.is_trans()]);
        let Some(program @ Program::GemmBatched { lanes, micro, .. }) = program else {
            // SAFETY: the caller upholds the contract of this module, also for one matrix of each operand.
            return (0..count).try_for_each(|i| unsafe { self.gemm(alpha, (op_a, a.at(i)), (op_b, b.at(i)), beta, c.at(i)) });
        };
        let tile = lanes * micro;
        let tiles = m.div_ceil(tile) * n.div_ceil(tile);
        self.batches(count, 1).try_for_each(|(first, some)| {
            let sizes = [Arg::Size(m), Arg::Size(n), Arg::Size(k), Arg::factor(alpha)];
            let factors = [a.args(first, false), b.args(first, false)].concat();
            let args = [&sizes[..], &factors, &[Arg::factor(beta)], &c.args(first, true)].concat();
            let global = [tiles * program.local()[0], some];
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { self.device.launch(&Call { program, kernel: "gemm_batched", global, args: &args }) }
        })
    }

    /// Factors each matrix of a batch: A = P·L·U.
    pub(super) unsafe fn getrf_batched(
        &mut self,
        count: usize,
        pivoting: bool,
        a: View<'_, D::Buffer>,
        (ipiv, info): (View<'_, D::Buffer>, View<'_, D::Buffer>),
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let (m, n) = (a.rows, a.cols / count);
        let (tuning, limits) = (self.device.tuning(), &self.device.facts().limits);
        let Some(program) = getrf_program(tuning, limits, self.dtype, m, n) else {
            // SAFETY: the caller upholds the contract of this module.
            unsafe { self.clear(info)? };
            return (0..count).try_for_each(|i| {
                // SAFETY: the caller upholds the contract of this module, also for one matrix of each operand.
                unsafe { self.getrf(pivoting, 0, matrix(a, count, i), (piece(ipiv, count, i), piece(info, count, i))) }
            });
        };
        let of_group = match program {
            Program::LuRows { items, order, .. } => items / order,
            _ => 1,
        };
        self.batches(count, of_group).try_for_each(|(first, some)| {
            let a = matrices(a, count, first, some);
            let sizes = [m, n, usize::from(pivoting)].map(Arg::Size);
            let pivots = [Arg::Out(ipiv.buffer), Arg::Size(ipiv.at + first * m.min(n))];
            let info = [Arg::Out(info.buffer), Arg::Size(info.at + first)];
            let mut args = [&sizes[..], &args(a, some, true), &pivots, &info].concat();
            let (kernel, items) = match program {
                Program::LuRows { order, .. } => {
                    debug_assert!(!a.is_empty(), "the kernel reads the first element in place of those that are not there");
                    args.push(Arg::Size(some));
                    ("getrf_rows", order)
                }
                _ => ("getrf_batched", program.local()[0]),
            };
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { self.device.launch(&Call { program, kernel, global: [some * items, 1], args: &args }) }
        })
    }

    /// Computes B ← op(A)⁻¹·B for each matrix of a batch.
    pub(super) unsafe fn getrs_batched(
        &mut self,
        count: usize,
        op: Op,
        lu: View<'_, D::Buffer>,
        ipiv: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        if count == 0 || b.is_empty() {
            return Ok(());
        }
        let (n, nrhs) = (b.rows, b.cols / count);
        let (tuning, limits) = (self.device.tuning(), &self.device.facts().limits);
        let Some(program) = getrs_program(tuning, limits, self.dtype, n, nrhs) else {
            return (0..count).try_for_each(|i| {
                // SAFETY: the caller upholds the contract of this module, also for one matrix of each operand.
                unsafe { self.getrs(op, matrix(lu, count, i), piece(ipiv, count, i), matrix(b, count, i)) }
            });
        };
        self.batches(count, 1).try_for_each(|(first, some)| {
            let part = |all| matrices(all, count, first, some);
            let sizes = [n, nrhs, usize::from(op.is_trans())].map(Arg::Size);
            let pivots = [Arg::In(ipiv.buffer), Arg::Size(ipiv.at + first * n)];
            let args = [&sizes[..], &args(part(lu), some, false), &pivots, &args(part(b), some, true)].concat();
            let global = [some * program.local()[0], 1];
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { self.device.launch(&Call { program, kernel: "getrs_batched", global, args: &args }) }
        })
    }

    /// Computes B ← op(A)⁻¹·B for one matrix.
    unsafe fn getrs(&mut self, op: Op, lu: View<'_, D::Buffer>, ipiv: View<'_, D::Buffer>, b: View<'_, D::Buffer>) -> Result<()> {
        let exchanges = Swaps { side: Side::Left, forward: !op.is_trans(), first_row: 0 };
        let [lower, upper] =
            [(Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::NonUnit)].map(|(uplo, diag)| (Side::Left, uplo, op, diag));
        // SAFETY: the caller upholds the contract of this module.
        unsafe {
            if op.is_trans() {
                self.trsm(upper, lu, b)?;
                self.trsm(lower, lu, b)?;
                self.laswp(exchanges, b, ipiv)
            } else {
                self.laswp(exchanges, b, ipiv)?;
                self.trsm(lower, lu, b)?;
                self.trsm(upper, lu, b)
            }
        }
    }

    /// Writes to `info`, for each matrix, 1 + the first row with a zero on the diagonal, or 0 if there is no zero.
    pub(super) unsafe fn zero_pivots(&mut self, count: usize, lu: View<'_, D::Buffer>, info: View<'_, D::Buffer>) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let (n, group, dtype) = (lu.rows, self.elements_group(), self.dtype);
        self.parts((count, 1), [group, 1], |device, (first, _, some, _)| {
            let info = [Arg::Out(info.buffer), Arg::Size(info.at + first)];
            let lu = args(matrices(lu, count, first, some), some, false);
            let args = [&[Arg::Size(n), Arg::Size(some)][..], &lu, &info].concat();
            let program = Program::Elements { dtype, group };
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { device.launch(&Call { program, kernel: "zero_pivots", global: [some, 1], args: &args }) }
        })
    }

    /// Fills a column of integers with zeros.
    pub(super) unsafe fn clear(&mut self, info: View<'_, D::Buffer>) -> Result<()> {
        let (group, dtype) = (self.elements_group(), self.dtype);
        self.parts((info.rows, 1), [group, 1], |device, (first, _, some, _)| {
            let args = [Arg::Size(some), Arg::Out(info.buffer), Arg::Size(info.at + first)];
            let program = Program::Elements { dtype, group };
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { device.launch(&Call { program, kernel: "clear", global: [some, 1], args: &args }) }
        })
    }
}
