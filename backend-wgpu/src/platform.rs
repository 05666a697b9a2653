//! Lists the wgpu adapters of the system, with the facts that the choice of a device needs.

use std::sync::OnceLock;

use lapidary_core::{Error, ErrorKind, Limits, Result};

use crate::drivers;
use crate::host;
use crate::kernels::LONGEST;
use crate::transfers::PIECE;

/// APIs through which wgpu searches for adapters in a process.
const BACKENDS: wgpu::Backends = wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);

/// An adapter and facts that the adapter reports.
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

/// The list of all adapters with compute shaders, and the reasons why other adapters or drivers are missing from the list.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The adapters, in the order of their device numbers.
    pub devices: Vec<Found>,
    /// The reasons, as messages for users, why adapters or drivers are missing from `devices`.
    pub notes: Vec<String>,
}

impl Listing {
    /// Returns the adapter of device number `index`.
    pub(crate) fn device(&self, index: usize) -> Result<&Found> {
        self.devices.get(index).ok_or_else(|| Error::new(ErrorKind::NoSuchDevice, "open", self.instead_of(index)))
    }

    /// Returns the error message for a device number that no adapter has. The message lists the devices that exist.
    fn instead_of(&self, index: usize) -> String {
        let there: Vec<String> =
            self.devices.iter().enumerate().map(|(i, found)| format!("wgpu:{i} ({})", found.info.name)).collect();
        let there = if there.is_empty() { "no adapter".to_owned() } else { there.join(", ") };
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        format!("there is no wgpu:{index}; there is {there}{notes}")
    }
}

/// Returns the instance of wgpu, which all devices share.
fn instance() -> &'static wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
        wanted.backends = BACKENDS | wgpu::Backends::BROWSER_WEBGPU;
        wanted.flags = wgpu::InstanceFlags::empty();
        // wgpu shall refuse an allocation if more than 95 % of the device memory would be in use, because a driver that allocates
        // more memory than exists may fail in any later call
        wanted.memory_budget_thresholds.for_resource_creation = Some(95);
        wgpu::Instance::new(wanted)
    })
}

/// Returns the fast adapter that wgpu or the browser prefers.
///
/// # Errors
/// There is no adapter, or the preferred adapter has no compute shaders.
pub(crate) async fn preferred_adapter() -> Result<wgpu::Adapter> {
    let power_preference = wgpu::PowerPreference::HighPerformance;
    let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
    let none = |message: &str| Error::new(ErrorKind::NoSuchDevice, "request", message);
    let adapter = instance().request_adapter(&options).await.map_err(|_| none(host::NO_ADAPTER))?;
    if has_compute_shaders(&adapter) { Ok(adapter) } else { Err(none("the adapter has no compute shaders")) }
}

fn has_compute_shaders(adapter: &wgpu::Adapter) -> bool {
    adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
}

/// Lists the wgpu adapters of the system. The caller selects a device by the number of its adapter in this list, and there is no
/// default device. In a browser, the list is empty, and a note names [`WgpuDevice::request`](crate::WgpuDevice::request).
#[must_use]
pub fn list() -> Listing {
    let adapters = match host::block_on("list", instance().enumerate_adapters(BACKENDS)) {
        Ok(adapters) => adapters,
        Err(error) => return Listing { notes: vec![error.to_string()], ..Listing::default() },
    };
    let (mut devices, mut notes) = (Vec::new(), Vec::new());
    for adapter in adapters {
        let info = adapter.get_info();
        if has_compute_shaders(&adapter) {
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
    // `drivers::unloadable` is called only once, because it loads every registered driver, even a driver that has no device
    static UNLOADABLE: OnceLock<Vec<String>> = OnceLock::new();
    notes.extend_from_slice(UNLOADABLE.get_or_init(drivers::unloadable));
    Listing { devices, notes }
}

/// Returns the size in bytes of the largest buffer that a kernel can address. Kernels count elements in 32 bits, so the size is
/// less than 2 GiB even if an API allows larger bindings.
pub(crate) fn largest_binding(limits: &wgpu::Limits) -> usize {
    const COUNTED: u64 = (1 << 31) - 4;
    let bytes = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(COUNTED);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the limits of wgpu for which kernels and transfers need a minimum value. An entry contains the name of a limit, its
/// value on the device, and the minimum.
fn needs(limits: &wgpu::Limits) -> [(&'static str, u64, u64); 13] {
    [
        ("max_buffer_size", limits.max_buffer_size, PIECE as u64),
        ("max_bind_groups", limits.max_bind_groups.into(), 1),
        // one binding for the arguments, and four bindings for the operands of the kernel that has the most operands
        ("max_bindings_per_bind_group", limits.max_bindings_per_bind_group.into(), 5),
        ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into(), 4),
        ("max_uniform_buffers_per_shader_stage", limits.max_uniform_buffers_per_shader_stage.into(), 1),
        ("max_dynamic_uniform_buffers_per_pipeline_layout", limits.max_dynamic_uniform_buffers_per_pipeline_layout.into(), 1),
        ("max_uniform_buffer_binding_size", limits.max_uniform_buffer_binding_size, LONGEST as u64),
        // WebGPU guarantees at least 65535 workgroups per dimension, and one launch with this number of workgroups suffices for
        // every product
        ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into(), 65_535),
        ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into(), 64),
        ("max_compute_workgroup_size_x", limits.max_compute_workgroup_size_x.into(), 64),
        // a workgroup that computes the widest tile has 8 invocations along the columns
        ("max_compute_workgroup_size_y", limits.max_compute_workgroup_size_y.into(), 8),
        // the search for a pivot in a column stores one candidate of each invocation in workgroup memory
        ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size.into(), 8 << 10),
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size, 64 << 10),
    ]
}

/// Checks that the limits of a device reach the minimum values that kernels and transfers need.
///
/// # Errors
/// Fails if a limit of the device is below the minimum that kernels and transfers need. The error states the name and the value
/// of the limit, and the minimum.
pub(crate) fn check(limits: &wgpu::Limits) -> Result<()> {
    let low = needs(limits).into_iter().find(|(_, there, least)| there < least);
    low.map_or(Ok(()), |(name, there, least)| {
        Err(Error::new(ErrorKind::Unsupported, "open", format!("the device was made with {name} {there}; it takes {least}")))
    })
}

/// Converts the limits of wgpu to the limits of the core, from which kernels are chosen.
pub(crate) fn kernel_limits(limits: &wgpu::Limits) -> Limits {
    let size = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
    let mut kernel_limits = Limits::default();
    kernel_limits.work_group = size(limits.max_compute_invocations_per_workgroup).min(size(limits.max_compute_workgroup_size_x));
    kernel_limits.local_memory = size(limits.max_compute_workgroup_storage_size);
    kernel_limits.groups = size(limits.max_compute_workgroups_per_dimension);
    kernel_limits.buffer = largest_binding(limits);
    kernel_limits
}
