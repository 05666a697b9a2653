//! Instructions on matrices of one device, on the caller's thread.

use crate::command::Queue;
use crate::device::{DeviceBuffer, HostRect, Memory, Operand};
use crate::dispatch::Lane;
use crate::engine::columns::Column;
use crate::engine::{Driver, Trace, TraceEvent};
use crate::error::{Error, ErrorKind, OUTPUTS, Result};
use crate::instruction::{Access, Instruction};
use crate::matrix::{Home, RawMat, Resident};
use crate::sync::Arc;

/// A column of the caller that a call works on.
struct ColumnCopy {
    raw: RawMat,
    buffer: Column,
    is_written: bool,
}

impl Driver {
    /// Runs instructions in their order on the caller's thread. Matrices lie on this device; columns may lie in host
    /// memory, and are copied there and back.
    ///
    /// # Safety
    /// The operands are as the instructions ask, touched by nothing else meanwhile.
    ///
    /// # Errors
    /// There is no memory for a column, or a transfer or a kernel failed.
    pub unsafe fn run_in_place(&self, instructions: &[Instruction<RawMat>], trace: Option<&Trace>) -> Result<()> {
        let (mut copies, mut touched) = (Vec::new(), false);
        // SAFETY: as the caller promises.
        let outcome = unsafe { self.run_on_copies(instructions, &mut copies, trace, &mut touched) };
        copies.into_iter().for_each(|copy| self.columns.give_back(copy.buffer));
        outcome.map_err(|error| {
            if error.kind().leaves_it_to_others() {
                self.trim();
            }
            let error = error.with("device", &self.info().name);
            if touched { error.with(OUTPUTS, "partly written") } else { error }
        })
    }

    unsafe fn run_on_copies(
        &self,
        instructions: &[Instruction<RawMat>],
        copies: &mut Vec<ColumnCopy>,
        trace: Option<&Trace>,
        touched: &mut bool,
    ) -> Result<()> {
        for instruction in instructions {
            // SAFETY: as the caller promises.
            unsafe { self.copy_columns(instruction, copies)? };
        }
        for instruction in instructions {
            let mut residents: [Option<Arc<DeviceBuffer>>; 3] = [const { None }; 3];
            let (mut at, mut missing) = (0, None);
            instruction.operands(|raw, _| {
                if let Home::Device(Resident { key, .. }) = raw.home {
                    residents[at] = self.resident(key).map_err(|error| missing = Some(error)).ok();
                }
                at += 1;
            });
            missing.map_or(Ok(()), Err)?;
            let mut each = residents.iter();
            let resolved = instruction.map(|raw| match each.next().expect("three operands at most") {
                Some(resident) => Operand::of(&raw, Memory::Buffer(resident)),
                None => {
                    let copy = copies.iter().find(|copy| copy.raw == raw).expect("every column is copied");
                    Operand::packed(&copy.buffer.0, raw.rows, raw.cols, raw.dtype)
                }
            });
            *touched = true;
            let start = trace.map(Trace::now);
            // SAFETY: as the caller promises; copies are ours.
            unsafe { self.device.launch(&resolved)? };
            if let (Some(trace), Some(start)) = (trace, start) {
                let (device, lane) = (self.info().name.clone(), Lane { device: 0, queue: Queue::Exec });
                trace.add(TraceEvent { device, lane, label: format!("EXEC {}", instruction.name()), start, end: trace.now() });
            }
        }
        for copy in copies.iter().filter(|copy| copy.is_written) {
            // SAFETY: as the caller promises.
            unsafe { self.device.read(&copy.buffer.0, HostRect::whole(&copy.raw))? };
        }
        Ok(())
    }

    /// Copies the columns in host memory of an instruction that have no copy yet.
    unsafe fn copy_columns(&self, instruction: &Instruction<RawMat>, copies: &mut Vec<ColumnCopy>) -> Result<()> {
        let (mut columns, mut at) = ([None; 3], 0);
        instruction.operands(|raw, access| {
            columns[at] = matches!(raw.home, Home::Host(_)).then_some((raw, access == Access::Write));
            at += 1;
        });
        for (operand, column) in columns.into_iter().enumerate() {
            let Some((raw, is_written)) = column else { continue };
            if let Some(copy) = copies.iter_mut().find(|copy| copy.raw == raw) {
                copy.is_written |= is_written;
                continue;
            }
            let (bytes, left) = (raw.bytes(), self.free_memory());
            let alloc = |room| match room <= left {
                true => self.device.alloc(room).map(Arc::new),
                false => {
                    let message = format!("a column takes {bytes} bytes, {} has {left} left", self.info().name);
                    Err(Error::new(ErrorKind::OutOfMemory, "call", message))
                }
            };
            let buffer = self.columns.take(bytes, alloc)?;
            // what was taken is given back, whatever comes
            copies.push(ColumnCopy { raw, buffer, is_written });
            if instruction.reads(operand) {
                let copy = &copies[copies.len() - 1];
                // SAFETY: the column is lent for the call, the buffer is ours.
                unsafe { self.device.write(HostRect::whole(&raw), &copy.buffer.0)? };
            }
        }
        Ok(())
    }
}
