//! A device with its resident matrices and the memory kept for later calls, and the loop of the device's engine thread.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc as StdArc, OnceLock};

use crate::blocking::Lookahead;
use crate::command::{Conditions, Exec};
use crate::device::{BufferRect, Device, DeviceBuffer, HostRect, Memory, Operand};
use crate::dispatch::Lane;
use crate::engine::columns::Columns;
use crate::engine::in_flight::{Ended, InFlight};
use crate::engine::registers::{Kept, Registers, StoredColumns};
use crate::engine::residents::Residents;
use crate::engine::worker::{Waiter, Worker};
use crate::engine::{HaltOnPanic, Next, Run, Trace, TraceEvent};
use crate::error::{Error, ErrorKind, Outputs, Result};
use crate::facts::DeviceFacts;
use crate::instruction::Instruction;
use crate::matrix::{Home, RawMat, Resident};
use crate::plan::MatrixId;
use crate::scalar::DType;
use crate::sync::{Arc, Mutex, lock};

/// A device with its resident matrices and the memory kept for later calls.
#[derive(Debug)]
pub struct DeviceRuntime {
    pub(super) device: StdArc<dyn Device>,
    /// Memory of the physical registers of the last run, kept for the next run, because on some devices an allocation takes as
    /// long as filling the allocated memory. A device that works in host memory keeps no memory for registers, since other
    /// programs may need host memory.
    pub(super) kept: Mutex<Vec<Kept>>,
    pub(super) columns: Columns,
    /// The buffers for pivots of streams, both idle and in use.
    pub(super) pivots: Columns,
    pub(super) residents: Residents,
    /// Number of calls that streams have enqueued, and number of those that are known to be complete.
    pub(super) enqueued: AtomicU64,
    pub(super) settled: AtomicU64,
    /// The thread that runs the work of streams, if the device has no queue for them.
    pub(super) worker: OnceLock<Worker>,
    pub(super) waiter: Waiter,
    /// The first error of the kind [`ErrorKind::DeviceLost`] that this device returned.
    loss: OnceLock<Error>,
}

/// Guard that prevents a device from freeing its copy of a host matrix.
#[derive(Debug)]
pub struct CopyInUse<'d> {
    runtime: &'d DeviceRuntime,
    key: u64,
}

impl Drop for CopyInUse<'_> {
    fn drop(&mut self) {
        // after a panic of the backend, kernels may still read the copy, so the copy stays marked as used
        if !std::thread::panicking() {
            self.runtime.residents.end_use(self.key);
        }
    }
}

/// Describes a matrix in host memory as an operand of an instruction.
#[inline]
pub(super) fn on_host(raw: &RawMat) -> Operand<'static> {
    match raw.home {
        Home::Host(base) => Operand::of(raw, Memory::Host(base)),
        Home::Device(_) => unreachable!("the caller passes host memory"),
    }
}

impl DeviceRuntime {
    /// Creates the runtime of a device, without resident matrices.
    #[must_use]
    pub fn new(device: Box<dyn Device>) -> Self {
        DeviceRuntime {
            device: device.into(),
            kept: Mutex::default(),
            columns: Columns::default(),
            pivots: Columns::default(),
            residents: Residents::default(),
            enqueued: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            worker: OnceLock::new(),
            waiter: Waiter::default(),
            loss: OnceLock::new(),
        }
    }

    /// The error that says why the device is permanently lost; `None` if the device is usable.
    #[must_use]
    pub fn lost(&self) -> Option<Error> {
        self.device.lost().or_else(|| self.loss.get().cloned())
    }

