//! Errors of a device: they are told, and what was there before is still there.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{Device, ErrorKind, HostRect, Scalar};

use crate::properties::memory::completed;
use crate::{Failure, Trial};

/// More than any machine has is refused for lack of memory; other buffers keep their
/// values, and the device goes on.
///
/// # Errors
/// It is accepted, called something else, or damages what was there.
pub fn too_much_memory<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    const N: usize = 100;
    let device = trial.subject;
    let done = |result| completed("faults: completes", result);
    let rect = |data: &mut Vec<T>| HostRect::packed(data, N);
    let (mut sent, mut got) = ((0..N).map(|i| T::from_f64(crate::bounds::real(i))).collect::<Vec<T>>(), vec![T::ZERO; N]);
    trial.ledger.evidence("", N);
    let buffer = completed("faults: completes", device.alloc(N * size_of::<T>()))?;
    // SAFETY: the memory and the buffer are ours, and of that size.
    done(unsafe { device.write(rect(&mut sent), &buffer) })?;
    for bytes in [1 << 48, 1 << 60] {
        match device.alloc(bytes).map_err(|error| error.kind()) {
            // a device whose memory is the host's may call it so
            Err(ErrorKind::OutOfMemory | ErrorKind::OutOfHostMemory) => {}
            Ok(_) => return Err(Failure::new("faults: too much memory", format!("{bytes} bytes are given"))),
            Err(kind) => return Err(Failure::new("faults: too much memory", format!("{bytes} bytes are refused as {kind}"))),
        }
    }
    // SAFETY: as above.
    done(unsafe { device.read(&buffer, rect(&mut got)) })?;
    if got == sent { Ok(()) } else { Err(Failure::new("faults: buffers survive", "a buffer changed when another was refused")) }
}
