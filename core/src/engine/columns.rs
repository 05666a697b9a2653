//! Memory for copies of columns, such as pivots, kept from call to call.

use crate::device::DeviceBuffer;
use crate::error::Result;
use crate::sync::{Arc, Mutex, lock};

/// Maximum number of bytes that are kept: the pivots of a batch of many small matrices.
const KEPT: usize = 4 << 20;

/// Maximum number of bytes that are kept under a memory limit, which they count against.
fn kept_within(limit: Option<usize>) -> usize {
    limit.map_or(KEPT, |limit| (limit / 64).clamp(64 << 10, KEPT))
}

/// Memory that holds a column, with its size.
pub(super) type Column = (Arc<DeviceBuffer>, usize);

#[derive(Debug, Default)]
struct Memory {
    idle: Vec<Column>,
    /// Bytes of all columns, idle or not.
    held: usize,
}

/// Memory for copies of columns.
#[derive(Debug, Default)]
pub(super) struct Columns(Mutex<Memory>);

impl Columns {
    /// Memory of at least so many bytes: the smallest that is idle, or new memory by `alloc`.
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

    /// Keeps a column's memory for the next call, unless a kernel may still use it or too much would be kept. `limit` is the
    /// memory limit of the device.
    pub fn give_back(&self, column: Column, is_idle: bool, limit: Option<usize>) {
        let mut memory = lock(&self.0);
        let idle: usize = memory.idle.iter().map(|(_, size)| size).sum();
        if is_idle && idle + column.1 <= kept_within(limit) {
            memory.idle.push(column);
        } else {
            memory.held -= column.1;
        }
    }

    /// Gives up what is idle.
    pub fn trim(&self) {
        let mut memory = lock(&self.0);
        let idle = std::mem::take(&mut memory.idle);
        memory.held -= idle.iter().map(|(_, size)| size).sum::<usize>();
        // freed after the lock is released
        drop(memory);
    }

    /// Bytes of all columns.
    pub fn held(&self) -> usize {
        lock(&self.0).held
    }
}