    /// Remembers the error of `result` if the kind of the error is [`ErrorKind::DeviceLost`], and returns `result`.
    pub(super) fn note_loss<R>(&self, result: Result<R>) -> Result<R> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::DeviceLost {
                let _ = self.loss.set(error.clone());
            }
        })
    }

    /// The device that this runtime wraps.
    #[must_use]
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Runs one instruction on the caller's thread. The operands of the instruction lie in host memory.
    ///
    /// # Safety
    /// The device must compute on host memory. The operands must meet the requirements of the instruction, and nothing else may
    /// access them until `launch` returns.
    ///
    /// # Errors
    /// The kernel could not be built, or failed.
    #[inline]
    pub unsafe fn launch(&self, instruction: &Instruction<RawMat>) -> Result<()> {
        // SAFETY: the caller fulfils the safety contract of `DeviceRuntime::launch`, which includes the contract of
        // `Device::launch`.
        let launched = self.note_loss(unsafe { self.device.launch(&instruction.map(|raw| on_host(&raw))) });
        launched.map_err(|error| self.with_outputs(error))
    }

    /// Factors a row-major host matrix in place, as [`Device::getrf_by_rows`] does. Returns `None` if the device factors
    /// column-major matrices only.
    ///
    /// # Safety
    /// The matrices `a`, `ipiv` and `info` must lie in readable and writable host memory, and nothing else may access them until
    /// the method returns.
    ///
    /// # Errors
    /// The kernel could not be built, or failed.
    pub unsafe fn getrf_by_rows(&self, pivoting: bool, a: &RawMat, ipiv: &RawMat, info: &RawMat) -> Option<Result<()>> {
        let [a, ipiv, info] = [a, ipiv, info].map(HostRect::whole);
        // SAFETY: the caller guarantees that the matrices are readable and writable and that nothing else accesses them, which is
        // the contract of `Device::getrf_by_rows`.
        let launched = unsafe { self.device.getrf_by_rows(pivoting, a, ipiv, info) }?;
        Some(self.note_loss(launched).map_err(|error| self.with_outputs(error)))
    }

    /// Adds two entries to the context of a kernel's error: that the outputs may be partly written, and the name of the device.
    fn with_outputs(&self, error: Error) -> Error {
        error.with_outputs(Outputs::PartlyWritten).with("device", &self.facts().name)
    }

    /// Copies a host matrix into new device memory, packed column-major. The copy becomes the resident matrix with the key `key`.
    ///
    /// # Safety
    /// The matrix `from` must lie in readable host memory, and nothing else may write this matrix until the method returns.
    ///
    /// # Errors
    /// The device has too little memory left, or the transfer failed.
    pub unsafe fn upload(&self, key: u64, from: &RawMat) -> Result<()> {
        self.allocate(key, from.bytes())?;
        // SAFETY: the caller guarantees that `from` is readable and that nothing else writes it. Only this method uses the new matrix.
        unsafe { self.write_resident(key, 0, from) }.inspect_err(|_| self.discard(key))
    }

    /// Allocates device memory of `bytes` bytes, which becomes the resident matrix with the key `key`. Its elements have any values.
    ///
    /// # Errors
    /// The device has too little memory left.
    pub fn allocate(&self, key: u64, bytes: usize) -> Result<()> {
        let left = self.free_memory();
        if bytes > left {
            let message = format!("the matrix takes {bytes} bytes, {} has {left} left", self.facts().name);
            return Err(Error::new(ErrorKind::OutOfMemory, "upload", message));
        }
        let allocated = self.note_loss(self.alloc(bytes)).map_err(|error| error.with("device", &self.facts().name))?;
        self.residents.insert(key, Arc::new(allocated), bytes);
        Ok(())
    }

    /// Allocates device memory. If the allocation fails for lack of memory, the method frees the copies of host matrices that no
    /// call uses, waits for the calls of streams, and tries the allocation once more.
    pub(super) fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        match self.device.alloc(bytes) {
            // matrices that were dropped while a stream uses them keep their memory until the stream has used them
            Err(error) if error.kind().is_out_of_memory() && (self.has_idle_copies() || self.has_stream_work()) => {
                self.release_copies();
                let _ = self.settle_streams();
                self.device.alloc(bytes)
            }
            allocated => allocated,
        }
    }

    /// Registers a buffer of the application as a resident matrix. The buffer of the application does not count against the
    /// memory limit of the device.
    pub fn adopt(&self, key: u64, buffer: DeviceBuffer) {
        self.residents.insert(key, Arc::new(buffer), 0);
    }

    /// Copies the resident matrix of this key into host memory.
    ///
    /// # Safety
    /// The matrix `to` must lie in writable host memory, must have the shape and the element type of the resident matrix, and
    /// must not be accessed by anything else until the method returns.
    ///
    /// # Errors
    /// There is no resident matrix of this key, or the transfer failed.
    pub unsafe fn download(&self, key: u64, to: &RawMat) -> Result<()> {
        let buffer = self.resident(key)?;
        if is_empty(to) {
            return Ok(());
        }
        self.settle_streams()?;
        // SAFETY: the caller guarantees that `to` is writable, that nothing else accesses it, and that it has the shape of the
        // resident matrix.
        let read = self.note_loss(unsafe { self.device.read(BufferRect::packed(&buffer, to.rows), HostRect::whole(to)) });
        read.map_err(|error| error.with_outputs(Outputs::PartlyWritten).with("device", &self.facts().name))
    }

    /// Frees the resident matrix of this key.
    pub fn discard(&self, key: u64) {
        self.residents.free(key);
    }

    /// Allocates memory for pivots that only calls of streams use, and returns its size in bytes, which is at least `bytes`. The memory of
    /// discarded pivots is used again, since a driver may not allocate or free memory until the device has finished its work. Calls that
    /// use the discarded pivots run before the calls that use the new ones.
    ///
    /// # Errors
    /// The device has too little memory left.
    pub fn allocate_pivots(&self, key: u64, bytes: usize) -> Result<usize> {
        let taken = self.note_loss(self.pivots.take(bytes, |bytes| self.alloc_column(bytes)));
        let (buffer, size) = taken.map_err(|error| error.with("device", &self.facts().name))?;
        self.residents.insert(key, buffer, 0);
        Ok(size)
    }

    /// Keeps the memory of pivots of `size` bytes for further pivots.
    pub fn discard_pivots(&self, key: u64, size: usize) {
        if let Some((buffer, _)) = self.residents.remove(key) {
            self.pivots.give_back((buffer, size), true, self.facts().memory);
        }
    }

    /// Keeps copies of the columns of the host matrix `matrix` that the device held during the last run: their registers become resident
    /// matrices, with all rows of the matrix. Returns the columns and the key of each. The device keeps a copy until
    /// [`discard_copy`](Self::discard_copy) is called, or until the device needs memory while no call uses the copy.
    pub fn keep_copies(&self, matrix: MatrixId) -> Vec<(Range<usize>, u64)> {
        let mut kept = lock(&self.kept);
        let (copies, others): (Vec<Kept>, Vec<Kept>) =
            kept.drain(..).partition(|kept| kept.stored.as_ref().is_some_and(|stored| stored.matrix == matrix));
        *kept = others;
        let keep = |Kept { buffer, bytes, stored }: Kept| {
            let key = Resident::next_key();
            self.residents.insert_copy(key, buffer, bytes);
            stored.map(|StoredColumns { cols, .. }| (cols, key))
        };
        copies.into_iter().filter_map(keep).collect()
    }

    /// Prevents the device from freeing a copy of a host matrix until the returned guard is dropped. Returns `None` if the device
    /// has already freed the copy.
    pub fn use_copy(&self, key: u64) -> Option<CopyInUse<'_>> {
        self.residents.begin_use(key).then_some(CopyInUse { runtime: self, key })
    }

    /// Removes a copy of a host matrix from the resident matrices, and keeps the copy's memory for the registers of the next run.
    pub fn discard_copy(&self, key: u64) {
        // `kept` is locked before the copy leaves the table of resident matrices, so that at any time the memory is in one of the
        // two tables
        let mut kept = lock(&self.kept);
        let is_idle = !std::thread::panicking();
        if let Some((buffer, bytes)) = self.residents.remove(key).filter(|_| is_idle) {
            kept.push(Kept { buffer, bytes, stored: None });
        }
    }

    /// Overwrites columns of the resident matrix of this key, from column `first` on, with the columns of a host matrix.
    ///
    /// # Safety
    /// The matrix `from` must lie in readable host memory, must have the element type and the number of rows of the resident matrix
    /// and no more columns than the resident matrix has from column `first` on, and must not be written by anything else until the
    /// method returns. Nothing else may access these columns of the resident matrix meanwhile.
    ///
    /// # Errors
    /// There is no resident matrix of this key, or the transfer failed.
    pub unsafe fn refill(&self, key: u64, first: usize, from: &RawMat) -> Result<()> {
        self.settle_streams()?;
        // SAFETY: the caller fulfils the safety contract of `refill`.
        unsafe { self.write_resident(key, first, from) }
    }

    /// Overwrites columns of a resident matrix, as [`Self::refill`] does. No stream accesses the matrix.
    unsafe fn write_resident(&self, key: u64, first: usize, from: &RawMat) -> Result<()> {
        let buffer = self.resident(key)?;
        if is_empty(from) {
            return Ok(());
        }
        let to = BufferRect { offset: first * from.rows, ..BufferRect::packed(&buffer, from.rows) };
        // SAFETY: the caller guarantees that `from` is readable, that nothing else writes it, and that the resident matrix has these
        // columns.
        let written = self.note_loss(unsafe { self.device.write(HostRect::whole(from), to) });
        written.map_err(|error| error.with("device", &self.facts().name))
    }

    /// Copies the resident matrix `peer_key` of `peer` into the resident matrix `key` of this device, if the two devices have a
    /// faster way than through host memory. Returns whether the matrix was copied. The device `peer` may be this device.
    ///
    /// # Errors
    /// There is no resident matrix of one of the two keys, or the copy failed.
    pub fn copy_from(&self, key: u64, peer: &DeviceRuntime, peer_key: u64, bytes: usize) -> Result<bool> {
        let (to, from) = (self.resident(key)?, peer.resident(peer_key)?);
        self.settle_streams().and_then(|()| peer.settle_streams())?;
        self.device.copy_from(peer.device(), &from, &to, bytes).map_or(Ok(false), |copied| copied.map(|()| true))
    }

    /// Returns the device memory of the resident matrix of this key.
    ///
    /// # Errors
    /// There is no resident matrix of this key.
    pub fn resident(&self, key: u64) -> Result<Arc<DeviceBuffer>> {
        self.residents.get(key).ok_or_else(|| Error::invalid("view", "the matrix was uploaded to another machine"))
    }
}

