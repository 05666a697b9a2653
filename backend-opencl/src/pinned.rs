//! Host memory that the driver moves at full speed.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use cl3::command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object};
use cl3::memory::{CL_MAP_READ, CL_MAP_WRITE};
use cl3::types::CL_BLOCKING;
use lapidary_core::{Error, ErrorKind, PinnedMemory, Result};

use crate::buffer::{Buffer, Context, Event};
use crate::conv::failed;
use crate::queue::Queue;

/// A mapped buffer in host memory, mapped as long as it lives.
#[derive(Debug)]
pub(crate) struct Pinned {
    queue: Arc<Queue>,
    buffer: Buffer,
    ptr: *mut u8,
}

// SAFETY: the mapped memory is bound to no thread, and the value is its only owner.
unsafe impl Send for Pinned {}
// SAFETY: a shared reference gives the address only.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub fn new(context: &Context, queue: &Arc<Queue>, bytes: usize) -> Result<Self> {
        let buffer = Buffer::pinned(context, bytes)?;
        let (mut ptr, flags) = (std::ptr::null_mut(), CL_MAP_READ | CL_MAP_WRITE);
        // SAFETY: the whole buffer is mapped.
        let event = unsafe {
            let (queue, buffer, bytes) = (queue.handle(), buffer.handle(), bytes.max(1));
            enqueue_map_buffer(queue, buffer, CL_BLOCKING, flags, 0, bytes, &mut ptr, 0, std::ptr::null())
        };
        drop(Event(event.map_err(|code| failed("clEnqueueMapBuffer", code))?));
        Ok(Pinned { queue: Arc::clone(queue), buffer, ptr: ptr.cast() })
    }

    /// Where the memory begins.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the pointer is what mapping gave; nothing uses it any more.
        let event =
            unsafe { enqueue_unmap_mem_object(self.queue.handle(), self.buffer.handle(), self.ptr.cast(), 0, std::ptr::null()) };
        let _ = event.map(Event);
        // nothing else may ever be enqueued there
        let _ = cl3::command_queue::flush(self.queue.handle());
    }
}

/// Memory through which pieces of a transfer pass: pinned, or plain where the driver pins no more.
#[derive(Debug)]
pub(crate) enum Staging {
    Pinned(Pinned),
    /// Memory of 8-byte words, so that it is aligned for every element type. Only the capacity of the vector is used; its length
    /// stays zero.
    Plain(Vec<u64>),
}

impl Staging {
    /// Pinned memory if there is some.
    pub fn new(context: &Context, queue: &Arc<Queue>, bytes: usize) -> Result<Self> {
        Pinned::new(context, queue, bytes).map(Staging::Pinned).or_else(|_| Self::plain(bytes))
    }

    fn plain(bytes: usize) -> Result<Self> {
        let (mut words, count) = (Vec::new(), bytes.div_ceil(size_of::<u64>()));
        words.try_reserve_exact(count).map_err(|source| {
            Error::new(ErrorKind::OutOfHostMemory, "transfer", format!("no memory for {bytes} bytes")).caused_by(source)
        })?;
        Ok(Staging::Plain(words))
    }

    /// Where the memory begins.
    pub fn ptr(&mut self) -> *mut u8 {
        match self {
            Staging::Pinned(pinned) => pinned.ptr(),
            Staging::Plain(words) => words.as_mut_ptr().cast(),
        }
    }
}

/// Where the application holds pinned memory of a device.
pub(crate) type Ranges = Arc<Mutex<Vec<Range<usize>>>>;

/// Pinned memory of an application. Rectangles in it are moved by the driver
/// itself, without a stop in memory of ours.
#[derive(Debug)]
pub(crate) struct HostMemory {
    pinned: Pinned,
    ranges: Ranges,
}

impl HostMemory {
    pub(crate) fn new(pinned: Pinned, bytes: usize, ranges: &Ranges) -> Self {
        let start = pinned.ptr().addr();
        ranges.lock().unwrap_or_else(PoisonError::into_inner).push(start..start + bytes);
        HostMemory { pinned, ranges: Arc::clone(ranges) }
    }
}

impl PinnedMemory for HostMemory {
    fn ptr(&self) -> *mut u8 {
        self.pinned.ptr()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let start = self.pinned.ptr().addr();
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).retain(|range| range.start != start);
    }
}
