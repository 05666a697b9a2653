//! Facts about a device: its identity, limits, features, memory and estimated speeds.
//!
//! A backend collects the facts about a device once, when it opens the device. The backend only collects the facts; code outside
//! the backend decides what follows from them.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::scalar::DType;

/// Facts about one device, which the backend of the device states.
///
/// A backend assigns the fields that it knows of the facts that [`DeviceFacts::new`] returns.
///
/// ```
/// # extern crate lapidary_core as lapidary; // an application uses `lapidary`
/// use lapidary::{DType, DeviceFacts};
/// let mut facts = DeviceFacts::new("mine:0");
/// facts.dtypes = vec![DType::F32, DType::F64];
/// facts.memory = Some(4 << 30);
/// facts.limits.work_group = 256;
/// assert_eq!(facts.queues, 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceFacts {
    /// Name by which a user selects the device, such as `cpu:0`.
    pub name: String,
    /// One line of text for users: the model of the device, and its driver or its instruction set.
    pub description: String,
    /// Kind, vendor, architecture, model and driver of the device.
    pub identity: Identity,
    /// Limits on the kernels and buffers of the device.
    pub limits: Limits,
    /// Optional features of the device that kernels can use.
    pub features: Vec<Feature>,
    /// Element types on which the device can run instructions.
    pub dtypes: Vec<DType>,
    /// Number of cores of a CPU, or of multiprocessors of a GPU. `None` if the driver does not report the number.
    pub compute_units: Option<usize>,
    /// Width of a vector register of the device in bits.
    pub vector_bits: usize,
    /// The memory limit of the device: the number of bytes of device memory for registers. `None` if the backend states no limit.
    pub memory: Option<usize>,
    /// Whether the device computes on host memory directly, without a copy.
    pub host_memory: bool,
    /// Whether a thread of the host may wait for the device. If not, as on a page of a browser, every call that waits fails, and only
    /// streams use the device.
    pub host_may_wait: bool,
    /// Number of kernel queues of the device. Kernels of one queue run in order, and kernels of different queues may run at the
    /// same time.
    pub queues: usize,
    /// Estimated speeds of the device in computing and copying.
    pub rates: Rates,
}

/// Identity of a device. A text field of `Identity` is empty if neither the driver nor the operating system reports its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// Kind of hardware of the device.
    pub kind: DeviceKind,
    /// Vendor of the device.
    pub vendor: String,
    /// The instruction set for which the device's kernels are compiled.
    pub architecture: String,
    /// Product name of the device.
    pub model: String,
    /// Name and version of the driver.
    pub driver: String,
}

/// Kind of hardware of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The CPU of the host. A work-item is a thread, or one iteration of a loop in a thread.
    Cpu,
    /// A graphics processor. Each multiprocessor of a GPU runs many work-items at the same time.
    Gpu,
    /// The device is neither a CPU nor a GPU, or its kind is unknown.
    #[default]
    Other,
}

/// Limits on the kernels and buffers of a device. The value `usize::MAX` of a field means that the device has no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of work-items in a work-group.
    pub work_group: usize,
    /// Maximum local memory of a work-group, in bytes.
    pub local_memory: usize,
    /// Maximum number of work-groups in one dimension of a launch.
    pub groups: usize,
    /// Maximum size of a buffer, in bytes.
    pub buffer: usize,
    /// Maximum number of loop iterations of a work-item, summed over all its loops. Some drivers silently stop a work-item's loop
    /// when the sum exceeds the maximum.
    pub loop_iterations: usize,
    /// Maximum number of pixels of an image through which kernels read a buffer. The value 0 means that the device has no such images.
    pub image_pixels: usize,
}

impl Default for Limits {
    /// Limits of a minimal device: work-groups of one work-item, no local memory and no images. The remaining fields state no limit.
    fn default() -> Self {
        Limits {
            work_group: 1,
            local_memory: 0,
            groups: usize::MAX,
            buffer: usize::MAX,
            loop_iterations: usize::MAX,
            image_pixels: 0,
        }
    }
}

/// An optional feature of a device that kernels can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// The device computes in half precision.
    F16,
    /// The work-items of a sub-group can exchange values.
    Subgroups,
    /// The device records the times at which a kernel begins and ends.
    Timestamps,
    /// A work-group may wait for another work-group that began before it. During the wait the other work-group continues to run,
    /// and the waiting work-group sees the writes of the other work-group.
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

/// Checks that `operation` may wait for a device, whose `host_may_wait` is given.
///
/// # Errors
/// `host_may_wait` is false. The error has the kind `Unsupported`, and its message names streams.
pub fn check_wait(operation: &'static str, host_may_wait: bool) -> Result<()> {
    if host_may_wait {
        return Ok(());
    }
    let message = "this call waits for its device, and a page of a browser must not wait: use a stream of the machine and `.await`";
    Err(Error::new(ErrorKind::Unsupported, operation, message))
}

/// Speeds of a device that are estimated, not measured. The cost model uses the estimates as initial values.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rates {
    /// Estimated floating-point operations per second in f64, or in f32 if the device does not support f64.
    pub flops: f64,
    /// Estimated bytes per second of a copy between host memory and device memory.
    pub bandwidth: f64,
}

impl DeviceFacts {
    /// Facts of a minimal device: one kernel queue, f32 only, no optional features. Backends and tests replace the fields whose
    /// values they know.
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
            host_may_wait: true,
            queues: 1,
            rates: Rates { flops: 1e9, bandwidth: 1e9 },
        }
    }

    /// Whether the device is the CPU of the host.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        self.identity.kind == DeviceKind::Cpu
    }

    /// Whether the device supports instructions on elements of type `dtype`.
    #[must_use]
    pub fn computes(&self, dtype: DType) -> bool {
        self.dtypes.contains(&dtype)
    }

    /// Whether the device supports the optional feature `feature`.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }
}
