//! Conversions: OpenCL status codes into errors, operands into kernel arguments.

use cl3::error_codes::{
    CL_DEVICE_NOT_AVAILABLE, CL_INVALID_BUFFER_SIZE, CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT,
    CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, error_text,
};
use lapidary_core::{Error, ErrorKind, Memory, Operand};

use crate::buffer::Buffer;

/// Returns the error for a driver call that returned the status `code`.
pub(crate) fn failed(call: &'static str, code: i32) -> Error {
    let kind = match code {
        CL_DEVICE_NOT_AVAILABLE => ErrorKind::DeviceLost,
        // Lapidary passes only valid queues and contexts to the calls below, so these codes mean that the device is lost
        CL_INVALID_COMMAND_QUEUE | CL_INVALID_CONTEXT
            if matches!(call, "clFinish" | "clFlush" | "clWaitForEvents" | "clGetEventInfo" | "clCreateBuffer" | "command") =>
        {
            ErrorKind::DeviceLost
        }
        CL_INVALID_COMMAND_QUEUE if call.starts_with("clEnqueue") => ErrorKind::DeviceLost,
        // on some drivers, a wait returns `CL_OUT_OF_RESOURCES` if a kernel has faulted; `clEnqueueNDRangeKernel` returns this code
        // if the kernel needs more registers than the device has
        CL_OUT_OF_RESOURCES
            if matches!(call, "clFinish" | "clWaitForEvents" | "clGetEventInfo" | "command" | "clEnqueueNDRangeKernel") =>
        {
            ErrorKind::DeviceFailed
        }
        CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_INVALID_BUFFER_SIZE | CL_OUT_OF_RESOURCES => ErrorKind::OutOfMemory,
        CL_OUT_OF_HOST_MEMORY => ErrorKind::OutOfHostMemory,
        _ => ErrorKind::DeviceFailed,
    };
    Error::new(kind, call, format!("{} ({code})", error_text(code)))
}

/// A matrix in a buffer, in the form that kernels receive as arguments.
pub(crate) type View<'a> = lapidary_kernels::View<'a, Buffer>;

/// The kernel argument for an operand in the device's memory.
pub(crate) fn view(operand: Operand<'_>) -> View<'_> {
    let Operand { memory, offset, rows, cols, ld, .. } = operand;
    let Memory::Buffer(buffer) = memory else { unreachable!("the device does not work on host memory") };
    View { buffer: buffer.get(), at: offset, rows, cols, ld }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_means_what_the_call_makes_of_it() {
        use ErrorKind::{DeviceFailed, DeviceLost, OutOfHostMemory, OutOfMemory};
        for (call, code, kind) in [
            ("clCreateBuffer", CL_OUT_OF_RESOURCES, OutOfMemory),
            ("clCreateBuffer", CL_INVALID_BUFFER_SIZE, OutOfMemory),
            ("clEnqueueWriteBuffer", CL_OUT_OF_RESOURCES, OutOfMemory),
            ("clEnqueueNDRangeKernel", CL_MEM_OBJECT_ALLOCATION_FAILURE, OutOfMemory),
            ("clEnqueueNDRangeKernel", CL_OUT_OF_HOST_MEMORY, OutOfHostMemory),
            ("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES, DeviceFailed),
            ("command", CL_MEM_OBJECT_ALLOCATION_FAILURE, OutOfMemory),
            ("command", CL_OUT_OF_RESOURCES, DeviceFailed),
            ("clFinish", CL_OUT_OF_RESOURCES, DeviceFailed),
            ("clGetEventInfo", CL_OUT_OF_RESOURCES, DeviceFailed),
            ("clGetEventInfo", CL_INVALID_CONTEXT, DeviceLost),
            ("clFinish", CL_INVALID_COMMAND_QUEUE, DeviceLost),
            ("clEnqueueReadBuffer", CL_INVALID_COMMAND_QUEUE, DeviceLost),
            ("clCreateBuffer", CL_INVALID_CONTEXT, DeviceLost),
            ("command", CL_DEVICE_NOT_AVAILABLE, DeviceLost),
            // mistakes of the application: an invalid queue, a buffer of another context
            ("clGetCommandQueueInfo", CL_INVALID_COMMAND_QUEUE, DeviceFailed),
            ("clEnqueueCopyBuffer", CL_INVALID_CONTEXT, DeviceFailed),
        ] {
            let error = failed(call, code);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(&format!("({code})")), "{error}");
        }
    }
}