/// Whether a matrix has no elements. The runtime skips the transfer of a matrix without elements, whose number of columns may be
/// huge.
fn is_empty(raw: &RawMat) -> bool {
    raw.rows == 0 || raw.cols == 0
}

impl DeviceRuntime {
    /// Returns the facts about the device, such as its name and its memory limit.
    #[must_use]
    pub fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }

    /// Returns the conditions under which the device runs a command. Without a second kernel queue, no panel is factored meanwhile.
    pub(crate) fn conditions(&self, exec: &Exec) -> Conditions {
        let beside_panel = exec.conditions.beside_panel.filter(|_| self.facts().queues > 1);
        Conditions { beside_panel, ..exec.conditions }
    }

    /// Submits commands of a run to this device until the dispatcher has no more commands for the device. `device` is the index
    /// of this device in the run.
    pub fn run_lane(&self, run: &Run<'_>, device: usize) {
        // `_guard` is dropped after `in_flight`, so after a panic the guard stops the other devices only when all commands of this
        // device have completed
        let _guard = HaltOnPanic(run);
        let mut registers = Registers::new(self);
        let mut in_flight = InFlight::new();
        let mut ends = HashMap::new();
        loop {
            let ended = match run.next(device, in_flight.len() == 0) {
                Next::Submit(lane, issue) => {
                    let start = run.trace.map(Trace::now);
                    let after = issue.after.and_then(|command| in_flight.token(command));
                    let submitted = registers.submit(run, lane, &issue, after.as_slice());
                    in_flight.add(lane, issue, start, submitted)
                }
                // the run is not locked while this device allocates or frees memory, so other devices continue
                Next::Obtain(slot) => {
                    run.obtained(device, slot, self.note_loss(registers.obtain(slot)));
                    None
                }
                Next::Release(slot) => {
                    registers.release(slot);
                    None
                }
                // with one device and one command in flight, only the completion of this command can create work: block until then
                Next::Wait(_) if run.has_one_device() && in_flight.len() == 1 => in_flight.wait(),
                Next::Wait(seen) => {
                    let ended = in_flight.ended();
                    if ended.is_none() {
                        run.rest(seen, in_flight.poll_or_sleep_time());
                    }
                    ended
                }
                Next::Finished => break,
            };
            if let Some(ended) = ended {
                self.report(run, ended, &mut ends);
            }
        }
        while let Some(ended) = in_flight.wait() {
            self.report(run, ended, &mut ends);
        }
    }

    /// Reports the end of a command to the run and to the listener of its progress, and adds the command to the trace. For each lane, `ends` holds the end time of
    /// the lane's last command. In the trace, a command starts no earlier than the previous command of its lane ends.
    fn report(&self, run: &Run<'_>, Ended { lane, issue, start, result }: Ended, ends: &mut HashMap<Lane, f64>) {
        if let (Some(trace), Some(start)) = (run.trace, start) {
            let (device, label, end) = (self.facts().name.clone(), run.plan.describe(issue.command), trace.now());
            let start = ends.insert(lane, end).map_or(start, |before| start.max(before));
            trace.add(TraceEvent { device, lane, label, start, end });
        }
        let result = self.note_loss(result);
        if result.as_ref().is_err_and(|error| error.kind().is_recoverable_elsewhere()) {
            self.trim();
        }
        if let (Some(progress), Ok(())) = (&run.progress, &result) {
            progress.add(issue.command);
        }
        run.complete(lane, issue.command, &self.facts().name, result);
    }

    /// Returns when and how LU on this device alone should work in panels, if the device has several kernel queues.
    #[must_use]
    pub fn lookahead(&self, dtype: DType) -> Option<Lookahead> {
        if self.facts().queues > 1 { self.device.lookahead(dtype) } else { None }
    }

    /// Frees the memory that is kept for the registers of later runs, since resident matrices or the scratch memory of kernels
    /// may need this memory. If a run is in progress, its registers stay allocated, and the device keeps their memory when the
    /// run ends.
    pub fn release_registers(&self) {
        lock(&self.kept).clear();
    }

    /// Frees the copies of host matrices that no call uses.
    pub fn release_copies(&self) {
        self.residents.free_copies(0);
    }

    /// Whether this key belongs to a copy of a host matrix.
    #[must_use]
    pub fn is_copy(&self, key: u64) -> bool {
        self.residents.is_copy(key)
    }

    /// Whether the device holds copies of host matrices that no call uses.
    #[must_use]
    pub fn has_idle_copies(&self) -> bool {
        self.residents.has_idle_copies()
    }

    /// Frees copies of host matrices that no call uses, oldest first, until a run can allocate `bytes`. If the device does not
    /// report how much memory it has, the method frees all unused copies.
    pub fn make_room_for(&self, bytes: usize) {
        let most = if self.facts().memory.is_some() { self.free_memory().saturating_sub(bytes) } else { 0 };
        self.residents.free_copies(most);
    }

    /// Makes room for a matrix of `bytes` on this device, or on another device that may share memory with this device. To make
    /// room, the method frees memory kept for later calls, except the scratch memory of kernels.
    pub fn make_room_for_upload(&self, bytes: usize) {
        self.make_room_for(bytes);
        self.release_registers();
        self.trim_columns();
    }

    /// Frees the memory kept for later calls, except the scratch memory of kernels.
    pub fn make_room(&self) {
        // copies are freed before registers, because a copy that another thread discards meanwhile becomes register memory
        self.release_copies();
        self.release_registers();
        self.trim_columns();
    }

    /// Frees the idle buffers of columns and of pivots.
    pub(super) fn trim_columns(&self) {
        self.columns.trim();
        self.pivots.trim();
    }

    /// Frees all memory kept for later calls, including the scratch memory of kernels.
    pub fn trim(&self) {
        self.make_room();
        self.device.trim();
    }

    /// Returns how many bytes of the device's memory limit are not used by resident matrices, copies of columns, pivots or the scratch
    /// memory of kernels. Copies of host matrices that no call uses count as free memory, since
    /// [`make_room_for`](Self::make_room_for) can free them.
    #[must_use]
    pub fn free_memory(&self) -> usize {
        self.facts().memory.map_or(usize::MAX, |limit| limit.saturating_sub(self.held_memory()))
    }

    /// Returns the memory limit that a user must set so that `bytes` of the device's memory are free, as [`free_memory`](Self::free_memory) counts
    /// them. If the device reserves scratch memory for kernels, the reserve takes up to an eighth of the memory by which the user raises the
    /// limit.
    #[must_use]
    pub fn limit_with_free(&self, bytes: usize) -> usize {
        let raised = bytes.saturating_sub(self.free_memory());
        let reserved = if self.device.scratch_bytes() > 0 { raised.div_ceil(7) } else { 0 };
        bytes.saturating_add(self.held_memory()).saturating_add(reserved)
    }

    /// Number of bytes that resident matrices, copies of columns, pivots and the scratch memory of kernels occupy or reserve.
    fn held_memory(&self) -> usize {
        self.residents.needed_bytes() + self.columns.held() + self.pivots.held() + self.device.scratch_bytes()
    }
}
