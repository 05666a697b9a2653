//! The queue of a device in which streams enqueue work without waiting for it.

use std::any::Any;
use std::sync::Arc;

use crate::device::{DeviceBuffer, HostRect, Operand};
use crate::error::Result;
use crate::instruction::Instruction;
use crate::scalar::DType;
use crate::token::Token;

/// Elements in host memory, which stays allocated as long as its owner lives.
#[derive(Clone, Debug)]
pub struct HostElements {
    start: *mut u8,
    count: usize,
    dtype: DType,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: a `HostElements` only names memory and keeps it allocated. Only unsafe functions access the memory, and their callers rule
// out data races.
unsafe impl Send for HostElements {}
// SAFETY: as for `Send`.
unsafe impl Sync for HostElements {}

impl HostElements {
    /// Describes `count` elements of the type `dtype` from `start` on. The memory stays allocated at this address as long as `owner`
    /// lives.
    #[must_use]
    pub fn new(start: *mut u8, count: usize, dtype: DType, owner: Arc<dyn Any + Send + Sync>) -> Self {
        HostElements { start, count, dtype, _owner: owner }
    }

    /// Address of the first element.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Size of all elements in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.count * self.dtype.size()
    }

    /// The elements as a rectangle of one column.
    #[must_use]
    pub fn column(&self) -> HostRect {
        let HostElements { start, count, dtype, .. } = *self;
        HostRect { origin: start, dtype, row_stride: 1, col_stride: count, rows: count, cols: 1 }
    }
}

/// Work that a stream enqueues. A transfer copies from or to the beginning of its buffer.
#[derive(Clone, Debug)]
pub enum StreamWork<'a> {
    /// Runs an instruction.
    Run(&'a Instruction<Operand<'a>>),
    /// Copies host memory into a buffer.
    Write {
        /// The host memory to copy from.
        from: HostElements,
        /// The buffer to copy to.
        to: &'a DeviceBuffer,
    },
    /// Copies the beginning of a buffer into host memory.
    Read {
        /// The buffer to copy from.
        from: &'a DeviceBuffer,
        /// The host memory to copy to.
        to: HostElements,
    },
}

/// The queue of a device in which streams enqueue work. The queue runs its work in order, together with the instructions of kernel
/// queue 0. No method waits for work to complete, except to obtain memory.
pub trait StreamQueue: Send + Sync {
    /// Enqueues work. The queue may hold the work back until [`StreamQueue::end`] is called.
    ///
    /// # Safety
    /// The requirements of [`Device::launch`](crate::Device::launch), [`Device::write`](crate::Device::write) or
    /// [`Device::read`](crate::Device::read) must hold until a token that [`StreamQueue::end`] returns afterwards reports success. Work that
    /// conflicts with this work must be enqueued in this queue, too, or begin after such a token reports success. The device itself keeps
    /// the buffers and the host memory of the work as long as it may access them, even if the token reports an error.
    ///
    /// # Errors
    /// The device does not accept the work.
    unsafe fn enqueue(&self, work: StreamWork<'_>) -> Result<()>;

    /// Returns a token of all work enqueued so far, and makes the device begin this work. Tokens complete in the order of these calls.
    ///
    /// # Errors
    /// The device does not accept the work.
    fn end(&self) -> Result<Token>;
}
