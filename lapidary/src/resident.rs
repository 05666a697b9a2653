//! Matrices that stay on a device across calls.

#[cfg(any(feature = "opencl", feature = "wgpu"))]
use lapidary_core::DeviceBuffer;
use lapidary_core::{DType, DeviceRuntime, Error, ErrorKind, MatMut, MatRef, Resident, Result, Scalar};

use crate::machine::Machine;

/// Where the elements lie.
#[derive(Debug)]
enum Storage<T> {
    /// Device memory is host memory here: a copy that all devices of the machine reach.
    Host(Vec<T>),
    /// Memory of one device.
    Device(Resident),
}

/// A matrix on a device, column-major. Routines use it like a host matrix
/// ([`DeviceMatrix::view`]) and move nothing. It keeps its machine alive.
///
/// ```
/// use lapidary::{Gemm, Machine, MatMut, MatRef, Select};
/// let machine = Machine::open(&Select::all())?;
/// let a = machine.upload(MatRef::col_major(&[1.0, 1.0, 0.0, 1.0], 2, 2)?)?;
/// let mut p = machine.upload(MatRef::col_major(&[0.0; 4], 2, 2)?)?;
/// machine.gemm(Gemm::new(a.view(), a.view(), p.view_mut()))?; // A²
/// let mut host = [0.0; 4];
/// p.download(MatMut::col_major(&mut host, 2, 2)?)?;
/// assert_eq!(host, [1.0, 2.0, 0.0, 1.0]);
/// # Ok::<(), lapidary::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceMatrix<T: Scalar> {
    machine: Machine,
    storage: Storage<T>,
    rows: usize,
    cols: usize,
}

impl Machine {
    /// Copies a host matrix to the fastest device, by the estimates in [`DeviceFacts::rates`](lapidary_core::DeviceFacts::rates), of those that support its
    /// element type. Calls whose operands lie there run there, without transfers.
    ///
    /// # Errors
    /// The matrix lies on a device already, no device computes with its type, or the fastest has no memory left:
    /// [`Machine::upload_to`] names another one.
    pub fn upload<T: Scalar>(&self, a: MatRef<'_, T>) -> Result<DeviceMatrix<T>> {
        self.upload_to(self.fastest(T::DTYPE)?, a)
    }

    /// The fastest device that computes in `dtype`, or the first of several, so that all operands of a call go to one device.
    fn fastest(&self, dtype: DType) -> Result<usize> {
        let all: Vec<usize> = (0..self.drivers().len()).collect();
        let flops = |device: usize| self.drivers()[device].facts().rates.flops;
        let faster = |best: usize, other: usize| if flops(other) > flops(best) { other } else { best };
        let capable = self.capable_devices(dtype, "upload", &all)?;
        Ok(capable.into_iter().reduce(faster).expect("a device is capable"))
    }

    /// Copies a host matrix to the device of that number in [`Machine::devices`].
    ///
    /// # Errors
    /// As [`Machine::upload`], or there is no such device.
    pub fn upload_to<T: Scalar>(&self, device: usize, a: MatRef<'_, T>) -> Result<DeviceMatrix<T>> {
        if device >= self.drivers().len() {
            let message = format!("there is no device {device}: the machine has {}, counted from 0", self.drivers().len());
            return Err(Error::new(ErrorKind::NoSuchDevice, "upload", message));
        }
        if a.host_ptr().is_none() {
            return Err(Error::invalid("upload", "the matrix lies on a device already"));
        }
        let (rows, cols) = a.shape();
        let storage = if self.drivers().iter().all(|driver| driver.facts().host_memory) {
            Storage::Host(host_copy(a)?)
        } else {
            self.capable_devices(T::DTYPE, "upload", &[device])?;
            let resident = Resident::new(device);
            let _exclusive = self.exclusive(&[device]);
            self.drivers().iter().for_each(|driver| driver.make_room_for_upload(a.raw().bytes()));
            // SAFETY: a view of host memory of type T.
            let upload = || unsafe { self.drivers()[device].upload(resident.key, &a.raw()) };
            match upload() {
                // other devices may be the same hardware
                Err(error) if error.kind().is_out_of_memory() => {
                    self.drivers().iter().for_each(DeviceRuntime::make_room);
                    upload()?;
                }
                uploaded => uploaded?,
            }
            Storage::Device(resident)
        };
        Ok(DeviceMatrix { machine: self.clone(), storage, rows, cols })
    }
}

