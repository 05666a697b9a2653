//! Checks before a benchmark whether its matrices fit into memory.

use lapidary::{DType, DeviceFacts, Machine, Scalar};

use super::placement::Placement;
use super::problem::{held, operand_shapes};
use super::table::words;
use crate::failure::{Failure, Result};
use crate::memory;
use crate::report::note;
use crate::shape::Shape;

/// Fails if the matrices of a call exceed the available host memory. With resident matrices, the function also fails if they exceed
/// the memory or the largest buffer of the device.
fn check<T: Scalar>(shape: &Shape, placement: Placement, machine: &Machine) -> Result<()> {
    let what = format!("{} {}", shape.routine.name(), words(&shape.sizes()));
    let is_resident = placement == Placement::Resident;
    let in_host_memory = machine.devices().all(|device| device.host_memory);
    memory::check_matrices::<T>(&what, &held(shape, is_resident && in_host_memory))?;
    machine.devices().filter(|_| is_resident).try_for_each(|device| check_device(&what, &operand_shapes(shape), T::DTYPE, device))
}

/// Fails if the matrices of `what` exceed the memory or the largest buffer of a device. The function never fails for a device that works
/// in host memory.
pub fn check_device(what: &str, shapes: &[(usize, usize)], dtype: DType, device: &DeviceFacts) -> Result<()> {
    let bytes = || shapes.iter().map(|(rows, cols)| rows.saturating_mul(*cols).saturating_mul(dtype.size()));
    let (total, largest) = (bytes().fold(0, usize::saturating_add), bytes().max().unwrap_or(0));
    let shortfalls = [(total, device.memory, "device memory"), (largest, Some(device.limits.buffer), "one buffer")];
    match shortfalls.into_iter().find(|(bytes, most, _)| !device.host_memory && most.is_some_and(|most| *bytes > most)) {
        Some((bytes, Some(most), place)) => {
            let (name, bytes, most) = (&device.name, memory::size(bytes), memory::size(most));
            Err(Failure::usage(format!("{what} takes {bytes} of {place}, and {name} has {most}; choose a smaller size")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Fails if the matrices of a call exceed the available memory in one of the placements.
pub fn check_all<T: Scalar>(shapes: &[Shape], placements: &[Placement], machine: &Machine) -> Result<()> {
    shapes.iter().try_for_each(|shape| placements.iter().try_for_each(|&placement| check::<T>(shape, placement, machine)))
}

/// Removes the first shape whose matrices exceed the available memory, and all shapes after it. A note states the reason. The
/// function fails if no shape remains.
pub fn keep_fitting<T: Scalar>(shapes: &mut Vec<Shape>, placements: &[Placement], machine: &Machine) -> Result<()> {
    check_all::<T>(&shapes[..1], placements, machine)?;
    let shortfall = |(at, shape): (usize, &Shape)| Some((at, check_all::<T>(&[*shape], placements, machine).err()?));
    if let Some((at, reason)) = shapes.iter().enumerate().find_map(shortfall) {
        note(&format!("note: the sweep ends at n={} at the latest: {reason}", shapes[at - 1].n));
        shapes.truncate(at);
    }
    Ok(())
}
