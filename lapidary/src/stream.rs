//! Streams: calls on resident matrices that return at once.

mod futures;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use lapidary_core::algorithms::{Problem, gemm, getrf, getrs, laswp, trsm};
use lapidary_core::{
    DType, DeviceRuntime, Element, Error, Gemm, Home, HostElements, Instruction, Layout, MatMut, MatRef, Op, RawMat, Resident,
    Result, Routine, Scalar, StreamCall, StreamState, Trsm,
};

pub use futures::{Done, Reading, ReadingPivots};

use crate::host::HostVec;
use crate::lu::check_system;
use crate::machine::Machine;
use crate::resident::DeviceMatrix;

/// A sequence of calls on the resident matrices of one device. Each call returns at once, and the device runs the calls in order.
///
/// All streams of a device use one queue, so that the calls of two streams on one device run in the order in which they were made. Calls of
/// the machine on the device's matrices wait for the calls of streams. A stream keeps its machine alive. To drop a stream or a future
/// neither stops calls nor waits for them.
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

/// The pivots and the info of a factorisation in the memory of a device.
#[derive(Debug)]
pub struct DevicePivots {
    machine: Machine,
    /// A column of `i32`: info, then the pivots.
    resident: Resident,
    /// Size of the memory in bytes.
    size: usize,
    count: usize,
    /// Number of rows of the matrix that was factored; `None` before the first factorisation.
    rows: Option<usize>,
    /// Each pivot in the memory is less than `bound` or is zero, even if a call failed.
    bound: usize,
}

impl DevicePivots {
    /// Number of pivots.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of rows of the matrix that was factored.
    ///
    /// # Errors
    /// No call has written the pivots yet.
    fn factored_rows(&self, operation: &'static str) -> Result<usize> {
        self.rows.ok_or_else(|| Error::invalid(operation, "`pivots` belong to no factorisation yet"))
    }

    fn part(&self, offset: usize, rows: usize) -> RawMat {
        RawMat {
            home: Home::Device(self.resident),
            offset,
            rows,
            cols: 1,
            ld: rows.max(1),
            layout: Layout::ColMajor,
            dtype: DType::I32,
        }
    }

    fn info(&self) -> RawMat {
        self.part(0, 1)
    }

    fn ipiv(&self) -> RawMat {
        self.part(1, self.count)
    }
}

impl Drop for DevicePivots {
    fn drop(&mut self) {
        self.machine.runtimes()[self.resident.device].discard_pivots(self.resident.key, self.size);
    }
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
    /// Returns a stream of the device with the index `device` in [`Machine::devices`].
    ///
    /// # Errors
    /// There is no device with this index.
    pub fn stream(&self, device: usize) -> Result<Stream> {
        self.check_index("stream", device)?;
        Ok(Stream { machine: self.clone(), device, state: Arc::default() })
    }

    /// Allocates memory for `count` pivots on the device with the index `device`.
    ///
    /// # Errors
    /// There is no device with this index, or the device has no memory left.
    pub fn pivots_on(&self, device: usize, count: usize) -> Result<DevicePivots> {
        self.check_index("pivots_on", device)?;
        let resident = Resident::new(device);
        let bytes = count.checked_add(1).and_then(|length| length.checked_mul(DType::I32.size()));
        let bytes = bytes.ok_or_else(|| Error::invalid("pivots_on", format!("{count} pivots overflow the address space")))?;
        let size = self.allocate_by(device, bytes, || self.runtimes()[device].allocate_pivots(resident.key, bytes))?;
        let pivots = DevicePivots { machine: self.clone(), resident, size, count, rows: None, bound: 0 };
        // zeros are row indices of every matrix
        let column = HostVec::<i32>::zeros(std::slice::from_ref(&self.runtimes()[device]), "pivots_on", count + 1)?;
        let zeros = StreamCall::Write { from: elements(&shared(column)), to: resident.key };
        self.fill(device, "pivots_on", &zeros)?;
        Ok(pivots)
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
    /// # Errors
    /// The shapes do not agree, a matrix does not lie on the device of the stream, or an earlier call failed.
    pub fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let (problem, memory) = gemm::normalise(&args.check()?);
        self.enqueue(&Problem::Gemm(problem), &memory, problem.is_empty())
    }

