//! CPU devices, each with one deliberate fault.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use lapidary_backend_cpu::CpuDevice;
use lapidary_core::{
    Accuracy, BufferRect, Conditions, DType, Device, DeviceBuffer, DeviceFacts, Diag, HostRect, Instruction, Memory, Op, Operand,
    Pending, Result, Scalar, Side, Token, TrsmMode, Uplo, Value, Work,
};

/// The fault of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFault {
    /// A barrier is missing: in the last step along k, which is shorter, the kernel works on the tiles of an earlier step.
    StaleLocalMemory,
    /// Some instructions run before a transfer that was submitted before them.
    OneCommandReordered,
    /// The token of an instruction reports that the instruction has ended before it has.
    EndsEarly,
    /// Instructions in one queue do not wait for tokens of instructions in other queues.
    IgnoresOtherQueues,
    /// A read of more than 16 rows leaves the last row of the host rectangle unchanged.
    DropsLastRowOfTransfer,
    /// A read also writes the element of host memory after the last element of the rectangle.
    WritesBesideTransfer,
    /// Transfers copy to and from the beginning of a buffer, without gaps between columns, wherever the rectangle of the buffer lies.
    IgnoresPlaceInBuffer,
    /// Transfers round numbers to single precision.
    RoundsTransfers,
    /// If the driver refuses an allocation, the device returns a small buffer in place of an error.
    SwallowsErrors,
    /// `info` of a panel is written to another buffer, so that the caller does not receive it.
    LosesInfoOfPanel,
    /// LU without pivoting exchanges rows.
    AlwaysPivots,
    /// Row indices are written to the beginning of their buffer, even if the offset of the operand is not zero.
    IgnoresOffsetOfPivots,
    /// The last element of a factored panel, or of an inverse, becomes NaN.
    EndsInNan,
    /// In the mode inverted, the right-hand sides are multiplied by the inverse of the triangle, however inaccurate the inverse is.
    KeepsInaccurateInverses,
    /// Transfers replace every NaN by the standard NaN.
    CanonicalisesNan,
    /// All threads share one staging buffer for reads.
    SharesStaging,
    /// With `β = 0` a product reads the old elements of its result.
    ReadsNewMemory,
    /// Transfers round integers to single precision.
    RoundsIndices,
    /// A copy leaves out the last column.
    CopiesTooLittle,
    /// A copy in `f32` is not multiplied by α.
    NarrowsUnscaled,
    /// The last term is left out of products that need to be accurate in norm only.
    LeavesTermInNorm,
    /// Columns of a product that lie beyond the 2^16th element of its buffer are written to the beginning of the buffer.
    WrapsInBuffer,
    /// The last matrix of a batch is left unchanged.
    LeavesLastOfBatch,
    /// `getrs_batched` solves `A·X = B` in place of `Aᵀ·X = B`.
    SolvesBatchUntransposed,
}

/// A CPU device with one fault.
#[derive(Debug)]
pub struct WrongDevice {
    inner: CpuDevice,
    facts: DeviceFacts,
    fault: DeviceFault,
    deferred: Arc<Deferred>,
    writes: AtomicUsize,
    /// The address of a buffer, and its contents before a transfer that the next instruction on this buffer must not see.
    late: Mutex<Option<(usize, Vec<i32>)>>,
    staging: Mutex<Vec<f64>>,
}

impl WrongDevice {
    /// Creates a device that has its own memory and the given fault.
    pub fn new(fault: DeviceFault) -> Self {
        let inner = CpuDevice::new(0, Some(1 << 30));
        let mut facts = inner.facts().clone();
        facts.queues = if fault == DeviceFault::IgnoresOtherQueues { 2 } else { 1 };
        let deferred = Arc::new(Deferred { device: CpuDevice::new(0, Some(1 << 30)), work: Mutex::default() });
        WrongDevice {
            inner,
            facts,
            fault,
            deferred,
            writes: AtomicUsize::new(0),
            late: Mutex::default(),
            staging: Mutex::default(),
        }
    }

    fn is(&self, fault: DeviceFault) -> bool {
        self.fault == fault
    }
}

fn address(buffer: &DeviceBuffer) -> usize {
    std::ptr::from_ref(buffer).addr()
}

