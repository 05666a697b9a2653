//! Host memory that devices reach at full speed.

use std::ops::{Deref, DerefMut};

use lapidary_core::{Error, ErrorKind, PinnedMemory, Result, Scalar};

use crate::machine::Machine;

/// Host memory for matrices of one element type, zeroed. It is pinned by the first
/// OpenCL device whose driver does so: its transfers, and those of the devices that share its
/// context, then need no copy on their way. Other devices use it as any memory; where nobody
/// pins it, it is plain memory.
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
#[derive(Debug)]
pub struct HostVec<T> {
    storage: Storage<T>,
    count: usize,
}

#[derive(Debug)]
enum Storage<T> {
    Plain(Vec<T>),
    Pinned(Box<dyn PinnedMemory>),
}

impl Machine {
    /// Zeroed host memory for `count` elements.
    ///
    /// # Errors
    /// There is no such memory left.
    pub fn alloc_host<T: Scalar>(&self, count: usize) -> Result<HostVec<T>> {
        let bytes = count.checked_mul(T::DTYPE.size());
        let bytes = bytes.ok_or_else(|| Error::invalid("alloc_host", format!("{count} elements overflow the address space")))?;
        if let Some(memory) = self.drivers().iter().find_map(|driver| driver.device().alloc_pinned(bytes)) {
            // SAFETY: as many bytes are there; all bits zero are a zero of every scalar.
            unsafe { memory.ptr().write_bytes(0, bytes) };
            return Ok(HostVec { storage: Storage::Pinned(memory), count });
        }
        let mut data = Vec::new();
        data.try_reserve_exact(count).map_err(|source| {
            Error::new(ErrorKind::OutOfHostMemory, "alloc_host", format!("no memory for {bytes} bytes")).caused_by(source)
        })?;
        data.resize(count, T::ZERO);
        Ok(HostVec { storage: Storage::Plain(data), count })
    }
}

impl<T: Scalar> Deref for HostVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.storage {
            Storage::Plain(data) => &data[..self.count],
            // SAFETY: zeroed memory for `count` elements, which we own.
            Storage::Pinned(memory) => unsafe { std::slice::from_raw_parts(memory.ptr().cast(), self.count) },
        }
    }
}

impl<T: Scalar> DerefMut for HostVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.storage {
            Storage::Plain(data) => &mut data[..self.count],
            // SAFETY: as above, and borrowed uniquely.
            Storage::Pinned(memory) => unsafe { std::slice::from_raw_parts_mut(memory.ptr().cast(), self.count) },
        }
    }
}
