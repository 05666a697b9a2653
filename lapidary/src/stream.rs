//! Streams: calls on resident matrices that return at once.

mod futures;
mod pivots;
mod places;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use lapidary_core::algorithms::{Problem, gemm, getrs, laswp, trsm};
use lapidary_core::{
    DType, DeviceRuntime, Element, Error, Gemm, Home, HostElements, Instruction, MatMut, MatRef, Op, RawMat, Result, Routine,
    Scalar, StreamCall, StreamState, Trsm,
};

pub use futures::{Done, Reading, ReadingPivots};
pub use pivots::DevicePivots;

use crate::host::HostVec;
use crate::lu::check_system;
use crate::machine::Machine;
use crate::resident::DeviceMatrix;
use crate::stream::places::Named;

/// A sequence of calls on the resident matrices of one device. Each call returns at once, and the device runs the calls in order.
///
/// All streams of a device use one queue, so that the calls of two streams on one device run in the order in which they were made. Calls of
/// the machine on the device's matrices wait for the calls of streams. A stream keeps its machine alive. To drop a stream or a future
/// neither stops calls nor waits for them, except that the last owner of a machine waits for the calls that a future has been polled for,
/// because some drivers crash if the process ends meanwhile.
///
/// A device may hold calls back until the program waits for them, makes a future of the stream, or calls [`Stream::flush`]. If some two
/// thousand calls or transfers of a gigabyte are incomplete, a call waits for the oldest ones, except in a browser.
///
/// # Errors of calls
/// - If the arguments of a call do not agree, the call returns an error at once and changes nothing.
/// - If the device does not accept a call, for example for lack of memory, the call returns an error at once. Its outputs may be partly
///   written.
/// - If a call fails later, [`Stream::wait`], [`Done`] or [`Reading`] returns the error of the call. The error gives the number of the
///   failed call, or a range of numbers that contains it. A stream numbers its calls from 1. Calls with wrong arguments and calls on
///   matrices without elements get no number.
///
/// The contents of the matrices that a failed call or a later call of its stream writes are undefined. Until `wait` or `Done` has returned
/// the error, each further call of the stream returns the error and does nothing. All streams of a device share one queue, so that several
/// streams may return the error of one call.
///
/// ```
/// use lapidary::{Gemm, Machine, Op, Select};
/// let machine = Machine::open(&Select::all())?;
/// let stream = machine.stream(0)?;
/// let mut a = machine.zeros_on::<f64>(0, 2, 2)?;
/// let (mut b, mut c) = (machine.zeros_on(0, 2, 1)?, machine.zeros_on(0, 2, 1)?);
/// stream.write(vec![0.0, 4.0, 2.0, 1.0], &mut a)?; // column-major
/// stream.write(vec![1.0, 2.0], &mut b)?;
/// stream.gemm(Gemm::new(a.view(), b.view(), c.view_mut()))?; // c = A·b
/// let pivots = stream.getrf(a.view_mut())?;
/// stream.getrs(Op::NoTrans, a.view(), &pivots, c.view_mut())?;
/// let x = stream.read(&c)?; // a future, for which this thread waits
/// assert_eq!(*x.wait()?, [1.0, 2.0]);
/// # Ok::<(), lapidary::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    machine: Machine,
    device: usize,
    state: Arc<StreamState>,
}

/// Number of bytes up to which [`Stream::write`] copies ordinary memory to pinned memory. An OpenCL driver may hold the
/// caller of a copy from ordinary memory until the earlier calls have completed.
const MAX_COPIED_BYTES: usize = 1 << 20;

/// Host memory of a transfer, which the device keeps until it no longer accesses the memory.
type Shared<T> = Arc<Mutex<Option<HostVec<T>>>>;

fn shared<T>(memory: HostVec<T>) -> Shared<T> {
    Arc::new(Mutex::new(Some(memory)))
}

