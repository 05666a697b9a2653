//! Measures the run times of kernels and transfers on one device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Instant;
use crate::command::{Conditions, PanelShape};
use crate::device::{BufferRect, DeviceBuffer, HostRect, Operand, Work};
use crate::engine::DeviceRuntime;
use crate::enums::{Diag, Op, Side, TrsmMode, Uplo};
use crate::error::{Error, ErrorKind, Result};
use crate::instruction::{Instruction, Swaps};
use crate::routine::flops;
use crate::scalar::{DType, Element};
use crate::token::Token;
use crate::value::Value;

/// A kernel whose run time can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimedKernel {
    /// The matrix product C ← A·B.
    Gemm,
    /// The triangular solve B ← A⁻¹·B with a lower triangular matrix A.
    Trsm,
    /// The LU factorisation A = P·L·U.
    Getrf,
    /// Exchanges of rows of A.
    Laswp,
}

impl TimedKernel {
    /// All kernels whose run times can be measured.
    pub const ALL: [TimedKernel; 4] = [TimedKernel::Gemm, TimedKernel::Trsm, TimedKernel::Getrf, TimedKernel::Laswp];

    /// The name of the kernel, which is the name of the routine in BLAS or LAPACK.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TimedKernel::Gemm => "gemm",
            TimedKernel::Trsm => "trsm",
            TimedKernel::Getrf => "getrf",
            TimedKernel::Laswp => "laswp",
        }
    }

    /// The amount of work of a kernel with the sizes m, n and k ([`DeviceRuntime::time_kernel`]): the number of floating-point
    /// operations, or the number of elements that row exchanges move.
    #[must_use]
    pub fn work(self, [m, n, k]: [usize; 3]) -> f64 {
        match self {
            TimedKernel::Gemm => flops::gemm(m, n, k),
            TimedKernel::Trsm => flops::trsm(m, n),
            TimedKernel::Getrf => flops::getrf(m, n),
            TimedKernel::Laswp => 2.0 * k as f64 * n as f64,
        }
    }

    /// The size on which the speed of a kernel depends most, apart from the amount of work: the shortest side of a product or of a
    /// panel, the order of a triangle, or the number of pivots.
    #[must_use]
    pub fn width(self, [m, n, k]: [usize; 3]) -> usize {
        match self {
            TimedKernel::Gemm => m.min(n).min(k),
            TimedKernel::Trsm => m,
            TimedKernel::Getrf => m.min(n),
            TimedKernel::Laswp => k,
        }
    }
}

/// The times of the repetitions of a kernel or of a transfer in seconds, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(Vec<f64>);

impl Times {
    /// The shortest time, which other programs have slowed down least.
    #[must_use]
    pub fn shortest(&self) -> f64 {
        self.0[0]
    }

    /// The median of the times; for an even number of times the smaller of the two middle times.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.0[(self.0.len() - 1) / 2]
    }
}

/// Minimum duration of a measurement. A measurement repeats its kernel or transfer for at least `REPEAT`, because an idle device
/// needs some time to raise its clock frequency.
const REPEAT: Duration = Duration::from_millis(20);
/// Minimum number of repetitions in a measurement, since other programs may slow down some of the repetitions.
const RUNS: u32 = 4;
/// A measurement that has taken [`LONG`] ends after this number of repetitions, since a disturbance is short compared with them.
const LONG_RUNS: u32 = 2;
/// Duration after which fewer repetitions suffice.
const LONG: Duration = Duration::from_secs(1);

/// A linear congruential generator (Numerical Recipes). Any numbers serve, as long as they differ from each other.
struct Random(u32);

impl Default for Random {
    fn default() -> Self {
        Random(1)
    }
}

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }
}

/// The device memory of the operands of a measured kernel.
struct TimedMemory {
    /// The matrices, each with its numbers of rows and columns.
    matrices: Vec<(DeviceBuffer, (usize, usize))>,
    /// The pivots; one element for a kernel without pivots.
    pivots: DeviceBuffer,
    /// Number of pivots.
    count: usize,
    info: DeviceBuffer,
}

