//! A kernel with its arguments, and what runs it.

use std::sync::Arc;

use lapidary_core::{DeviceFacts, Value};

use crate::choices::Choices;
use crate::program::Program;
use crate::scratch::Purpose;

/// A matrix as kernels take it: memory, first element, leading dimension.
#[derive(Debug)]
pub struct View<'a, B> {
    /// The memory.
    pub buffer: &'a B,
    /// Elements before element (0, 0).
    pub at: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements between neighbouring columns.
    pub ld: usize,
}

// derived, these would ask for `B: Clone`
impl<B> Clone for View<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for View<'_, B> {}

impl<B> View<'_, B> {
    /// The rectangle `rows` × `cols` at (`row`, `col`).
    #[must_use]
    pub fn sub(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        debug_assert!(row + rows <= self.rows && col + cols <= self.cols);
        View { at: self.element(row, col), rows, cols, ..self }
    }

    /// Where an element lies.
    #[must_use]
    pub fn element(&self, row: usize, col: usize) -> usize {
        self.at + row + col * self.ld
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }
}

/// An argument of a kernel. Dialects without 64-bit integers take sizes, positions
/// and strides in 32 bits: what they address is bounded by their buffers.
#[derive(Debug)]
pub enum Arg<'a, B> {
    /// Memory that is read.
    In(&'a B),
    /// Memory that is written, and perhaps read.
    Out(&'a B),
    /// An extent, a position or a flag.
    Size(usize),
    /// A distance, backwards if negative.
    Stride(isize),
    /// A factor in double precision.
    F64(f64),
    /// A factor in single precision.
    F32(f32),
}

impl<B> Clone for Arg<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Arg<'_, B> {}

impl<'a, B> Arg<'a, B> {
    /// The memory, if it is an operand in memory.
    #[must_use]
    pub fn memory(&self) -> Option<&'a B> {
        match *self {
            Arg::In(buffer) | Arg::Out(buffer) => Some(buffer),
            Arg::Size(_) | Arg::Stride(_) | Arg::F64(_) | Arg::F32(_) => None,
        }
    }

    /// Memory, first element, leading dimension of a matrix that is read.
    pub(crate) fn input(view: View<'a, B>) -> [Self; 3] {
        [Arg::In(view.buffer), Arg::Size(view.at), Arg::Size(view.ld)]
    }

    /// The same of a matrix that is written.
    pub(crate) fn output(view: View<'a, B>) -> [Self; 3] {
        [Arg::Out(view.buffer), Arg::Size(view.at), Arg::Size(view.ld)]
    }

    /// A factor in its own precision.
    pub(crate) fn factor(value: Value) -> Self {
        match value {
            Value::F64(number) => Arg::F64(number),
            Value::F32(number) => Arg::F32(number),
        }
    }
}

/// A kernel to run.
#[derive(Debug)]
pub struct Call<'c, 'a, B> {
    /// The program that holds it.
    pub program: Program,
    /// Its name there.
    pub kernel: &'static str,
    /// Work-items in each dimension, to be rounded up to whole groups; not zero.
    pub global: [usize; 2],
    /// The arguments in the order of the kernel's text.
    pub args: &'c [Arg<'a, B>],
}

/// A device's queue of kernels, which run in order.
pub trait Target {
    /// The device's memory.
    type Buffer;

    /// The device's facts.
    fn facts(&self) -> &DeviceFacts;

    /// Which kernels suit the device.
    fn choices(&self) -> &Choices;

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// The arguments are those of the kernel and reach only memory that it may touch.
    ///
    /// # Errors
    /// The kernel cannot be made, or the device refuses.
    unsafe fn launch(&mut self, call: &Call<'_, '_, Self::Buffer>) -> lapidary_core::Result<()>;

    /// Scratch memory of at least `bytes`, kept for the next call. Kernels that were enqueued with a smaller buffer keep that
    /// buffer. New memory for [`Purpose::StripCounters`] is filled with zeros. `bytes` is at most
    /// [`Choices::max_scratch_bytes`] unless no kernel can do with less.
    ///
    /// # Errors
    /// The device has no memory left.
    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> lapidary_core::Result<Arc<Self::Buffer>>;
}
