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

/// A matrix as kernels take it.
pub(crate) type View<'a> = lapidary_kernels::View<'a, Buffer>;

/// The matrix of an operand in the device's memory.
pub(crate) fn view(operand: Operand<'_, Buffer>) -> View<'_> {
    let Operand { memory, offset, rows, cols, ld } = operand;
    let Memory::Buffer(buffer) = memory else { unreachable!("the device does not work on host memory") };
    View { buffer, at: offset, rows, cols, ld }
}
