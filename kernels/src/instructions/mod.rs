//! Instructions as sequences of kernel calls. The sequences do not depend on the dialect of the kernels.
//!
//! All `unsafe` functions have one contract: the views lie in their buffers, and kernels may read and write the views as the
//! instruction says.

mod batched;
mod beside;
mod block;
mod gemm;
mod getrf;
mod inverses;
mod mma;
mod split;
mod triangle;
mod vectors;

use std::sync::Arc;

use lapidary_core::{DType, ErrorKind, Instruction, Limits, Result, Side, Swaps, Value};

use crate::call::{Arg, Call, Target, View};
use crate::database::Family;
use crate::program::{Program, exchanges_of_group};
use crate::scratch::Purpose;
use crate::thresholds::Threshold;

/// Maximum number of work-items in a work-group of a launch with few exchanges: so few that work-groups of this size combine all of them into one
/// permutation. In a larger work-group, most work-items would have no element to move.
const ITEMS_FOR_FEW_EXCHANGES: usize = 128;

/// Enqueues the kernels of an instruction on matrices of `dtype`.
///
/// # Safety
/// The views lie in their buffers, hold elements of `dtype`, and may be read and written as the instruction says.
///
/// # Errors
/// The errors of [`Target::launch`] and [`Target::scratch`]. Kernels that were enqueued before the error stay enqueued.
pub unsafe fn enqueue<D: Target>(device: &mut D, dtype: DType, instruction: &Instruction<View<'_, D::Buffer>>) -> Result<()> {
    device.begin(instruction.name());
    let mut sequence = Sequence { device, dtype };
    // SAFETY: the caller upholds the contract of this function.
    unsafe {
        match *instruction {
            Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c } => sequence.gemm(alpha, (op_a, a), (op_b, b), beta, c),
            Instruction::Trsm { mode, side, uplo, op, diag, alpha, a, b } => {
                sequence.scale(alpha, b)?;
                if alpha.is_zero() { Ok(()) } else { sequence.trsm_in_mode(mode, (side, uplo, op, diag), a, b) }
            }
            Instruction::Getrf { pivoting, first_row, a, ipiv, info } => sequence.getrf(pivoting, first_row, a, (ipiv, info)),
            Instruction::Laswp { swaps, a, ipiv } => sequence.laswp(swaps, a, ipiv),
            Instruction::Copy { a, b } => sequence.copy(("copy", None), a, b),
            Instruction::Narrow { alpha, a, b } => sequence.copy(("narrow", Some(alpha)), a, b),
            Instruction::Scale { beta, c } => sequence.scale(beta, c),
            Instruction::GemmBatched { count, alpha, op_a, a, op_b, b, beta, c } => {
                sequence.gemm_batched(count, alpha, (op_a, a), (op_b, b), beta, c)
            }
            Instruction::GetrfBatched { count, pivoting, a, ipiv, info } => {
                sequence.getrf_batched(count, pivoting, a, (ipiv, info))
            }
            Instruction::GetrsBatched { count, op, lu, ipiv, b } => sequence.getrs_batched(count, op, lu, ipiv, b),
            Instruction::ZeroPivots { count, lu, info } => sequence.zero_pivots(count, lu, info),
        }
    }
}

/// A sequence of kernel calls for one instruction on one device.
struct Sequence<'d, D> {
    device: &'d mut D,
    /// Element type of the matrices.
    dtype: DType,
}

