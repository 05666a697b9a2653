//! Lists the adapters of the system.

use std::sync::OnceLock;

use lapidary_core::{Error, ErrorKind, Limits, Result};

use crate::drivers;
use crate::kernels::LONGEST;
use crate::transfers::PIECE;

/// APIs through which wgpu searches for adapters.
const BACKENDS: wgpu::Backends = wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);

/// An adapter and the facts that it reports.
#[derive(Clone, Debug)]
pub struct Found {
    /// The adapter, which creates devices.
    pub adapter: wgpu::Adapter,
    /// Name, driver and kind of the adapter.
    pub info: wgpu::AdapterInfo,
    /// Whether the adapter is a CPU.
    pub is_cpu: bool,
    /// Whether the adapter supports double precision.
    pub f64: bool,
}

/// Every adapter with compute shaders, and the reasons why other adapters or drivers are missing.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Adapters in the order of their device numbers.
    pub devices: Vec<Found>,
    /// Reasons why adapters or drivers are missing.
    pub notes: Vec<String>,
}

impl Listing {
    /// Returns the adapter of device number `index`.
    pub(crate) fn device(&self, index: usize) -> Result<&Found> {
        self.devices.get(index).ok_or_else(|| Error::new(ErrorKind::NoSuchDevice, "open", self.instead_of(index)))
    }

    /// Returns the message for a device number without an adapter. The message lists the devices that exist.
    fn instead_of(&self, index: usize) -> String {
        let there: Vec<String> =
            self.devices.iter().enumerate().map(|(i, found)| format!("wgpu:{i} ({})", found.info.name)).collect();
        let there = if there.is_empty() { "no adapter".to_owned() } else { there.join(", ") };
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        format!("there is no wgpu:{index}; there is {there}{notes}")
    }
}

/// Lists the adapters of the system. A device is always named by its number in this list, and there is no default device.
#[must_use]
pub fn list() -> Listing {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    let instance = INSTANCE.get_or_init(|| {
        let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
        wanted.backends = BACKENDS;
        wanted.flags = wgpu::InstanceFlags::empty();
        // wgpu refuses allocations near the limit, because a driver that allocates more memory than exists may fail in any later
        // call
        wanted.memory_budget_thresholds.for_resource_creation = Some(95);
        wgpu::Instance::new(wanted)
    });
    let adapters = pollster::block_on(instance.enumerate_adapters(BACKENDS));
    let (mut devices, mut notes) = (Vec::new(), Vec::new());
    for adapter in adapters {
        let info = adapter.get_info();
        if adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS) {
            let is_cpu = info.device_type == wgpu::DeviceType::Cpu;
            let f64 = adapter.features().contains(wgpu::Features::SHADER_F64);
            devices.push(Found { adapter, info, is_cpu, f64 });
        } else {
            notes.push(format!("{} has no compute shaders", info.name));
        }
    }
    if devices.is_empty() {
        let names = BACKENDS.iter_names().map(|(name, _)| name.to_lowercase());
        notes.push(format!("looked for adapters of {}", names.collect::<Vec<_>>().join(", ")));
    }
    // the messages are computed once, because the test may load a driver that has no device
    static UNLOADABLE: OnceLock<Vec<String>> = OnceLock::new();
    notes.extend_from_slice(UNLOADABLE.get_or_init(drivers::unloadable));
    Listing { devices, notes }
}

/// Returns the size in bytes of the largest buffer that a kernel can address. Kernels count elements in 32 bits, so the size is
/// limited even if an API allows larger bindings.
pub(crate) fn largest_binding(limits: &wgpu::Limits) -> usize {
    const COUNTED: u64 = (1 << 31) - 4;
    let bytes = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(COUNTED);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the limits that every device must meet. An entry contains the name of a limit, its value on the device, and the
/// minimum that kernels and transfers need.
fn needs(limits: &wgpu::Limits) -> [(&'static str, u64, u64); 13] {
    [
        ("max_buffer_size", limits.max_buffer_size, PIECE as u64),
        ("max_bind_groups", limits.max_bind_groups.into(), 1),
        // one binding for the arguments, and four for the operands of the kernel with the most operands
        ("max_bindings_per_bind_group", limits.max_bindings_per_bind_group.into(), 5),
        ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into(), 4),
        ("max_uniform_buffers_per_shader_stage", limits.max_uniform_buffers_per_shader_stage.into(), 1),
        ("max_dynamic_uniform_buffers_per_pipeline_layout", limits.max_dynamic_uniform_buffers_per_pipeline_layout.into(), 1),
        ("max_uniform_buffer_binding_size", limits.max_uniform_buffer_binding_size, LONGEST as u64),
        // WebGPU guarantees this minimum, and one launch with so many workgroups suffices for every product
        ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into(), 65_535),
        ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into(), 64),
        ("max_compute_workgroup_size_x", limits.max_compute_workgroup_size_x.into(), 64),
        // a workgroup of the widest tile has 8 invocations along the columns
        ("max_compute_workgroup_size_y", limits.max_compute_workgroup_size_y.into(), 8),
        // memory for one pivot candidate of each invocation that searches a column
        ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size.into(), 8 << 10),
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size, 64 << 10),
    ]
}

/// Checks that a device meets the limits that every kernel needs.
///
/// # Errors
/// A limit of the device is too low. The error states the limit and the required minimum.
pub(crate) fn check(limits: &wgpu::Limits) -> Result<()> {
    let low = needs(limits).into_iter().find(|(_, there, least)| there < least);
    low.map_or(Ok(()), |(name, there, least)| {
        Err(Error::new(ErrorKind::Unsupported, "open", format!("the device was made with {name} {there}; it takes {least}")))
    })
}

/// Returns the limits that the choice of kernels observes.
pub(crate) fn kernel_limits(limits: &wgpu::Limits) -> Limits {
    let size = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
    Limits {
        work_group: size(limits.max_compute_invocations_per_workgroup).min(size(limits.max_compute_workgroup_size_x)),
        local_memory: size(limits.max_compute_workgroup_storage_size),
        groups: size(limits.max_compute_workgroups_per_dimension),
        buffer: largest_binding(limits),
        ..Limits::default()
    }
}
