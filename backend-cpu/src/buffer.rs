//! Memory of a CPU device: host memory that only commands reach.

use memmap2::MmapMut;

/// A zeroed region of pages, aligned for every element type. Commands write it
/// through a shared reference; that they do not conflict is the engine's promise.
///
/// Pages are mapped for each buffer: what is dropped goes back to the system at
/// once, where an allocator would keep it beyond the device's limit.
#[derive(Debug)]
pub struct Buffer {
    /// None of no size, which cannot be mapped.
    pages: Option<MmapMut>,
    start: *mut u8,
}

// SAFETY: the pointer leads into the pages, which the buffer owns.
unsafe impl Send for Buffer {}
// SAFETY: the contract of `lapidary_core::Device`: conflicting commands are
// never under way together.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A region of `bytes`.
    ///
    /// # Errors
    /// The system has no memory left.
    pub(crate) fn new(bytes: usize) -> std::io::Result<Self> {
        if bytes == 0 {
            return Ok(Buffer { pages: None, start: std::ptr::NonNull::<u64>::dangling().as_ptr().cast() });
        }
        let mut pages = MmapMut::map_anon(bytes)?;
        advise(&pages);
        let start = pages.as_mut_ptr();
        Ok(Buffer { pages: Some(pages), start })
    }

    /// Where the region begins.
    #[inline]
    pub(crate) fn start<T>(&self) -> *mut T {
        debug_assert!(self.pages.as_ref().is_none_or(|pages| pages.as_ptr() == self.start.cast_const()));
        self.start.cast()
    }
}

/// Asks for huge pages: a kernel walks many columns at once, each on pages of its own.
pub(crate) fn advise(pages: &MmapMut) {
    #[cfg(target_os = "linux")]
    // a hint: without it everything works, slower
    let _ = pages.advise(memmap2::Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = pages;
}
