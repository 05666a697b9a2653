//! Matrices that stay on a device across calls.

use std::marker::PhantomData;

#[cfg(any(feature = "opencl", feature = "wgpu"))]
use lapidary_core::DeviceBuffer;
use lapidary_core::{DType, DeviceRuntime, Error, ErrorKind, Instruction, MatMut, MatRef, Resident, Result, Scalar, StreamCall};

use crate::machine::Machine;
use crate::run::MAX_UNLOCKED_COLUMN_BYTES;

/// A column-major matrix on a device.
///
/// Routines take a `DeviceMatrix` like a host matrix ([`DeviceMatrix::view`]) and do not transfer its elements. A `DeviceMatrix`
/// keeps its machine alive.
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
    resident: Resident,
    rows: usize,
    cols: usize,
    elements: PhantomData<T>,
}

impl Machine {
    /// Copies a host matrix to the fastest device that supports its element type. The estimates in
    /// [`DeviceFacts::rates`](lapidary_core::DeviceFacts::rates) decide which device is the fastest. A call whose operands all
    /// lie on one device runs on that device, without transfers.
    ///
    /// # Errors
    /// The matrix already lies on a device, no device supports its element type, or the fastest device has no memory left. If the
    /// fastest device has no memory left, [`Machine::upload_to`] can upload the matrix to another device.
    pub fn upload<T: Scalar>(&self, a: MatRef<'_, T>) -> Result<DeviceMatrix<T>> {
        self.upload_to(self.fastest(T::DTYPE)?, a)
    }

    /// Returns the fastest device that supports `dtype`. Of several equally fast devices, returns the first one, so that all
    /// operands of a call are uploaded to one device.
    fn fastest(&self, dtype: DType) -> Result<usize> {
        let all: Vec<usize> = (0..self.runtimes().len()).collect();
        let flops = |device: usize| self.runtimes()[device].facts().rates.flops;
        let faster = |best: usize, other: usize| if flops(other) > flops(best) { other } else { best };
        let capable = self.capable_devices(dtype, "upload", &all)?;
        Ok(capable.into_iter().reduce(faster).expect("a device is capable"))
    }

    /// Copies a host matrix to a device. `device` is the index of the device in [`Machine::devices`].
    ///
    /// ```
    /// use lapidary::{Machine, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let gpu = machine.devices().position(|facts| !facts.is_cpu()).unwrap_or(0);
    /// let a = machine.upload_to(gpu, MatRef::col_major(&[1.0_f32, 2.0], 2, 1)?)?;
    /// assert_eq!(a.device(), gpu);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The method returns the errors of [`Machine::upload`], and an error if there is no device with this index.
    pub fn upload_to<T: Scalar>(&self, device: usize, a: MatRef<'_, T>) -> Result<DeviceMatrix<T>> {
        if a.host_ptr().is_none() {
            return Err(Error::invalid("upload", "the matrix lies on a device already"));
        }
        self.check_device::<T>("upload", device)?;
        let resident = Resident::new(device);
        let _exclusive = self.exclusive(&[device]);
        self.with_room("upload", a.raw().bytes(), || {
            // SAFETY: the view `a` borrows host memory with elements of type T, so that nothing writes these elements during the
            // upload.
            unsafe { self.runtimes()[device].upload(resident.key, &a.raw()) }
        })?;
        Ok(self.matrix(resident, a.shape()))
    }

    /// Allocates a matrix of zeros on a device. `device` is the index of the device in [`Machine::devices`].
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let a = machine.zeros_on::<f32>(0, 2, 3)?;
    /// assert_eq!((a.shape(), a.device()), ((2, 3), 0));
    /// let mut host = [1.0; 6];
    /// a.download(MatMut::col_major(&mut host, 2, 3)?)?;
    /// assert_eq!(host, [0.0; 6]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no device with this index, the device does not support the element type, or the device has no memory left.
    pub fn zeros_on<T: Scalar>(&self, device: usize, rows: usize, cols: usize) -> Result<DeviceMatrix<T>> {
        let mut zeros = self.allocate_on("zeros_on", device, rows, cols)?;
        if rows > 0 && cols > 0 {
            let (instructions, memory) = ([Instruction::Scale { beta: T::ZERO.into(), c: 0 }], [zeros.view_mut().raw()]);
            self.fill(device, "zeros_on", &StreamCall::Run { instructions: &instructions, memory: &memory })?;
        }
        Ok(zeros)
    }

