//! A kernel call with its arguments, and the trait of queues that run kernels.

use std::sync::Arc;

use lapidary_core::{Conditions, DeviceFacts, Value};

use crate::program::Program;
use crate::scratch::Purpose;
use crate::tuning::Tuning;

/// A matrix as kernels address it: buffer, first element, size and leading dimension.
#[derive(Debug)]
pub struct View<'a, B> {
    /// Buffer that holds the matrix.
    pub buffer: &'a B,
    /// Index of element (0, 0) in the buffer.
    pub at: usize,
    /// Number of rows of the matrix.
    pub rows: usize,
    /// Number of columns of the matrix.
    pub cols: usize,
    /// Leading dimension: the distance between neighbouring columns, in elements.
    pub ld: usize,
}

// implemented by hand, because a derived `Clone` would require `B: Clone`
impl<B> Clone for View<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for View<'_, B> {}

impl<B> View<'_, B> {
    /// Returns the part with `rows` × `cols` elements that begins at element (`row`, `col`).
    #[must_use]
    pub fn sub(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        debug_assert!(row + rows <= self.rows && col + cols <= self.cols);
        View { at: self.element(row, col), rows, cols, ..self }
    }

    /// Returns the index of an element in the buffer.
    #[must_use]
    pub fn element(&self, row: usize, col: usize) -> usize {
        self.at + row + col * self.ld
    }

    /// Returns whether the matrix has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }
}

/// An argument of a kernel. In dialects without 64-bit integers, sizes, positions and strides have 32 bits, which suffice for the
/// largest buffer that a kernel can address.
#[derive(Debug)]
pub enum Arg<'a, B> {
    /// Buffer that the kernel only reads.
    In(&'a B),
    /// Buffer that the kernel only reads, as an image of pixels of [`VECTOR_BYTES`](crate::VECTOR_BYTES) bytes. The first pixel begins
    /// with the buffer. [`Target::can_read_image`] has returned true for the buffer.
    Image(&'a B),
    /// Buffer that the kernel writes and may read.
    Out(&'a B),
    /// Extent, position or flag, as an unsigned integer.
    Size(usize),
    /// Signed distance between two elements, negative if the second element lies before the first one.
    Stride(isize),
    /// Factor (alpha or beta) in double precision.
    F64(f64),
    /// Factor (alpha or beta) in single precision.
    F32(f32),
}

impl<B> Clone for Arg<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Arg<'_, B> {}

impl<'a, B> Arg<'a, B> {
    /// Returns the buffer if the argument is a buffer.
    #[must_use]
    pub fn memory(&self) -> Option<&'a B> {
        match *self {
            Arg::In(buffer) | Arg::Image(buffer) | Arg::Out(buffer) => Some(buffer),
            Arg::Size(_) | Arg::Stride(_) | Arg::F64(_) | Arg::F32(_) => None,
        }
    }

    /// Returns the arguments for a matrix that the kernel reads: buffer, first element, leading dimension.
    pub(crate) fn input(view: View<'a, B>) -> [Self; 3] {
        [Arg::In(view.buffer), Arg::Size(view.at), Arg::Size(view.ld)]
    }

    /// Returns the arguments for a matrix that the kernel reads as an image: buffer, first element, leading dimension.
    pub(crate) fn image(view: View<'a, B>) -> [Self; 3] {
        [Arg::Image(view.buffer), Arg::Size(view.at), Arg::Size(view.ld)]
    }

    /// Returns the arguments for a matrix that the kernel writes: buffer, first element, leading dimension.
    pub(crate) fn output(view: View<'a, B>) -> [Self; 3] {
        [Arg::Out(view.buffer), Arg::Size(view.at), Arg::Size(view.ld)]
    }

    /// Returns the argument for a factor, in the precision of `value`.
    pub(crate) fn factor(value: Value) -> Self {
        match value {
            Value::F64(number) => Arg::F64(number),
            Value::F32(number) => Arg::F32(number),
        }
    }
}

/// A call of one kernel.
#[derive(Debug)]
pub struct Call<'c, 'a, B> {
    /// Program that contains the kernel.
    pub program: Program,
    /// Name of the kernel in the program.
    pub kernel: &'static str,
    /// Number of work-items in each dimension, at least 1. The backend rounds the number up to whole work-groups.
    pub global: [usize; 2],
    /// Arguments in the order in which the kernel text declares them.
    pub args: &'c [Arg<'a, B>],
}

/// A queue of kernels on one device. The device runs the kernels in the order of the launches.
pub trait Target {
    /// Type of a buffer in the device's memory.
    type Buffer;

    /// Returns the facts of the device.
    fn facts(&self) -> &DeviceFacts;

    /// Returns the kernels that the database names for the device.
    fn tuning(&self) -> &Tuning;

    /// Whether the device can run a kernel. A device that compiles a program when the program is first used tries to compile it.
    /// Instructions ask before they launch a kernel for which there is a substitute, and use the next entry of the database if the
    /// device refuses the kernel.
    ///
    /// # Errors
    /// The device failed in another way than by refusing the program.
    fn can_run(&mut self, _program: &Program, _kernel: &'static str) -> lapidary_core::Result<bool> {
        Ok(true)
    }

    /// Whether a kernel can read `buffer` as an image ([`Arg::Image`]) while the kernel writes the buffer `written`. In OpenCL, a kernel must
    /// not write the buffer of an image that it reads. The image covers the buffer up to
    /// [`Limits::image_pixels`](lapidary_core::Limits::image_pixels) pixels. The device makes the image at the first question, and keeps the
    /// image with the buffer.
    ///
    /// # Errors
    /// The device failed in another way than by refusing the image.
    fn can_read_image(&mut self, _buffer: &Self::Buffer, _written: &Self::Buffer) -> lapidary_core::Result<bool> {
        Ok(self.facts().limits.image_pixels > 0)
    }

    /// Tells the device for which operation the next kernels run: the name of an instruction. Within `getrf`, operations are panels
    /// (`getrf`), row exchanges (`laswp`), solves (`trsm`) and updates (`gemm`). A device that records the times of kernels records the
    /// name, too.
    fn begin(&mut self, _operation: &'static str) {}

    /// Returns the conditions under which the current instruction runs.
    fn conditions(&self) -> Conditions {
        Conditions::default()
    }

    /// Enqueues one kernel call.
    ///
    /// # Safety
    /// The arguments match the parameters of the kernel and describe only memory that the kernel may access.
    ///
    /// # Errors
    /// The kernel cannot be compiled, or the device rejects the call.
    unsafe fn launch(&mut self, call: &Call<'_, '_, Self::Buffer>) -> lapidary_core::Result<()>;

    /// Returns scratch memory of at least `bytes` bytes, which is kept for later calls. Kernels that were enqueued with a smaller
    /// buffer keep that buffer. New memory is filled with zeros if [`Purpose::begins_with_zeros`] says so. `bytes` is at most
    /// [`Tuning::max_scratch_bytes`], unless no kernel can run with less memory.
    ///
    /// # Errors
    /// The device cannot allocate the memory.
    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> lapidary_core::Result<Arc<Self::Buffer>>;
}