impl<D: Target> Sequence<'_, D> {
    /// Returns a number as a factor in the element type of the matrices.
    fn value(&self, number: f64) -> Value {
        Value::new(self.dtype, number)
    }

    /// Returns the value of a threshold for the element type of the matrices.
    fn threshold(&self, threshold: Threshold) -> usize {
        self.device.tuning().threshold(threshold, self.dtype)
    }

    /// Returns the number of work-items in a work-group of the kernels in which each work-item works alone.
    fn elements_group(&self) -> usize {
        self.device.tuning().group(Family::Elements, self.dtype)
    }

    /// Returns the first size of work-groups that the database names for a family and a number of rows, and with which the device can run
    /// the kernel. Returns `None` if there is no such size.
    fn first_that_runs(
        &mut self,
        (family, rows): (Family, usize),
        program: impl Fn(usize) -> Program,
        kernel: &'static str,
    ) -> Result<Option<usize>> {
        for entry in 0.. {
            let Some(items) = self.device.tuning().groups(family, self.dtype, rows).nth(entry) else { break };
            if self.device.can_run(&program(items), kernel)? {
                return Ok(Some(items));
            }
        }
        Ok(None)
    }

    /// Allocates scratch memory. Returns `None` if `bytes` exceeds the limit for scratch memory, or if the device is out of memory.
    fn scratch_if_free(&mut self, purpose: Purpose, bytes: usize) -> Result<Option<Arc<D::Buffer>>> {
        if bytes > self.device.tuning().max_scratch_bytes {
            return Ok(None);
        }
        match self.device.scratch(purpose, bytes) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => Ok(None),
            memory => memory.map(Some),
        }
    }

    /// Computes C ← β·C.
    unsafe fn scale(&mut self, beta: Value, c: View<'_, D::Buffer>) -> Result<()> {
        if beta.is_one() {
            return Ok(());
        }
        let (group, dtype) = (self.elements_group(), self.dtype);
        self.parts((c.rows, c.cols), [group, 1], |device, (i, j, rows, cols)| {
            let c = c.sub(i, j, rows, cols);
            let args = [&[Arg::Size(rows), Arg::Size(cols), Arg::factor(beta)][..], &Arg::output(c)].concat();
            let program = Program::Elements { dtype, group };
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { device.launch(&Call { program, kernel: "scale", global: [rows, cols], args: &args }) }
        })
    }

    /// Copies a matrix by a kernel: B ← A by `copy`, or B ← α·A by `narrow`, whose factor is `alpha`.
    unsafe fn copy(
        &mut self,
        (kernel, alpha): (&'static str, Option<Value>),
        a: View<'_, D::Buffer>,
        b: View<'_, D::Buffer>,
    ) -> Result<()> {
        let (group, dtype) = (self.elements_group(), self.dtype);
        self.parts((b.rows, b.cols), [group, 1], |device, (i, j, rows, cols)| {
            let (a, b) = (a.sub(i, j, rows, cols), b.sub(i, j, rows, cols));
            let mut args = vec![Arg::Size(rows), Arg::Size(cols)];
            args.extend(alpha.map(Arg::factor).into_iter().chain(Arg::input(a)).chain(Arg::output(b)));
            let program = Program::Elements { dtype, group };
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { device.launch(&Call { program, kernel, global: [rows, cols], args: &args }) }
        })
    }

    /// Exchanges rows or columns of a matrix.
    unsafe fn laswp(&mut self, swaps: Swaps, a: View<'_, D::Buffer>, ipiv: View<'_, D::Buffer>) -> Result<()> {
        let Limits { groups, loop_iterations: rounds, .. } = self.device.facts().limits;
        if a.is_empty() || ipiv.is_empty() {
            return Ok(());
        }
        let (count, forward) = (ipiv.rows, Arg::Size(usize::from(swaps.forward)));
        let first = Arg::Size(swaps.first_row);
        let pivots = [Arg::In(ipiv.buffer), Arg::Size(ipiv.at)];
        let (group, dtype) = (self.elements_group(), self.dtype);
        let is_few = count <= exchanges_of_group(ITEMS_FOR_FEW_EXCHANGES);
        let items_of = |listed: usize| if is_few { listed.min(ITEMS_FOR_FEW_EXCHANGES) } else { listed };
        let together = match swaps.side {
            Side::Left => self.first_that_runs(
                (Family::Exchange, a.rows),
                |listed| Program::Exchange { dtype, items: items_of(listed) },
                "exchange",
            )?,
            Side::Right => None,
        };
        if let Some(listed) = together {
            let items = items_of(listed);
            let program = Program::Exchange { dtype, items };
            let args = [&[Arg::Size(count), Arg::Size(a.cols), forward, first][..], &Arg::output(a), &pivots].concat();
            let groups = (self.threshold(Threshold::ExchangeGroups) * (listed / items)).min(groups);
            let global = [a.cols.min(groups) * items, 1];
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            return unsafe { self.device.launch(&Call { program, kernel: "exchange", global, args: &args }) };
        }
        let (places, by_line, by_place) = match swaps.side {
            Side::Left => (a.cols, 1, a.ld),
            Side::Right => (a.rows, a.ld, 1),
        };
        let program = Program::Elements { dtype, group };
        self.parts((places, 1), [group, 1], |device, (place, _, places, _)| {
            let memory = [Arg::Out(a.buffer), Arg::Size(a.at + place * by_place), Arg::Size(by_line), Arg::Size(by_place)];
            // one launch makes at most as many exchanges as a loop may have iterations
            // in reverse order, the launch with the last exchanges comes first
            let mut begins: Vec<usize> = (0..count).step_by(rounds.min(count)).collect();
            if !swaps.forward {
                begins.reverse();
            }
            begins.into_iter().try_for_each(|begin| {
                let sizes = [begin, rounds.min(count - begin), places].map(Arg::Size);
                let args = [&sizes[..], &[forward, first], &memory, &pivots].concat();
                // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
                unsafe { device.launch(&Call { program, kernel: "laswp", global: [places, 1], args: &args }) }
            })
        })
    }

    /// Divides an extent into rectangles and calls `launch` with the row, column, number of rows and number of columns of each
    /// rectangle. One launch covers a rectangle, and each work-group covers `tile` elements. No rectangle is empty.
    fn parts(
        &mut self,
        (rows, cols): (usize, usize),
        tile: [usize; 2],
        mut launch: impl FnMut(&mut D, (usize, usize, usize, usize)) -> Result<()>,
    ) -> Result<()> {
        let [high, wide] = tile.map(|side| side.saturating_mul(self.device.facts().limits.groups));
        for j in (0..cols).step_by(wide) {
            for i in (0..rows).step_by(high) {
                launch(self.device, (i, j, high.min(rows - i), wide.min(cols - j)))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