impl TimedMemory {
    /// The matrices as operands.
    fn operands(&self, dtype: DType) -> Vec<Operand<'_>> {
        self.matrices.iter().map(|(buffer, (rows, cols))| Operand::packed(buffer, *rows, *cols, dtype)).collect()
    }

    /// The measured instruction, and the instruction that restores its operands before each repetition, if one is needed.
    fn instructions(
        &self,
        kernel: TimedKernel,
        dtype: DType,
        [_, _, k]: [usize; 3],
    ) -> (Instruction<Operand<'_>>, Option<Instruction<Operand<'_>>>) {
        let (matrices, one) = (self.operands(dtype), Value::new(dtype, 1.0));
        let column = |buffer, rows| Operand::packed(buffer, rows, 1, DType::I32);
        match kernel {
            TimedKernel::Gemm => {
                // the updates of LU and all but the first products of a block add to C
                let (op_a, op_b, beta) = (Op::NoTrans, Op::NoTrans, one);
                let (a, b, c) = (matrices[0], matrices[1], matrices[2]);
                (Instruction::Gemm { alpha: one, op_a, a, op_b, b, beta, c }, None)
            }
            TimedKernel::Trsm => {
                let (mode, side, uplo, op, diag) = (TrsmMode::Inverted, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
                (Instruction::Trsm { mode, side, uplo, op, diag, alpha: one, a: matrices[0], b: matrices[1] }, None)
            }
            TimedKernel::Getrf => {
                let (a, kept) = (matrices[0], matrices[1]);
                let (ipiv, info) = (column(&self.pivots, self.count), column(&self.info, 1));
                // factoring the result again and again would lead to denormal numbers, which slow some processors down
                let restore = Instruction::Copy { a: kept, b: a };
                (Instruction::Getrf { pivoting: true, first_row: 0, a, ipiv, info }, Some(restore))
            }
            TimedKernel::Laswp => {
                let swaps = Swaps { side: Side::Left, forward: true, first_row: 0 };
                (Instruction::Laswp { swaps, a: matrices[0], ipiv: column(&self.pivots, k) }, None)
            }
        }
    }
}

impl DeviceRuntime {
    /// Measures how many seconds a kernel of the sizes m, n and k takes. C of a product is m×n, and its inner size is k. The triangle
    /// of a triangular solve has the order m, and there are n right-hand sides. The matrix of a factorisation is m×n. Row exchanges
    /// apply k pivots to an m×n matrix. The method returns the times of the repetitions of the kernel. The first execution, in which the
    /// kernel may be compiled, does not count.
    ///
    /// # Errors
    /// The device has too little memory left, or a command failed.
    pub fn time_kernel(&self, kernel: TimedKernel, dtype: DType, sizes: [usize; 3]) -> Result<Times> {
        let memory = self.timed_memory(kernel, dtype, sizes)?;
        let (instruction, restore) = memory.instructions(kernel, dtype, sizes);
        for operand in memory.operands(dtype) {
            self.fill(operand)?;
        }
        self.fill_pivots(&memory, sizes[0])?;
        // SAFETY: only this function uses the buffers, and each buffer is as large as its operand.
        let launch = |instruction| unsafe { self.device().launch(instruction) };
        self.repeat(|| restore.as_ref().map_or(Ok(()), launch), || launch(&instruction))
    }

