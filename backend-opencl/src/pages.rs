//! Host memory in whole pages, which a driver pins.

use std::alloc::{Layout, alloc, dealloc};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::{slice, thread};

use lapidary_core::{Error, ErrorKind, Result, copy_threads};

/// Alignment of the memory and unit of its size, in bytes: a page on most hosts. On hosts with larger pages, a driver may copy the memory instead of
/// pinning it.
const PAGE: usize = 4096;

/// Host memory in whole pages. Threads write zeros to the memory before the driver pins it. If the driver pinned memory that was never written, it would
/// itself obtain the pages from the operating system, which takes longer (bench/results/opencl/2026-11-28-h200-pinned.txt).
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: this value is the only owner of the memory, which any thread may access.
unsafe impl Send for Pages {}
// SAFETY: a shared reference to `Pages` gives access to the address of the memory only, not to the memory itself.
unsafe impl Sync for Pages {}

impl Pages {
    /// Allocates at least `bytes` bytes and fills them with zeros. Several threads fill the memory if it has at least twice `part` bytes.
    ///
    /// # Errors
    /// The operating system has too little memory.
    pub fn zeros(bytes: usize, part: usize) -> Result<Self> {
        let pages = Self::new(bytes)?;
        // SAFETY: the memory has this size, and nothing else accesses it.
        let memory = unsafe { slice::from_raw_parts_mut(pages.ptr().cast::<MaybeUninit<u8>>(), pages.bytes()) };
        let part = memory.len().div_ceil(copy_threads(memory.len() / part));
        let fill = |part: &mut [MaybeUninit<u8>]| part.fill(MaybeUninit::new(0));
        let all_started = thread::scope(|scope| {
            let (first, others) = memory.split_at_mut(part);
            let started =
                others.chunks_mut(part).all(|part| thread::Builder::new().spawn_scoped(scope, move || fill(part)).is_ok());
            fill(first);
            started
        });
        if !all_started {
            fill(memory);
        }
        Ok(pages)
    }

    /// Allocates at least `bytes` bytes. Their values are undefined.
    ///
    /// # Errors
    /// The operating system has too little memory.
    pub fn new(bytes: usize) -> Result<Self> {
        let refused = || Error::new(ErrorKind::OutOfHostMemory, "transfer", format!("no memory for {bytes} bytes"));
        let layout = Layout::from_size_align(bytes.max(1), PAGE).map_err(|_| refused())?.pad_to_align();
        // SAFETY: the size of the layout is not zero.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(refused)?;
        Ok(Pages { start, layout })
    }

    /// Address of the first byte of the memory.
    pub fn ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Number of bytes: those that were asked for, rounded up to whole pages.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout.
        unsafe { dealloc(self.ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn pages_that_were_used_before_are_filled_with_zeros() {
        let all_zero = |pages: &Pages| {
            // `black_box` hides from the compiler where the memory comes from: it may assume any value of a byte that was never written
            // SAFETY: the memory has this size, and nothing else accesses it.
            let bytes = unsafe { slice::from_raw_parts_mut(black_box(pages.ptr()), pages.bytes()) };
            let were_zero = bytes.iter().all(|&byte| byte == 0);
            bytes.fill(1);
            were_zero
        };
        // the allocator may return the memory of an earlier round, which was filled with ones
        for bytes in [0, 1, PAGE, 25 * PAGE + 1, 100_000].repeat(3) {
            let [by_one, by_several] = [Pages::zeros(bytes, usize::MAX).unwrap(), Pages::zeros(bytes, PAGE).unwrap()];
            for pages in [by_one, by_several] {
                assert!(pages.bytes() >= bytes && pages.bytes().is_multiple_of(PAGE) && pages.ptr().addr().is_multiple_of(PAGE));
                assert!(all_zero(&pages), "{bytes} bytes");
            }
        }
        assert!(Pages::zeros(usize::MAX / 2, PAGE).is_err());
    }
}
