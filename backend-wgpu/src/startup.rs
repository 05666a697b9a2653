//! Where the time of a first call goes, stage by stage.

use std::sync::Arc;

use lapidary_core::{ProgramCache, Result, Startup};

use crate::device::{WgpuDevice, required_limits};
use crate::platform::list;

/// Opens the device of that number and runs a [first product](Startup::first_product):
/// the seconds of each stage. The first run makes the pipeline.
///
/// # Errors
/// There is no such adapter, or it refuses.
pub fn startup(index: usize, cache: Arc<ProgramCache>) -> Result<Vec<(&'static str, f64)>> {
    let mut startup = Startup::default();
    let listing = list();
    let found = listing.device(index)?;
    startup.lap("load the drivers, list adapters");
    let device = WgpuDevice::with_limits(found, index, required_limits(&found.adapter), None, cache)?;
    startup.lap("open the device");
    startup.first_product(device)
}
