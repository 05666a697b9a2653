//! Measures the run times of kernels and transfers on one device.

use std::time::Duration;

use crate::clock::Instant;
use crate::device::{BufferRect, HostRect, Operand};
use crate::engine::DeviceRuntime;
use crate::enums::{Diag, Op, Side, TrsmMode, Uplo};
use crate::error::{Error, ErrorKind, Result};
use crate::instruction::Instruction;
use crate::scalar::{DType, Element};
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
}

/// Minimum duration of a measurement. A measurement repeats its kernel or transfer for at least `REPEAT`, because an idle device
/// needs some time to raise its clock frequency.
const REPEAT: Duration = Duration::from_millis(20);
/// Minimum number of repetitions in a measurement, since other programs may slow down some of the repetitions.
const RUNS: u32 = 4;

impl DeviceRuntime {
    /// Measures how many seconds a kernel takes. The operand A of the kernel has the order `n`. The operand B, if the kernel has
    /// one, has `cols` columns. The method returns the time of the shortest repetition of the kernel. The first execution, in
    /// which the kernel may be compiled, does not count.
    ///
    /// # Errors
    /// The device has too little memory left, or a command failed.
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
                let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
                Instruction::Trsm { mode, side, uplo, op, diag, alpha: one, a, b }
            }
            TimedKernel::Getrf => {
                Instruction::Getrf { pivoting: true, first_row: 0, a, ipiv: column(&ipiv, n), info: column(&info, 1) }
            }
        };
        self.fill(a)?;
        self.fill(b)?;
        // SAFETY: only this function uses the buffers, and each buffer is as large as its operand.
        let launch = |instruction| unsafe { device.launch(instruction) };
        // `Getrf` overwrites A, so A is restored before each repetition: factoring the result again and again would lead to
        // denormal numbers, which slow some processors down
        let restore = Instruction::Copy { a: b, b: a };
        let prepare = || if kernel == TimedKernel::Getrf { launch(&restore) } else { Ok(()) };
        self.shortest(prepare, || launch(&instruction))
    }

    /// Measures how many seconds a transfer of `bytes` to the device takes, and how many seconds a transfer of `bytes` from the
    /// device to the host takes.
    ///
    /// # Errors
    /// The device has too little memory left, or a transfer failed.
    pub fn time_transfers(&self, bytes: usize) -> Result<[f64; 2]> {
        self.require_memory(bytes)?;
        let buffer = self.note_loss(self.device().alloc(bytes))?;
        let mut host = vec![0.0_f32; bytes / DType::F32.size()];
        // each column of the transferred matrix takes one kilobyte, a usual size of a column
        let rows = host.len().min(256);
        let rect = HostRect::packed(&mut host, rows);
        // SAFETY: only this function uses the host matrix and the buffer.
        let to_device =
            self.shortest(|| Ok(()), || unsafe { self.device().write(rect, BufferRect::packed(&buffer, rect.rows)) })?;
        // SAFETY: only this function uses the host matrix and the buffer.
        let back = self.shortest(|| Ok(()), || unsafe { self.device().read(BufferRect::packed(&buffer, rect.rows), rect) })?;
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
        let mut state = 1_u32;
        let mut next = || {
            // linear congruential generator (Numerical Recipes): any numbers serve, as long as they differ from each other
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            element((f64::from(state) / f64::from(u32::MAX) - 0.5) / of.rows as f64)
        };
        let mut host: Vec<E> = (0..of.rows * of.cols).map(|_| next()).collect();
        // SAFETY: only this function uses the host matrix and the buffer.
        self.note_loss(unsafe { self.device().write(HostRect::packed(&mut host, of.rows), BufferRect::packed(buffer, of.rows)) })
    }

    /// Calls `work` several times and returns the seconds of the shortest call. The first call of `work` is not counted. The time
    /// of `prepare`, which is called before each call of `work`, is not counted.
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
