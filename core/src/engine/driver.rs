//! A device with its resident matrices and the memory kept for later calls, and the loop that drives it in a run.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::device::{Device, DeviceBuffer, HostRect, Memory, Operand};
use crate::dispatch::Lane;
use crate::engine::columns::Columns;
use crate::engine::in_flight::{Ended, InFlight};
use crate::engine::registers::{Kept, Registers};
use crate::engine::residents::Residents;
use crate::engine::{HaltOnPanic, Next, Run, Trace, TraceEvent};
use crate::error::{Error, ErrorKind, OUTPUTS, Result};
use crate::facts::DeviceFacts;
use crate::instruction::Instruction;
use crate::matrix::{Home, RawMat, Resident};
use crate::plan::MatrixId;
use crate::sync::{Arc, Mutex, lock};

/// A device with its resident matrices and the memory kept for later calls.
#[derive(Debug)]
pub struct DeviceRuntime {
    pub(super) device: Box<dyn Device>,
    /// Memory of the last run's physical registers, for the next one: to take it anew may cost
    /// a device as much time as to fill it. None of a device that works in host memory, which others want too.
    pub(super) kept: Mutex<Vec<Kept>>,
    pub(super) columns: Columns,
    pub(super) residents: Residents,
    /// The first error that said that the device is lost.
    loss: OnceLock<Error>,
}

/// A copy of a host matrix that stays in a device's memory while this lives.
#[derive(Debug)]
pub struct CopyInUse<'d> {
    driver: &'d DeviceRuntime,
    key: u64,
}

impl Drop for CopyInUse<'_> {
    fn drop(&mut self) {
        // after a panic of the backend, kernels may still use it
        if !std::thread::panicking() {
            self.driver.residents.end_use(self.key);
        }
    }
}

/// A matrix in host memory as an operand.
#[inline]
pub(super) fn on_host(raw: &RawMat) -> Operand<'static> {
    match raw.home {
        Home::Host(base) => Operand::of(raw, Memory::Host(base)),
        Home::Device(_) => unreachable!("the caller passes host memory"),
    }
}

impl DeviceRuntime {
    /// A driver of `device`.
    #[must_use]
    pub fn new(device: Box<dyn Device>) -> Self {
        let loss = OnceLock::new();
        DeviceRuntime { device, kept: Mutex::default(), columns: Columns::default(), residents: Residents::default(), loss }
    }

    /// Why the device is gone for good, if it is.
    #[must_use]
    pub fn lost(&self) -> Option<Error> {
        self.device.lost().or_else(|| self.loss.get().cloned())
    }

