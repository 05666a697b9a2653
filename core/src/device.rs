//! The contract between the core and a backend.
//!
//! **The core promises**: arguments are validated before a command is made;
//! rectangles lie inside their matrices and buffers; a host rectangle is
//! touched only while the caller lends it; two commands that conflict never run at the same time: one is done before the
//! other is submitted, or their queue or a token keeps them in order; only the engine calls a device.
//!
//! **A backend owes**: when a method returns `Ok`, or the token of [`Device::submit`] says so, its effect is complete and
//! visible to every thread. The exceptions are [`Device::write`] and [`Device::copy_from`], which may complete later:
//! later methods of the devices involved see their effect, and may report their errors. A buffer that is dropped while
//! the device uses it stays allocated until the device is done with it; an error leaves other buffers as they were; the
//! methods may be called from several threads at once; results are as the
//! [`Instruction`] specifies. An error of the kind [`OutOfMemory`](crate::ErrorKind::OutOfMemory) or
//! [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory) means that memory was lacking for the moment: other devices do
//! the work, and later calls may use the device again. [`DeviceLost`](crate::ErrorKind::DeviceLost) means that the device
//! is gone for good: other devices do its work, and later calls do not use it. Any other failure is
//! [`DeviceFailed`](crate::ErrorKind::DeviceFailed). The engine sets no time limit: a backend itself must detect that a
//! device no longer answers. A backend holds no policy: the core decides what runs when.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;

use crate::enums::Layout;
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::instruction::{Extent, Instruction};
use crate::matrix::{Home, RawMat};
use crate::scalar::{DType, Element};
use crate::token::Token;

/// A column-major rectangle in memory that a device reaches.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The memory.
    pub memory: Memory<'a>,
    /// Elements before element (0, 0).
    pub offset: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements between neighbouring columns.
    pub ld: usize,
    /// Type of the elements.
    pub dtype: DType,
}

/// The memory of an operand.
#[derive(Clone, Copy, Debug)]
pub enum Memory<'a> {
    /// Host memory, only for a device with [`DeviceFacts::host_memory`].
    Host(NonNull<u8>),
    /// A buffer of the device.
    Buffer(&'a DeviceBuffer),
}

// SAFETY: the value is only an address or a reference. Only unsafe functions access host memory through it, and their callers
// rule out data races.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

impl<'a> Operand<'a> {
    /// A column-major matrix, in the memory where it lies.
    #[must_use]
    pub fn of(raw: &RawMat, memory: Memory<'a>) -> Self {
        let RawMat { offset, rows, cols, ld, dtype, .. } = *raw;
        Operand { memory, offset, rows, cols, ld, dtype }
    }

    /// A matrix without gaps that begins where a buffer begins.
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
    /// Type of the elements of its matrices.
    #[inline]
    #[must_use]
    pub fn dtype(&self) -> DType {
        let mut first = None;
        self.operands(|operand, _| first = first.or(Some(operand.dtype)));
        first.expect("an instruction has an operand")
    }
}

/// A rectangle of host memory: one side of a transfer. Element (i, j) lies
/// `i·row_stride + j·col_stride` elements after `origin`.
#[derive(Clone, Copy, Debug)]
pub struct HostRect {
    /// Element (0, 0), at an address that is aligned for the type unless the rectangle is empty.
    pub origin: *mut u8,
    /// Type of the elements.
    pub dtype: DType,
    /// Elements between neighbouring rows.
    pub row_stride: usize,
    /// Elements between neighbouring columns.
    pub col_stride: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
}

impl HostRect {
    /// A slice as a matrix of so many rows, column-major without gaps.
    ///
    /// # Panics
    /// The slice holds no whole number of columns.
    #[must_use]
    pub fn packed<E: Element>(data: &mut [E], rows: usize) -> Self {
        assert!(data.len().is_multiple_of(rows), "{} elements are no columns of {rows}", data.len());
        let cols = data.len().checked_div(rows).unwrap_or(0);
        HostRect { origin: data.as_mut_ptr().cast(), dtype: E::DTYPE, row_stride: 1, col_stride: rows, rows, cols }
    }

    /// A matrix in host memory.
    ///
    /// # Panics
    /// The matrix lies on a device.
    #[must_use]
    pub fn whole(raw: &RawMat) -> Self {
        Self::part(raw, 0, 0, raw.rows, raw.cols)
    }

