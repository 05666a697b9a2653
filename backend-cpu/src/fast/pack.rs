//! Copies of blocks of A and B in the order in which the micro-kernel reads them.

use std::cell::Cell;
use std::panic::resume_unwind;

use memmap2::MmapMut;

use super::micro::Strided;
use super::simd::Simd;
use super::transpose::transpose;
use crate::buffer::advise;
use crate::tile::Tile;

thread_local! {
    /// Memory of a product on one thread, and of a team: a member computes products alone while the team's memory is in use.
    static PAGES: [Cell<Option<MmapMut>>; 2] = const { [const { Cell::new(None) }; 2] };
}

/// Room for packed blocks, kept by the thread from call to call.
///
/// A value and not a closure over it, because a closure would be compiled
/// without the target features of the kernel.
pub(super) struct Workspace {
    pages: Option<MmapMut>,
    /// Index in [`PAGES`].
    index: usize,
}

impl Workspace {
    /// Room for `count` elements, page-aligned.
    ///
    /// # Panics
    /// With [`NoMemory`] if the system refuses the memory.
    pub fn take<T>(count: usize) -> Self {
        Self::of::<T>(0, count)
    }

    /// The same for a team, on the caller's thread.
    ///
    /// # Panics
    /// As [`Workspace::take`].
    pub fn of_team<T>(count: usize) -> Self {
        Self::of::<T>(1, count)
    }

    fn of<T>(index: usize, count: usize) -> Self {
        let bytes = count * size_of::<T>();
        if bytes == 0 {
            return Workspace { pages: None, index };
        }
        let kept = PAGES.with(|pages| pages[index].take()).filter(|pages| pages.len() >= bytes);
        Workspace { pages: Some(kept.unwrap_or_else(|| map(bytes))), index }
    }

    pub fn ptr<T>(&mut self) -> *mut T {
        self.pages.as_mut().map_or(std::ptr::null_mut(), |pages| pages.as_mut_ptr().cast())
    }
}

/// Memory in whole huge pages: they hold what the micro-kernel walks through. Few bytes are in small pages, since the system fills
/// a huge one with zeros in a thread's first product (bench/results/2026-11-25-cpu-small-products.txt).
fn map(bytes: usize) -> MmapMut {
    let is_small = bytes <= HUGE_PAGE / 8;
    let size = if is_small { bytes.next_power_of_two() } else { bytes.next_multiple_of(HUGE_PAGE) };
    let mapped = if is_refused() { Err(std::io::ErrorKind::OutOfMemory.into()) } else { MmapMut::map_anon(size) };
    let pages = mapped.unwrap_or_else(|source| refuse(NoMemory { bytes: size, source }));
    if !is_small {
        advise(&pages);
    }
    pages
}

/// What a panic carries where the system refuses memory for packed blocks. The routines return nothing, and another member of
/// the team may be the one that lacks memory: [`CpuDevice`](crate::CpuDevice) makes an error of it.
#[derive(Debug)]
pub(crate) struct NoMemory {
    pub bytes: usize,
    pub source: std::io::Error,
}

/// Unwinds without a message, since the device makes an error of it. A program that aborts instead has to say why.
fn refuse(NoMemory { bytes, source }: NoMemory) -> ! {
    if cfg!(panic = "abort") {
        panic!("the system gives no {bytes} bytes for packed blocks: {source}");
    }
    resume_unwind(Box::new(NoMemory { bytes, source }))
}

#[cfg(test)]
thread_local! {
    /// Whether the system counts as one that refuses memory to this thread.
    pub(crate) static REFUSES: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
fn is_refused() -> bool {
    REFUSES.get()
}

#[cfg(not(test))]
fn is_refused() -> bool {
    false
}

/// Bytes of a huge page on x86.
const HUGE_PAGE: usize = 2 << 20;

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Some(pages) = self.pages.take() {
            PAGES.with(|kept| kept[self.index].set(Some(pages)));
        }
    }
}

/// A block of `outer` × `k` in panels of `width`: panel p holds elements
/// `p·width ..` of the outer dimension, `width` after `width` along k. The last
/// panel may be narrower; its room is as large.
///
/// Element (i, p) of the block is at `from.at(i, p)`; one stride is 1.
///
/// # Safety
/// `from` can be read, and `to` written for `outer` rounded up to `width`, times `k`.
#[inline(always)]
pub(super) unsafe fn pack<V: Simd>(width: usize, outer: usize, k: usize, from: Strided<V::Elem>, to: *mut V::Elem) {
    let step = if from.rs == 1 { TOGETHER * width } else { width };
    for i in (0..outer).step_by(step) {
        let (size, from, to) = (step.min(outer - i), from.at(i, 0), to.wrapping_add(i * k));
        // SAFETY: the panels lie in both; the source is only read.
        unsafe {
            if from.rs == 1 {
                copy_panels::<V>(width, size, k, from, to);
            } else {
                transpose::<V>(Tile::new(from.ptr.cast_mut(), k, size, from.rs), Tile::new(to, size, k, width));
            }
        }
    }
}

/// Panels that are copied together: the source is then read in runs that are
/// long enough for the processor to fetch ahead.
const TOGETHER: usize = 8;

/// Copies k columns of `size` contiguous elements into panels.
#[inline(always)]
unsafe fn copy_panels<V: Simd>(width: usize, size: usize, k: usize, from: Strided<V::Elem>, to: *mut V::Elem) {
    for p in 0..k {
        for i in (0..size).step_by(width) {
            // SAFETY: the caller's panels.
            unsafe { copy_run::<V>(width.min(size - i), from.at(i, p).ptr, to.add(i * k + p * width)) }
        }
    }
}

/// Copies `size` contiguous elements.
#[inline(always)]
unsafe fn copy_run<V: Simd>(size: usize, from: *const V::Elem, to: *mut V::Elem) {
    let whole = size / V::LANES * V::LANES;
    // SAFETY: the caller's run; its end is masked.
    unsafe {
        for i in (0..whole).step_by(V::LANES) {
            V::load(from.add(i)).store(to.add(i));
        }
        if whole < size {
            let mask = V::mask(size - whole);
            V::load_masked(from.add(whole), mask).store_masked(to.add(whole), mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HUGE_PAGE, map};

    /// The first product of a thread would wait until the system has filled a huge page with zeros.
    #[test]
    fn little_memory_is_no_huge_page() {
        assert_eq!([100, HUGE_PAGE / 8, HUGE_PAGE / 8 + 1].map(|bytes| map(bytes).len()), [128, HUGE_PAGE / 8, HUGE_PAGE]);
    }
}
