//! The contract between the core and a backend.
//!
//! **Guarantees of the core:**
//!
//! - The core validates all arguments before it makes a command.
//! - All rectangles lie inside their matrices and buffers.
//! - The engine accesses a rectangle of a host matrix only as long as the application's call borrows the matrix.
//! - Two conflicting commands never run at the same time. The engine submits a command only after all commands that conflict with
//!   it are complete, unless a queue or a token keeps the conflicting commands in order.
//! - Only the engine calls a device.
//!
//! **Duties of a backend:**
//!
//! - When a method returns `Ok`, or the token of [`Device::submit`] reports success, the effect is complete and visible to every
//!   thread. As exceptions, [`Device::write`] and [`Device::copy_from`] may return before their effect is complete. A method that
//!   is called after `write` or `copy_from` on the same device sees the effect of this transfer, and may return its error.
//! - A buffer that is dropped while the device uses it stays allocated until the device has finished with the buffer.
//! - A method that returns an error leaves all buffers unchanged, except those that the method was to write.
//! - Several threads may call the methods of one device at the same time.
//! - A kernel computes what the documentation of its [`Instruction`] specifies.
//! - An error of the kind [`OutOfMemory`](crate::ErrorKind::OutOfMemory) or
//!   [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory) means that memory is lacking at the moment: other devices do the
//!   work, and later calls may use the device again.
//! - An error of the kind [`DeviceLost`](crate::ErrorKind::DeviceLost) means that the device is permanently lost: other devices
//!   do its work, and later calls do not use the device.
//! - A backend reports failures of all other kinds as [`DeviceFailed`](crate::ErrorKind::DeviceFailed).
//! - The engine sets no time limit, so the backend itself must detect that a device no longer answers.
//! - A backend makes no scheduling decisions: the core decides when each command runs.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;

use crate::blocking::Lookahead;
use crate::command::Conditions;
use crate::enums::Layout;
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::instruction::{Extent, Instruction};
use crate::kernel_time::KernelTime;
use crate::matrix::{Home, RawMat};
use crate::scalar::{DType, Element};
use crate::stream_queue::StreamQueue;
use crate::token::{Submitted, Token};

/// A column-major rectangle in memory that a device can access.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The memory in which the rectangle lies.
    pub memory: Memory<'a>,
    /// Number of elements in the memory before element (0, 0).
    pub offset: usize,
    /// Number of rows of the rectangle.
    pub rows: usize,
    /// Number of columns of the rectangle.
    pub cols: usize,
    /// Leading dimension: the number of elements from one column to the next.
    pub ld: usize,
    /// Element type of the rectangle.
    pub dtype: DType,
}

/// The memory in which an operand lies.
#[derive(Clone, Copy, Debug)]
pub enum Memory<'a> {
    /// An address in host memory, allowed only for a device with [`DeviceFacts::host_memory`].
    Host(NonNull<u8>),
    /// A buffer that the device allocated.
    Buffer(&'a DeviceBuffer),
}

// SAFETY: a `Memory` is only an address or a reference. Only unsafe functions access host memory through the address in a
// `Memory`, and the callers of the unsafe functions rule out data races.
unsafe impl Send for Memory<'_> {}
// SAFETY: a `Memory` is only an address or a reference, and the callers of the unsafe functions that use a `Memory` rule out data
// races.
unsafe impl Sync for Memory<'_> {}

impl<'a> Operand<'a> {
    /// Describes a column-major matrix in `memory` as an operand.
    #[must_use]
    pub fn of(raw: &RawMat, memory: Memory<'a>) -> Self {
        let RawMat { offset, rows, cols, ld, dtype, .. } = *raw;
        Operand { memory, offset, rows, cols, ld, dtype }
    }

    /// Describes a matrix as an operand. The matrix begins at the start of `buffer`, and there are no gaps between its columns.
    #[must_use]
    pub fn packed(buffer: &'a DeviceBuffer, rows: usize, cols: usize, dtype: DType) -> Self {
        Operand { memory: Memory::Buffer(buffer), offset: 0, rows, cols, ld: rows.max(1), dtype }
    }
}

impl Extent for Operand<'_> {
    fn extent(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }
}

