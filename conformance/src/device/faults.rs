//! Tests of the errors of a device: the device must report an error, and the error must not change other buffers.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{BufferRect, Device, ErrorKind, HostRect, Scalar};

use crate::properties::memory::completed;
use crate::{Failure, Trial};

/// Tests that the device refuses an allocation that is larger than the memory of any computer. The device must report lack of
/// memory, all other buffers must keep their values, and later commands must work.
///
/// # Errors
/// The device accepts the allocation, reports an error of another kind, or changes another buffer.
pub fn too_much_memory<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    const N: usize = 100;
    let device = trial.subject;
    let done = |result| completed("faults: completes", result);
    let rect = |data: &mut Vec<T>| HostRect::packed(data, N);
    let (mut sent, mut got) = ((0..N).map(|i| T::from_f64(crate::bounds::real(i))).collect::<Vec<T>>(), vec![T::ZERO; N]);
    trial.ledger.evidence("", N);
    let buffer = completed("faults: completes", device.alloc(N * size_of::<T>()))?;
    // SAFETY: this function owns `sent` and the buffer, which have the same size, and no other command uses them.
    done(unsafe { device.write(rect(&mut sent), BufferRect::packed(&buffer, N)) })?;
    for bytes in [1 << 48, 1 << 60] {
        match device.alloc(bytes).map_err(|error| error.kind()) {
            // a device that allocates buffers in host memory may report lack of host memory
            Err(ErrorKind::OutOfMemory | ErrorKind::OutOfHostMemory) => {}
            Ok(_) => return Err(Failure::new("faults: too much memory", format!("{bytes} bytes are given"))),
            Err(kind) => return Err(Failure::new("faults: too much memory", format!("{bytes} bytes are refused as {kind}"))),
        }
    }
    // SAFETY: this function owns `got` and the buffer, which have the same size, and no other command uses them.
    done(unsafe { device.read(BufferRect::packed(&buffer, N), rect(&mut got)) })?;
    if got == sent { Ok(()) } else { Err(Failure::new("faults: buffers survive", "a buffer changed when another was refused")) }
}
