//! Collects the [`DeviceFacts`] of a wgpu device. wgpu reports most of the facts; a probe finds out whether workgroups may wait
//! for one another.

use lapidary_core::{DType, DeviceFacts, DeviceKind, Feature, ProgramCache};

use crate::host;
use crate::platform::kernel_limits;
use crate::probe::groups_may_wait;
use crate::queue::Queue;

/// Features of wgpu, each paired with the feature of Lapidary that has the same meaning.
pub(crate) const FEATURES: [(wgpu::Features, Feature); 3] = [
    (wgpu::Features::SHADER_F16, Feature::F16),
    (wgpu::Features::SUBGROUP, Feature::Subgroups),
    (wgpu::Features::TIMESTAMP_QUERY, Feature::Timestamps),
];

/// Maximum number of loop iterations of an invocation on a CPU adapter. Mesa's llvmpipe silently stops the loops of an invocation
/// after 65535 iterations in total (`LP_MAX_TGSI_LOOP_ITERATIONS`). CPU drivers other than llvmpipe lose little speed by the same
/// maximum.
const LOOP_ITERATIONS: usize = 60_000;

/// Vendor names by PCI or Khronos vendor id.
const VENDORS: [(u32, &str); 9] = [
    (0x1002, "AMD"),
    (0x106b, "Apple"),
    (0x10de, "NVIDIA"),
    (0x13b5, "Arm"),
    (0x1414, "Microsoft"),
    (0x1ae0, "Google"),
    (0x5143, "Qualcomm"),
    (0x8086, "Intel"),
    (0x1_0005, "Mesa"),
];

/// Collects the facts of a device. Unless the device is a CPU, a probe finds out whether workgroups may wait for one another, and
/// `disk` stores the answer of the probe.
pub(crate) fn facts(queue: &Queue, disk: &ProgramCache, name: String, memory: Option<usize>) -> DeviceFacts {
    let wgpu::AdapterInfo { name: model, driver, driver_info, backend, device_type, vendor, .. } = queue.device().adapter_info();
    // a browser may keep the name of its adapter to itself
    let model = if model.is_empty() { "unnamed adapter".to_owned() } else { model };
    let features = queue.device().features();
    let (kind, flops, bandwidth) = match device_type {
        wgpu::DeviceType::DiscreteGpu | wgpu::DeviceType::VirtualGpu => (DeviceKind::Gpu, 5e12, 1e10),
        wgpu::DeviceType::IntegratedGpu => (DeviceKind::Gpu, 5e11, 1e10),
        wgpu::DeviceType::Other => (DeviceKind::Other, 5e11, 1e10),
        wgpu::DeviceType::Cpu => (DeviceKind::Cpu, 5e9, 5e9),
    };
    let is_cpu = kind == DeviceKind::Cpu;
    let told = FEATURES.into_iter().filter(|(feature, _)| features.contains(*feature)).map(|(_, feature)| feature);
    let waits = !is_cpu && groups_may_wait(queue, disk);
    // only in Vulkan, each component of a vector is a separate memory location, so that a store to one component leaves the other
    // components unchanged
    let has_parts = backend == wgpu::Backend::Vulkan;
    let found = [(waits, Feature::GroupsMayWait), (has_parts, Feature::PartsOfVectors)];
    let mut facts = DeviceFacts::new(name);
    facts.description = if driver.is_empty() { format!("{model} ({backend})") } else { format!("{model}, {driver} ({backend})") };
    facts.limits = kernel_limits(&queue.device().limits());
    if is_cpu {
        facts.limits.loop_iterations = LOOP_ITERATIONS;
    }
    facts.features = told.chain(found.into_iter().filter(|(is_there, _)| *is_there).map(|(_, feature)| feature)).collect();
    facts.dtypes = if features.contains(wgpu::Features::SHADER_F64) { vec![DType::F32, DType::F64] } else { vec![DType::F32] };
    facts.memory = memory;
    facts.host_may_wait = host::MAY_WAIT;
    facts.rates.flops = flops;
    facts.rates.bandwidth = bandwidth;
    facts.identity.kind = kind;
    let known = VENDORS.iter().find(|(id, _)| *id == vendor);
    facts.identity.vendor = known.map_or_else(|| format!("{vendor:#06x}"), |(_, name)| (*name).to_owned());
    facts.identity.model = model;
    facts.identity.driver = format!("{backend} {driver} {driver_info}").trim_end().to_owned();
    facts
}