impl Instruction<Operand<'_>> {
    /// Element type of the instruction's first operand.
    #[inline]
    #[must_use]
    pub fn dtype(&self) -> DType {
        let mut first = None;
        self.operands(|operand, _| first = first.or(Some(operand.dtype)));
        first.expect("an instruction has an operand")
    }
}

/// A rectangle of host memory, which is the source or the destination of a transfer. Element (i, j) lies `i·row_stride +
/// j·col_stride` elements after `origin`.
#[derive(Clone, Copy, Debug)]
pub struct HostRect {
    /// Address of element (0, 0). The address is aligned for the element type unless the rectangle is empty.
    pub origin: *mut u8,
    /// Element type of the rectangle.
    pub dtype: DType,
    /// Number of elements from one row to the next.
    pub row_stride: usize,
    /// Number of elements from one column to the next.
    pub col_stride: usize,
    /// Number of rows of the rectangle.
    pub rows: usize,
    /// Number of columns of the rectangle.
    pub cols: usize,
}

impl HostRect {
    /// Describes a slice as a column-major matrix of `rows` rows without gaps.
    ///
    /// # Panics
    /// If the length of the slice is not a multiple of `rows`.
    #[must_use]
    pub fn packed<E: Element>(data: &mut [E], rows: usize) -> Self {
        assert!(data.len().is_multiple_of(rows), "{} elements are no columns of {rows}", data.len());
        let cols = data.len().checked_div(rows).unwrap_or(0);
        HostRect { origin: data.as_mut_ptr().cast(), dtype: E::DTYPE, row_stride: 1, col_stride: rows, rows, cols }
    }

    /// Describes a whole matrix in host memory as a rectangle.
    ///
    /// # Panics
    /// If the matrix lies on a device.
    #[must_use]
    pub fn whole(raw: &RawMat) -> Self {
        Self::part(raw, 0, 0, raw.rows, raw.cols)
    }

    /// Describes the rectangle of `rows` × `cols` elements at (`row`, `col`) of a matrix in host memory.
    ///
    /// # Panics
    /// If the matrix lies on a device.
    #[must_use]
    pub fn part(raw: &RawMat, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        let Home::Host(base) = raw.home else { panic!("a rectangle of the host lies in host memory") };
        // `wrapping_add` is needed, because the address of an empty rectangle may lie outside the matrix
        let origin = base.as_ptr().wrapping_add((raw.offset + raw.index(row, col)) * raw.dtype.size());
        let (row_stride, col_stride) = match raw.layout {
            Layout::ColMajor => (1, raw.ld),
            Layout::RowMajor => (raw.ld, 1),
        };
        HostRect { origin, dtype: raw.dtype, row_stride, col_stride, rows, cols }
    }
}

// SAFETY: a `HostRect` only describes memory. Only unsafe functions access the memory of a `HostRect`, and the callers of the
// unsafe functions rule out data races.
unsafe impl Send for HostRect {}
// SAFETY: a `HostRect` only describes memory, and the callers of the unsafe functions that access this memory rule out data
// races.
unsafe impl Sync for HostRect {}

/// A region of a device's memory. Each backend chooses its own type for the region. Dropping a `DeviceBuffer` frees the device
/// memory of the buffer.
#[derive(Debug)]
pub struct DeviceBuffer(Box<dyn Region>);

/// Trait of all types that a backend may put into a [`DeviceBuffer`].
trait Region: Any + fmt::Debug + Send + Sync {}

impl<R: Any + fmt::Debug + Send + Sync> Region for R {}

impl DeviceBuffer {
    /// Wraps a buffer whose type `R` the backend has chosen.
    #[must_use]
    pub fn new<R: Any + fmt::Debug + Send + Sync>(region: R) -> Self {
        DeviceBuffer(Box::new(region))
    }

    /// Returns the wrapped buffer, whose type `R` the backend has chosen.
    ///
    /// # Panics
    /// If the wrapped buffer has another type than `R`, because another backend made the buffer. The engine passes to a device
    /// only buffers of that device.
    #[must_use]
    pub fn get<R: Any>(&self) -> &R {
        let region: &dyn Any = &*self.0;
        region.downcast_ref().unwrap_or_else(|| panic!("{self:?} is no {}", std::any::type_name::<R>()))
    }
}

