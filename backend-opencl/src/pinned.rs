//! Pinned host memory, which the driver copies at the full speed of the link.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cl3::command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object};
use cl3::memory::{CL_MAP_READ, CL_MAP_WRITE};
use cl3::types::CL_BLOCKING;
use lapidary_core::{PinnedMemory, Result};

use crate::buffer::{Buffer, Context, Event};
use crate::conv::failed;
use crate::pages::Pages;
use crate::queue::Queue;
use crate::running::Health;

/// A buffer of pinned host memory, which stays mapped as long as this value lives.
#[derive(Debug)]
pub(crate) struct Pinned {
    queue: Arc<Queue>,
    buffer: Buffer,
    ptr: *mut u8,
}

// SAFETY: any thread may access the mapped memory, and this value is its only owner.
unsafe impl Send for Pinned {}
// SAFETY: a shared reference to `Pinned` gives access to the address of the memory only, not to the memory itself.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub fn new(context: &Context, queue: &Arc<Queue>, memory: Pages) -> Result<Self> {
        let bytes = memory.bytes();
        let buffer = Buffer::pinned(context, memory)?;
        let (mut ptr, flags) = (std::ptr::null_mut(), CL_MAP_READ | CL_MAP_WRITE);
        // SAFETY: the mapped region is the whole buffer, which no other code uses yet.
        let event = unsafe {
            let (queue, buffer) = (queue.handle(), buffer.handle());
            enqueue_map_buffer(queue, buffer, CL_BLOCKING, flags, 0, bytes, &mut ptr, 0, std::ptr::null())
        };
        drop(Event(event.map_err(|code| failed("clEnqueueMapBuffer", code))?));
        Ok(Pinned { queue: Arc::clone(queue), buffer, ptr: ptr.cast() })
    }

    /// Address of the first byte of the memory.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: `clEnqueueMapBuffer` returned this pointer, and no code uses the memory after the owner is dropped.
        let event =
            unsafe { enqueue_unmap_mem_object(self.queue.handle(), self.buffer.handle(), self.ptr.cast(), 0, std::ptr::null()) };
        let _ = event.map(Event);
        // NVIDIA's driver refuses a second context if a context of two devices was released before an unmap command had ended
        // (bench/results/opencl/2026-11-28-h200-pinned.txt, section 8)
        let _ = self.queue.finish();
    }
}

/// Staging memory for one piece of a transfer: pinned memory, or ordinary memory if the driver pins no more.
#[derive(Debug)]
pub(crate) enum Staging {
    Pinned(Pinned),
    Plain(Pages),
}

impl Staging {
    /// Address of the first byte of the memory.
    pub fn ptr(&mut self) -> *mut u8 {
        match self {
            Staging::Pinned(pinned) => pinned.ptr(),
            Staging::Plain(pages) => pages.ptr(),
        }
    }
}

/// Address ranges of the pinned memory that an application holds in one context.
pub(crate) type Ranges = Arc<Mutex<Vec<Range<usize>>>>;

/// Small pieces of pinned memory that are not in use. The device keeps them for later requests, because a driver needs longer to pin memory
/// than to copy a small result.
#[derive(Debug)]
pub(crate) struct Spare {
    pieces: Mutex<Vec<(usize, Pinned)>>,
    health: Health,
}

impl Spare {
    /// Size of the largest piece that is kept, in bytes.
    const LARGEST: usize = 1 << 20;
    /// Size of the smallest piece, in bytes: a page of most hosts.
    const SMALLEST: usize = 4096;
    /// Maximum number of pieces that are kept.
    const COUNT: usize = 32;

    pub fn new(health: &Health) -> Self {
        Spare { pieces: Mutex::default(), health: health.clone() }
    }

    /// Size of the piece that holds `bytes` bytes.
    pub fn size(bytes: usize) -> usize {
        if bytes > Self::LARGEST { bytes } else { bytes.next_power_of_two().max(Self::SMALLEST) }
    }

    /// Takes a piece of `size` bytes, if there is one, and fills it with zeros.
    pub fn take(&self, size: usize) -> Option<Pinned> {
        let (size, pinned) = {
            let mut pieces = self.pieces();
            let at = pieces.iter().position(|(bytes, _)| *bytes == size)?;
            pieces.swap_remove(at)
        };
        // SAFETY: the piece has `size` bytes, and nothing else accesses it.
        unsafe { pinned.ptr().write_bytes(0, size) };
        Some(pinned)
    }

    /// Keeps a small piece, unless the device is lost. The driver may still access the memory of a lost device.
    fn keep(&self, size: usize, pinned: Pinned) {
        let mut pieces = self.pieces();
        if size <= Self::LARGEST && pieces.len() < Self::COUNT && self.health.lost().is_none() {
            pieces.push((size, pinned));
        } else {
            // as in `clear`
            drop(pieces);
            drop(pinned);
        }
    }

    /// Frees all pieces.
    pub fn clear(&self) {
        // the lock is released before the pieces are freed, because freeing waits for the driver
        let pieces = std::mem::take(&mut *self.pieces());
        drop(pieces);
    }

    fn pieces(&self) -> MutexGuard<'_, Vec<(usize, Pinned)>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pinned memory that belongs to an application. The driver copies rectangles in pinned memory directly, without staging memory.
#[derive(Debug)]
pub(crate) struct HostMemory {
    /// `None` only while the memory is dropped.
    pinned: Option<Pinned>,
    size: usize,
    ranges: Ranges,
    spare: Arc<Spare>,
}

impl HostMemory {
    /// Gives `pinned`, which has `size` bytes, to an application. When the application frees the memory, it becomes a spare piece.
    pub(crate) fn new(pinned: Pinned, size: usize, ranges: &Ranges, spare: &Arc<Spare>) -> Self {
        let start = pinned.ptr().addr();
        ranges.lock().unwrap_or_else(PoisonError::into_inner).push(start..start + size);
        HostMemory { pinned: Some(pinned), size, ranges: Arc::clone(ranges), spare: Arc::clone(spare) }
    }
}

// SAFETY: the memory is filled with zeros, and lives as long as this value.
unsafe impl PinnedMemory for HostMemory {
    fn ptr(&self) -> *mut u8 {
        self.pinned.as_ref().expect("the memory is not yet dropped").ptr()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let Some(pinned) = self.pinned.take() else { return };
        let start = pinned.ptr().addr();
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).retain(|range| range.start != start);
        self.spare.keep(self.size, pinned);
    }
}
