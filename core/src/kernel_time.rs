//! The time in which a device ran one kernel.

/// The time in which a device ran one kernel, on the clock of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelTime {
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Name of the operation for which the kernel ran: the [name](crate::Instruction::name) of an instruction. The kernels of one
    /// instruction `getrf` run for `getrf` (panels), `laswp` (row exchanges), `trsm` (U12) and `gemm` (updates).
    pub operation: &'static str,
    /// Number of the kernel queue that ran the kernel, less than [`DeviceFacts::queues`](crate::DeviceFacts::queues).
    pub queue: usize,
    /// Seconds from the start of the first kernel to the start of this kernel.
    pub start: f64,
    /// Seconds from the start of the first kernel to the end of this kernel.
    pub end: f64,
}

impl KernelTime {
    /// The time of a kernel in kernel queue 0, from `start` to `end` in seconds. Assign the field `queue` if another queue ran the kernel.
    #[must_use]
    pub fn new(kernel: &'static str, operation: &'static str, start: f64, end: f64) -> Self {
        KernelTime { kernel, operation, queue: 0, start, end }
    }
}