#[cfg(any(feature = "opencl", feature = "wgpu"))]
impl Machine {
    /// A matrix in the application's own OpenCL buffer, column-major without
    /// gaps, on the first device, which the application has
    /// [opened](Machine::from_opencl). Nothing is copied.
    ///
    /// Calls return when their results are in the buffer. They run after what the
    /// application has enqueued in the queue it shares; its work in other
    /// queues must be finished before.
    ///
    /// # Safety
    /// The buffer belongs to the device's context, and nothing else uses it during a call.
    ///
    /// # Errors
    /// The buffer is too small, the device is no OpenCL device or lacks the precision.
    #[cfg(feature = "opencl")]
    pub unsafe fn wrap_opencl<T: Scalar>(
        &self,
        buffer: crate::opencl::cl3::types::cl_mem,
        rows: usize,
        cols: usize,
    ) -> Result<DeviceMatrix<T>> {
        if self.drivers()[0].device().downcast::<crate::opencl::OpenClDevice>().is_none() {
            return Err(Error::invalid("wrap", "the first device is no OpenCL device"));
        }
        // SAFETY: as the caller promises.
        self.wrap(rows, cols, |bytes| unsafe { crate::opencl::Buffer::adopt(buffer, bytes) }.map(DeviceBuffer::new))
    }

    /// A matrix in the application's own wgpu buffer, column-major without gaps, on the
    /// first device, which was made from the application's
    /// ([`WgpuDevice::from_parts`](crate::wgpu::WgpuDevice::from_parts)). Nothing is copied.
    ///
    /// Calls run after what the application has submitted and return when their
    /// results are in the buffer, which must not be mapped meanwhile.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use lapidary::wgpu::{WgpuDevice, list, required_limits, wgpu};
    /// use lapidary::{Gemm, Machine, MatMut, Settings};
    ///
    /// let listing = list();
    /// let Some(found) = listing.devices.first() else { return Ok(()) }; // no adapter
    /// let descriptor = wgpu::DeviceDescriptor { required_limits: required_limits(&found.adapter), ..Default::default() };
    /// let (device, queue) = pollster::block_on(found.adapter.request_device(&descriptor))?;
    /// // a buffer of the application: two by two, by columns, in f32
    /// let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    /// let buffer = |label| {
    ///     device.create_buffer(&wgpu::BufferDescriptor { label, size: 16, usage, mapped_at_creation: false })
    /// };
    /// let (of_a, of_c) = (buffer(Some("A")), buffer(Some("C")));
    /// queue.write_buffer(&of_a, 0, &[1.0_f32, 1.0, 0.0, 1.0].map(f32::to_ne_bytes).concat());
    ///
    /// let settings = Settings::default();
    /// let ours = WgpuDevice::from_parts(device.clone(), queue.clone(), Arc::new(settings.program_cache()))?;
    /// let machine = Machine::from_wgpu(vec![ours], &settings)?;
    /// let (a, mut c) = (machine.wrap_wgpu::<f32>(&of_a, 2, 2)?, machine.wrap_wgpu::<f32>(&of_c, 2, 2)?);
    /// machine.gemm(Gemm::new(a.view(), a.view(), c.view_mut()))?; // A²; the result is in the application's buffer
    ///
    /// let mut host = [0.0; 4];
    /// c.download(MatMut::col_major(&mut host, 2, 2)?)?;
    /// assert_eq!(host, [1.0, 2.0, 0.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The buffer is too small or too large for a kernel, or was not made with the usages
    /// `STORAGE | COPY_SRC | COPY_DST`; the device is no wgpu device or lacks the precision.
    #[cfg(feature = "wgpu")]
    pub fn wrap_wgpu<T: Scalar>(&self, buffer: &crate::wgpu::wgpu::Buffer, rows: usize, cols: usize) -> Result<DeviceMatrix<T>> {
        let Some(device) = self.drivers()[0].device().downcast::<crate::wgpu::WgpuDevice>() else {
            return Err(Error::invalid("wrap", "the first device is no wgpu device"));
        };
        self.wrap(rows, cols, |bytes| device.adopt(buffer.clone(), bytes).map(DeviceBuffer::new))
    }

    /// A matrix in memory of the first device that is another's.
    fn wrap<T: Scalar>(
        &self,
        rows: usize,
        cols: usize,
        adopt: impl FnOnce(usize) -> Result<DeviceBuffer>,
    ) -> Result<DeviceMatrix<T>> {
        self.capable_devices(T::DTYPE, "wrap", &[0])?;
        let bytes = rows.checked_mul(cols).and_then(|count| count.checked_mul(T::DTYPE.size()));
        let bytes = bytes.ok_or_else(|| Error::invalid("wrap", format!("{rows}×{cols} elements overflow the address space")))?;
        let resident = Resident::new(0);
        self.drivers()[0].adopt(resident.key, adopt(bytes)?);
        Ok(DeviceMatrix { machine: self.clone(), storage: Storage::Device(resident), rows, cols })
    }
}

