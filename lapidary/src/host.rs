//! Host memory that devices read and write at full speed.

use std::fmt;
use std::ops::{Deref, DerefMut};

use lapidary_core::{DeviceRuntime, Element, Error, ErrorKind, PinnedMemory, Result, Scalar};

use crate::machine::Machine;

/// Host memory for elements of type `T`, which [`Machine::alloc_host`] allocates and fills with zeros.
///
/// The driver of the first OpenCL device that supports pinned memory pins the memory of a `HostVec`. Transfers between pinned
/// memory and devices in the same OpenCL context need no intermediate copy. The CPU, wgpu devices and devices in other OpenCL
/// contexts use the pinned memory as ordinary host memory. If no driver pins the memory of a `HostVec`, it is ordinary host memory
/// for all devices.
///
/// ```
/// use lapidary::{Gemm, Machine, MatMut, MatRef, Select};
/// let machine = Machine::open(&Select::all())?;
/// let mut c = machine.alloc_host::<f64>(4)?;
/// let a = MatRef::col_major(&[1.0, 1.0, 0.0, 1.0], 2, 2)?;
/// machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, 2, 2)?))?; // A²
/// assert_eq!(*c, [1.0, 2.0, 0.0, 1.0]);
/// # Ok::<(), lapidary::Error>(())
/// ```
pub struct HostVec<T> {
    storage: Storage<T>,
    count: usize,
}

enum Storage<T> {
    Plain(Vec<T>),
    Pinned(Box<dyn PinnedMemory>),
}

impl Machine {
    /// Allocates host memory for `count` elements, filled with zeros.
    ///
    /// # Errors
    /// The operating system has too little memory for `count` elements.
    pub fn alloc_host<T: Scalar>(&self, count: usize) -> Result<HostVec<T>> {
        HostVec::zeros(self.runtimes(), "alloc_host", count)
    }
}

impl<T: Element> HostVec<T> {
    /// Allocates memory filled with zeros. The first device whose driver pins memory pins it.
    pub(crate) fn zeros(devices: &[DeviceRuntime], operation: &'static str, count: usize) -> Result<Self> {
        let bytes = count.checked_mul(T::DTYPE.size());
        let bytes = bytes.ok_or_else(|| Error::invalid(operation, format!("{count} elements overflow the address space")))?;
        if let Some(pinned) = devices.iter().find_map(|runtime| Self::pinned(runtime, count)) {
            return Ok(pinned);
        }
        let mut data: Vec<T> = Vec::new();
        data.try_reserve_exact(count).map_err(|source| {
            Error::new(ErrorKind::OutOfHostMemory, operation, format!("no memory for {bytes} bytes")).caused_by(source)
        })?;
        // SAFETY: the vector has room for `count` elements, and zero bits represent the number zero in every element type.
        unsafe {
            data.as_mut_ptr().write_bytes(0, count);
            data.set_len(count);
        }
        Ok(data.into())
    }

    /// Allocates memory filled with zeros that a device pins. Returns `None` if the device pins no memory or no more of it.
    pub(crate) fn pinned(device: &DeviceRuntime, count: usize) -> Option<Self> {
        let bytes = count.checked_mul(T::DTYPE.size())?;
        // zero bits represent the number zero in every element type
        Some(HostVec { storage: Storage::Pinned(device.device().alloc_pinned(bytes)?), count })
    }

    /// Whether a driver has pinned the memory.
    pub(crate) fn is_pinned(&self) -> bool {
        matches!(self.storage, Storage::Pinned(_))
    }
}

/// Prints the number of elements. The elements may be many, and a device may be writing them.
impl<T> fmt::Debug for HostVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostVec").field("count", &self.count).finish_non_exhaustive()
    }
}

/// Takes the elements of a `Vec` without copying. The memory stays ordinary host memory.
impl<T> From<Vec<T>> for HostVec<T> {
    fn from(data: Vec<T>) -> Self {
        HostVec { count: data.len(), storage: Storage::Plain(data) }
    }
}

/// Returns the elements. The elements of pinned memory are copied.
impl<T: Element> From<HostVec<T>> for Vec<T> {
    fn from(memory: HostVec<T>) -> Self {
        match memory.storage {
            Storage::Plain(data) => data,
            Storage::Pinned(_) => memory.to_vec(),
        }
    }
}

impl<T: Element> Deref for HostVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.storage {
            Storage::Plain(data) => &data[..self.count],
            // SAFETY: `self` owns the pinned memory, whose `count` elements were zero at first, and the slice borrows `self`, so that
            // nothing writes the elements meanwhile.
            Storage::Pinned(memory) => unsafe { std::slice::from_raw_parts(memory.ptr().cast(), self.count) },
        }
    }
}

impl<T: Element> DerefMut for HostVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.storage {
            Storage::Plain(data) => &mut data[..self.count],
            // SAFETY: `self` owns the pinned memory, whose `count` elements were zero at first, and the slice borrows `self` mutably, so
            // that nothing else accesses the elements meanwhile.
            Storage::Pinned(memory) => unsafe { std::slice::from_raw_parts_mut(memory.ptr().cast(), self.count) },
        }
    }
}
