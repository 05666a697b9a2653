//! Copies of the factors of host matrices that devices keep for later solves.

use lapidary_core::algorithms::Problem;
use lapidary_core::{Error, Getrs, Home, MatRef, Resident, Result, Scalar};

use crate::machine::Machine;
use crate::price::{HostCall, Listener, Reason};

/// A copy, on a device, of factors that an `Lu` holds in host memory. A solve that uses the copy does not transfer the factors. The
/// device frees the copy if it needs the memory for something else.
#[derive(Debug)]
pub(crate) struct DeviceCopy {
    machine: Machine,
    resident: Resident,
}

impl DeviceCopy {
    /// Makes a handle of the copy with this key on the device.
    pub fn new(machine: &Machine, device: usize, key: u64) -> Self {
        DeviceCopy { machine: machine.clone(), resident: Resident { device, key } }
    }

    /// Solves as [`Machine::solve_with_pivots`] does, with the copy in place of the factors of `args`. Returns `None` if the
    /// device has freed the copy, if B lies on another device, or if the device runs out of memory or is lost while B is
    /// unchanged.
    pub fn solve<T: Scalar>(&self, problem: &Problem, args: &mut Getrs<'_, T>) -> Option<Result<()>> {
        let reaches_b = match args.b.as_ref().raw().home {
            Home::Host(_) => true,
            Home::Device(of_b) => of_b.device == self.resident.device,
        };
        let runtime = &self.machine.runtimes()[self.resident.device];
        // A planned call counts idle copies as free memory, so a solve must not begin to use a copy while such a call holds the
        // lock.
        let exclusive = self.machine.exclusive(&[self.resident.device]);
        let _in_use = runtime.use_copy(self.resident.key).filter(|_| reaches_b)?;
        drop(exclusive);
        if let Some(Listener(tell)) = self.machine.listener() {
            let call = HostCall { machine: &self.machine, problem, memory: &[], capable: &[self.resident.device] };
            tell(&self.machine.explanation(&call, Reason::Resident, None));
        }
        let (rows, cols) = args.lu.shape();
        // SAFETY: the copy on the device has the shape and element type of `args.lu`, `_in_use` prevents the device from freeing
        // the copy until this function returns, and no call writes a copy of factors.
        let factors = unsafe { MatRef::resident(self.resident, rows, cols) };
        let solved = self.machine.solve_with_pivots(Getrs { lu: factors, b: args.b.reborrow(), ..*args }, None);
        let can_use_host_factors = |error: &Error| error.kind().is_recoverable_elsewhere() && error.is_untouched();
        if solved.as_ref().is_err_and(can_use_host_factors) { None } else { Some(solved) }
    }
}

#[cfg(test)]
impl DeviceCopy {
    /// Whether the device still has the copy.
    pub fn is_kept(&self) -> bool {
        self.machine.runtimes()[self.resident.device].is_copy(self.resident.key)
    }
}

impl Drop for DeviceCopy {
    fn drop(&mut self) {
        self.machine.runtimes()[self.resident.device].discard_copy(self.resident.key);
    }
}

#[cfg(test)]
mod tests;