    /// The rectangle of `rows` × `cols` at (`row`, `col`) of a matrix in host memory.
    ///
    /// # Panics
    /// The matrix lies on a device.
    #[must_use]
    pub fn part(raw: &RawMat, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        let Home::Host(base) = raw.home else { panic!("a rectangle of the host lies in host memory") };
        // wrapping: an empty rectangle may lie anywhere
        let origin = base.as_ptr().wrapping_add((raw.offset + raw.index(row, col)) * raw.dtype.size());
        let (row_stride, col_stride) = match raw.layout {
            Layout::ColMajor => (1, raw.ld),
            Layout::RowMajor => (raw.ld, 1),
        };
        HostRect { origin, dtype: raw.dtype, row_stride, col_stride, rows, cols }
    }
}

// SAFETY: a `HostRect` only describes memory. Only unsafe functions access that memory; their callers rule out data races.
unsafe impl Send for HostRect {}
// SAFETY: as above.
unsafe impl Sync for HostRect {}

/// A region of a device's memory, of the type that its backend chose. Dropping it gives the memory back.
#[derive(Debug)]
pub struct DeviceBuffer(Box<dyn Region>);

/// Every type that a backend may put into a [`DeviceBuffer`].
trait Region: Any + fmt::Debug + Send + Sync {}

impl<R: Any + fmt::Debug + Send + Sync> Region for R {}

impl DeviceBuffer {
    /// Wraps a backend's own buffer, of type `R`.
    #[must_use]
    pub fn new<R: Any + fmt::Debug + Send + Sync>(region: R) -> Self {
        DeviceBuffer(Box::new(region))
    }

    /// The backend's own buffer, of type `R`.
    ///
    /// # Panics
    /// If another backend made the buffer. The engine gives a device its own buffers only.
    #[must_use]
    pub fn get<R: Any>(&self) -> &R {
        let region: &dyn Any = &*self.0;
        region.downcast_ref().unwrap_or_else(|| panic!("{self:?} is no {}", std::any::type_name::<R>()))
    }
}

/// Host memory that a device's transfers read and write directly, without a staging copy.
pub trait PinnedMemory: fmt::Debug + Send + Sync {
    /// Where it begins, aligned for every element type.
    fn ptr(&self) -> *mut u8;
}

/// What a device is given to do.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// As [`Device::write`].
    Write {
        /// The rectangle.
        from: HostRect,
        /// The buffer.
        to: &'a DeviceBuffer,
    },
    /// As [`Device::read`].
    Read {
        /// The buffer.
        from: &'a DeviceBuffer,
        /// The rectangle.
        to: HostRect,
    },
    /// As [`Device::launch`].
    Run {
        /// The instruction.
        instruction: &'a Instruction<Operand<'a>>,
        /// Number of the kernel queue, less than [`DeviceFacts::queues`].
        queue: usize,
    },
}

/// A device: memory, transfers, kernels.
pub trait Device: Any + fmt::Debug + Send + Sync {
    /// What the device is and has.
    fn facts(&self) -> &DeviceFacts;

    /// Memory of `bytes`, aligned for every element type.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), or
    /// [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory) where the host's memory is lacking.
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer>;

    /// Packs a host rectangle into a buffer, column-major with `ld = rows`. On return the rectangle has been read. The device
    /// may still be writing the buffer, but every later method of the device finds it written.
    ///
    /// # Safety
    /// The rectangle may be read and nothing writes it or the buffer, which is the device's, meanwhile.
    ///
    /// # Errors
    /// The transfer failed.
    unsafe fn write(&self, from: HostRect, to: &DeviceBuffer) -> Result<()>;

    /// Unpacks a buffer into a host rectangle; memory between its lines is not written.
    ///
    /// # Safety
    /// The rectangle may be written and nothing else touches it, nor writes the buffer, which is the device's, meanwhile.
    ///
    /// # Errors
    /// The transfer failed.
    unsafe fn read(&self, from: &DeviceBuffer, to: HostRect) -> Result<()>;

    /// Runs an instruction.
    ///
    /// # Safety
    /// Operands may be read and written as the instruction says, nothing conflicting touches them
    /// meanwhile, and their buffers are the device's.
    ///
    /// # Errors
    /// The kernel could not be built or failed.
    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()>;

