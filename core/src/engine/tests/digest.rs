//! A device that reveals every command executed out of order.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::TIGHT;
use super::late::{Late, now};
use crate::device::{Device, DeviceBuffer, HostRect, Memory, Operand, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::DeviceFacts;
use crate::instruction::{Access, Instruction};
use crate::token::Token;

/// A device whose kernels write, into each element of a result, a digest of
/// all that the instruction read: any command out of order changes the bits.
#[derive(Debug)]
pub(super) struct DigestDevice {
    pub facts: DeviceFacts,
    pub failure: Option<&'static str>,
    pub panics: bool,
    /// Bytes that can still be allocated, independent of the limit in its facts.
    pub left: Arc<AtomicUsize>,
    /// Numbers of the commands that fail for lack of memory.
    pub short: Range<usize>,
    pub commands: AtomicUsize,
    /// On a late device: work that is done only when a token is polled.
    pub late: Option<Late>,
}

#[derive(Debug)]
struct Words(Vec<UnsafeCell<u64>>, Arc<AtomicUsize>);

impl Drop for Words {
    fn drop(&mut self) {
        self.1.fetch_add(8 * self.0.len(), Ordering::Relaxed);
    }
}

// SAFETY: the engine issues no conflicting commands together.
unsafe impl Sync for Words {}

impl DigestDevice {
    pub fn new(memory: Option<usize>) -> Self {
        let facts = DeviceFacts { host_memory: memory.is_none(), memory, ..DeviceFacts::new("digest:0") };
        let left = Arc::new(AtomicUsize::new(usize::MAX / 2));
        DigestDevice { facts, failure: None, panics: false, left, short: 0..0, commands: AtomicUsize::new(0), late: None }
    }

    /// A device whose facts state plenty of memory.
    pub fn with_only(bytes: usize) -> Self {
        DigestDevice { left: Arc::new(AtomicUsize::new(bytes)), ..DigestDevice::new(Some(10 * TIGHT)) }
    }

    /// Whether the next command has memory; counts the command.
    fn is_short(&self) -> bool {
        self.short.contains(&self.commands.fetch_add(1, Ordering::Relaxed))
    }
}

/// Result of a command that writes only half of its output when memory is short.
fn unless(short: bool) -> Result<()> {
    if short { Err(Error::new(ErrorKind::OutOfMemory, "command", "told to be short")) } else { Ok(()) }
}

pub(super) fn mix(digest: u64, value: u64) -> u64 {
    (digest ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
}

pub(super) fn words(buffer: &DeviceBuffer) -> &[UnsafeCell<u64>] {
    &buffer.get::<Words>().0
}

fn address(operand: &Operand<'_>, i: usize, j: usize) -> *mut u64 {
    let base = match operand.memory {
        Memory::Host(base) => base.as_ptr().cast::<u64>(),
        Memory::Buffer(buffer) => words(buffer).as_ptr().cast::<u64>().cast_mut(),
    };
    base.wrapping_add(operand.offset + i + j * operand.ld)
}

fn cells(operand: &Operand<'_>) -> Vec<*mut u64> {
    let (rows, cols) = (operand.rows, operand.cols);
    (0..rows * cols).map(|at| address(operand, at % rows, at / rows)).collect()
}

fn rect_cell(rect: &HostRect, i: usize, j: usize) -> *mut u64 {
    rect.origin.cast::<u64>().wrapping_add(i * rect.row_stride + j * rect.col_stride)
}

impl Device for DigestDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes / 8 * 8)).is_err() {
            return Err(Error::new(ErrorKind::OutOfMemory, "alloc", "told to fail"));
        }
        // not zero: reading what was never written must be seen
        let words = (0..bytes / 8).map(|i| UnsafeCell::new(0xDEAD + i as u64)).collect();
        Ok(DeviceBuffer::new(Words(words, Arc::clone(&self.left))))
    }
    unsafe fn submit(&self, work: Work<'_>, after: &[&Token]) -> Result<Token> {
        // SAFETY: as the caller promises.
        unsafe {
            if let Some(late) = &self.late { Ok(late.take(self, work, after)) } else { now(self, work).map(|()| Token::DONE) }
        }
    }
    unsafe fn write(&self, from: HostRect, to: &DeviceBuffer) -> Result<()> {
        let short = self.is_short();
        for at in 0..from.rows * from.cols / (1 + usize::from(short)) {
            // SAFETY: a test's matrix of 8-byte elements, lent by the engine.
            unsafe { *words(to)[at].get() = *rect_cell(&from, at % from.rows, at / from.rows) };
        }
        unless(short)
    }
    unsafe fn read(&self, from: &DeviceBuffer, to: HostRect) -> Result<()> {
        let short = self.is_short();
        for at in 0..to.rows * to.cols / (1 + usize::from(short)) {
            // SAFETY: a test's matrix of 8-byte elements, lent by the engine.
            unsafe { *rect_cell(&to, at % to.rows, at / to.rows) = *words(from)[at].get() };
        }
        unless(short)
    }
    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        assert!(!self.panics, "told to panic");
        if self.failure == Some(instruction.name()) {
            return Err(Error::new(ErrorKind::DeviceFailed, "launch", "told to fail"));
        }
        let short = self.is_short();
        let mut digest = if short { 2 } else { 1 };
        let overwrites = matches!(instruction, Instruction::Copy { .. });
        instruction.operands(|o, access| {
            if !(overwrites && access == Access::Write) {
                // SAFETY: operands lie in their memory, and nothing conflicts.
                cells(&o).iter().for_each(|cell| digest = mix(digest, unsafe { **cell }));
            }
        });
        instruction.operands(|o, access| {
            if access == Access::Write {
                for (at, cell) in (0..).zip(cells(&o)) {
                    // SAFETY: as above.
                    unsafe { *cell = mix(digest, at) };
                }
            }
        });
        unless(short)
    }
}