    /// Measures the slowdown s by the other kernel queue: while one kernel queue of the device computes a product and the other factors a
    /// panel of `width` columns, each of the two kernels takes 1 + s times its run time alone. With s = 1, both kernels in two queues take
    /// as long as one after the other in one queue. For a device with one kernel queue, the method measures nothing and returns 1.
    ///
    /// # Errors
    /// The device has too little memory left, or a command failed.
    pub fn time_beside_panel(&self, dtype: DType, width: usize) -> Result<f64> {
        if self.facts().queues < 2 {
            return Ok(1.0);
        }
        let panel = PanelShape { rows: 2 * width, cols: width };
        let shapes = [(TimedKernel::Gemm, [4 * width, 4 * width, width]), (TimedKernel::Getrf, [panel.rows, panel.cols, width])];
        let memory = shapes.map(|(kernel, sizes)| self.timed_memory(kernel, dtype, sizes));
        let [product, lu] = memory;
        let memory = [product?, lu?];
        for operand in memory.iter().flat_map(|memory| memory.operands(dtype)) {
            self.fill(operand)?;
        }
        let [(product, _), (lu, restore)] = [0, 1].map(|at| memory[at].instructions(shapes[at].0, dtype, shapes[at].1));
        let instructions = [product, lu];
        // SAFETY: only this function uses the buffers, and each buffer is as large as its operand.
        let prepare = || restore.as_ref().map_or(Ok(()), |restore| unsafe { self.device().launch(restore) });
        let run = |queues: &[usize]| {
            let submit = |&queue: &usize| {
                let conditions = Conditions { beside_panel: (queue == 0).then_some(panel), ..Conditions::default() };
                let work = Work::Run { instruction: &instructions[queue], queue, conditions };
                // SAFETY: the two instructions use different buffers, and both are complete when `run` returns.
                unsafe { self.device().submit(work, &[]) }
            };
            let tokens: Vec<Token> = queues.iter().map(submit).collect::<Result<_>>()?;
            tokens.iter().try_for_each(Token::wait)
        };
        let time = |queues: &[usize]| self.repeat(prepare, || run(queues)).map(|times| times.median());
        let (alone, both) = ([time(&[0])?, time(&[1])?], time(&[0, 1])?);
        // while both run, each takes longer by the same factor 1 + s, so that both take the longer time plus s times the shorter time
        let [shorter, longer] = [alone[0].min(alone[1]), alone[0].max(alone[1])];
        Ok(((both - longer) / shorter).clamp(0.0, 1.0))
    }

    /// Runs products of order n on this device until another thread sets `is_done`. Meanwhile, that thread measures another device, which
    /// may share hardware with this device.
    ///
    /// # Errors
    /// The device has too little memory left, or a command failed.
    pub fn keep_busy(&self, dtype: DType, n: usize, is_done: &AtomicBool) -> Result<()> {
        let (kernel, sizes) = (TimedKernel::Gemm, [n; 3]);
        let memory = self.timed_memory(kernel, dtype, sizes)?;
        let (instruction, _) = memory.instructions(kernel, dtype, sizes);
        for operand in memory.operands(dtype) {
            self.fill(operand)?;
        }
        while !is_done.load(Ordering::Relaxed) {
            // SAFETY: only this function uses the buffers, and each buffer is as large as its operand.
            self.note_loss(unsafe { self.device().launch(&instruction) })?;
        }
        Ok(())
    }

    /// Allocates the operands of a kernel.
    fn timed_memory(&self, kernel: TimedKernel, dtype: DType, [m, n, k]: [usize; 3]) -> Result<TimedMemory> {
        let shapes = match kernel {
            TimedKernel::Gemm => vec![(m, k), (k, n), (m, n)],
            TimedKernel::Trsm => vec![(m, m), (m, n)],
            // the second matrix keeps the elements of A, which the factorisation overwrites
            TimedKernel::Getrf => vec![(m, n), (m, n)],
            TimedKernel::Laswp => vec![(m, n)],
        };
        let pivots = match kernel {
            TimedKernel::Gemm | TimedKernel::Trsm => 0,
            TimedKernel::Getrf => m.min(n),
            TimedKernel::Laswp => k,
        };
        let bytes = |(rows, cols): (usize, usize)| rows * cols * dtype.size();
        self.require_memory(shapes.iter().copied().map(bytes).sum::<usize>() + (pivots + 2) * DType::I32.size())?;
        let alloc = |bytes: usize| self.note_loss(self.device().alloc(bytes));
        let matrices = shapes.into_iter().map(|shape| Ok((alloc(bytes(shape))?, shape))).collect::<Result<_>>()?;
        let column = |count: usize| alloc(count.max(1) * DType::I32.size());
        Ok(TimedMemory { matrices, pivots: column(pivots)?, count: pivots, info: column(1)? })
    }