/// A column of 32-bit words as a host rectangle.
fn words(data: &mut [i32]) -> HostRect {
    let rows = data.len();
    HostRect::packed(data, rows)
}

/// Replaces a number that is NaN by the standard NaN.
///
/// # Safety
/// `element` must point to a number of the type `dtype` in memory that may be read and written.
unsafe fn canonicalise(dtype: DType, element: *mut u8) {
    // SAFETY: the caller guarantees that `element` points to a number of the type `dtype` that may be read and written.
    unsafe {
        match dtype {
            DType::F32 if element.cast::<f32>().read().is_nan() => element.cast::<f32>().write(f32::NAN),
            DType::F64 if element.cast::<f64>().read().is_nan() => element.cast::<f64>().write(f64::NAN),
            _ => {}
        }
    }
}

/// The elements of the identity of order `n`.
fn identity<T: Scalar>(n: usize) -> Vec<T> {
    (0..n * n).map(|at| if at.is_multiple_of(n + 1) { T::ONE } else { T::ZERO }).collect()
}

/// The first `count` columns of `op(A)`.
fn columns<'b>(op: Op, a: Operand<'b>, count: usize) -> Operand<'b> {
    if op.is_trans() { Operand { rows: count, ..a } } else { Operand { cols: count, ..a } }
}