/// The elements, column-major.
fn host_copy<T: Scalar>(a: MatRef<'_, T>) -> Result<Vec<T>> {
    let (rows, cols) = a.shape();
    let mut data = Vec::new();
    if rows == 0 {
        // of no rows there may be any number of columns
        return Ok(data);
    }
    data.try_reserve_exact(rows * cols).map_err(|source| {
        Error::new(ErrorKind::OutOfHostMemory, "upload", format!("no memory for {rows}×{cols} elements")).caused_by(source)
    })?;
    for j in 0..cols {
        data.extend((0..rows).map(|i| a.at(i, j)));
    }
    Ok(data)
}

impl<T: Scalar> DeviceMatrix<T> {
    /// The matrix, for reading.
    #[must_use]
    pub fn view(&self) -> MatRef<'_, T> {
        match &self.storage {
            Storage::Host(data) => MatRef::col_major(data, self.rows, self.cols).expect("the storage fits the shape"),
            // SAFETY: uploaded with this shape and type, and borrowed with the matrix.
            Storage::Device(resident) => unsafe { MatRef::resident(*resident, self.rows, self.cols) },
        }
    }

    /// The matrix, for reading and writing.
    #[must_use]
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        match &mut self.storage {
            Storage::Host(data) => MatMut::col_major(data, self.rows, self.cols).expect("the storage fits the shape"),
            // SAFETY: uploaded with this shape and type, and borrowed uniquely with the matrix.
            Storage::Device(resident) => unsafe { MatMut::resident(*resident, self.rows, self.cols) },
        }
    }

    /// Copies another matrix of the machine, of the same shape, into this one:
    /// by the driver where both lie in one context and in the machine's own memory,
    /// else through host memory.
    ///
    /// # Errors
    /// The shapes or the machines differ, or the copy failed.
    pub fn copy_from(&mut self, other: &DeviceMatrix<T>) -> Result<()> {
        let (rows, cols) = (self.rows, self.cols);
        if (other.rows, other.cols) != (rows, cols) || !self.machine.is_same(&other.machine) {
            let message = if self.machine.is_same(&other.machine) {
                format!("the matrix is {rows}×{cols}, the other one {}×{}", other.rows, other.cols)
            } else {
                "the other matrix was uploaded to another machine".to_owned()
            };
            return Err(Error::invalid("copy_from", message));
        }
        let drivers = &self.machine.drivers();
        match (&mut self.storage, &other.storage) {
            (Storage::Host(to), Storage::Host(from)) => to.copy_from_slice(from),
            (&mut Storage::Device(to), &Storage::Device(from)) => {
                let bytes = rows * cols * T::DTYPE.size();
                if !drivers[to.device].copy_from(to.key, &drivers[from.device], from.key, bytes)? {
                    let mut between = self.machine.alloc_host::<T>(rows * cols)?;
                    other.download(MatMut::col_major(&mut between, rows, cols)?)?;
                    // SAFETY: a view of host memory of type T and of the same shape.
                    unsafe { drivers[to.device].refill(to.key, &MatRef::col_major(&between, rows, cols)?.raw())? };
                }
            }
            (Storage::Host(_), Storage::Device(_)) | (Storage::Device(_), Storage::Host(_)) => {
                unreachable!("a machine keeps all its matrices alike")
            }
        }
        Ok(())
    }

    /// Copies the matrix into host memory.
    ///
    /// # Errors
    /// The shapes differ, `to` lies on a device, or the transfer failed.
    pub fn download(&self, mut to: MatMut<'_, T>) -> Result<()> {
        if to.host_ptr().is_none() {
            return Err(
                Error::invalid("download", "`to` lies on a device; `copy_from` copies from one matrix to another").untouched()
            );
        }
        if to.shape() != (self.rows, self.cols) {
            let message = format!("the matrix is {}×{}, `to` is {to:?}", self.rows, self.cols);
            return Err(Error::invalid("download", message).untouched());
        }
        match &self.storage {
            Storage::Host(data) => {
                for (i, &value) in data.iter().enumerate() {
                    to.set(i % self.rows, i / self.rows, value);
                }
                Ok(())
            }
            // SAFETY: a unique view of host memory of type T and of the same shape.
            Storage::Device(resident) => unsafe { self.machine.drivers()[resident.device].download(resident.key, &to.raw()) },
        }
    }
}

impl<T: Scalar> Drop for DeviceMatrix<T> {
    fn drop(&mut self) {
        if let Storage::Device(resident) = self.storage {
            self.machine.drivers()[resident.device].discard(resident.key);
        }
    }
}
