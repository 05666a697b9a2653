//! Memory of a CPU device: host memory that only the device's commands access.

use crate::pages::{Pages, advise, map};

/// A zeroed region of pages, aligned for every element type. Commands write to the region of pages through a shared reference to
/// the `Buffer`. The engine guarantees that two conflicting commands never run at the same time.
///
/// Each buffer maps pages of its own, so that dropping the buffer returns the memory to the system at once. A general-purpose
/// allocator could keep freed memory, and the process could then exceed the device's memory limit.
#[derive(Debug)]
pub struct Buffer {
    /// The mapped pages; `None` for a buffer of 0 bytes, because an empty region cannot be mapped.
    pages: Option<Pages>,
    start: *mut u8,
}

// SAFETY: `start` points into the pages that the buffer owns, and these pages stay mapped when the buffer moves to another thread.
unsafe impl Send for Buffer {}
// SAFETY: safe code with a shared reference reads only the address of the pages. By the contract of `lapidary_core::Device`, two
// conflicting commands never run at the same time.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Maps a region of `bytes` bytes.
    ///
    /// # Errors
    /// The system has no memory left.
    pub(crate) fn new(bytes: usize) -> std::io::Result<Self> {
        if bytes == 0 {
            return Ok(Buffer { pages: None, start: std::ptr::NonNull::<u64>::dangling().as_ptr().cast() });
        }
        let mut pages = map(bytes)?;
        advise(&pages);
        let start = pages.as_mut_ptr();
        Ok(Buffer { pages: Some(pages), start })
    }

    /// Address of the first byte of the region.
    #[inline]
    pub(crate) fn start<T>(&self) -> *mut T {
        debug_assert!(self.pages.as_ref().is_none_or(|pages| pages.as_ptr() == self.start.cast_const()));
        self.start.cast()
    }
}