impl Device for WrongDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        match self.inner.alloc(bytes) {
            Err(_) if self.is(DeviceFault::SwallowsErrors) => self.inner.alloc(64),
            other => other,
        }
    }

    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        // SAFETY: the caller guarantees the contract of `Device::write`. The extra read of the buffer `to` takes as many bytes as
        // the write, so that it stays inside the buffer.
        unsafe {
            if self.is(DeviceFault::OneCommandReordered) && self.writes.fetch_add(1, Ordering::Relaxed) % 5 == 4 {
                let mut before = vec![0; from.rows * from.cols * from.dtype.size() / 4];
                let rows = before.len();
                self.inner.read(BufferRect::packed(to.buffer, rows), words(&mut before))?;
                *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some((address(to.buffer), before));
            }
            self.inner.write(from, self.place(to, from.rows))
        }
    }

    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        let HostRect { rows, cols, row_stride, col_stride, origin, dtype } = to;
        let size = dtype.size();
        let at = |i: usize, j: usize| origin.wrapping_add((i * row_stride + j * col_stride) * size);
        // SAFETY: the caller guarantees the contract of `Device::read`. The element after the rectangle, which one fault writes,
        // lies in the buffer of the suite that contains the rectangle.
        unsafe {
            let element = |at: *mut u8| std::slice::from_raw_parts_mut(at, size);
            let last: Vec<Vec<u8>> = (0..cols).map(|j| element(at(rows - 1, j)).to_vec()).collect();
            self.inner.read(self.place(from, rows), to)?;
            match self.fault {
                DeviceFault::DropsLastRowOfTransfer if rows > 16 => {
                    (0..cols).for_each(|j| element(at(rows - 1, j)).copy_from_slice(&last[j]));
                }
                DeviceFault::WritesBesideTransfer if rows > 1 => at(rows - 1, cols - 1).add(size).copy_from(at(0, 0), size),
                DeviceFault::RoundsTransfers if dtype == DType::F64 => {
                    for (i, j) in (0..cols).flat_map(|j| (0..rows).map(move |i| (i, j))) {
                        let element = at(i, j).cast::<f64>();
                        element.write(f64::from(element.read() as f32));
                    }
                }
                DeviceFault::RoundsIndices if dtype == DType::I32 => {
                    for i in 0..rows {
                        let element = at(i, 0).cast::<i32>();
                        element.write(element.read() as f32 as i32);
                    }
                }
                DeviceFault::CanonicalisesNan => {
                    for (i, j) in (0..cols).flat_map(|j| (0..rows).map(move |i| (i, j))) {
                        canonicalise(dtype, at(i, j));
                    }
                }
                // the read above has returned the data from before the deferred instructions
                DeviceFault::EndsEarly => self.deferred.run()?,
                DeviceFault::SharesStaging if dtype == DType::F64 && row_stride == 1 => self.through_staging(to),
                _ => {}
            }
        }
        Ok(())
    }

    unsafe fn submit(&self, work: Work<'_>, after: &[&Token]) -> Result<Token> {
        match (self.fault, work) {
            (DeviceFault::EndsEarly, Work::Run { instruction, .. }) => {
                self.deferred.run()?;
                // SAFETY: the caller guarantees that the operands are valid until the instruction ends. The suite reads each result
                // before it frees the operands, and a read runs the deferred instructions.
                unsafe { self.deferred.add(instruction) };
                Ok(Token::DONE)
            }
            (DeviceFault::IgnoresOtherQueues, Work::Run { instruction, queue: 0, .. }) => {
                // SAFETY: the caller guarantees that the operands are valid until the token reports the end of the instruction. The
                // suite waits for the token, which runs the instruction, before it frees the operands.
                unsafe { self.deferred.add(instruction) };
                Ok(Token::new(Waited(Arc::clone(&self.deferred))))
            }
            // SAFETY: the contract of `Device::submit`, which the caller guarantees, includes that of `Device::launch`.
            (DeviceFault::IgnoresOtherQueues, Work::Run { instruction, .. }) => unsafe {
                self.launch(instruction).map(|()| Token::DONE)
            },
            (
                DeviceFault::LeavesTermInNorm,
                Work::Run {
                    instruction: &Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c },
                    conditions: Conditions { accuracy: Accuracy::Normwise, .. },
                    ..
                },
            ) => {
                let count = op_a.shape((a.rows, a.cols)).1 - 1;
                let (a, b) = (columns(op_a, a, count), columns(op_b.flip(), b, count));
                // SAFETY: the contract of `Device::submit`, which the caller guarantees, includes that of `Device::launch`.
                unsafe { self.launch(&Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c }).map(|()| Token::DONE) }
            }
            // SAFETY: the caller guarantees the contract of `Device::submit`, and the commands in `after` have ended before this
            // command begins.
            _ => unsafe {
                after.iter().try_for_each(|token| token.wait())?;
                match work {
                    Work::Write { from, to } => self.write(from, to)?,
                    Work::Read { from, to } => self.read(from, to)?,
                    Work::Run { instruction, .. } => self.launch(instruction)?,
                }
                Ok(Token::DONE)
            },
        }
    }

    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        // SAFETY: the caller guarantees the contract of `Device::launch`.
        unsafe {
            match (self.fault, *instruction) {
                (DeviceFault::StaleLocalMemory, Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c }) => {
                    let k = op_a.shape((a.rows, a.cols)).1;
                    let step = |count, beta| {
                        let (a, b) = (columns(op_a, a, count), columns(op_b.flip(), b, count));
                        self.inner.launch(&Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c })
                    };
                    let tail = k % 8;
                    if k < 8 || tail == 0 {
                        return self.inner.launch(instruction);
                    }
                    step(k - tail, beta)?;
                    step(tail, Value::new(c.dtype, 1.0))
                }
                (DeviceFault::LosesInfoOfPanel, Instruction::Getrf { pivoting, first_row, a, ipiv, info }) => {
                    let elsewhere = self.inner.alloc(4)?;
                    let info = Operand { memory: Memory::Buffer(&elsewhere), ..info };
                    self.inner.launch(&Instruction::Getrf { pivoting, first_row, a, ipiv, info })
                }
                (DeviceFault::AlwaysPivots, Instruction::Getrf { first_row, a, ipiv, info, .. }) => {
                    self.inner.launch(&Instruction::Getrf { pivoting: true, first_row, a, ipiv, info })
                }
                (DeviceFault::IgnoresOffsetOfPivots, Instruction::Getrf { pivoting, first_row, a, ipiv, info }) => {
                    let ipiv = Operand { offset: 0, ..ipiv };
                    self.inner.launch(&Instruction::Getrf { pivoting, first_row, a, ipiv, info })
                }
                (DeviceFault::ReadsNewMemory, Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c }) if beta.is_zero() => {
                    self.inner.launch(&Instruction::Scale { beta: Value::new(c.dtype, 1.0e-30), c })?;
                    self.inner.launch(&Instruction::Gemm { alpha, op_a, a, op_b, b, beta: Value::new(c.dtype, 1.0), c })
                }
                (DeviceFault::NarrowsUnscaled, Instruction::Narrow { a, b, .. }) => {
                    self.inner.launch(&Instruction::Narrow { alpha: Value::F64(1.0), a, b })
                }
                (DeviceFault::CopiesTooLittle, Instruction::Copy { a, b }) => {
                    let narrower = |x: Operand<'_>| x.cols.saturating_sub(1);
                    let (a, b) = (Operand { cols: narrower(a), ..a }, Operand { cols: narrower(b), ..b });
                    self.inner.launch(&Instruction::Copy { a, b })
                }
                (DeviceFault::WrapsInBuffer, Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c }) if c.cols * c.ld > 1 << 16 => {
                    let first = (1 << 16) / c.ld;
                    let part = |offset, cols| {
                        let (b, c) = (Operand { offset: b.offset + offset * b.ld, cols, ..b }, Operand { cols, ..c });
                        self.inner.launch(&Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c })
                    };
                    part(0, first)?;
                    part(first, c.cols - first)
                }
                (
                    DeviceFault::EndsInNan,
                    Instruction::Getrf { a, .. } | Instruction::Trsm { mode: TrsmMode::Inverted, b: a, .. },
                ) => {
                    self.inner.launch(instruction)?;
                    let last = Operand { offset: a.offset + a.rows - 1 + (a.cols - 1) * a.ld, rows: 1, cols: 1, ..a };
                    self.inner.launch(&Instruction::Scale { beta: Value::new(a.dtype, f64::NAN), c: last })
                }
                (
                    DeviceFault::KeepsInaccurateInverses,
                    Instruction::Trsm { mode: TrsmMode::Inverted, side, uplo, op, diag, alpha, a, b },
                ) => self.multiply_by_inverse((side, uplo, op, diag), alpha, a, b),
                (DeviceFault::LeavesLastOfBatch, Instruction::GemmBatched { count, alpha, op_a, a, op_b, b, beta, c }) => {
                    let [a, b, c] = [a, b, c].map(|x| Operand { cols: x.cols / count * (count - 1), ..x });
                    self.inner.launch(&Instruction::GemmBatched { count: count - 1, alpha, op_a, a, op_b, b, beta, c })
                }
                (DeviceFault::SolvesBatchUntransposed, Instruction::GetrsBatched { count, lu, ipiv, b, .. }) => {
                    self.inner.launch(&Instruction::GetrsBatched { count, op: Op::NoTrans, lu, ipiv, b })
                }
                (DeviceFault::OneCommandReordered, _) => self.before_its_transfer(instruction),
                _ => self.inner.launch(instruction),
            }
        }
    }
}