/// A column-major rectangle in a buffer of a device, which is the source or the destination of a transfer. The rectangle has the
/// shape and the element type of the host rectangle of the transfer.
#[derive(Clone, Copy, Debug)]
pub struct BufferRect<'a> {
    /// The buffer that contains the rectangle.
    pub buffer: &'a DeviceBuffer,
    /// Number of elements in the buffer before element (0, 0) of the rectangle.
    pub offset: usize,
    /// Number of elements from one column to the next, at least the number of rows and at least 1.
    pub ld: usize,
}

impl<'a> BufferRect<'a> {
    /// A rectangle of `rows` rows without gaps between its columns, at the beginning of `buffer`.
    #[must_use]
    pub fn packed(buffer: &'a DeviceBuffer, rows: usize) -> Self {
        BufferRect { buffer, offset: 0, ld: rows.max(1) }
    }
}

/// A column-major rectangle in a buffer, as [`BufferRect`] describes it, with a handle of the buffer instead of a reference. Threads of a
/// backend keep the buffer by this handle while they copy.
#[derive(Clone, Debug)]
pub struct SharedRect<B> {
    /// The buffer that contains the rectangle.
    pub buffer: B,
    /// Number of elements in the buffer before element (0, 0) of the rectangle.
    pub offset: usize,
    /// Number of elements from one column to the next.
    pub ld: usize,
}

impl<B: Any + Clone> SharedRect<B> {
    /// The rectangle `rect`, whose buffer has the type `B` that the backend has chosen.
    ///
    /// # Panics
    /// If the buffer has another type, as [`DeviceBuffer::get`] does.
    #[must_use]
    pub fn of(rect: BufferRect<'_>) -> Self {
        SharedRect { buffer: rect.buffer.get::<B>().clone(), offset: rect.offset, ld: rect.ld }
    }
}

/// Host memory that a device's transfers read and write directly, without a staging copy.
///
/// # Safety
/// The memory has as many bytes as [`Device::alloc_pinned`] was asked for, which were zero when that method returned. It stays valid at the same
/// address as long as the value lives.
pub unsafe trait PinnedMemory: fmt::Debug + Send + Sync {
    /// Address of the memory, aligned for every element type.
    fn ptr(&self) -> *mut u8;
}

/// Work that the engine submits to a device.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// Copies a host rectangle into a rectangle of a buffer, as [`Device::write`] does.
    Write {
        /// The host rectangle to copy from.
        from: HostRect,
        /// The rectangle of a buffer to copy to.
        to: BufferRect<'a>,
    },
    /// Copies a rectangle of a buffer into a host rectangle, as [`Device::read`] does.
    Read {
        /// The rectangle of a buffer to copy from.
        from: BufferRect<'a>,
        /// The host rectangle to copy to.
        to: HostRect,
    },
    /// Runs an instruction, as [`Device::launch`] does.
    Run {
        /// The instruction to run.
        instruction: &'a Instruction<Operand<'a>>,
        /// Number of the kernel queue that runs the instruction, less than [`DeviceFacts::queues`].
        queue: usize,
        /// The conditions of the run.
        conditions: Conditions,
    },
}

/// A device, which allocates memory, transfers matrices and runs kernels.
pub trait Device: Any + fmt::Debug + Send + Sync {
    /// Returns the facts about the device, such as its name and its limits.
    fn facts(&self) -> &DeviceFacts;

    /// Allocates a buffer of `bytes`, aligned for every element type.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if device memory is lacking, or
    /// [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory) if host memory is lacking.
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer>;

    /// Copies a host rectangle into a rectangle of a buffer. When the method returns, the device has read the host rectangle. The
    /// device may still be writing the buffer, but every method of the device that is called afterwards finds the data in the
    /// buffer. The method does not write the memory between the columns of the rectangle of the buffer.
    ///
    /// # Safety
    /// The host rectangle must be readable, and `to` must lie in a buffer of this device. Nothing else may write the two
    /// rectangles until the transfer is complete.
    ///
    /// # Errors
    /// The transfer failed.
    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()>;

    /// Copies a rectangle of a buffer into a host rectangle. The method does not write the memory between the columns or rows of
    /// the host rectangle.
    ///
    /// # Safety
    /// The host rectangle must be writable, and `from` must lie in a buffer of this device. Until the method returns, nothing else
    /// may access the host rectangle or write the rectangle of the buffer.
    ///
    /// # Errors
    /// The transfer failed.
    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()>;

