//! Sequences of instructions on host matrices, such as those of a list of small problems.

use crate::device::{HostRect, Memory, Operand};
use crate::engine::DeviceRuntime;
use crate::engine::driver::on_host;
use crate::enums::Layout;
use crate::error::{Error, ErrorKind, OUTPUTS, Result};
use crate::instruction::Instruction;
use crate::matrix::RawMat;
use crate::staging::Piece;
use std::ptr::NonNull;

/// Column-major copies of row-major matrices, one after the other.
struct Copies {
    /// Each matrix with the byte at which its copy begins.
    matrices: Vec<(RawMat, usize)>,
    /// As numbers of the largest alignment.
    memory: Vec<u64>,
}

impl Copies {
    /// Copies the row-major operands of the instructions.
    ///
    /// # Safety
    /// They lie in host memory, and nothing writes them meanwhile.
    ///
    /// # Errors
    /// There is no memory for the copies.
    unsafe fn of(instructions: &[Instruction<RawMat>]) -> Result<Self> {
        let (mut matrices, mut bytes) = (Vec::new(), 0);
        let mut count = |raw: RawMat, _| {
            if raw.layout == Layout::RowMajor {
                matrices.push((raw, bytes));
                bytes += raw.bytes().next_multiple_of(size_of::<u64>());
            }
        };
        instructions.iter().for_each(|instruction| instruction.operands(&mut count));
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes / size_of::<u64>()).map_err(|source| {
            let message = format!("no memory for column-major copies of {bytes} bytes");
            Error::new(ErrorKind::OutOfHostMemory, "copy", message).caused_by(source)
        })?;
        memory.resize(bytes / size_of::<u64>(), 0);
        let mut copies = Copies { matrices, memory };
        copies.each(|piece, rect, copy| {
            // SAFETY: as the caller promises; the copy has room for the matrix.
            unsafe { piece.pack(rect, copy) }
        });
        Ok(copies)
    }

    /// Copies all matrices back.
    ///
    /// # Safety
    /// Nothing else accesses them meanwhile.
    unsafe fn put_back(&mut self) {
        self.each(|piece, rect, copy| {
            // SAFETY: as the caller promises; the copy is of that matrix.
            unsafe { piece.unpack(copy, rect) }
        });
    }

    fn each(&mut self, copy: impl Fn(Piece, &HostRect, *mut u8)) {
        let base = self.base();
        for (raw, at) in &self.matrices {
            for piece in Piece::cut(raw.rows, raw.cols, raw.rows * raw.cols) {
                copy(piece, &HostRect::whole(raw), base.wrapping_add(*at));
            }
        }
    }

    fn base(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }
}

impl DeviceRuntime {
    /// Runs sequences of `length` instructions each on the caller's thread, as
    /// [`Device::launch_sequences`](crate::Device::launch_sequences) does. Operands lie in host memory. Instructions work on
    /// copies of row-major ones, each of which is an operand once.
    ///
    /// # Safety
    /// As [`DeviceRuntime::launch`], for each instruction.
    ///
    /// # Errors
    /// There is no memory for copies, or a kernel failed.
    pub unsafe fn launch_sequences(&self, instructions: &[Instruction<RawMat>], length: usize) -> Result<()> {
        // SAFETY: as the caller promises.
        let mut copies = unsafe { Copies::of(instructions)? };
        let base = copies.base();
        // operands come in the order in which they were counted
        let mut next = copies.matrices.iter();
        let mut resolve = |raw: RawMat| match raw.layout {
            Layout::ColMajor => on_host(&raw),
            Layout::RowMajor => {
                let (raw, at) = next.next().expect("every row-major operand has a copy");
                let memory = NonNull::new(base.wrapping_add(*at)).unwrap_or(NonNull::dangling());
                let RawMat { rows, cols, dtype, .. } = *raw;
                Operand { memory: Memory::Host(memory), offset: 0, rows, cols, ld: rows.max(1), dtype }
            }
        };
        let resolved: Vec<_> = instructions.iter().map(|instruction| instruction.map(&mut resolve)).collect();
        // SAFETY: as the caller promises; the copies are ours.
        let launched = self.note_loss(unsafe { self.device.launch_sequences(&resolved, length) });
        // SAFETY: as the caller promises; the instructions are done.
        unsafe { copies.put_back() };
        launched.map_err(|error| error.with(OUTPUTS, "partly written").with("device", &self.facts().name))
    }
}
