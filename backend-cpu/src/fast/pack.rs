//! Copies blocks of A and B into the order in which the micro-kernel reads them.

use std::cell::Cell;
use std::panic::resume_unwind;

use super::micro::Strided;
use super::simd::Simd;
use super::transpose::transpose;
use crate::pages::{self, Pages, advise};
use crate::tile::Tile;

thread_local! {
    /// One region of pages for products on this thread alone, and one for products by a team. The caller of a team needs both
    /// regions at the same time, because it also computes products alone.
    static PAGES: [Cell<Option<Pages>>; 2] = const { [const { Cell::new(None) }; 2] };
}

/// Memory for packed blocks, which the thread keeps between calls.
///
/// The caller holds the memory as a value. The memory is not passed to a closure, because the compiler would compile a closure
/// without the target features of the kernel.
pub(super) struct Workspace {
    pages: Option<Pages>,
    /// Index of the memory in [`PAGES`].
    index: usize,
}

impl Workspace {
    /// Takes page-aligned memory for `count` elements.
    ///
    /// # Panics
    /// With the payload [`NoMemory`] if the system refuses the memory.
    pub fn take<T>(count: usize) -> Self {
        Self::of::<T>(0, count)
    }

    /// Takes memory for a product by a team, on the thread of the team's caller.
    ///
    /// # Panics
    /// With the payload [`NoMemory`] if the system refuses the memory.
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

/// Maps memory for packed blocks in whole huge pages. Memory of at most an eighth of a huge page is mapped in small pages, because
/// a thread's first product would otherwise wait until the system has filled a huge page with zeros
/// (bench/results/2026-11-25-cpu-small-products.txt).
fn map(bytes: usize) -> Pages {
    let is_small = bytes <= HUGE_PAGE / 8;
    let size = if is_small { bytes.next_power_of_two() } else { bytes.next_multiple_of(HUGE_PAGE) };
    let mapped = if is_refused() { Err(std::io::ErrorKind::OutOfMemory.into()) } else { pages::map(size) };
    let pages = mapped.unwrap_or_else(|source| refuse(NoMemory { bytes: size, source }));
    if !is_small {
        advise(&pages);
    }
    pages
}

/// The payload of the panic that occurs if the system refuses memory for packed blocks. The payload travels by a panic because the
/// routines return no `Result`, and any member of the team may lack memory. [`CpuDevice`](crate::CpuDevice) converts the panic into
/// an error.
#[derive(Debug)]
pub(crate) struct NoMemory {
    pub bytes: usize,
    pub source: std::io::Error,
}

/// Unwinds without a message, because the device returns an error. With `panic = "abort"`, the panic has a message instead.
fn refuse(NoMemory { bytes, source }: NoMemory) -> ! {
    if cfg!(panic = "abort") {
        panic!("the system gives no {bytes} bytes for packed blocks: {source}");
    }
    resume_unwind(Box::new(NoMemory { bytes, source }))
}

#[cfg(test)]
thread_local! {
    /// Whether a test simulates a system that refuses memory to this thread.
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

/// Size of a huge page on x86, in bytes.
const HUGE_PAGE: usize = 2 << 20;

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Some(pages) = self.pages.take() {
            PAGES.with(|kept| kept[self.index].set(Some(pages)));
        }
    }
}

/// Copies a block of `outer` × `k` elements into panels of `width` × `k`. In a panel, the `width` elements of each step along k are
/// contiguous. The last panel may have fewer elements per step, but it takes as much memory as every other panel.
///
/// Element (i, p) of the block is at `from.at(i, p)`. One of the strides of `from` is 1.
///
/// # Safety
/// All elements of the block may be read. From `to` on, `outer` · `k` elements may be written, with `outer` rounded up to a
/// multiple of `width`.
#[inline(always)]
pub(super) unsafe fn pack<V: Simd>(width: usize, outer: usize, k: usize, from: Strided<V::Elem>, to: *mut V::Elem) {
    let step = if from.rs == 1 { TOGETHER * width } else { width };
    for i in (0..outer).step_by(step) {
        let (size, from, to) = (step.min(outer - i), from.at(i, 0), to.wrapping_add(i * k));
        // SAFETY: the caller guarantees that the block may be read, and that the memory at `to` has room for all panels.
        unsafe {
            if from.rs == 1 {
                copy_panels::<V>(width, size, k, from, to);
            } else {
                transpose::<V>(Tile::new(from.ptr.cast_mut(), k, size, from.rs), Tile::new(to, size, k, width));
            }
        }
    }
}

/// Number of panels that are copied together, so that contiguous reads from the source are long enough for the hardware prefetcher.
const TOGETHER: usize = 8;

/// Copies `k` columns of `size` contiguous elements into panels of `width` rows.
#[inline(always)]
unsafe fn copy_panels<V: Simd>(width: usize, size: usize, k: usize, from: Strided<V::Elem>, to: *mut V::Elem) {
    for p in 0..k {
        for i in (0..size).step_by(width) {
            // SAFETY: the caller guarantees that the columns may be read and that the panels may be written; the copied elements
            // lie in the columns and in the panels.
            unsafe { copy_run::<V>(width.min(size - i), from.at(i, p).ptr, to.add(i * k + p * width)) }
        }
    }
}

/// Copies `size` contiguous elements.
#[inline(always)]
unsafe fn copy_run<V: Simd>(size: usize, from: *const V::Elem, to: *mut V::Elem) {
    let whole = size / V::LANES * V::LANES;
    // SAFETY: the caller guarantees that `size` elements may be read from `from` and written to `to`; the last, partial vector is
    // masked.
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

    /// Memory of at most an eighth of a huge page is not mapped in huge pages: a thread's first product would wait until the system
    /// has zeroed a huge page.
    #[test]
    fn little_memory_is_no_huge_page() {
        assert_eq!([100, HUGE_PAGE / 8, HUGE_PAGE / 8 + 1].map(|bytes| map(bytes).len()), [128, HUGE_PAGE / 8, HUGE_PAGE]);
    }
}
