//! A call from its plan to its end, on the devices that reach its memory.

use lapidary_core::{
    Drive, Error, ErrorKind, Home, Layout, Plan, RawMat, Reach, Resources, Result, RunError, Scalar, Schedule, reach,
    resident_device, run,
};

use crate::handle::Handle;
use crate::machine::Machine;

impl Machine {
    /// Plans, schedules and runs a call on the devices that reach its memory.
    pub(crate) fn run<T: Scalar>(
        &self,
        operation: &'static str,
        memory: &[RawMat],
        plan: impl Fn(&Resources) -> Plan<T>,
    ) -> Result<()> {
        if memory.iter().any(|raw| matches!(raw.home, Home::Device(_)) && raw.layout == Layout::RowMajor) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                operation,
                "a matrix on a device is factored column-major only; pass it untransposed",
            ));
        }
        let home = resident_device(operation, memory)?;
        let devices: Vec<usize> = home.map_or_else(|| (0..self.handles.len()).collect(), |device| vec![device]);
        let devices = self.able::<T>(operation, &devices)?;
        let handles: Vec<&Handle> = devices.iter().map(|&device| &self.handles[device]).collect();
        let _turn = self.turn();
        let (mut most, mut refused) = (usize::MAX, None);
        loop {
            let limited = |(&device, handle): (&usize, &&Handle)| {
                let memory_of_device = handle.free_memory().min(most);
                Reach { memory: memory_of_device, ..reach(device, handle.info(), memory) }
            };
            let reaches: Vec<Reach> = devices.iter().zip(&handles).map(limited).collect();
            let copy_limit = copy_limit(&handles, &reaches);
            let resources = Resources { devices: devices.len(), copy_limit, element: T::DTYPE.size() };
            // the device's own refusal says more than that too little is left of its memory
            let schedule = match Schedule::new(plan(&resources), reaches) {
                Ok(schedule) => schedule,
                Err(error) => return Err(refused.unwrap_or(error)),
            };
            // SAFETY: `memory` comes from checked arguments: matrices are lent for the
            // call, and those that are written uniquely.
            let outcome = unsafe { run(&self.crew, &handles, &schedule, memory, self.trace.as_ref()) };
            match (outcome, copy_limit) {
                (Ok(()), _) => return Ok(()),
                // a device has less memory than it said: smaller tiles, until none is small enough
                (Err(RunError { error, touched: false, .. }), Some(limit)) if error.kind() == ErrorKind::OutOfMemory => {
                    most = limit / 2;
                    refused = Some(error);
                }
                (Err(RunError { error, .. }), _) => return Err(error),
            }
        }
    }
}

/// The smallest memory of the devices that work on copies; no buffer then is
/// larger than the half of it.
fn copy_limit(handles: &[&Handle], reaches: &[Reach]) -> Option<usize> {
    let copies = handles.iter().zip(reaches).filter(|(_, reach)| reach.in_place.contains(&false));
    let largest = |handle: &Handle| handle.info().largest_buffer.map_or(usize::MAX, |bytes| bytes.saturating_mul(2));
    copies.map(|(handle, reach)| reach.memory.min(largest(handle))).min()
}
