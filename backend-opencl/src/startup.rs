//! Measures how long each stage of the first call on a device takes.

use std::sync::Arc;

use lapidary_core::{ProgramCache, Result, Startup};

use crate::context::SharedContext;
use crate::device::OpenClDevice;
use crate::platform::list;

/// Opens the device `opencl:index` and computes a [first product](Startup::first_product). Returns the
/// name and the duration in seconds of each stage.
///
/// # Errors
/// No device has the number `index`, or a call of the driver fails.
pub fn startup(index: usize, cache: Arc<ProgramCache>) -> Result<Vec<(&'static str, f64)>> {
    let mut startup = Startup::default();
    let listing = list();
    let found = listing.device(index, "startup")?;
    startup.lap("load the drivers, list devices");
    let context = SharedContext::new(&found, &[found.handle()])?;
    startup.lap("create the context");
    let device = OpenClDevice::in_context(found, None, cache, context)?;
    startup.lap("create the queues");
    device.kernels().prepare_program()?;
    startup.lap("compile or load the program");
    device.kernels().prepare_kernel()?;
    startup.lap("create the kernel");
    startup.first_product(device)
}