/// Instructions that the device has accepted and runs later.
#[derive(Debug)]
struct Deferred {
    device: CpuDevice,
    work: Mutex<Vec<Instruction<Operand<'static>>>>,
}

impl Deferred {
    /// # Safety
    /// The operands of the instruction must stay valid until the instruction has run, and no other command may conflict with it.
    unsafe fn add(&self, instruction: &Instruction<Operand<'_>>) {
        // SAFETY: `transmute` changes only the lifetime of the operands. The caller guarantees that the operands stay valid until
        // the instruction has run.
        let owned = unsafe { std::mem::transmute::<Instruction<Operand<'_>>, Instruction<Operand<'static>>>(*instruction) };
        self.work.lock().unwrap_or_else(PoisonError::into_inner).push(owned);
    }

    fn run(&self) -> Result<()> {
        let work = std::mem::take(&mut *self.work.lock().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: each caller of `add` guaranteed that the operands of its instruction are valid until now and that no other
        // command conflicts with the instruction.
        work.iter().try_for_each(|instruction| unsafe { self.device.launch(instruction) })
    }
}

/// The token of deferred instructions. The instructions run when a thread polls the token or waits for it.
#[derive(Debug)]
struct Waited(Arc<Deferred>);

impl Pending for Waited {
    fn poll(&self) -> Poll<Result<()>> {
        Poll::Ready(self.0.run())
    }
    fn wait(&self) -> Result<()> {
        self.0.run()
    }
}

impl WrongDevice {
    /// Computes B ← α·op(A⁻¹)·B or B ← α·B·op(A⁻¹) by the inverse of the whole triangle.
    ///
    /// # Safety
    /// The contract of `Device::launch` holds for a triangular solve with these operands.
    unsafe fn multiply_by_inverse(
        &self,
        (side, uplo, op, diag): (Side, Uplo, Op, Diag),
        alpha: Value,
        a: Operand<'_>,
        b: Operand<'_>,
    ) -> Result<()> {
        let [one, zero] = [1.0, 0.0].map(|x| Value::new(a.dtype, x));
        let new = |rows: usize, cols: usize| self.inner.alloc((rows * cols).max(1) * a.dtype.size());
        let (inverse, copy) = (new(a.rows, a.rows)?, new(b.rows, b.cols)?);
        let v = Operand { memory: Memory::Buffer(&inverse), offset: 0, ld: a.rows, ..a };
        let c = Operand { memory: Memory::Buffer(&copy), offset: 0, ld: b.rows, ..b };
        let mode = TrsmMode::Substitution;
        // SAFETY: the caller guarantees that the operands are valid. The two buffers have room for their matrices.
        unsafe {
            let run = |instruction: Instruction<Operand<'_>>| self.inner.launch(&instruction);
            match a.dtype {
                DType::F64 => self
                    .inner
                    .write(HostRect::packed(&mut identity::<f64>(a.rows), a.rows), BufferRect::packed(&inverse, a.rows))?,
                _ => self
                    .inner
                    .write(HostRect::packed(&mut identity::<f32>(a.rows), a.rows), BufferRect::packed(&inverse, a.rows))?,
            }
            let (from, whole) = (Side::Left, Op::NoTrans);
            run(Instruction::Trsm { mode, side: from, uplo, op: whole, diag, alpha: one, a, b: v })?;
            run(Instruction::Copy { a: b, b: c })?;
            match side {
                Side::Left => run(Instruction::Gemm { alpha, op_a: op, a: v, op_b: whole, b: c, beta: zero, c: b }),
                Side::Right => run(Instruction::Gemm { alpha, op_a: whole, a: c, op_b: op, b: v, beta: zero, c: b }),
            }
        }
    }

