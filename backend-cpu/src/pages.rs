//! Regions of zeroed memory: pages of the system, or memory of the allocator on a page of a browser, which has no pages.

use std::io::Result;

#[cfg(not(target_family = "wasm"))]
pub(crate) use memmap2::MmapMut as Pages;

/// Zeroed memory whose address is a multiple of the size of a cache line.
#[cfg(target_family = "wasm")]
#[derive(Debug)]
pub(crate) struct Pages(Vec<Line>);

#[cfg(target_family = "wasm")]
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

#[cfg(target_family = "wasm")]
impl Pages {
    pub fn map_anon(bytes: usize) -> Result<Self> {
        let (mut lines, count) = (Vec::new(), bytes.div_ceil(size_of::<Line>()));
        lines.try_reserve_exact(count).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        lines.resize(count, Line { _bytes: [0; 64] });
        Ok(Pages(lines))
    }

    pub fn len(&self) -> usize {
        size_of_val(&self.0[..])
    }

    pub fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Maps a region of at least `bytes` bytes.
pub(crate) fn map(bytes: usize) -> Result<Pages> {
    Pages::map_anon(bytes)
}

/// Requests huge pages from the system. A kernel reads many columns at once, and with small pages each column would lie on pages of
/// its own.
pub(crate) fn advise(pages: &Pages) {
    #[cfg(target_os = "linux")]
    // the request is only a hint, so its error is ignored: without huge pages, kernels are slower
    let _ = pages.advise(memmap2::Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = pages;
}