    /// Remembers an error that says that the device is lost.
    pub(super) fn note_loss<R>(&self, result: Result<R>) -> Result<R> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::DeviceLost {
                let _ = self.loss.set(error.clone());
            }
        })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Runs one instruction at once on the caller's thread, operands in host memory.
    ///
    /// # Safety
    /// The device computes on host memory, and the operands are as the
    /// instruction asks, touched by nothing else meanwhile.
    ///
    /// # Errors
    /// The kernel failed.
    #[inline]
    pub unsafe fn launch(&self, instruction: &Instruction<RawMat>) -> Result<()> {
        // SAFETY: as the caller promises.
        let launched = self.note_loss(unsafe { self.device.launch(&instruction.map(|raw| on_host(&raw))) });
        launched.map_err(|error| self.with_outputs(error))
    }

    /// LU of a row-major host matrix in place, as [`Device::getrf_by_rows`].
    ///
    /// # Safety
    /// The matrices are touched by nothing else meanwhile.
    ///
    /// # Errors
    /// The kernel failed.
    pub unsafe fn getrf_by_rows(&self, pivoting: bool, a: &RawMat, ipiv: &RawMat, info: &RawMat) -> Option<Result<()>> {
        let [a, ipiv, info] = [a, ipiv, info].map(HostRect::whole);
        // SAFETY: as the caller promises.
        let launched = unsafe { self.device.getrf_by_rows(pivoting, a, ipiv, info) }?;
        Some(self.note_loss(launched).map_err(|error| self.with_outputs(error)))
    }

    /// Adds two facts to an error of a kernel on host matrices: its outputs are partly written, and the device's name.
    fn with_outputs(&self, error: Error) -> Error {
        error.with(OUTPUTS, "partly written").with("device", &self.facts().name)
    }

    /// Copies a host matrix into new memory of the device, packed column-major.
    ///
    /// # Safety
    /// `from` is host memory that may be read.
    ///
    /// # Errors
    /// The device has no memory left, or the transfer failed.
    pub unsafe fn upload(&self, key: u64, from: &RawMat) -> Result<()> {
        let bytes = from.bytes();
        let left = self.free_memory();
        if bytes > left {
            let message = format!("the matrix takes {bytes} bytes, {} has {left} left", self.facts().name);
            return Err(Error::new(ErrorKind::OutOfMemory, "upload", message));
        }
        let uploaded = self.alloc(bytes).and_then(|buffer| {
            // SAFETY: as the caller promises; the buffer is new.
            let written = if is_empty(from) { Ok(()) } else { unsafe { self.device.write(HostRect::whole(from), &buffer) } };
            written.map(|()| buffer)
        });
        let buffer = self.note_loss(uploaded).map_err(|error| error.with("device", &self.facts().name))?;
        self.residents.insert(key, Arc::new(buffer), bytes);
        Ok(())
    }

    /// New memory. If the device refuses it and there are copies that no call uses, these are freed first.
    pub(super) fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        match self.device.alloc(bytes) {
            Err(error) if error.kind().is_out_of_memory() && self.has_idle_copies() => {
                self.release_copies();
                self.device.alloc(bytes)
            }
            allocated => allocated,
        }
    }

    /// Registers an external buffer as a resident matrix. It does not count against the memory limit.
    pub fn adopt(&self, key: u64, buffer: DeviceBuffer) {
        self.residents.insert(key, Arc::new(buffer), 0);
    }

    /// Copies a resident matrix into host memory.
    ///
    /// # Safety
    /// `to` is host memory that may be written, of the shape and element type that was uploaded.
    ///
    /// # Errors
    /// The transfer failed.
    pub unsafe fn download(&self, key: u64, to: &RawMat) -> Result<()> {
        let buffer = self.resident(key)?;
        if is_empty(to) {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        let read = self.note_loss(unsafe { self.device.read(&buffer, HostRect::whole(to)) });
        read.map_err(|error| error.with(OUTPUTS, "partly written").with("device", &self.facts().name))
    }

    /// Forgets a resident matrix.
    pub fn discard(&self, key: u64) {
        self.residents.free(key);
    }

    /// Makes the memory from which the last run stored a whole matrix a resident matrix, and returns its key; `None` if there is no
    /// such memory. This copy stays until [`discard_copy`](Self::discard_copy), or until its memory is needed while no call uses it.
    pub fn keep_copy(&self, matrix: MatrixId) -> Option<u64> {
        let mut kept = lock(&self.kept);
        let at = kept.iter().position(|kept| kept.stored == Some(matrix))?;
        let Kept { buffer, bytes, .. } = kept.swap_remove(at);
        let key = Resident::next_key();
        self.residents.insert_copy(key, buffer, bytes);
        Some(key)
    }

    /// Keeps this device from freeing a copy while the result lives; `None` if the copy is freed already.
    pub fn use_copy(&self, key: u64) -> Option<CopyInUse<'_>> {
        self.residents.begin_use(key).then_some(CopyInUse { driver: self, key })
    }

    /// Forgets a copy. Its memory is kept for the next run.
    pub fn discard_copy(&self, key: u64) {
        // locked before the copy leaves the table: its memory is always in one of the two
        let mut kept = lock(&self.kept);
        let is_idle = !std::thread::panicking();
        if let Some((buffer, bytes)) = self.residents.remove(key).filter(|_| is_idle) {
            kept.push(Kept { buffer, bytes, stored: None });
        }
    }

    /// Replaces the elements of a resident matrix.
    ///
    /// # Safety
    /// As [`DeviceRuntime::download`], but that the memory is read.
    ///
    /// # Errors
    /// The transfer failed.
    pub unsafe fn refill(&self, key: u64, from: &RawMat) -> Result<()> {
        let buffer = self.resident(key)?;
        if is_empty(from) {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        unsafe { self.device.write(HostRect::whole(from), &buffer) }
    }

    /// Copies the resident matrix `peer_key` of `peer` into the resident matrix `key` of this device, if the devices have
    /// a way that is faster than through the host; whether they have. `peer` may be this device.
    ///
    /// # Errors
    /// There is no matrix of one of the keys, or the copy failed.
    pub fn copy_from(&self, key: u64, peer: &DeviceRuntime, peer_key: u64, bytes: usize) -> Result<bool> {
        let (to, from) = (self.resident(key)?, peer.resident(peer_key)?);
        self.device.copy_from(peer.device(), &from, &to, bytes).map_or(Ok(false), |copied| copied.map(|()| true))
    }

    /// The memory of a resident matrix.
    ///
    /// # Errors
    /// There is no matrix of that key.
    pub fn resident(&self, key: u64) -> Result<Arc<DeviceBuffer>> {
        self.residents.get(key).ok_or_else(|| Error::invalid("view", "the matrix was uploaded to another machine"))
    }
}

