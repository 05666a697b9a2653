//! The times in which devices ran their kernels.

use lapidary_core::{Error, ErrorKind, KernelTime, Result};

use crate::machine::Machine;

impl Machine {
    /// Waits for all kernels, and returns the times of the kernels that the devices have run since the previous call of this method: a
    /// list for each device, in the order of [`devices`](Machine::devices). Each list is sorted by the starts of the kernels, and its times
    /// are relative to the first of them.
    ///
    /// # Errors
    /// A device records no times: it is neither an OpenCL nor a wgpu device, or
    /// [`Settings::kernel_times`](crate::Settings::kernel_times) is not set. A kernel failed. A device ran more than the 2²⁰ kernels whose
    /// times it keeps.
    pub fn take_kernel_times(&self) -> Result<Vec<Vec<KernelTime>>> {
        let mut taken = Vec::new();
        self.visit_devices(&mut |device| {
            let missing = || {
                let message =
                    "the device records no times of kernels: open an OpenCL or wgpu device with the setting `kernel_times`";
                Err(Error::new(ErrorKind::Unsupported, "take_kernel_times", message))
            };
            let times = device.take_kernel_times().unwrap_or_else(missing);
            taken.push(times.map_err(|error| error.with("device", &device.facts().name)));
        });
        taken.into_iter().collect()
    }
}
