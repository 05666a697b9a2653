//! Converts errors of wgpu to errors of Lapidary, and operands to kernel arguments.

use lapidary_core::{Error, ErrorKind, Memory, Operand};

use crate::buffer::Buffer;

/// Converts an error that an error scope of wgpu has caught.
fn caught(operation: &'static str, error: &wgpu::Error) -> Error {
    let kind = match error {
        wgpu::Error::OutOfMemory { .. } => ErrorKind::OutOfMemory,
        wgpu::Error::Validation { .. } | wgpu::Error::Internal { .. } => ErrorKind::DeviceFailed,
    };
    Error::new(kind, operation, error.to_string())
}

/// Converts the most important one of the errors that the error scopes of one call have caught. After a failed allocation, wgpu may
/// report further errors for objects that need the missing memory, so `OutOfMemory` takes precedence.
pub(crate) fn caught_first(operation: &'static str, errors: &[wgpu::Error]) -> Option<Error> {
    let first = errors.iter().max_by_key(|error| matches!(error, wgpu::Error::OutOfMemory { .. }));
    first.map(|error| caught(operation, error))
}

/// A matrix in a buffer, as an argument of a kernel.
pub(crate) type View<'a> = lapidary_kernels::View<'a, Buffer>;

/// Converts an operand in the device's memory to an argument of a kernel.
pub(crate) fn view(operand: Operand<'_>) -> View<'_> {
    let Operand { memory, offset, rows, cols, ld, .. } = operand;
    let Memory::Buffer(buffer) = memory else { unreachable!("the device does not work on host memory") };
    View { buffer: buffer.get(), at: offset, rows, cols, ld }
}
