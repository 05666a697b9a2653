//! Buffers of a device for copies of columns, such as pivots. The engine keeps the buffers of columns from call to call.

use crate::device::DeviceBuffer;
use crate::error::Result;
use crate::sync::{Arc, Mutex, lock};

/// Maximum total size in bytes of the idle buffers that a device keeps. The pivots of a batch of many small matrices fit in
/// `KEPT` bytes.
const KEPT: usize = 4 << 20;

/// Maximum total size in bytes of the idle buffers that a device with the memory limit `limit` keeps. Idle buffers count against
/// the memory limit of the device.
fn kept_within(limit: Option<usize>) -> usize {
    limit.map_or(KEPT, |limit| (limit / 64).clamp(64 << 10, KEPT))
}

/// A buffer that holds a copy of a column, and the size of the buffer in bytes.
pub(super) type Column = (Arc<DeviceBuffer>, usize);

#[derive(Debug, Default)]
struct Memory {
    idle: Vec<Column>,
    /// Total size in bytes of all buffers for copies of columns, both idle and in use.
    held: usize,
}

/// The buffers of one device for copies of columns.
#[derive(Debug, Default)]
pub(super) struct Columns(Mutex<Memory>);

impl Columns {
    /// Returns the smallest idle buffer of at least `bytes` bytes, or a new buffer from `alloc` if no idle buffer is large enough.
    pub fn take(&self, bytes: usize, alloc: impl FnOnce(usize) -> Result<Arc<DeviceBuffer>>) -> Result<Column> {
        let mut memory = lock(&self.0);
        let fitting = memory.idle.iter().enumerate().filter(|(_, (_, size))| *size >= bytes);
        if let Some((at, _)) = fitting.min_by_key(|(_, (_, size))| *size) {
            return Ok(memory.idle.swap_remove(at));
        }
        drop(memory);
        let buffer = alloc(bytes)?;
        lock(&self.0).held += bytes;
        Ok((buffer, bytes))
    }

    /// Keeps the buffer of `column` for the next call, unless a kernel may still use the buffer (`is_idle` is false) or the idle
    /// buffers would exceed their maximum total size. `limit` is the memory limit of the device.
    pub fn give_back(&self, column: Column, is_idle: bool, limit: Option<usize>) {
        let mut memory = lock(&self.0);
        let idle: usize = memory.idle.iter().map(|(_, size)| size).sum();
        if is_idle && idle + column.1 <= kept_within(limit) {
            memory.idle.push(column);
        } else {
            memory.held -= column.1;
        }
    }

    /// Frees all idle buffers.
    pub fn trim(&self) {
        let mut memory = lock(&self.0);
        let idle = std::mem::take(&mut memory.idle);
        memory.held -= idle.iter().map(|(_, size)| size).sum::<usize>();
        // the idle buffers are freed at the end of the function, after the lock is released
        drop(memory);
    }

    /// Total size in bytes of all buffers for copies of columns, both idle and in use.
    pub fn held(&self) -> usize {
        lock(&self.0).held
    }
}