    /// The rectangle of a buffer that a transfer of `rows` rows uses in place of `rect`.
    fn place<'a>(&self, rect: BufferRect<'a>, rows: usize) -> BufferRect<'a> {
        if self.is(DeviceFault::IgnoresPlaceInBuffer) { BufferRect::packed(rect.buffer, rows) } else { rect }
    }

    /// Runs an instruction on the contents that a buffer had before the last transfer to it. Afterwards the buffer contains the
    /// transferred data, as if the transfer had followed the instruction.
    ///
    /// # Safety
    /// The caller must guarantee the contract of `Device::launch`.
    unsafe fn before_its_transfer(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut touched = None;
        instruction.operands(|operand, _| {
            if let (Memory::Buffer(buffer), Some((at, _))) = (operand.memory, &late) {
                touched = touched.or((address(buffer) == *at).then_some(buffer));
            }
        });
        // SAFETY: the caller guarantees the contract of `Device::launch` for the instruction. The arrays `written` and `before`
        // belong to this function and are as large as the transfer to the buffer was.
        unsafe {
            let (Some(buffer), Some((_, mut before))) = (touched, late) else { return self.inner.launch(instruction) };
            let mut written = vec![0; before.len()];
            let there = BufferRect::packed(buffer, before.len());
            self.inner.read(there, words(&mut written))?;
            self.inner.write(words(&mut before), there)?;
            self.inner.launch(instruction)?;
            self.inner.write(words(&mut written), there)
        }
    }

    /// Copies the elements of the rectangle into a staging buffer that all threads share, and then copies the staging buffer back.
    ///
    /// # Safety
    /// The rectangle must consist of `f64` numbers that may be read and written.
    unsafe fn through_staging(&self, to: HostRect) {
        let places: Vec<(usize, usize)> = (0..to.cols).flat_map(|j| (0..to.rows).map(move |i| (i, j))).collect();
        let at = |&(i, j): &(usize, usize)| to.origin.cast::<f64>().wrapping_add(i + j * to.col_stride);
        // SAFETY: the caller guarantees that the rectangle consists of `f64` numbers that may be read.
        let data = places.iter().map(|place| unsafe { at(place).read() }).collect();
        *self.staging.lock().unwrap_or_else(PoisonError::into_inner) = data;
        std::thread::sleep(std::time::Duration::from_micros(200));
        let staged = self.staging.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (place, &x) in places.iter().zip(&staged) {
            // SAFETY: the caller guarantees that the rectangle may be written and that no other thread uses it.
            unsafe { at(place).write(x) };
        }
    }
}