    /// Fills the pivots of row exchanges in a matrix of `rows` rows: exchange i moves a row below row i, if there is one.
    fn fill_pivots(&self, memory: &TimedMemory, rows: usize) -> Result<()> {
        if memory.count == 0 {
            return Ok(());
        }
        let mut random = Random::default();
        let below = |i: usize, random: u32| i + random as usize % rows.saturating_sub(i).max(1);
        let mut pivots: Vec<i32> = (0..memory.count).map(|i| i32::try_from(below(i, random.next())).unwrap_or(0)).collect();
        let rect = HostRect::packed(&mut pivots, memory.count);
        // SAFETY: only this function uses the host column and the buffer.
        self.note_loss(unsafe { self.device().write(rect, BufferRect::packed(&memory.pivots, memory.count)) })
    }

    /// Measures how many seconds transfers of `bytes` to the device take, and how many seconds transfers of `bytes` from the
    /// device to the host take.
    ///
    /// # Errors
    /// The device has too little memory left, or a transfer failed.
    pub fn time_transfers(&self, bytes: usize) -> Result<[Times; 2]> {
        self.require_memory(bytes)?;
        let buffer = self.note_loss(self.device().alloc(bytes))?;
        let mut host = vec![0.0_f32; bytes / DType::F32.size()];
        // each column of the transferred matrix takes one kilobyte, a usual size of a column
        let rows = host.len().min(256);
        let rect = HostRect::packed(&mut host, rows);
        // SAFETY: only this function uses the host matrix and the buffer.
        let to_device = self.repeat(|| Ok(()), || unsafe { self.device().write(rect, BufferRect::packed(&buffer, rect.rows)) })?;
        // SAFETY: only this function uses the host matrix and the buffer.
        let back = self.repeat(|| Ok(()), || unsafe { self.device().read(BufferRect::packed(&buffer, rect.rows), rect) })?;
        Ok([to_device, back])
    }

    /// Returns an error if the resident matrices leave fewer than `bytes` of the device's memory limit for a measurement.
    fn require_memory(&self, bytes: usize) -> Result<()> {
        let left = self.free_memory();
        if bytes <= left {
            return Ok(());
        }
        let message = format!("a measurement takes {bytes} bytes, {} has {left} left", self.facts().name);
        Err(Error::new(ErrorKind::OutOfMemory, "measure", message))
    }

    /// Fills a packed matrix of n rows, which lies in a buffer of the device, with numbers of magnitude at most 1/(2n). A
    /// triangular solve neither overflows nor underflows if the triangular matrix has a unit diagonal and its other elements have
    /// magnitudes of at most 1/(2n).
    fn fill(&self, of: Operand<'_>) -> Result<()> {
        match of.dtype {
            DType::F32 => self.fill_as(of, |number| number as f32),
            DType::F64 => self.fill_as(of, |number| number),
            DType::I32 => unreachable!("matrices are floating-point"),
            #[cfg(test)]
            DType::Wide => unreachable!("matrices are floating-point"),
        }
    }

    fn fill_as<E: Element>(&self, of: Operand<'_>, element: impl Fn(f64) -> E) -> Result<()> {
        let crate::device::Memory::Buffer(buffer) = of.memory else { unreachable!("the matrix lies in a buffer") };
        let mut random = Random::default();
        let mut next = || element((f64::from(random.next()) / f64::from(u32::MAX) - 0.5) / of.rows as f64);
        let mut host: Vec<E> = (0..of.rows * of.cols).map(|_| next()).collect();
        // SAFETY: only this function uses the host matrix and the buffer.
        self.note_loss(unsafe { self.device().write(HostRect::packed(&mut host, of.rows), BufferRect::packed(buffer, of.rows)) })
    }

    /// Calls `work` several times and returns the times of the calls. The first call of `work` is not counted. The time of `prepare`,
    /// which is called before each call of `work`, is not counted.
    fn repeat(&self, prepare: impl Fn() -> Result<()>, work: impl Fn() -> Result<()>) -> Result<Times> {
        self.note_loss(prepare().and_then(|()| work()))?;
        let (begin, mut times) = (Instant::now(), Vec::new());
        for run in 0.. {
            let elapsed = begin.elapsed();
            if (run >= RUNS && elapsed >= REPEAT) || (run >= LONG_RUNS && elapsed >= LONG) {
                break;
            }
            self.note_loss(prepare())?;
            let start = Instant::now();
            self.note_loss(work())?;
            times.push(start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok(Times(times))
    }
}
