//! What adapters there are.

use std::sync::OnceLock;

use lapidary_core::{Error, ErrorKind, Limits, Result};

use crate::drivers;
use crate::kernels::LONGEST;
use crate::transfers::PIECE;

/// The interfaces that adapters are looked for through.
const BACKENDS: wgpu::Backends = wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);

/// An adapter and what it says of itself.
#[derive(Clone, Debug)]
pub struct Found {
    /// The adapter, from which devices are made.
    pub adapter: wgpu::Adapter,
    /// Name, driver, kind of device.
    pub info: wgpu::AdapterInfo,
    /// Whether it is the machine's processor.
    pub is_cpu: bool,
    /// Whether it computes in double precision.
    pub f64: bool,
}

/// Every adapter that computes, and why there are not more.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The adapters in the order of their numbers.
    pub devices: Vec<Found>,
    /// What was looked for in vain.
    pub notes: Vec<String>,
}

impl Listing {
    /// The device of that number.
    pub(crate) fn device(&self, index: usize) -> Result<&Found> {
        self.devices.get(index).ok_or_else(|| Error::new(ErrorKind::NoSuchDevice, "open", self.instead_of(index)))
    }

    /// What there is in place of a device of that number.
    fn instead_of(&self, index: usize) -> String {
        let there: Vec<String> =
            self.devices.iter().enumerate().map(|(i, found)| format!("wgpu:{i} ({})", found.info.name)).collect();
        let there = if there.is_empty() { "no adapter".to_owned() } else { there.join(", ") };
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        format!("there is no wgpu:{index}; there is {there}{notes}")
    }
}

/// The adapters of this machine: each is named by its number here, never by default.
#[must_use]
pub fn list() -> Listing {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    let instance = INSTANCE.get_or_init(|| {
        let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
        wanted.backends = BACKENDS;
        wanted.flags = wgpu::InstanceFlags::empty();
        // a driver that grants more memory than there is may fail in any later call
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
    // asked once: a driver without devices may be loaded for the question
    static UNLOADABLE: OnceLock<Vec<String>> = OnceLock::new();
    notes.extend_from_slice(UNLOADABLE.get_or_init(drivers::unloadable));
    Listing { devices, notes }
}

/// Bytes of the largest buffer that a kernel reaches, which counts elements in 32 bits:
/// some interfaces would bind more.
pub(crate) fn largest_binding(limits: &wgpu::Limits) -> usize {
    const COUNTED: u64 = (1 << 31) - 4;
    let bytes = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(COUNTED);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The limits that every device must meet: the name, the value of the device, and the minimum that the kernels and transfers
/// need.
fn needs(limits: &wgpu::Limits) -> [(&'static str, u64, u64); 13] {
    [
        ("max_buffer_size", limits.max_buffer_size, PIECE as u64),
        ("max_bind_groups", limits.max_bind_groups.into(), 1),
        // the arguments, and the operands of a kernel that has most
        ("max_bindings_per_bind_group", limits.max_bindings_per_bind_group.into(), 5),
        ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into(), 4),
        ("max_uniform_buffers_per_shader_stage", limits.max_uniform_buffers_per_shader_stage.into(), 1),
        ("max_dynamic_uniform_buffers_per_pipeline_layout", limits.max_dynamic_uniform_buffers_per_pipeline_layout.into(), 1),
        ("max_uniform_buffer_binding_size", limits.max_uniform_buffer_binding_size, LONGEST as u64),
        // the minimum that WebGPU guarantees: no product needs more than one launch
        ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into(), 65_535),
        ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into(), 64),
        ("max_compute_workgroup_size_x", limits.max_compute_workgroup_size_x.into(), 64),
        // the columns of the widest tile
        ("max_compute_workgroup_size_y", limits.max_compute_workgroup_size_y.into(), 8),
        // a candidate of each invocation that searches a column
        ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size.into(), 8 << 10),
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size, 64 << 10),
    ]
}

/// Whether a device can run anything.
///
/// # Errors
/// The limit that is too low, and what it takes.
pub(crate) fn check(limits: &wgpu::Limits) -> Result<()> {
    let low = needs(limits).into_iter().find(|(_, there, least)| there < least);
    low.map_or(Ok(()), |(name, there, least)| {
        Err(Error::new(ErrorKind::Unsupported, "open", format!("the device was made with {name} {there}; it takes {least}")))
    })
}

/// What kernels may use.
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
