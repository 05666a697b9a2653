//! The resident matrices of one device, which are found by key.

use std::collections::BTreeMap;

use crate::device::DeviceBuffer;
use crate::sync::{Arc, Mutex, lock};

/// The owner of a resident matrix, which decides when the matrix may be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The application owns the matrix, until the application discards the matrix.
    Application,
    /// The matrix is a copy of a host matrix, and this number of calls use the copy. If no call uses the copy, the device may
    /// free the copy.
    Calls(usize),
}

/// A buffer that several calls may use.
pub(super) type SharedBuffer = Arc<DeviceBuffer>;

#[derive(Debug)]
struct Matrix {
    buffer: Arc<DeviceBuffer>,
    /// Number of bytes that this matrix uses of the device's memory limit. The number is 0 for a buffer that the application
    /// allocated, and for the copy of a column, which `Columns` counts.
    bytes: usize,
    owner: Owner,
}

/// The resident matrices of one device, by key. Of two matrices, the matrix that was added later has the greater key.
#[derive(Debug, Default)]
pub(super) struct Residents(Mutex<BTreeMap<u64, Matrix>>);

impl Residents {
    /// Adds a matrix that the application owns.
    pub fn insert(&self, key: u64, buffer: Arc<DeviceBuffer>, bytes: usize) {
        lock(&self.0).insert(key, Matrix { buffer, bytes, owner: Owner::Application });
    }

    /// Adds a copy of a host matrix. At first no call uses the added copy.
    pub fn insert_copy(&self, key: u64, buffer: Arc<DeviceBuffer>, bytes: usize) {
        lock(&self.0).insert(key, Matrix { buffer, bytes, owner: Owner::Calls(0) });
    }

    /// Returns the buffer of a matrix; `None` if there is no matrix of this key.
    pub fn get(&self, key: u64) -> Option<Arc<DeviceBuffer>> {
        lock(&self.0).get(&key).map(|matrix| Arc::clone(&matrix.buffer))
    }

    /// Frees a matrix while the table is locked, because memory that is not in the table counts as free memory.
    pub fn free(&self, key: u64) {
        lock(&self.0).remove(&key);
    }

    /// Removes a matrix from the table, and returns its buffer and its bytes.
    pub fn remove(&self, key: u64) -> Option<(Arc<DeviceBuffer>, usize)> {
        lock(&self.0).remove(&key).map(|matrix| (matrix.buffer, matrix.bytes))
    }

    /// Increments the number of calls that use a copy of a host matrix. Returns false if the device has already freed the copy.
    pub fn begin_use(&self, key: u64) -> bool {
        let mut matrices = lock(&self.0);
        let Some(Matrix { owner: Owner::Calls(calls), .. }) = matrices.get_mut(&key) else { return false };
        *calls += 1;
        true
    }

    /// Decrements the number of calls that use a copy of a host matrix.
    pub fn end_use(&self, key: u64) {
        if let Some(Matrix { owner: Owner::Calls(calls), .. }) = lock(&self.0).get_mut(&key) {
            *calls -= 1;
        }
    }

    /// Whether this key belongs to a copy of a host matrix.
    pub fn is_copy(&self, key: u64) -> bool {
        lock(&self.0).get(&key).is_some_and(|matrix| matrix.owner != Owner::Application)
    }

    /// Whether the table holds copies that no call uses.
    pub fn has_idle_copies(&self) -> bool {
        lock(&self.0).values().any(|matrix| matrix.owner == Owner::Calls(0))
    }

    /// Frees copies that no call uses, oldest first, until the remaining unused copies take at most `max_bytes`.
    pub fn free_copies(&self, max_bytes: usize) {
        let mut matrices = lock(&self.0);
        let idle = matrices.iter().filter(|(_, matrix)| matrix.owner == Owner::Calls(0));
        let idle: Vec<(u64, usize)> = idle.map(|(&key, matrix)| (key, matrix.bytes)).collect();
        let mut held: usize = idle.iter().map(|(_, bytes)| bytes).sum();
        for (key, bytes) in idle {
            if held > max_bytes {
                held -= bytes;
                // the copy is freed while the table is locked, because memory that is not in the table counts as free memory
                matrices.remove(&key);
            }
        }
    }

    /// Number of bytes of the device's memory limit that the resident matrices use, not counting the copies of host matrices that
    /// no call uses.
    pub fn needed_bytes(&self) -> usize {
        lock(&self.0).values().filter(|matrix| matrix.owner != Owner::Calls(0)).map(|matrix| matrix.bytes).sum()
    }
}