    /// Allocates a matrix whose elements have any values, for the call `operation`.
    pub(crate) fn allocate_on<T: Scalar>(
        &self,
        operation: &'static str,
        device: usize,
        rows: usize,
        cols: usize,
    ) -> Result<DeviceMatrix<T>> {
        self.check_device::<T>(operation, device)?;
        let bytes = matrix_bytes::<T>(operation, rows, cols)?;
        let resident = Resident::new(device);
        self.allocate_by(operation, device, bytes, || self.runtimes()[device].allocate(resident.key, bytes))?;
        Ok(self.matrix(resident, (rows, cols)))
    }

    fn check_device<T: Scalar>(&self, operation: &'static str, device: usize) -> Result<()> {
        self.check_index(operation, device)?;
        self.capable_devices(T::DTYPE, operation, &[device]).map(drop).map_err(|error| error.in_call(operation))
    }

    /// Returns an error if there is no device with the index `device`.
    pub(crate) fn check_index(&self, operation: &'static str, device: usize) -> Result<()> {
        let count = self.runtimes().len();
        if device < count {
            return Ok(());
        }
        let message = format!("there is no device {device}: the machine has {count}, counted from 0");
        Err(Error::new(ErrorKind::NoSuchDevice, operation, message))
    }

    /// Calls `allocate`, which allocates `bytes` bytes on a device for the call `operation`.
    pub(crate) fn allocate_by<R>(
        &self,
        operation: &'static str,
        device: usize,
        bytes: usize,
        allocate: impl Fn() -> Result<R>,
    ) -> Result<R> {
        // a planned call of another thread does not hold up a stream that allocates little memory
        if bytes <= MAX_UNLOCKED_COLUMN_BYTES
            && let Ok(allocated) = allocate()
        {
            return Ok(allocated);
        }
        let _exclusive = self.exclusive(&[device]);
        self.with_room(operation, bytes, allocate)
    }

    /// Calls `allocate`, which allocates a matrix of the given shape. If memory is lacking, memory that the devices keep for later calls is
    /// freed before the second try, also on other devices, which may be the same hardware. An error names the call `operation`.
    fn with_room<R>(&self, operation: &'static str, bytes: usize, allocate: impl Fn() -> Result<R>) -> Result<R> {
        self.runtimes().iter().for_each(|runtime| runtime.make_room_for_upload(bytes));
        let allocated = match allocate() {
            Err(error) if error.kind().is_out_of_memory() => {
                self.runtimes().iter().for_each(DeviceRuntime::make_room);
                allocate()
            }
            allocated => allocated,
        };
        allocated.map_err(|error| {
            let scratch: usize = self.runtimes().iter().map(|runtime| runtime.device().scratch_bytes()).sum();
            let error = error.in_call(operation);
            if error.kind().is_out_of_memory() && scratch > 0 {
                error.with("advice", format!("`Machine::trim` frees {scratch} bytes of scratch memory"))
            } else {
                error
            }
        })
    }

    fn matrix<T: Scalar>(&self, resident: Resident, (rows, cols): (usize, usize)) -> DeviceMatrix<T> {
        DeviceMatrix { machine: self.clone(), resident, rows, cols, elements: PhantomData }
    }
}

#[cfg(any(feature = "opencl", feature = "wgpu"))]
impl Machine {
    /// Makes a matrix of an OpenCL buffer of the application, without copying. The buffer holds the elements column-major without
    /// gaps. The buffer belongs to the first device of the machine, which the application has [opened](Machine::from_opencl).
    ///
    /// A call on the wrapped matrix runs after the commands that the application has enqueued in the shared queue. A call on the
    /// wrapped matrix returns when its results are in the buffer. Commands that the application has enqueued in other queues must
    /// have completed before a call on the wrapped matrix.
    ///
    /// # Safety
    /// The buffer belongs to the context of the device, and nothing else uses the buffer during a call.
    ///
    /// # Errors
    /// The buffer is too small, the first device is not an OpenCL device, or this device does not support the element type.
    #[cfg(feature = "opencl")]
    pub unsafe fn wrap_opencl<T: Scalar>(
        &self,
        buffer: crate::opencl::cl3::types::cl_mem,
        rows: usize,
        cols: usize,
    ) -> Result<DeviceMatrix<T>> {
        if self.runtimes()[0].device().downcast::<crate::opencl::OpenClDevice>().is_none() {
            return Err(Error::invalid("wrap", "the first device is no OpenCL device"));
        }
        // SAFETY: the caller guarantees that the buffer belongs to the context of the device, and that nothing else uses it during
        // a call.
        self.wrap(rows, cols, |bytes| unsafe { crate::opencl::Buffer::adopt(buffer, bytes) }.map(DeviceBuffer::new))
    }

