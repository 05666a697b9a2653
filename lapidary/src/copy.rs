//! Copies of host matrices that devices keep.

use lapidary_core::algorithms::Problem;
use lapidary_core::{Error, Getrs, Home, MatRef, Resident, Result, Scalar};

use crate::machine::Machine;
use crate::price::{HostCall, Listener, Reason};

/// A device's copy of the factors that `Lu` has in host memory, so that a solve does not move them again. The device frees the copy
/// if it needs the memory.
#[derive(Debug)]
pub(crate) struct DeviceCopy {
    machine: Machine,
    resident: Resident,
}

impl DeviceCopy {
    /// The copy of that key on a device.
    pub fn new(machine: &Machine, device: usize, key: u64) -> Self {
        DeviceCopy { machine: machine.clone(), resident: Resident { device, key } }
    }

    /// [`Machine::solve_with_pivots`] with the copy in place of the factors of `args`. `None` if the device has freed it, if B lies
    /// on another device, or if the device lacks what the solve needs and B is as it was.
    pub fn solve<T: Scalar>(&self, problem: &Problem, args: &mut Getrs<'_, T>) -> Option<Result<()>> {
        let reaches_b = match args.b.as_ref().raw().home {
            Home::Host(_) => true,
            Home::Device(of_b) => of_b.device == self.resident.device,
        };
        let driver = &self.machine.drivers()[self.resident.device];
        // a planner counts unused copies as free; the lock keeps a use from beginning while it plans
        let exclusive = self.machine.exclusive(&[self.resident.device]);
        let _in_use = driver.use_copy(self.resident.key).filter(|_| reaches_b)?;
        drop(exclusive);
        if let Some(Listener(tell)) = self.machine.listener() {
            let call = HostCall { machine: &self.machine, problem, memory: &[], capable: &[self.resident.device] };
            tell(&self.machine.explanation(&call, Reason::Resident, None));
        }
        let (rows, cols) = args.lu.shape();
        // SAFETY: the copy has this shape and element type; it stays while it is in use, and nothing writes it.
        let factors = unsafe { MatRef::resident(self.resident, rows, cols) };
        let solved = self.machine.solve_with_pivots(Getrs { lu: factors, b: args.b.reborrow(), ..*args }, None);
        let can_use_host_factors = |error: &Error| error.kind().is_recoverable_elsewhere() && error.is_untouched();
        if solved.as_ref().is_err_and(can_use_host_factors) { None } else { Some(solved) }
    }
}

#[cfg(test)]
impl DeviceCopy {
    /// Whether the device has the copy.
    pub fn is_kept(&self) -> bool {
        self.machine.drivers()[self.resident.device].is_copy(self.resident.key)
    }
}

impl Drop for DeviceCopy {
    fn drop(&mut self) {
        self.machine.drivers()[self.resident.device].discard_copy(self.resident.key);
    }
}

#[cfg(test)]
mod tests;
