//! Measures how long each stage of the first product of a process takes.

use std::sync::Arc;

use lapidary_core::{ProgramCache, Result, Startup};

use crate::device::{WgpuDevice, required_limits};
use crate::platform::list;

/// Opens device number `index`, runs a [first product](Startup::first_product), and returns the duration of each stage in
/// seconds. The first run of the product includes the compilation of its pipeline.
///
/// # Errors
/// Fails if no adapter has the number `index`, or if the adapter returns no device.
pub fn startup(index: usize, cache: Arc<ProgramCache>) -> Result<Vec<(&'static str, f64)>> {
    let mut startup = Startup::default();
    let listing = list();
    let found = listing.device(index)?;
    startup.lap("load the drivers, list adapters");
    let device = WgpuDevice::open_found(found, index, required_limits(&found.adapter), None, cache)?;
    startup.lap("open the device");
    startup.first_product(device)
}