/// Whether there is nothing to move. Of no rows there may be any number of columns, so that no device is asked to count them.
fn is_empty(raw: &RawMat) -> bool {
    raw.rows == 0 || raw.cols == 0
}

impl DeviceRuntime {
    /// The device's facts.
    #[must_use]
    pub fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }

    /// Works in a run as its device of that number until nothing is left to do.
    pub fn run_lane(&self, run: &Run<'_>, device: usize) {
        // dropped last: the others are stopped when nothing of this device is under way
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
                // the run is not locked while the device allocates or frees, so other devices go on
                Next::Obtain(slot) => {
                    run.obtained(device, slot, self.note_loss(registers.obtain(slot)));
                    None
                }
                Next::Release(slot) => {
                    registers.release(slot);
                    None
                }
                // only the end of this command can make more work
                Next::Wait(_) if run.has_one_device() && in_flight.len() == 1 => in_flight.wait(),
                Next::Wait(seen) => {
                    let ended = in_flight.ended();
                    if ended.is_none() {
                        run.rest(seen, in_flight.pause());
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

    /// Reports the end of a command to the run and its trace. `ends` holds the end time of the last command of each lane,
    /// which is the earliest start of the next one.
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
        run.complete(lane, issue.command, &self.facts().name, result);
    }

    /// Gives back the memory that is kept for runs: matrices on the device, or kernels beside them, may need it. A run
    /// that is under way keeps its memory again at its end.
    pub fn release_registers(&self) {
        lock(&self.kept).clear();
    }

    /// Gives back the memory of copies of host matrices that no call uses.
    pub fn release_copies(&self) {
        self.residents.free_copies(0);
    }

    /// Whether a key is that of a copy of a host matrix.
    #[must_use]
    pub fn is_copy(&self, key: u64) -> bool {
        self.residents.is_copy(key)
    }

    /// Whether there are copies of host matrices that no call uses.
    #[must_use]
    pub fn has_idle_copies(&self) -> bool {
        self.residents.has_idle_copies()
    }

    /// Frees copies of host matrices that no call uses, oldest first, until a run may take `bytes`. If the device does not state
    /// its memory, all of them are freed.
    pub fn make_room_for(&self, bytes: usize) {
        let most = if self.facts().memory.is_some() { self.free_memory().saturating_sub(bytes) } else { 0 };
        self.residents.free_copies(most);
    }

    /// Frees memory kept for later calls, except the scratch memory of kernels, for a matrix of `bytes`: here, or on a device that
    /// may share its memory.
    pub fn make_room_for_upload(&self, bytes: usize) {
        self.make_room_for(bytes);
        self.release_registers();
        self.columns.trim();
    }

    /// Frees the memory kept for later calls, except the scratch memory of kernels.
    pub fn make_room(&self) {
        // a copy that is discarded meanwhile becomes memory of registers
        self.release_copies();
        self.release_registers();
        self.columns.trim();
    }

    /// Frees all memory kept for later calls.
    pub fn trim(&self) {
        self.make_room();
        self.device.trim();
    }

    /// Bytes of the device's memory limit that are not used by resident matrices, copies of columns or kernels' scratch memory.
    /// Copies of host matrices that no call uses count as free: [`make_room_for`](Self::make_room_for) frees them.
    #[must_use]
    pub fn free_memory(&self) -> usize {
        let held = self.residents.needed_bytes() + self.columns.held() + self.device.scratch_bytes();
        self.facts().memory.map_or(usize::MAX, |limit| limit.saturating_sub(held))
    }
}