    /// Makes a matrix of a wgpu buffer of the application, without copying. The buffer holds the elements column-major without
    /// gaps. The buffer belongs to the first device of the machine, which was made from a device of the application
    /// ([`WgpuDevice::from_parts`](crate::wgpu::WgpuDevice::from_parts)).
    ///
    /// A call on the wrapped matrix runs after the commands that the application has submitted. A call on the wrapped matrix
    /// returns when its results are in the buffer. The buffer must not be mapped during a call on the wrapped matrix.
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
    /// The buffer is too small, the buffer is too large for a kernel, or the buffer lacks one of the usages `STORAGE | COPY_SRC |
    /// COPY_DST`. The method also returns an error if the first device is not a wgpu device or does not support the element type.
    #[cfg(feature = "wgpu")]
    pub fn wrap_wgpu<T: Scalar>(&self, buffer: &crate::wgpu::wgpu::Buffer, rows: usize, cols: usize) -> Result<DeviceMatrix<T>> {
        let Some(device) = self.runtimes()[0].device().downcast::<crate::wgpu::WgpuDevice>() else {
            return Err(Error::invalid("wrap", "the first device is no wgpu device"));
        };
        self.wrap(rows, cols, |bytes| device.adopt(buffer.clone(), bytes).map(DeviceBuffer::new))
    }

    /// Registers an external buffer of the first device as a resident matrix.
    fn wrap<T: Scalar>(
        &self,
        rows: usize,
        cols: usize,
        adopt: impl FnOnce(usize) -> Result<DeviceBuffer>,
    ) -> Result<DeviceMatrix<T>> {
        self.capable_devices(T::DTYPE, "wrap", &[0])?;
        let bytes = matrix_bytes::<T>("wrap", rows, cols)?;
        let resident = Resident::new(0);
        self.runtimes()[0].adopt(resident.key, adopt(bytes)?);
        Ok(self.matrix(resident, (rows, cols)))
    }
}

/// The size of a matrix in bytes.
fn matrix_bytes<T: Scalar>(operation: &'static str, rows: usize, cols: usize) -> Result<usize> {
    let bytes = rows.checked_mul(cols).and_then(|count| count.checked_mul(T::DTYPE.size()));
    bytes.ok_or_else(|| Error::invalid(operation, format!("{rows}×{cols} elements overflow the address space")))
}

impl<T: Scalar> DeviceMatrix<T> {
    /// The numbers of rows and columns.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Index in [`Machine::devices`] of the device that holds the matrix.
    #[must_use]
    pub fn device(&self) -> usize {
        self.resident.device
    }

