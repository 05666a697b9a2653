//! What a device is, what it has, and what bounds its kernels.
//!
//! Facts are data: the backend finds them once, when it opens the device, and decides nothing by them.

use std::fmt;

use crate::scalar::DType;

/// What a device is and has.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFacts {
    /// Name by which it is selected, as `cpu:0`.
    pub name: String,
    /// One line for people: model, and the driver or the instruction set.
    pub description: String,
    /// What it is.
    pub identity: Identity,
    /// What a kernel may use.
    pub limits: Limits,
    /// What else it has of which kernels could make use.
    pub features: Vec<Feature>,
    /// Types of elements that instructions compute with.
    pub dtypes: Vec<DType>,
    /// Cores of a processor, multiprocessors of a GPU; `None` if the driver does not tell.
    pub compute_units: Option<usize>,
    /// Bits of a vector register.
    pub vector_bits: usize,
    /// Bytes of memory for registers; `None` if only the machine limits it.
    pub memory: Option<usize>,
    /// Whether it computes on host memory without a copy.
    pub host_memory: bool,
    /// Queues of kernels. Kernels of one run in order; those of another may run at the same time.
    pub queues: usize,
    /// Speeds.
    pub rates: Rates,
}

/// What a device is, in the words of its driver or the system; empty where neither tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Kind of hardware.
    pub kind: DeviceKind,
    /// Who made it.
    pub vendor: String,
    /// The instruction set that its kernels are compiled for.
    pub architecture: String,
    /// Name of the product.
    pub model: String,
    /// What runs its kernels, with a version.
    pub driver: String,
}

/// Kind of hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// The machine's processor: its work-items are threads, or loops of one.
    Cpu,
    /// A device with many multiprocessors.
    Gpu,
    /// Neither, or unknown.
    #[default]
    Other,
}

/// What a kernel may use. `usize::MAX` stands for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Work-items of a work-group.
    pub work_group: usize,
    /// Bytes of local memory of a work-group.
    pub local_memory: usize,
    /// Work-groups of a launch in each dimension.
    pub groups: usize,
    /// Bytes of the largest buffer.
    pub buffer: usize,
    /// Iterations of all loops of a work-item together: some drivers end loops that take more, silently.
    pub loop_iterations: usize,
}

impl Default for Limits {
    /// Work-groups of one work-item without local memory, and no other limit.
    fn default() -> Self {
        Limits { work_group: 1, local_memory: 0, groups: usize::MAX, buffer: usize::MAX, loop_iterations: usize::MAX }
    }
}

/// What some devices have of which kernels could make use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Arithmetic in half precision.
    F16,
    /// Work-items of a sub-group exchange values.
    Subgroups,
    /// The device says when a kernel began and ended.
    Timestamps,
    /// A work-group may wait for those that began before it: they go on while it does, and it sees what they write.
    GroupsMayWait,
    /// Work-items may each write a part of one vector in local memory.
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

/// Speeds by estimate: a cost model's starting point, not a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Floating-point operations per second in f64.
    pub flops: f64,
    /// Bytes per second between host memory and registers.
    pub bandwidth: f64,
}

impl DeviceFacts {
    /// A device that has as little as a device can have: one queue, single precision, no feature. Backends and tests
    /// replace what they know better.
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

    /// Whether instructions on matrices of that type run here.
    #[must_use]
    pub fn computes(&self, dtype: DType) -> bool {
        self.dtypes.contains(&dtype)
    }

    /// Whether it has a feature.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }
}
