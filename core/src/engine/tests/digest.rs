//! A test device whose results change if any command runs out of order.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::TIGHT;
use super::late::{LateQueues, now};
use crate::device::{BufferRect, Device, DeviceBuffer, HostRect, Memory, Operand, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::DeviceFacts;
use crate::instruction::{Access, Instruction};
use crate::scalar::DType;
use crate::token::Token;

/// A device for tests of the order of commands. Each kernel computes a digest of all elements that its instruction reads, and
/// writes each element of the result as a function of this digest. A command that runs out of order changes some result.
#[derive(Debug)]
pub(super) struct DigestDevice {
    pub facts: DeviceFacts,
    pub failure: Option<&'static str>,
    pub panics: bool,
    /// Number of bytes that can still be allocated, which does not depend on the memory limit in `facts`.
    pub left: Arc<AtomicUsize>,
    /// Indices of the commands that fail for lack of memory.
    pub short: Range<usize>,
    pub commands: AtomicUsize,
    /// If `late` is set, the device runs its work only when the engine polls a token or waits for a token.
    pub late: Option<LateQueues>,
}

#[derive(Debug)]
struct Words(Vec<UnsafeCell<u64>>, Arc<AtomicUsize>);

impl Drop for Words {
    fn drop(&mut self) {
        self.1.fetch_add(8 * self.0.len(), Ordering::Relaxed);
    }
}

// SAFETY: only commands of the engine access the words, and the engine never runs two conflicting commands at the same time.
unsafe impl Sync for Words {}

impl DigestDevice {
    pub fn new(memory: Option<usize>) -> Self {
        let facts = DeviceFacts { host_memory: memory.is_none(), memory, ..DeviceFacts::new("digest:0") };
        let left = Arc::new(AtomicUsize::new(usize::MAX / 2));
        DigestDevice { facts, failure: None, panics: false, left, short: 0..0, commands: AtomicUsize::new(0), late: None }
    }

    /// Creates a device that can allocate only `bytes`, although its facts state a memory limit of ten times [`TIGHT`].
    pub fn with_only(bytes: usize) -> Self {
        DigestDevice { left: Arc::new(AtomicUsize::new(bytes)), ..DigestDevice::new(Some(10 * TIGHT)) }
    }

    /// Counts a command, and returns whether this command fails for lack of memory.
    fn is_short(&self) -> bool {
        self.short.contains(&self.commands.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns an error for lack of memory if `short` is true. A transfer that fails for lack of memory has written half of its
/// output.
fn refuse_if(short: bool) -> Result<()> {
    if short { Err(Error::new(ErrorKind::OutOfMemory, "command", "told to be short")) } else { Ok(()) }
}

pub(super) fn mix(digest: u64, value: u64) -> u64 {
    (digest ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
}

pub(super) fn words(buffer: &DeviceBuffer) -> &[UnsafeCell<u64>] {
    &buffer.get::<Words>().0
}

/// An element in host memory or in a buffer.
#[derive(Clone, Copy)]
struct Cell {
    at: *mut u8,
    dtype: DType,
}

impl Cell {
    fn of(base: *mut u8, index: usize, dtype: DType) -> Self {
        Cell { at: base.wrapping_add(index * dtype.size()), dtype }
    }

    /// # Safety
    /// The element may be read.
    unsafe fn get(self) -> u64 {
        // SAFETY: the caller guarantees that the element may be read, and `dtype` states its size.
        unsafe { if self.dtype == DType::I32 { u64::from(*self.at.cast::<u32>()) } else { *self.at.cast::<u64>() } }
    }

    /// # Safety
    /// The element may be written.
    unsafe fn set(self, value: u64) {
        // SAFETY: the caller guarantees that the element may be written, and `dtype` states its size.
        unsafe { if self.dtype == DType::I32 { *self.at.cast::<u32>() = value as u32 } else { *self.at.cast::<u64>() = value } }
    }
}

fn buffer_cell(buffer: &DeviceBuffer, index: usize, dtype: DType) -> Cell {
    let words = words(buffer);
    assert!((index + 1) * dtype.size() <= size_of_val(words), "the buffer has no element {index}");
    Cell::of(words.as_ptr().cast::<u8>().cast_mut(), index, dtype)
}

fn cells(operand: &Operand<'_>) -> Vec<Cell> {
    let Operand { memory, offset, rows, cols, ld, dtype } = *operand;
    let cell = |index: usize| match memory {
        Memory::Host(base) => Cell::of(base.as_ptr(), index, dtype),
        Memory::Buffer(buffer) => buffer_cell(buffer, index, dtype),
    };
    (0..rows * cols).map(|at| cell(offset + at % rows + at / rows * ld)).collect()
}

/// The elements of a host rectangle, each with the element of the rectangle of a buffer to or from which a transfer copies it.
fn pairs<'a>(host: &'a HostRect, own: BufferRect<'a>) -> impl Iterator<Item = [Cell; 2]> + 'a {
    (0..host.rows * host.cols).map(move |at| {
        let (i, j) = (at % host.rows, at / host.rows);
        let on_host = Cell::of(host.origin, i * host.row_stride + j * host.col_stride, host.dtype);
        [on_host, buffer_cell(own.buffer, own.offset + i + j * own.ld, host.dtype)]
    })
}

impl Device for DigestDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes / 8 * 8)).is_err() {
            return Err(Error::new(ErrorKind::OutOfMemory, "alloc", "told to fail"));
        }
        // the memory is filled with nonzero numbers, so that reading an element that was never written changes the digest
        let words = (0..bytes.div_ceil(8)).map(|i| UnsafeCell::new(0xDEAD + i as u64)).collect();
        Ok(DeviceBuffer::new(Words(words, Arc::clone(&self.left))))
    }
    unsafe fn submit(&self, work: Work<'_>, after: &[&Token]) -> Result<Token> {
        // SAFETY: the caller fulfils the safety contract of `submit`.
        unsafe {
            if let Some(late) = &self.late { Ok(late.take(self, work, after)) } else { now(self, work).map(|()| Token::DONE) }
        }
    }
    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        let short = self.is_short();
        for [from, to] in pairs(&from, to).take(from.rows * from.cols / (1 + usize::from(short))) {
            // SAFETY: the test keeps the matrix that contains the host rectangle borrowed, `pairs` has checked that the buffer contains
            // `to`, and the engine runs no conflicting command at the same time.
            unsafe { to.set(from.get()) };
        }
        refuse_if(short)
    }
    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        let short = self.is_short();
        for [to, from] in pairs(&to, from).take(to.rows * to.cols / (1 + usize::from(short))) {
            // SAFETY: the test keeps the matrix that contains the host rectangle borrowed, `pairs` has checked that the buffer contains
            // `from`, and the engine runs no conflicting command at the same time.
            unsafe { to.set(from.get()) };
        }
        refuse_if(short)
    }
    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        assert!(!self.panics, "told to panic");
        if self.failure == Some(instruction.name()) {
            return Err(Error::new(ErrorKind::DeviceFailed, "launch", "told to fail"));
        }
        let short = self.is_short();
        let mut digest = if short { 2 } else { 1 };
        let mut operands = 0..;
        instruction.operands(|o, _| {
            if instruction.reads(operands.next().expect("endless")) {
                // SAFETY: every element of an operand lies in the operand's buffer or host matrix, and no conflicting command runs
                // at the same time.
                cells(&o).iter().for_each(|cell| digest = mix(digest, unsafe { cell.get() }));
            }
        });
        instruction.operands(|o, access| {
            if access == Access::Write {
                for (at, cell) in (0..).zip(cells(&o)) {
                    // SAFETY: every element of an operand lies in the operand's buffer or host matrix, and no conflicting command
                    // runs at the same time.
                    unsafe { cell.set(mix(digest, at)) };
                }
            }
        });
        refuse_if(short)
    }
}