    /// Returns a view of the matrix for reading.
    #[must_use]
    pub fn view(&self) -> MatRef<'_, T> {
        // SAFETY: the resident matrix has the shape and element type of `self`, and the view borrows `self`, so that the matrix stays on
        // the device and nothing writes it meanwhile, except calls of streams, which the device runs before later calls.
        unsafe { MatRef::resident(self.resident, self.rows, self.cols) }
    }

    /// Returns a view of the matrix for reading and writing.
    #[must_use]
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        // SAFETY: the resident matrix has the shape and element type of `self`, and the view borrows `self` mutably, so that the matrix
        // stays on the device and nothing else accesses it meanwhile, except calls of streams, which the device runs before later calls.
        unsafe { MatMut::resident(self.resident, self.rows, self.cols) }
    }

    /// Overwrites the matrix with the elements of a host matrix of the same shape.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let mut a = machine.zeros_on::<f32>(0, 2, 2)?;
    /// a.write(MatRef::row_major(&[1.0, 2.0, 3.0, 4.0], 2, 2)?)?;
    /// let mut host = [0.0; 4];
    /// a.download(MatMut::row_major(&mut host, 2, 2)?)?;
    /// assert_eq!(host, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes differ, `from` lies on a device, or the transfer failed.
    pub fn write(&mut self, from: MatRef<'_, T>) -> Result<()> {
        self.check_host("write", "from", from.host_ptr().is_some(), from.shape())?;
        // SAFETY: `self` is borrowed mutably, so that no other code accesses the matrix.
        unsafe { self.write_cols(0, from) }
    }

    /// Overwrites columns of the matrix, from column `first` on, with the columns of a host matrix. Several threads may call the method
    /// for different columns at the same time.
    ///
    /// # Safety
    /// No other code accesses these columns meanwhile.
    ///
    /// # Errors
    /// The transfer failed.
    pub(crate) unsafe fn write_cols(&self, first: usize, from: MatRef<'_, T>) -> Result<()> {
        debug_assert!(from.host_ptr().is_some() && from.rows() == self.rows && first + from.cols() <= self.cols);
        // SAFETY: the caller guarantees that no other code accesses the columns that the transfer overwrites. `from` borrows host memory
        // with elements of type T, so that no other code can write this memory during the transfer.
        unsafe { self.runtime().refill(self.resident.key, first, &from.raw()) }.map_err(|error| error.in_call("write"))
    }

    fn runtime(&self) -> &DeviceRuntime {
        &self.machine.runtimes()[self.resident.device]
    }

    /// Returns an error unless the argument `name` lies in host memory and has the shape of the matrix.
    fn check_host(&self, operation: &'static str, name: &str, is_on_host: bool, shape: (usize, usize)) -> Result<()> {
        let message = if !is_on_host {
            format!("`{name}` lies on a device; `copy_from` copies from one matrix to another")
        } else if shape != self.shape() {
            format!("the matrix is {}×{}, `{name}` is {}×{}", self.rows, self.cols, shape.0, shape.1)
        } else {
            return Ok(());
        };
        Err(Error::invalid(operation, message).untouched())
    }

    /// Copies another matrix of the same machine and shape into this matrix. The driver copies the elements if both matrices lie
    /// on one device, or on two OpenCL devices that share a context and work in host memory. All other copies pass through host
    /// memory.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let last = machine.devices().count() - 1;
    /// let a = machine.upload_to(0, MatRef::col_major(&[1.0_f32, 2.0], 2, 1)?)?;
    /// let mut b = machine.zeros_on(last, 2, 1)?;
    /// b.copy_from(&a)?;
    /// let mut host = [0.0; 2];
    /// b.download(MatMut::col_major(&mut host, 2, 1)?)?;
    /// assert_eq!(host, [1.0, 2.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The matrices differ in shape or machine, or the copy failed.
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
        let (to, from) = (self.resident, other.resident);
        let bytes = rows * cols * T::DTYPE.size();
        if !self.runtime().copy_from(to.key, other.runtime(), from.key, bytes)? {
            let mut between = self.machine.alloc_host::<T>(rows * cols)?;
            other.download(MatMut::col_major(&mut between, rows, cols)?)?;
            self.write(MatRef::col_major(&between, rows, cols)?)?;
        }
        Ok(())
    }

    /// Copies the matrix to host memory.
    ///
    /// # Errors
    /// The shapes differ, `to` lies on a device, or the transfer failed.
    #[allow(clippy::needless_pass_by_value, reason = "a call takes a view of the matrix that it writes")]
    pub fn download(&self, to: MatMut<'_, T>) -> Result<()> {
        self.check_host("download", "to", to.host_ptr().is_some(), to.shape())?;
        // SAFETY: `to` has the shape of the matrix and borrows host memory with elements of type T mutably, so that nothing else accesses
        // this memory during the transfer.
        unsafe { self.runtime().download(self.resident.key, &to.raw()) }.map_err(|error| error.in_call("download"))
    }
}

impl<T: Scalar> Drop for DeviceMatrix<T> {
    fn drop(&mut self) {
        self.runtime().discard(self.resident.key);
    }
}
