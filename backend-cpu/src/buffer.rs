//! Memory of a CPU device: host memory that only commands reach.

use std::cell::UnsafeCell;

/// A zeroed region, aligned for every element type. Commands write it through
/// a shared reference; that they do not conflict is the engine's promise.
#[derive(Debug)]
pub struct Buffer {
    words: Box<[UnsafeCell<u64>]>,
}

// SAFETY: the contract of `lapidary_core::Device`: conflicting commands are
// never under way together.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A region of at least `bytes`; `None` if the machine has no memory left.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let words = bytes.div_ceil(size_of::<u64>());
        let layout = std::alloc::Layout::array::<UnsafeCell<u64>>(words).ok()?;
        if layout.size() == 0 {
            return Some(Buffer { words: Box::default() });
        }
        // zeroed by the system, page by page, when first touched
        // SAFETY: the layout has a size; zero is a value of u64; the box owns what it frees.
        unsafe {
            let start = std::alloc::alloc_zeroed(layout).cast::<UnsafeCell<u64>>();
            (!start.is_null()).then(|| Buffer { words: Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, words)) })
        }
    }

    /// Where the region begins.
    #[inline]
    pub(crate) fn start<T>(&self) -> *mut T {
        self.words.as_ptr().cast_mut().cast()
    }
}
