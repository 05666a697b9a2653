//! Copies of blocks of A and B in the order in which the micro-kernel reads them.

use std::cell::Cell;

use super::micro::Strided;
use super::simd::Simd;
use super::transpose::transpose;
use crate::tile::Tile;

/// A cache line, so that packed panels are aligned to vectors.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "only its address is used")] [u8; 64]);

thread_local! {
    static LINES: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Room for packed blocks, kept by the thread from call to call.
///
/// A value and not a closure over it, because a closure would be compiled
/// without the target features of the kernel.
pub(super) struct Workspace(Vec<Line>);

impl Workspace {
    /// Room for `count` elements.
    pub fn take<T>(count: usize) -> Self {
        let needed = (count * size_of::<T>()).div_ceil(size_of::<Line>());
        let mut lines = if needed > 0 { LINES.take() } else { Vec::new() };
        if lines.len() < needed {
            lines.resize(needed, Line([0; 64]));
        }
        Workspace(lines)
    }

    pub fn ptr<T>(&mut self) -> *mut T {
        self.0.as_mut_ptr().cast()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            LINES.set(std::mem::take(&mut self.0));
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
