//! Runs calls on the resident matrices of one device, on the caller's thread.

use crate::command::Queue;
use crate::device::{BufferRect, DeviceBuffer, HostRect, Memory, Operand};
use crate::dispatch::Lane;
use crate::engine::columns::Column;
use crate::engine::{DeviceRuntime, RunError, Trace, TraceEvent, Watch, run};
use crate::enums::Layout;
use crate::error::{Error, ErrorKind, Outputs, Result};
use crate::instruction::{Access, Instruction};
use crate::lane_pool::LanePool;
use crate::matrix::{Home, RawMat, Resident};
use crate::schedule::Schedule;
use crate::sync::Arc;

/// A call on the resident matrices of one device. Columns of the call, such as pivots, may lie in host memory. Before the call,
/// the engine copies to the device each column that the call reads. After the call, the engine copies back to host memory each
/// column that the call writes.
#[derive(Debug)]
pub struct InPlace<'a> {
    /// The instructions of the call, on whole matrices. Each operand of an instruction is an index into `memory`.
    pub instructions: &'a [Instruction<usize>],
    /// The schedule of the call, if the engine is to run a plan. If there is a schedule, the engine uses `instructions` only to
    /// find out which columns the call reads and writes.
    pub schedule: Option<&'a Schedule>,
    /// The matrices and columns of the call.
    pub memory: &'a [RawMat],
}

impl InPlace<'_> {
    /// Whether the instructions write a matrix on the device. Columns in host memory do not count as matrices, because the engine
    /// writes these columns only after all instructions have completed.
    fn writes_matrices(&self) -> bool {
        let mut writes = false;
        for instruction in self.instructions {
            instruction.operands(|of, access| {
                writes |= access == Access::Write && matches!(self.memory[of].home, Home::Device(_));
            });
        }
        writes
    }
}

/// A column in host memory with its copy on the device. When a `ColumnCopy` is dropped, the device keeps the memory of the copy
/// for the next call.
struct ColumnCopy<'d> {
    runtime: &'d DeviceRuntime,
    /// Index of the column in [`InPlace::memory`].
    matrix: usize,
    raw: RawMat,
    buffer: Column,
    is_written: bool,
    /// Key under which the copy can be registered as a resident matrix.
    resident: Resident,
}

impl Drop for ColumnCopy<'_> {
    fn drop(&mut self) {
        self.runtime.discard(self.resident.key);
        // after a panic of the backend, kernels may still use the copy, so its memory is not kept
        let is_idle = !std::thread::panicking();
        let column = (Arc::clone(&self.buffer.0), self.buffer.1);
        self.runtime.columns.give_back(column, is_idle, self.runtime.facts().memory);
    }
}

impl ColumnCopy<'_> {
    /// Describes the copy of the column as a resident matrix of the device.
    fn on_device(&self) -> RawMat {
        let ld = self.raw.rows.max(1);
        RawMat { home: Home::Device(self.resident), offset: 0, ld, layout: Layout::ColMajor, ..self.raw }
    }
}

/// For each column that the call writes: the device buffer with the copy of the column, and the column as a rectangle in host
/// memory.
fn written<'a>(copies: &'a [ColumnCopy<'_>]) -> impl Iterator<Item = (&'a DeviceBuffer, HostRect)> {
    copies.iter().filter(|copy| copy.is_written).map(|copy| (&*copy.buffer.0, HostRect::whole(&copy.raw)))
}

impl DeviceRuntime {
    /// Runs a call on resident matrices on the caller's thread.
    ///
    /// # Safety
    /// The matrices and columns of `call` must meet the requirements of the instructions, nothing else may access them until the
    /// method returns, and the schedule of `call` must have been made for these matrices and columns.
    ///
    /// # Errors
    /// The device has too little memory for a register or for the copy of a column in host memory (such as pivots), or a transfer or
    /// a kernel failed.
    pub unsafe fn run_in_place(&self, call: &InPlace<'_>, watch: Watch<'_>) -> Result<()> {
        let mut touched = false;
        // SAFETY: `run_on_copies` has the same safety contract as `run_in_place`, which the caller fulfils.
        let outcome = unsafe { self.run_on_copies(call, watch, &mut touched) };
        self.note_loss(outcome).map_err(|error| {
            if error.kind().is_recoverable_elsewhere() {
                self.trim();
            }
            let error = if touched && error.outputs().is_none() { error.with_outputs(Outputs::PartlyWritten) } else { error };
            if error.context().any(|(key, _)| key == "device") { error } else { error.with("device", &self.facts().name) }
        })
    }

    unsafe fn run_on_copies(&self, call: &InPlace<'_>, watch: Watch<'_>, touched: &mut bool) -> Result<()> {
        if call.schedule.is_some() || self.device.stream_queue().is_none() {
            self.settle_streams()?;
        }
        let mut copies = Vec::new();
        // SAFETY: the caller of `run_in_place` guarantees that nothing else accesses the matrices and columns of the call, and only
        // this call uses the copies of the columns.
        unsafe {
            self.copy_columns(call, &mut copies)?;
            match call.schedule {
                Some(schedule) => self.run_schedule(schedule, call.memory, &copies, watch)?,
                None => return self.launch_each(call, &copies, watch.trace, touched),
            }
            *touched = true;
            written(&copies).try_for_each(|(from, to)| self.device.read(BufferRect::packed(from, to.rows), to))
        }
    }