    /// Runs an instruction and returns after its completion.
    ///
    /// # Safety
    /// The operands must be readable and writable as the instruction requires, and their buffers must belong to this device. No
    /// conflicting access to the operands may take place until the method returns.
    ///
    /// # Errors
    /// The kernel could not be built, or failed.
    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()>;

    /// Runs instructions in order, then copies buffers into host rectangles. The default implementation submits all instructions to
    /// kernel queue 0, and waits for each of them and for each copy. A backend in which a wait takes long should wait only once.
    ///
    /// # Safety
    /// Each instruction must meet the requirements of [`Device::launch`], except that it may access what an earlier instruction
    /// writes. The requirements of [`Device::read`] must hold, except that the instructions may write the buffers from which `reads`
    /// copies.
    ///
    /// # Errors
    /// An instruction or a transfer failed. If the method returns an error, no instruction is still running.
    unsafe fn launch_and_read(&self, instructions: &[Instruction<Operand<'_>>], reads: &[(&DeviceBuffer, HostRect)]) -> Result<()> {
        let mut submitted = Submitted::default();
        let accepted = instructions.iter().try_for_each(|instruction| {
            let work = Work::Run { instruction, queue: 0, conditions: Conditions::default() };
            // SAFETY: the caller fulfils the safety contract of `launch` until this method returns, and `submitted` waits for all
            // instructions before it returns. A kernel queue runs its instructions in order.
            unsafe { self.submit(work, &[]) }.map(|token| submitted.0.push(token))
        });
        submitted.wait().and(accepted)?;
        // SAFETY: the caller fulfils the safety contract of `read`.
        reads.iter().try_for_each(|&(from, to)| unsafe { self.read(BufferRect::packed(from, to.rows), to) })
    }

    /// Runs sequences of `length` instructions each. The instructions of one sequence run in order. A device may run instructions
    /// of different sequences in any order or at the same time. The default implementation runs all instructions one after the
    /// other.
    ///
    /// # Safety
    /// Each instruction must meet the requirements of [`Device::launch`]. Instructions of different sequences must not conflict.
    ///
    /// # Errors
    /// A kernel could not be built, or failed. Instructions of other sequences than the failed sequence may have run.
    unsafe fn launch_sequences(&self, instructions: &[Instruction<Operand<'_>>], length: usize) -> Result<()> {
        let _ = length;
        // SAFETY: the caller guarantees that each instruction meets the requirements of `launch`.
        instructions.iter().try_for_each(|instruction| unsafe { self.launch(instruction) })
    }

    /// Factors a row-major matrix in host memory in place, with partial pivoting if `pivoting` is true. The rectangles `a`,
    /// `ipiv` and `info` hold the matrix, its min(m, n) pivot indices and its `info`, as in [`Instruction::Getrf`]. The default
    /// implementation returns `None` and writes nothing, which means that the device factors column-major matrices only. The
    /// crate `lapidary` calls this method for the CPU backend only.
    ///
    /// # Safety
    /// The rectangles must be readable and writable, and nothing else may access them until the method returns.
    ///
    /// # Errors
    /// A kernel could not be built, or failed.
    unsafe fn getrf_by_rows(&self, pivoting: bool, a: HostRect, ipiv: HostRect, info: HostRect) -> Option<Result<()>> {
        let _ = (pivoting, a, ipiv, info);
        None
    }

    /// Submits work to the device. The method returns as soon as the device has accepted the work, possibly before the work is
    /// complete. Kernels of one queue run in the order of submission. A kernel also waits for the kernels of other queues whose
    /// tokens are in `after`. Each token in `after` must be the result of a [`Work::Run`] on this device. The default
    /// implementation returns only after the work is complete, which suffices for a device without queues of its own.
    ///
    /// # Safety
    /// The requirements of [`Device::write`], [`Device::read`] or [`Device::launch`] must hold until the token reports that the
    /// work is complete. Work that conflicts with the submitted work may be in flight only if the queue or `after` keeps the two
    /// in order.
    ///
    /// # Errors
    /// The device does not accept the work, or the work has already failed. If the work fails after the method has returned, the
    /// token reports the failure.
    unsafe fn submit(&self, work: Work<'_>, after: &[&Token]) -> Result<Token> {
        after.iter().try_for_each(|earlier| earlier.wait())?;
        // SAFETY: the caller fulfils the safety contract of `submit`, and all work in `after` is complete.
        unsafe {
            match work {
                Work::Write { from, to } => self.write(from, to)?,
                Work::Read { from, to } => self.read(from, to)?,
                Work::Run { instruction, .. } => self.launch(instruction)?,
            }
        }
        Ok(Token::DONE)
    }

    /// Returns the queue in which streams enqueue work. Returns `None` if the methods of the device wait for their work, as the default
    /// implementation does. A thread of the engine then runs the work of streams.
    fn stream_queue(&self) -> Option<&dyn StreamQueue> {
        None
    }

    /// Returns the error that says why the device is permanently lost, if the backend learned of the loss in another way than by
    /// an error of this device. The engine itself remembers errors of the kind [`DeviceLost`](crate::ErrorKind::DeviceLost).
    fn lost(&self) -> Option<Error> {
        None
    }

    /// Returns the bytes of [`DeviceFacts::memory`] that buffers may not use, because the device holds or reserves these bytes as
    /// scratch memory of its kernels.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Compiles the kernels that run an instruction, so that the instruction does not wait for the compiler later. The method does not access the
    /// memory of the operands, which may be any address. It chooses kernels by the sizes, the offsets and the leading dimensions of the operands.
    /// `conditions` are those of [`Work::Run`]. The default implementation does nothing, which suffices for a device that compiles no kernels.
    ///
    /// # Errors
    /// The device has no kernel for the instruction, or is lost. A kernel that the compiler refuses is no error: the device compiles another
    /// kernel when the instruction runs.
    fn prepare(&self, _instruction: &Instruction<Operand<'_>>, _conditions: Conditions) -> Result<()> {
        Ok(())
    }

    /// Returns when and how LU on this device alone should factor a panel in one kernel queue while another queue runs an update.
    /// Returns `None` if LU should use one queue.
    fn lookahead(&self, dtype: DType) -> Option<Lookahead> {
        let _ = dtype;
        None
    }

    /// Makes the device prefer the kernels that a text names over those that the backend would choose. The text has the format of
    /// the database of kernels, and replaces the text of an earlier call; with an empty text, the backend chooses all kernels.
    /// Returns `None` if the kernels of the device have no parameters, or if the text names only kernels of other devices.
    ///
    /// # Errors
    /// A line of the text names no kernel, or a kernel exceeds a limit of the device.
    fn prefer_kernels(&self, entries: &str) -> Option<Result<()>> {
        let _ = entries;
        None
    }

    /// Waits for all kernels, and returns the times of the kernels that the device has run since the previous call of this method, in
    /// the order of their starts. Returns `None` if the device records no times, as the default implementation does. A device that
    /// records times does so because it was opened for this purpose, because the records may slow short kernels.
    ///
    /// # Errors
    /// A kernel failed, the device ran more kernels than it keeps times of, or the device does not return the time of a kernel. The
    /// records are deleted in these cases, too.
    fn take_kernel_times(&self) -> Option<Result<Vec<KernelTime>>> {
        None
    }

    /// Frees the memory that the device keeps for later calls, except buffers. Work in flight keeps the memory that it uses.
    fn trim(&self) {}

    /// Copies the first `bytes` of `from`, a buffer of `peer`, into `to`, a buffer of this device. The device `peer` may be this
    /// device. The method may return before the copy is complete; later methods of both devices see the copied data. Returns
    /// `None` if a copy through host memory is at least as fast.
    fn copy_from(&self, peer: &dyn Device, from: &DeviceBuffer, to: &DeviceBuffer, bytes: usize) -> Option<Result<()>> {
        let _ = (peer, from, to, bytes);
        None
    }

    /// Allocates `bytes` of host memory, filled with zeros, that this device's transfers read and write directly, without a staging copy.
    /// Returns `None` if the device has no pinned memory.
    fn alloc_pinned(&self, bytes: usize) -> Option<Box<dyn PinnedMemory>> {
        let _ = bytes;
        None
    }
}

impl dyn Device {
    /// Returns the device as its concrete type `D`; `None` if the device is of another type.
    #[must_use]
    pub fn downcast<D: Device>(&self) -> Option<&D> {
        let device: &dyn Any = self;
        device.downcast_ref()
    }
}
