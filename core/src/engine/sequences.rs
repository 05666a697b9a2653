//! Runs sequences of instructions on host matrices, such as the instructions of a list of small problems.

use crate::device::{HostRect, Memory, Operand};
use crate::engine::DeviceRuntime;
use crate::engine::runtime::on_host;
use crate::enums::Layout;
use crate::error::{Error, ErrorKind, Outputs, Result};
use crate::instruction::Instruction;
use crate::matrix::RawMat;
use crate::staging::Piece;
use std::ptr::NonNull;

/// Column-major copies of row-major matrices, stored one after the other in one allocation.
struct Copies {
    /// The copied matrices, each with the byte offset of its copy in `memory`.
    matrices: Vec<(RawMat, usize)>,
    /// The memory of the copies. Memory of the type `u64` is aligned for every element type.
    memory: Vec<u64>,
}

impl Copies {
    /// Copies the row-major operands of the instructions.
    ///
    /// # Safety
    /// The operands must lie in host memory, and nothing may write them until the function returns.
    ///
    /// # Errors
    /// The host has too little memory for the copies.
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
            // SAFETY: the caller guarantees that the row-major operand may be read, and its copy has room for the whole matrix.
            unsafe { piece.pack(rect, copy) }
        });
        Ok(copies)
    }

    /// Copies the elements of all copies back into the row-major matrices.
    ///
    /// # Safety
    /// Nothing else may access the row-major matrices until the method returns.
    unsafe fn put_back(&mut self) {
        self.each(|piece, rect, copy| {
            // SAFETY: the caller guarantees that nothing else accesses the row-major matrix, and its copy has the same shape.
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
    /// [`Device::launch_sequences`](crate::Device::launch_sequences) does. All operands must lie in host memory. The instructions
    /// work on column-major copies of row-major operands. Since each row-major operand has its own copy, a row-major matrix may
    /// occur only once among all operands.
    ///
    /// # Safety
    /// Each instruction must meet the requirements of [`DeviceRuntime::launch`].
    ///
    /// # Errors
    /// The host has too little memory for the copies, or a kernel failed.
    pub unsafe fn launch_sequences(&self, instructions: &[Instruction<RawMat>], length: usize) -> Result<()> {
        // SAFETY: the caller guarantees that the operands lie in host memory and that nothing else accesses them.
        let mut copies = unsafe { Copies::of(instructions)? };
        let base = copies.base();
        // `map` visits the row-major operands in the order in which `Copies::of` stored them
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
        // SAFETY: the caller guarantees that each instruction meets the requirements of `Device::launch`, and only this call
        // accesses the copies.
        let launched = self.note_loss(unsafe { self.device.launch_sequences(&resolved, length) });
        // SAFETY: all instructions have completed, and the caller guarantees that nothing else accesses the row-major matrices.
        unsafe { copies.put_back() };
        launched.map_err(|error| error.with_outputs(Outputs::PartlyWritten).with("device", &self.facts().name))
    }
}
