//! Status codes as errors, operands as kernel arguments.

use cl3::error_codes::{
    CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, error_text,
};
use lapidary_core::{Error, ErrorKind, Memory, Operand};

use crate::buffer::Buffer;

/// The error of a call of the driver.
pub(crate) fn failed(call: &'static str, code: i32) -> Error {
    let kind = match code {
        // while waiting, some drivers answer so after a fault of a kernel
        CL_OUT_OF_RESOURCES if matches!(call, "clFinish" | "clWaitForEvents") => ErrorKind::DeviceFailed,
        CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_INVALID_BUFFER_SIZE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY => {
            ErrorKind::OutOfMemory
        }
        _ => ErrorKind::DeviceFailed,
    };
    Error::new(kind, call, format!("{} ({code})", error_text(code)))
}

/// A matrix as kernels take it: memory, first element, leading dimension.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub buffer: &'a Buffer,
    pub at: u64,
    pub rows: usize,
    pub cols: usize,
    pub ld: usize,
}

impl<'a> View<'a> {
    pub fn new(operand: Operand<'a, Buffer>) -> Self {
        let Operand { memory, offset, rows, cols, ld } = operand;
        let Memory::Buffer(buffer) = memory else { unreachable!("the device does not work on host memory") };
        View { buffer, at: offset as u64, rows, cols, ld }
    }

    /// The rectangle `rows` × `cols` at (`row`, `col`).
    pub fn sub(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        debug_assert!(row + rows <= self.rows && col + cols <= self.cols);
        View { at: self.element(row, col), rows, cols, ..self }
    }

    /// Where an element lies.
    pub fn element(&self, row: usize, col: usize) -> u64 {
        self.at + (row + col * self.ld) as u64
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }
}
