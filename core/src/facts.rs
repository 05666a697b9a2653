//! Facts about a device: identity, limits, features, memory, estimated rates.
//!
//! A backend collects them once, when it opens the device. Decisions based on them are made elsewhere.

use std::fmt;

use crate::scalar::DType;

/// Facts about a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFacts {
    /// Name by which it is selected, such as `cpu:0`.
    pub name: String,
    /// One line for people: model, and driver or instruction set.
    pub description: String,
    /// Kind, vendor, architecture, model and driver.
    pub identity: Identity,
    /// Limits on kernels and buffers.
    pub limits: Limits,
    /// Optional features that kernels can use.
    pub features: Vec<Feature>,
    /// Element types that instructions support.
    pub dtypes: Vec<DType>,
    /// Number of cores of a CPU or multiprocessors of a GPU; `None` if the driver does not report it.
    pub compute_units: Option<usize>,
    /// Width of a vector register in bits.
    pub vector_bits: usize,
    /// Bytes of memory for registers; `None` if only the machine's memory limits them.
    pub memory: Option<usize>,
    /// Whether the device computes on host memory without a copy.
    pub host_memory: bool,
    /// Number of kernel queues. Kernels of one queue run in order; kernels of different queues may run at the same time.
    pub queues: usize,
    /// Estimated speeds.
    pub rates: Rates,
}

/// Identity of a device, as its driver or the operating system reports it; text is empty if neither does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Kind of hardware.
    pub kind: DeviceKind,
    /// Vendor of the hardware.
    pub vendor: String,
    /// The instruction set that its kernels are compiled for.
    pub architecture: String,
    /// Product name.
    pub model: String,
    /// The driver and its version.
    pub driver: String,
}

/// Kind of hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// The machine's processor: work-items are threads, or iterations of a loop in one.
    Cpu,
    /// A graphics processor, with many work-items per multiprocessor.
    Gpu,
    /// Another kind, or unknown.
    #[default]
    Other,
}

/// Limits on kernels and buffers. `usize::MAX` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of work-items in a work-group.
    pub work_group: usize,
    /// Maximum local memory of a work-group, in bytes.
    pub local_memory: usize,
    /// Maximum number of work-groups in one dimension of a launch.
    pub groups: usize,
    /// Maximum size of a buffer, in bytes.
    pub buffer: usize,
    /// Maximum number of loop iterations of a work-item, over all its loops. Some drivers silently stop loops that take more.
    pub loop_iterations: usize,
}

impl Default for Limits {
    /// Work-groups of one work-item, no local memory, and no other limit.
    fn default() -> Self {
        Limits { work_group: 1, local_memory: 0, groups: usize::MAX, buffer: usize::MAX, loop_iterations: usize::MAX }
    }
}

/// An optional feature that kernels can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Half-precision arithmetic.
    F16,
    /// Work-items of a sub-group can exchange values.
    Subgroups,
    /// The device records when a kernel began and ended.
    Timestamps,
    /// A work-group may wait for one that began before it: the earlier one makes progress meanwhile, and the waiting one sees
    /// what it writes.
    GroupsMayWait,
    /// Different work-items may write different components of the same vector in local memory.
    PartsOfVectors,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Feature::F16 => "f16",
            Feature::Subgroups => "subgroups",
            Feature::Timestamps => "timestamps",
            Feature::GroupsMayWait => "groups_may_wait",
            Feature::PartsOfVectors => "parts_of_vectors",
        })
    }
}

/// Estimated speeds, from which the cost model starts; they are not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Floating-point operations per second in f64, or in f32 on a device without f64.
    pub flops: f64,
    /// Bytes per second of a copy between host and device memory.
    pub bandwidth: f64,
}

impl DeviceFacts {
    /// The minimal device: one kernel queue, f32 only, no optional features. Backends and tests override the fields that
    /// they know.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        DeviceFacts {
            name: name.into(),
            description: String::new(),
            identity: Identity::default(),
            limits: Limits::default(),
            features: Vec::new(),
            dtypes: vec![DType::F32],
            compute_units: None,
            vector_bits: 128,
            memory: None,
            host_memory: false,
            queues: 1,
            rates: Rates { flops: 1e9, bandwidth: 1e9 },
        }
    }

    /// Whether it is the machine's processor.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        self.identity.kind == DeviceKind::Cpu
    }

    /// Whether the device supports instructions on elements of type `dtype`.
    #[must_use]
    pub fn computes(&self, dtype: DType) -> bool {
        self.dtypes.contains(&dtype)
    }

    /// Whether the device has `feature`.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }
}
