//! Times of one device, measured: kernels and transfers.

use std::time::{Duration, Instant};

use crate::device::{HostRect, Operand};
use crate::engine::DeviceRuntime;
use crate::enums::{Diag, Op, Side, Uplo};
use crate::error::{Error, ErrorKind, Result};
use crate::instruction::Instruction;
use crate::scalar::{DType, Element};
use crate::value::Value;

/// A kernel whose time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimedKernel {
    /// C ← A·B.
    Gemm,
    /// B ← A⁻¹·B with a lower triangle A.
    Trsm,
    /// A = P·L·U.
    Getrf,
}

/// A measurement repeats the work for at least this long, until the clock of an idle device has risen, and at least [`RUNS`]
/// times, since other programs slow some runs down.
const REPEAT: Duration = Duration::from_millis(20);
const RUNS: u32 = 4;

impl DeviceRuntime {
    /// Seconds of a kernel with an A of order `n`, and a B of `cols` columns where the kernel has one: the shortest of some
    /// runs, not counting the first one, which may compile.
    ///
    /// # Errors
    /// The device has no memory left, or failed.
    pub fn time_kernel(&self, kernel: TimedKernel, dtype: DType, n: usize, cols: usize) -> Result<f64> {
        let device = self.device();
        self.require_memory((n * n + 2 * n * cols) * dtype.size() + (n + 1) * DType::I32.size())?;
        let buffers = [n * n, n * cols, n * cols].map(|elements| device.alloc(elements * dtype.size()));
        let [a, b, c] = buffers;
        let (a, b, c) = (self.note_loss(a)?, self.note_loss(b)?, self.note_loss(c)?);
        let pivots = [n * DType::I32.size(), DType::I32.size()].map(|bytes| device.alloc(bytes));
        let [ipiv, info] = pivots;
        let (ipiv, info) = (self.note_loss(ipiv)?, self.note_loss(info)?);
        let column = |buffer, rows| Operand::packed(buffer, rows, 1, DType::I32);
        let [a, b, c] = [(&a, n), (&b, cols), (&c, cols)].map(|(buffer, cols)| Operand::packed(buffer, n, cols, dtype));
        let one = Value::new(dtype, 1.0);
        let instruction = match kernel {
            TimedKernel::Gemm => {
                let (op_a, op_b, beta) = (Op::NoTrans, Op::NoTrans, Value::new(dtype, 0.0));
                Instruction::Gemm { alpha: one, op_a, a, op_b, b, beta, c }
            }
            TimedKernel::Trsm => {
                let (side, uplo, op, diag) = (Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
                Instruction::Trsm { side, uplo, op, diag, alpha: one, a, b }
            }
            TimedKernel::Getrf => {
                Instruction::Getrf { pivoting: true, first_row: 0, a, ipiv: column(&ipiv, n), info: column(&info, 1) }
            }
        };
        self.fill(a)?;
        self.fill(b)?;
        // SAFETY: the buffers are ours, of the sizes that the instructions need, and nothing else uses them.
        let launch = |instruction| unsafe { device.launch(instruction) };
        // factoring the factors again and again would end in denormal numbers, with which some processors are slow
        let restore = Instruction::Copy { a: b, b: a };
        let prepare = || if kernel == TimedKernel::Getrf { launch(&restore) } else { Ok(()) };
        self.shortest(prepare, || launch(&instruction))
    }

    /// Seconds of a transfer of `bytes` to the device, and back.
    ///
    /// # Errors
    /// The device has no memory left, or failed.
    pub fn time_transfers(&self, bytes: usize) -> Result<[f64; 2]> {
        self.require_memory(bytes)?;
        let buffer = self.note_loss(self.device().alloc(bytes))?;
        let mut host = vec![0.0_f32; bytes / DType::F32.size()];
        // columns of a kilobyte or more, as those of most matrices
        let rows = host.len().min(256);
        let rect = HostRect::packed(&mut host, rows);
        // SAFETY: the host's matrix and the buffer are ours alone.
        let to_device = self.shortest(|| Ok(()), || unsafe { self.device().write(rect, &buffer) })?;
        // SAFETY: as above.
        let back = self.shortest(|| Ok(()), || unsafe { self.device().read(&buffer, rect) })?;
        Ok([to_device, back])
    }

    /// Refuses a measurement for which a memory limit, or resident matrices, leave too little.
    fn require_memory(&self, bytes: usize) -> Result<()> {
        let left = self.free_memory();
        if bytes <= left {
            return Ok(());
        }
        let message = format!("a measurement takes {bytes} bytes, {} has {left} left", self.facts().name);
        Err(Error::new(ErrorKind::OutOfMemory, "measure", message))
    }

    /// Fills a matrix that is packed in a buffer of the device with numbers of up to 1/n: triangles with ones on their
    /// diagonal neither grow nor vanish in a solve.
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
        let mut state = 1_u32;
        let mut next = || {
            // a linear congruential generator (Numerical Recipes): any values do, as long as they differ
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            element((f64::from(state) / f64::from(u32::MAX) - 0.5) / of.rows as f64)
        };
        let mut host: Vec<E> = (0..of.rows * of.cols).map(|_| next()).collect();
        // SAFETY: the host's matrix and the buffer are ours alone.
        self.note_loss(unsafe { self.device().write(HostRect::packed(&mut host, of.rows), buffer) })
    }

    /// Seconds of the shortest run of some `work`. The first run does not count, nor does what `prepare` takes before each.
    fn shortest(&self, prepare: impl Fn() -> Result<()>, work: impl Fn() -> Result<()>) -> Result<f64> {
        self.note_loss(prepare().and_then(|()| work()))?;
        let (begin, mut shortest) = (Instant::now(), f64::INFINITY);
        for run in 0.. {
            if run >= RUNS && begin.elapsed() >= REPEAT {
                break;
            }
            self.note_loss(prepare())?;
            let start = Instant::now();
            self.note_loss(work())?;
            shortest = shortest.min(start.elapsed().as_secs_f64());
        }
        Ok(shortest)
    }
}