    /// Enqueues a triangular solve: `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹`.
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`].
    pub fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let (problem, memory) = trsm::normalise(&args.check()?);
        self.enqueue(&Problem::Trsm(problem), &memory, problem.is_empty())
    }

    /// Enqueues the factorisation `A = P·L·U` in place, and returns its pivots and info, which stay on the device.
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`], or the device has no memory left for the pivots.
    pub fn getrf<T: Scalar>(&self, a: MatMut<'_, T>) -> Result<DevicePivots> {
        let mut pivots = self.machine.pivots_on(self.device, a.rows().min(a.cols()))?;
        self.getrf_into(a, &mut pivots)?;
        Ok(pivots)
    }

    /// Enqueues the factorisation `A = P·L·U` in place, with `pivots` of min(m, n) elements.
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`], or `pivots` has another number of elements.
    pub fn getrf_into<T: Scalar>(&self, a: MatMut<'_, T>, pivots: &mut DevicePivots) -> Result<()> {
        let operation = Routine::Getrf.name();
        let (m, n) = a.shape();
        if pivots.count != m.min(n) {
            return Err(Error::invalid(operation, format!("`pivots` holds {} elements, min(m, n) is {}", pivots.count, m.min(n))));
        }
        if i32::try_from(m).is_err() {
            return Err(Error::invalid(operation, format!("m = {m} exceeds the range of pivots")));
        }
        self.prepare(operation, pivots, m)?;
        let memory = [a.raw(), pivots.ipiv(), pivots.info()];
        self.check_places(operation, &memory)?;
        let problem = getrf::Problem { m, n, pivoting: true, layout: a.layout(), dtype: T::DTYPE };
        let zero = StreamCall::Write { from: elements(&shared(vec![0_i32].into())), to: pivots.resident.key };
        let instruction = [problem.instruction([0, 1, 2])];
        let factor = StreamCall::Run { instructions: &instruction[..problem.order().min(1)], memory: &memory };
        // SAFETY: the matrix and the pivots lie on this device, have the sizes that the instruction needs, and are borrowed mutably. The
        // first element of the pivots' memory is info, an `i32`.
        unsafe { self.runtime().enqueue(&self.state, operation, &[zero, factor])? };
        pivots.rows = Some(m);
        Ok(())
    }

    /// Prepares pivots for a matrix of `rows` rows. If their memory may hold larger row indices, they get new memory, because kernels do
    /// not check row indices and a failed call may leave old ones.
    fn prepare(&self, operation: &'static str, pivots: &mut DevicePivots, rows: usize) -> Result<()> {
        self.check_places(operation, &[pivots.info()])?;
        if rows < pivots.bound {
            *pivots = self.machine.pivots_on(self.device, pivots.count)?;
        }
        (pivots.rows, pivots.bound) = (None, rows);
        Ok(())
    }

    /// Enqueues the copy of pivots from host memory, which a factorisation of a matrix of `rows` rows has computed. Info becomes 0.
    ///
    /// # Errors
    /// `ipiv` has another length than `pivots`, an element of `ipiv` is no row index, `pivots` do not lie on the device of the stream,
    /// or an earlier call failed.
    pub fn write_pivots(&self, ipiv: &[i32], rows: usize, pivots: &mut DevicePivots) -> Result<()> {
        let operation = "write_pivots";
        if ipiv.len() != pivots.count {
            let message = format!("`ipiv` holds {} elements, `pivots` hold {}", ipiv.len(), pivots.count);
            return Err(Error::invalid(operation, message));
        }
        if let Some(i) = ipiv.iter().position(|&row| usize::try_from(row).map_or(true, |row| row >= rows)) {
            return Err(Error::invalid(operation, format!("ipiv[{i}] = {} is no row of {rows}", ipiv[i])));
        }
        self.prepare(operation, pivots, rows)?;
        let column: Vec<i32> = std::iter::once(0).chain(ipiv.iter().copied()).collect();
        let part = StreamCall::Write { from: self.source(column.into()), to: pivots.resident.key };
        // SAFETY: `pivots` lie on this device and have as many elements as the column, which only the device accesses.
        unsafe { self.runtime().enqueue(&self.state, operation, &[part])? };
        pivots.rows = Some(rows);
        Ok(())
    }

    /// Enqueues the solve `B ← op(A)⁻¹·B` with the factors and the pivots of [`Stream::getrf`]. The stream does not check whether a pivot
    /// is zero: the solution then holds infinities or NaN, and [`Stream::read_pivots`] gives an info that is not zero.
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`], or the pivots belong to a matrix of another order.
    pub fn getrs<T: Scalar>(&self, op: Op, lu: MatRef<'_, T>, pivots: &DevicePivots, b: MatMut<'_, T>) -> Result<()> {
        let operation = Routine::Getrs.name();
        let (n, held) = (lu.rows(), pivots.factored_rows(operation)?);
        check_system(operation, &lu, b.rows())?;
        if (held, pivots.count) != (n, n) {
            return Err(Error::invalid(operation, format!("A is of order {n}, `pivots` belong to a matrix of {held} rows")));
        }
        let (problem, [lu, b]) = getrs::normal_form(op, [lu.raw(), b.raw()]);
        self.enqueue(&Problem::Getrs(problem), &[lu, pivots.ipiv(), b], problem.is_empty())
    }

    /// Enqueues the exchanges of rows of A that a factorisation has made, in ascending order (`forward`) or in descending order.
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`], or A has fewer rows than the matrix that was factored.
    pub fn laswp<T: Scalar>(&self, a: MatMut<'_, T>, pivots: &DevicePivots, forward: bool) -> Result<()> {
        let operation = Routine::Laswp.name();
        let (rows, held) = (a.rows(), pivots.factored_rows(operation)?);
        if rows < held {
            return Err(Error::invalid(operation, format!("A has {rows} rows, `pivots` belong to a matrix of {held} rows")));
        }
        let (problem, a) = laswp::normal_form(a.raw(), pivots.count, forward);
        self.enqueue(&Problem::Laswp(problem), &[a, pivots.ipiv()], problem.is_empty())
    }

    /// Enqueues the copy of a matrix to another matrix of the same shape.
    ///
    /// # Errors
    /// The shapes differ, a matrix does not lie on the device of the stream, or an earlier call failed.
    pub fn copy<T: Scalar>(&self, from: MatRef<'_, T>, to: MatMut<'_, T>) -> Result<()> {
        if from.shape() != to.shape() {
            return Err(Error::invalid("copy", format!("`from` is {from:?}, `to` is {to:?}")));
        }
        let memory = [from.raw(), to.raw()];
        self.enqueue_instructions("copy", &[Instruction::Copy { a: 0, b: 1 }], &memory)
    }

    /// Enqueues the copy of host memory to a matrix. The host memory holds the elements column-major without gaps. It is a [`Vec`], or
    /// a [`HostVec`], which moves at the full speed of the link. It is freed when the device no longer needs it. If it is a [`Vec`] of more
    /// than a megabyte, an OpenCL driver may hold the caller until the earlier calls have completed.
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
        self.check_places("write", &[to])?;
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
    /// # Errors
    /// The errors of [`Stream::read`], or the number of elements of `to` is not that of the matrix.
    pub fn read_into<T: Scalar>(&self, from: &DeviceMatrix<T>, to: impl Into<HostVec<T>>) -> Result<Reading<T>> {
        let to = to.into();
        let ((rows, cols), held) = (from.shape(), to.len());
        if held != rows * cols {
            return Err(Error::invalid("read", format!("`to` holds {held} elements, the matrix is {rows}×{cols}")));
        }
        let from = from.view().raw();
        self.check_places("read", &[from])?;
        self.enqueue_read(key(&from), to)
    }

    /// Enqueues the copy of pivots and info to host memory, and returns a future of them.
    ///
    /// # Errors
    /// The pivots belong to no factorisation yet or do not lie on the device of the stream, or an earlier call failed.
    pub fn read_pivots(&self, pivots: &DevicePivots) -> Result<ReadingPivots> {
        pivots.factored_rows("read_pivots")?;
        self.check_places("read_pivots", &[pivots.info()])?;
        let column = self.zeros("read_pivots", pivots.count + 1)?;
        self.enqueue_read(pivots.resident.key, column).map(ReadingPivots::new)
    }

    fn enqueue_read<T: Element>(&self, from: u64, to: HostVec<T>) -> Result<Reading<T>> {
        let is_empty = to.is_empty();
        let memory = shared(to);
        if !is_empty {
            let part = StreamCall::Read { from, to: elements(&memory) };
            // SAFETY: the matrix lies on this device and has as many elements as the memory, which the future accesses only after the end
            // of the call.
            unsafe { self.runtime().enqueue(&self.state, "read", &[part])? };
        }
        Ok(Reading::new(self.done(), memory))
    }

    fn enqueue(&self, problem: &Problem, memory: &[RawMat], is_empty: bool) -> Result<()> {
        let operation = problem.operation();
        if is_empty {
            return self.check_places(operation, memory);
        }
        self.enqueue_instructions(operation, &problem.instructions(), memory)
    }

    fn enqueue_instructions(&self, operation: &'static str, instructions: &[Instruction<usize>], memory: &[RawMat]) -> Result<()> {
        self.check_places(operation, memory)?;
        let runtime = self.runtime();
        if runtime.lost().is_some() || !runtime.facts().computes(memory[0].dtype) {
            self.machine.capable_devices(memory[0].dtype, operation, &[self.device])?;
        }
        let part = StreamCall::Run { instructions, memory };
        // SAFETY: the arguments were checked, so that the instructions access only resident matrices of this device. Views of matrices
        // that an instruction writes were borrowed mutably, and other calls on these matrices run before or after this call.
        unsafe { self.runtime().enqueue(&self.state, operation, &[part]) }
    }

    /// Returns an error unless all matrices lie on the device of the stream. Its table of resident matrices refuses matrices of another
    /// machine.
    fn check_places(&self, operation: &'static str, memory: &[RawMat]) -> Result<()> {
        let is_here = |raw: &RawMat| {
            matches!(raw.home, Home::Device(resident) if resident.device == self.device) && raw.layout == Layout::ColMajor
        };
        if memory.iter().all(is_here) {
            return Ok(());
        }
        let device = self.machine.resident_device(operation, memory)?;
        let is_resident = |raw: &RawMat| matches!(raw.home, Home::Device(_));
        let message = match device {
            Some(device) if device != self.device => {
                format!("a matrix lies on device {device}, the stream is one of device {}", self.device)
            }
            _ if !memory.iter().all(is_resident) => {
                "a matrix lies in host memory: upload it, or use the calls of `Machine`".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Error::invalid(operation, message))
    }

    /// Makes the device begin all calls that are enqueued. An application that shares its queue with Lapidary must call `flush` before it
    /// submits commands that use matrices of the stream.
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

    /// Returns a future that completes when all calls that are enqueued now have completed. Any executor may poll it.
    pub fn done(&self) -> Done {
        Done::new(self.clone(), self.runtime().end_of_stream(&self.state))
    }
}
