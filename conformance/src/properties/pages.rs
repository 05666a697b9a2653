//! An array that may be larger than the memory of the host. The system reserves the addresses of the array at once, and allocates a
//! page of memory when the program first touches the page.
#![allow(unsafe_code, reason = "memory that is mapped is seen as numbers")]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use lapidary_core::Scalar;
use memmap2::{MmapMut, MmapOptions};

/// An array whose elements are zero until they are written.
pub(crate) struct Pages<T> {
    map: MmapMut,
    element: PhantomData<T>,
}

impl<T: Scalar> Pages<T> {
    pub(crate) fn new(len: usize) -> std::io::Result<Self> {
        let map = MmapOptions::new().len(len * size_of::<T>()).no_reserve_swap().map_anon()?;
        Ok(Pages { map, element: PhantomData })
    }
}

impl<T: Scalar> Deref for Pages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping belongs to `self`, is aligned for `T`, and holds this many elements. Unwritten bytes are zero, which
        // is the number zero. The borrow of `self` prevents writes.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / size_of::<T>()) }
    }
}

impl<T: Scalar> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the mapping belongs to `self`, is aligned for `T`, and holds this many elements. The mutable borrow of `self`
        // prevents any other access.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.map.len() / size_of::<T>()) }
    }
}