    unsafe fn launch_each(
        &self,
        call: &InPlace<'_>,
        copies: &[ColumnCopy<'_>],
        trace: Option<&Trace>,
        touched: &mut bool,
    ) -> Result<()> {
        let mut bound = Vec::with_capacity(call.memory.len());
        for (matrix, raw) in call.memory.iter().enumerate() {
            bound.push(match raw.home {
                Home::Device(Resident { key, .. }) => (*raw, self.resident(key)?),
                Home::Host(_) => {
                    let copy = copies.iter().find(|copy| copy.matrix == matrix).expect("every column is copied");
                    (copy.on_device(), Arc::clone(&copy.buffer.0))
                }
            });
        }
        let resolved = |instruction: &Instruction<usize>| {
            instruction.map(|matrix| {
                let (raw, buffer): &(RawMat, Arc<DeviceBuffer>) = &bound[matrix];
                Operand::of(raw, Memory::Buffer(buffer))
            })
        };
        // A call that reads columns in host memory with its instructions may leave these columns partly written if it fails. After a failure
        // of the instructions of a call that writes no matrix, the caller may begin again, so that several such instructions run without reads.
        let reads_with_instructions = call.writes_matrices() || call.instructions.len() == 1;
        *touched = call.writes_matrices() || (reads_with_instructions && trace.is_none());
        match trace {
            None => {
                let instructions: Vec<_> = call.instructions.iter().map(resolved).collect();
                let (with, after) = if reads_with_instructions { (copies, &[][..]) } else { (&[][..], copies) };
                let reads: Vec<_> = written(with).collect();
                // SAFETY: the caller of `run_in_place` guarantees that nothing else accesses the matrices and columns of the call,
                // and only this call uses the copies of the columns.
                unsafe { self.device.launch_and_read(&instructions, &reads)? };
                *touched = true;
                // SAFETY: the caller of `run_in_place` guarantees that nothing else accesses the columns in host memory, and only
                // this call uses the copies of the columns.
                written(after).try_for_each(|(from, to)| unsafe { self.device.read(BufferRect::packed(from, to.rows), to) })
            }
            Some(trace) => {
                for instruction in call.instructions {
                    let start = trace.now();
                    // SAFETY: the caller of `run_in_place` guarantees that nothing else accesses the matrices.
                    unsafe { self.device.launch(&resolved(instruction))? };
                    let (device, lane) = (self.facts().name.clone(), Lane::new(0, Queue::Exec));
                    trace.add(TraceEvent { device, lane, label: format!("EXEC {}", instruction.name()), start, end: trace.now() });
                }
                *touched = true;
                // SAFETY: the caller of `run_in_place` guarantees that nothing else accesses the columns in host memory, and only
                // this call uses the copies of the columns.
                written(copies).try_for_each(|(from, to)| unsafe { self.device.read(BufferRect::packed(from, to.rows), to) })
            }
        }
    }

    unsafe fn run_schedule(
        &self,
        schedule: &Schedule,
        memory: &[RawMat],
        copies: &[ColumnCopy<'_>],
        watch: Watch<'_>,
    ) -> Result<()> {
        let mut bindings = memory.to_vec();
        for copy in copies {
            self.residents.insert(copy.resident.key, Arc::clone(&copy.buffer.0), 0);
            bindings[copy.matrix] = copy.on_device();
        }
        // SAFETY: the caller of `run_in_place` guarantees that nothing else accesses the matrices and columns of the call, and that
        // the schedule was made for them. Only this call uses the copies of the columns. A pool without threads suffices, since the
        // calling thread is the engine thread of the only device.
        let outcome = unsafe { run(&LanePool::default(), &[self], schedule, &bindings, watch) };
        // `run` has already added the name of the device and the state of the outputs to the error
        outcome.map_err(|RunError { error, .. }| error)
    }

    /// Allocates device memory for a column. If the device has too little memory left, the method first frees the idle buffers of
    /// other columns, and then copies of host matrices that no call uses.
    pub(super) fn alloc_column(&self, bytes: usize) -> Result<Arc<DeviceBuffer>> {
        if bytes > self.free_memory() {
            self.trim_columns();
        }
        if self.facts().memory.is_some() {
            self.make_room_for(bytes);
        }
        let left = self.free_memory();
        if bytes > left {
            let message = format!("a column takes {bytes} bytes, {} has {left} left", self.facts().name);
            return Err(Error::new(ErrorKind::OutOfMemory, "call", message));
        }
        self.alloc(bytes).map(Arc::new)
    }

    /// Obtains a device buffer for each column that lies in host memory. If the call reads a column, the method also copies the
    /// elements of this column to its buffer.
    unsafe fn copy_columns<'d>(&'d self, call: &InPlace<'_>, copies: &mut Vec<ColumnCopy<'d>>) -> Result<()> {
        for (matrix, &raw) in call.memory.iter().enumerate() {
            if !matches!(raw.home, Home::Host(_)) {
                continue;
            }
            let (mut is_read, mut is_written) = (false, false);
            for instruction in call.instructions {
                let mut operands = 0..;
                instruction.operands(|of, access| {
                    let operand = operands.next().expect("endless");
                    is_read |= of == matrix && instruction.reads(operand);
                    is_written |= of == matrix && access == Access::Write;
                });
            }
            let buffer = self.columns.take(raw.bytes(), |bytes| self.alloc_column(bytes))?;
            // from here on, dropping `copies` returns the column's buffer to the idle buffers, also after an error
            copies.push(ColumnCopy { runtime: self, matrix, raw, buffer, is_written, resident: Resident::new(0) });
            if is_read {
                let copy = &copies[copies.len() - 1];
                // SAFETY: the caller of `run_in_place` lets nothing else access the column, and only this call uses the buffer.
                unsafe { self.device.write(HostRect::whole(&raw), BufferRect::packed(&copy.buffer.0, raw.rows))? };
            }
        }
        Ok(())
    }
}