    /// Runs an instruction, then reads buffers into host rectangles. By default each step is waited for; a backend in which a wait
    /// takes long submits all of them and waits once.
    ///
    /// # Safety
    /// As [`Device::launch`] and [`Device::read`]; the instruction may write the buffers.
    ///
    /// # Errors
    /// As those.
    unsafe fn launch_and_read(&self, instruction: &Instruction<Operand<'_>>, reads: &[(&DeviceBuffer, HostRect)]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe {
            self.launch(instruction)?;
            reads.iter().try_for_each(|&(from, to)| self.read(from, to))
        }
    }

    /// Runs sequences of `length` instructions each. Instructions of one sequence run in order; those of different sequences
    /// do not conflict and may run in any order, or at the same time. By default they run one after the other.
    ///
    /// # Safety
    /// As [`Device::launch`].
    ///
    /// # Errors
    /// As [`Device::launch`]; other sequences may have run.
    unsafe fn launch_sequences(&self, instructions: &[Instruction<Operand<'_>>], length: usize) -> Result<()> {
        let _ = length;
        // SAFETY: as the caller promises.
        instructions.iter().try_for_each(|instruction| unsafe { self.launch(instruction) })
    }

    /// LU of a row-major matrix in host memory, in place, with partial pivoting if `pivoting`: the rectangles are the matrix, its
    /// min(m, n) row indices and its `info`, as of [`Instruction::Getrf`]. `None`, with nothing written, if the device factors
    /// column-major matrices only, which is the default. The facade calls this for the CPU backend only.
    ///
    /// # Safety
    /// The rectangles may be read and written, and nothing else touches them meanwhile.
    ///
    /// # Errors
    /// As [`Device::launch`].
    unsafe fn getrf_by_rows(&self, pivoting: bool, a: HostRect, ipiv: HostRect, info: HostRect) -> Option<Result<()>> {
        let _ = (pivoting, a, ipiv, info);
        None
    }

    /// Gives work to the device and returns when the device has accepted it, which may be long before the work is done.
    /// Kernels of one queue run in the order of submission. A kernel also waits for the kernels of other queues whose tokens
    /// are in `after`: tokens of [`Work::Run`] of this device. The default implementation returns when the work is done, which
    /// suffices for a device without queues of its own.
    ///
    /// # Safety
    /// The contract of [`Device::write`], [`Device::read`] or [`Device::launch`] holds until the token says that the work is
    /// done. Other work on the same memory may be under way if the order of the queue or `after` keeps the two in order.
    ///
    /// # Errors
    /// The device does not accept the work, or the work has failed already. The token reports later failures.
    unsafe fn submit(&self, work: Work<'_>, after: &[&Token]) -> Result<Token> {
        after.iter().try_for_each(|earlier| earlier.wait())?;
        // SAFETY: as the caller promises; what it waits for is done.
        unsafe {
            match work {
                Work::Write { from, to } => self.write(from, to)?,
                Work::Read { from, to } => self.read(from, to)?,
                Work::Run { instruction, .. } => self.launch(instruction)?,
            }
        }
        Ok(Token::DONE)
    }

    /// Why the device is gone for good, if the backend learned of it in another way than by an error of this device. The
    /// engine itself remembers errors of the kind [`DeviceLost`](crate::ErrorKind::DeviceLost).
    fn lost(&self) -> Option<Error> {
        None
    }

    /// Bytes of [`DeviceFacts::memory`] that buffers may not use, since the device holds or reserves them as scratch memory of
    /// its kernels.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Frees the memory that the device keeps for later calls, apart from buffers. Work under way keeps what it uses.
    fn trim(&self) {}

    /// Copies the first `bytes` of `from`, a buffer of `peer`, into `to`, a buffer of this device. `peer` may be this device. The
    /// copy may still run when the method returns; methods of either device that are called later see its result. Returns `None`
    /// if copying through host memory is at least as fast.
    fn copy_from(&self, peer: &dyn Device, from: &DeviceBuffer, to: &DeviceBuffer, bytes: usize) -> Option<Result<()>> {
        let _ = (peer, from, to, bytes);
        None
    }

    /// Host memory of `bytes` that this device's transfers read and write directly, without a staging copy; `None` if
    /// the device has no such memory.
    fn alloc_pinned(&self, bytes: usize) -> Option<Box<dyn PinnedMemory>> {
        let _ = bytes;
        None
    }
}

impl dyn Device {
    /// The device as its backend knows it, if that is a `D`.
    #[must_use]
    pub fn downcast<D: Device>(&self) -> Option<&D> {
        let device: &dyn Any = self;
        device.downcast_ref()
    }
}