fn elements<T: Element>(memory: &Shared<T>) -> HostElements {
    let mut held = memory.lock().unwrap_or_else(PoisonError::into_inner);
    let slice: &mut [T] = held.as_mut().expect("the call is not yet enqueued");
    HostElements::new(slice.as_mut_ptr().cast(), slice.len(), T::DTYPE, Arc::clone(memory) as _)
}

/// Key of a resident matrix.
fn key(matrix: &RawMat) -> u64 {
    let Home::Device(resident) = matrix.home else { unreachable!("the matrix lies on a device") };
    resident.key
}

impl Machine {
    /// Returns a stream of the device with the index `device` in [`Machine::devices`]. The devices have the order of the selection: with
    /// [`Select::all`](crate::Select::all), device 0 is the CPU.
    ///
    /// # Errors
    /// There is no device with this index.
    pub fn stream(&self, device: usize) -> Result<Stream> {
        self.check_index("stream", device)?;
        Ok(Stream { machine: self.clone(), device, state: Arc::default() })
    }

    /// Enqueues the call that fills new memory of a device.
    ///
    /// # Errors
    /// This call was not accepted, or an earlier one failed.
    pub(crate) fn fill(&self, device: usize, operation: &'static str, call: &StreamCall<'_>) -> Result<()> {
        let (runtime, stream) = (&self.runtimes()[device], self.fills(device));
        // SAFETY: the memory is new and has the size that the call writes. Later calls on it run after this call.
        unsafe { runtime.enqueue(stream, operation, std::slice::from_ref(call))? };
        // nothing may be held back, since nobody waits for these calls
        let end = runtime.end_of_stream(stream);
        stream.report(&end)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "a call takes views, as the calls of `Machine` do")]
impl Stream {
    /// Index of the device in [`Machine::devices`].
    #[must_use]
    pub fn device(&self) -> usize {
        self.device
    }

    fn runtime(&self) -> &DeviceRuntime {
        &self.machine.runtimes()[self.device]
    }

