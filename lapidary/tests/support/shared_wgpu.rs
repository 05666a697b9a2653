//! A machine on a wgpu device that the application owns.

use std::sync::Arc;

use lapidary::wgpu::{WgpuDevice, list, required_limits, wgpu};
use lapidary::{Machine, Settings};

/// Opens the first adapter, and returns the machine and the device of the application. `None` if there is no adapter.
pub fn shared() -> Option<(Machine, wgpu::Device)> {
    let listing = list();
    let found = listing.devices.first()?;
    let wanted = wgpu::DeviceDescriptor { required_limits: required_limits(&found.adapter), ..Default::default() };
    let (device, queue) = pollster::block_on(found.adapter.request_device(&wanted)).unwrap();
    let settings = Settings::default();
    let own = WgpuDevice::from_parts(device.clone(), queue, Arc::new(settings.program_cache())).unwrap();
    Some((Machine::from_wgpu(vec![own], &settings).unwrap(), device))
}