    /// Enqueues `C ← α·op(A)·op(B) + β·C`.
    ///
    /// ```
    /// use lapidary::{Gemm, Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, mut a, mut c) = (machine.stream(0)?, machine.zeros_on::<f32>(0, 2, 2)?, machine.zeros_on(0, 2, 2)?);
    /// stream.write(vec![1.0, 1.0, 0.0, 1.0], &mut a)?;
    /// stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut()).trans_b())?; // A·Aᵀ
    /// assert_eq!(*stream.read(&c)?.wait()?, [1.0, 1.0, 1.0, 2.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes do not agree, a matrix does not lie on the device of the stream, or an earlier call failed.
    pub fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let operands = [("A", args.a.raw()), ("B", args.b.raw()), ("C", args.c.raw())];
        let (problem, memory) = gemm::normalise(&args.check()?);
        self.enqueue(&Problem::Gemm(problem), &operands, &memory, problem.is_empty())
    }

    /// Enqueues a triangular solve: `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹`.
    ///
    /// ```
    /// use lapidary::{Machine, Select, Trsm};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, mut a, mut b) = (machine.stream(0)?, machine.zeros_on::<f64>(0, 2, 2)?, machine.zeros_on(0, 2, 1)?);
    /// stream.write(vec![2.0, 1.0, 0.0, 4.0], &mut a)?; // a lower triangle
    /// stream.write(vec![2.0, 9.0], &mut b)?;
    /// stream.trsm(Trsm::new(a.view(), b.view_mut()))?;
    /// assert_eq!(*stream.read(&b)?.wait()?, [1.0, 2.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`].
    pub fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let operands = [("A", args.a.raw()), ("B", args.b.raw())];
        let (problem, memory) = trsm::normalise(&args.check()?);
        self.enqueue(&Problem::Trsm(problem), &operands, &memory, problem.is_empty())
    }

    /// Enqueues the solve `B ← op(A)⁻¹·B` with the factors and the pivots of [`Stream::getrf`]. The stream does not check whether a pivot
    /// is zero: the solution then holds infinities or NaN, and [`Stream::read_pivots`] gives an info that is not zero. [`Stream`] has an
    /// example.
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`], or the pivots belong to a matrix of another order.
    pub fn getrs<T: Scalar>(&self, op: Op, lu: MatRef<'_, T>, pivots: &DevicePivots, b: MatMut<'_, T>) -> Result<()> {
        let operation = Routine::Getrs.name();
        let (n, held) = (lu.rows(), pivots.factored_rows(operation)?);
        check_system(operation, &lu, b.rows())?;
        if (held, pivots.count()) != (n, n) {
            return Err(Error::invalid(operation, format!("A is of order {n}, `pivots` belong to a matrix of {held} rows")));
        }
        let operands = [("A", lu.raw()), pivots.named(), ("B", b.raw())];
        let (problem, [lu, b]) = getrs::normal_form(op, [lu.raw(), b.raw()]);
        self.enqueue(&Problem::Getrs(problem), &operands, &[lu, pivots.ipiv(), b], problem.is_empty())
    }

    /// Enqueues the exchanges of rows of A that a factorisation has made, in ascending order (`forward`) or in descending order.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, mut a) = (machine.stream(0)?, machine.zeros_on::<f64>(0, 3, 1)?);
    /// let mut pivots = machine.pivots_on(0, 2)?;
    /// stream.write_pivots(&[2, 1], 3, &mut pivots)?; // exchanges row 0 and row 2
    /// stream.write(vec![1.0, 2.0, 3.0], &mut a)?;
    /// stream.laswp(a.view_mut(), &pivots, true)?;
    /// assert_eq!(*stream.read(&a)?.wait()?, [3.0, 2.0, 1.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`], or A has fewer rows than the matrix that was factored.
    pub fn laswp<T: Scalar>(&self, a: MatMut<'_, T>, pivots: &DevicePivots, forward: bool) -> Result<()> {
        let operation = Routine::Laswp.name();
        let (rows, held) = (a.rows(), pivots.factored_rows(operation)?);
        if rows < held {
            return Err(Error::invalid(operation, format!("A has {rows} rows, `pivots` belong to a matrix of {held} rows")));
        }
        let operands = [("A", a.raw()), pivots.named()];
        let (problem, a) = laswp::normal_form(a.raw(), pivots.count(), forward);
        self.enqueue(&Problem::Laswp(problem), &operands, &[a, pivots.ipiv()], problem.is_empty())
    }

    /// Enqueues the copy of a matrix to another matrix of the same shape. The two matrices may be views of parts of larger matrices.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, mut a, mut b) = (machine.stream(0)?, machine.zeros_on::<f32>(0, 2, 2)?, machine.zeros_on(0, 2, 1)?);
    /// stream.write(vec![1.0, 2.0, 3.0, 4.0], &mut a)?;
    /// stream.copy(a.view().sub(0..2, 1..2), b.view_mut())?; // the second column
    /// assert_eq!(*stream.read(&b)?.wait()?, [3.0, 4.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes differ, a matrix does not lie on the device of the stream or is a transposed view, or an earlier call failed.
    pub fn copy<T: Scalar>(&self, from: MatRef<'_, T>, to: MatMut<'_, T>) -> Result<()> {
        if from.shape() != to.shape() {
            return Err(Error::invalid("copy", format!("`from` is {from:?}, `to` is {to:?}")));
        }
        let operands = [("`from`", from.raw()), ("`to`", to.raw())];
        self.check_operands("copy", T::DTYPE, &operands)?;
        Self::check_untransposed("copy", &operands)?;
        self.enqueue_instructions("copy", &[Instruction::Copy { a: 0, b: 1 }], &operands.map(|(_, raw)| raw))
    }

    /// Enqueues the copy of host memory to a matrix. The host memory holds the elements column-major without gaps. It is a [`Vec`], or
    /// a [`HostVec`], which moves at the full speed of the link. It is freed when the device no longer needs it. If it is a [`Vec`] of more
    /// than a megabyte, an OpenCL driver may hold the caller until the earlier calls have completed.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, mut a) = (machine.stream(0)?, machine.zeros_on::<f32>(0, 2, 1)?);
    /// stream.write(vec![1.0, 2.0], &mut a)?;
    /// let mut pinned = machine.alloc_host(2)?;
    /// pinned.copy_from_slice(&[3.0, 4.0]);
    /// stream.write(pinned, &mut a)?;
    /// assert_eq!(*stream.read(&a)?.wait()?, [3.0, 4.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The number of elements is not that of the matrix, the matrix does not lie on the device of the stream, or an earlier call failed.
    pub fn write<T: Scalar>(&self, from: impl Into<HostVec<T>>, to: &mut DeviceMatrix<T>) -> Result<()> {
        let from = from.into();
        let ((rows, cols), held) = (to.shape(), from.len());
        if held != rows * cols {
            return Err(Error::invalid("write", format!("`from` holds {held} elements, the matrix is {rows}×{cols}")));
        }
        let to = to.view_mut().raw();
        self.check_places("write", &[("`to`", to)])?;
        if held == 0 {
            return Ok(());
        }
        let part = StreamCall::Write { from: self.source(from), to: key(&to) };
        // SAFETY: the matrix lies on this device and has as many elements as the memory, which only the device accesses.
        unsafe { self.runtime().enqueue(&self.state, "write", &[part]) }
    }

    /// Enqueues the copy of a matrix to host memory, and returns a future of the elements, column-major without gaps. The driver
    /// of the device pins the host memory if it can.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, a) = (machine.stream(0)?, machine.zeros_on::<f32>(0, 2, 2)?);
    /// let elements = stream.read(&a)?; // a future
    /// assert_eq!(*pollster::block_on(elements)?, [0.0; 4]); // `elements.wait()?` needs no executor
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The matrix does not lie on the device of the stream, the host has too little memory, or an earlier call failed.
    pub fn read<T: Scalar>(&self, from: &DeviceMatrix<T>) -> Result<Reading<T>> {
        let (rows, cols) = from.shape();
        self.read_into(from, self.zeros("read", rows * cols)?)
    }

    /// Allocates host memory, which the driver of the device pins if it can.
    fn zeros<T: Element>(&self, operation: &'static str, count: usize) -> Result<HostVec<T>> {
        HostVec::zeros(std::slice::from_ref(self.runtime()), operation, count)
    }

    /// Returns the memory that the device reads for a write. If `from` is small ordinary memory and the driver pins memory, it is a copy of
    /// `from` in pinned memory.
    fn source<T: Element>(&self, from: HostVec<T>) -> HostElements {
        let is_small = !from.is_pinned() && from.len() * T::DTYPE.size() <= MAX_COPIED_BYTES;
        let copy = is_small.then(|| HostVec::pinned(self.runtime(), from.len())).flatten().map(|mut copy| {
            copy.copy_from_slice(&from);
            copy
        });
        elements(&shared(copy.unwrap_or(from)))
    }

    /// Enqueues the copy of a matrix to `to`, which the future returns. If `to` is a [`Vec`], an OpenCL driver may hold the caller until
    /// the copy is complete.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, a) = (machine.stream(0)?, machine.zeros_on::<f32>(0, 2, 2)?);
    /// let mut memory = machine.alloc_host(4)?;
    /// for _ in 0..3 {
    ///     memory = stream.read_into(&a, memory)?.wait()?; // each read uses the same host memory
    /// }
    /// assert_eq!(*memory, [0.0; 4]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Stream::read`], or the number of elements of `to` is not that of the matrix.
    pub fn read_into<T: Scalar>(&self, from: &DeviceMatrix<T>, to: impl Into<HostVec<T>>) -> Result<Reading<T>> {
        let to = to.into();
        let ((rows, cols), held) = (from.shape(), to.len());
        if held != rows * cols {
            return Err(Error::invalid("read", format!("`to` holds {held} elements, the matrix is {rows}×{cols}")));
        }
        let from = from.view().raw();
        self.check_places("read", &[("`from`", from)])?;
        self.enqueue_read("read", key(&from), to)
    }

    fn enqueue_read<T: Element>(&self, operation: &'static str, from: u64, to: HostVec<T>) -> Result<Reading<T>> {
        let is_empty = to.is_empty();
        let memory = shared(to);
        if !is_empty {
            let part = StreamCall::Read { from, to: elements(&memory) };
            // SAFETY: the matrix lies on this device and has as many elements as the memory, which the future accesses only after the end
            // of the call.
            unsafe { self.runtime().enqueue(&self.state, operation, &[part])? };
        }
        Ok(Reading::new(self.done(), memory))
    }

    /// Enqueues a routine. `memory` is the memory of the operands in the problem's normal form.
    fn enqueue(&self, problem: &Problem, operands: &[Named], memory: &[RawMat], is_empty: bool) -> Result<()> {
        let operation = problem.operation();
        if is_empty {
            return self.check_places(operation, operands);
        }
        self.check_operands(operation, problem.dtype(), operands)?;
        self.enqueue_instructions(operation, &problem.instructions(), memory)
    }

    /// Returns an error unless all operands lie on the device of the stream, and the device can compute with elements of the type `dtype`.
    fn check_operands(&self, operation: &'static str, dtype: DType, operands: &[Named]) -> Result<()> {
        self.check_places(operation, operands)?;
        let runtime = self.runtime();
        if runtime.lost().is_some() || !runtime.facts().computes(dtype) {
            self.machine.capable_devices(dtype, operation, &[self.device]).map_err(|error| error.in_call(operation))?;
        }
        Ok(())
    }

    fn enqueue_instructions(&self, operation: &'static str, instructions: &[Instruction<usize>], memory: &[RawMat]) -> Result<()> {
        let part = StreamCall::Run { instructions, memory };
        // SAFETY: the arguments were checked, so that the instructions access only resident matrices of this device. Views of matrices
        // that an instruction writes were borrowed mutably, and other calls on these matrices run before or after this call.
        unsafe { self.runtime().enqueue(&self.state, operation, &[part]) }
    }

    /// Makes the device begin all calls that are enqueued. An application that shares its queue with Lapidary must call `flush` before it
    /// submits commands that use matrices of the stream.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, mut a) = (machine.stream(0)?, machine.zeros_on::<f32>(0, 2, 2)?);
    /// stream.write(vec![1.0; 4], &mut a)?;
    /// stream.flush(); // the device writes the matrix while the program does something else
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    pub fn flush(&self) {
        drop(self.done());
    }

    /// Waits for all calls that are enqueued.
    ///
    /// # Errors
    /// A call failed. In a browser, the thread of the page cannot wait (`ErrorKind::Unsupported`); await [`Stream::done`] there.
    pub fn wait(&self) -> Result<()> {
        self.done().wait()
    }

    /// Returns a future that completes when all calls that are enqueued now have completed. Any executor may poll it. A waker may itself
    /// wait for the device.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// async fn clear(machine: &Machine) -> lapidary::Result<()> {
    ///     let (stream, mut a) = (machine.stream(0)?, machine.zeros_on::<f32>(0, 2, 2)?);
    ///     stream.write(vec![0.0; 4], &mut a)?;
    ///     stream.done().await
    /// }
    /// pollster::block_on(clear(&Machine::open(&Select::all())?))?;
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    pub fn done(&self) -> Done {
        Done::new(self.clone(), self.runtime().end_of_stream(&self.state))
    }
}
