//! The matrices in the memory of one device, by key.

use std::collections::BTreeMap;

use crate::device::DeviceBuffer;
use crate::sync::{Arc, Mutex, lock};

/// Who needs a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The application, until it discards the matrix.
    Application,
    /// Number of calls that use this copy of a host matrix. At 0 the device may free it.
    Calls(usize),
}

#[derive(Debug)]
struct Matrix {
    buffer: Arc<DeviceBuffer>,
    /// Bytes that count against the memory limit: 0 for a buffer that an application owns.
    bytes: usize,
    owner: Owner,
}

/// The matrices in the memory of one device, by key. A key that was made later is greater.
#[derive(Debug, Default)]
pub(super) struct Residents(Mutex<BTreeMap<u64, Matrix>>);

impl Residents {
    /// Adds a matrix of the application.
    pub fn insert(&self, key: u64, buffer: Arc<DeviceBuffer>, bytes: usize) {
        lock(&self.0).insert(key, Matrix { buffer, bytes, owner: Owner::Application });
    }

    /// Adds a copy of a host matrix that no call uses yet.
    pub fn insert_copy(&self, key: u64, buffer: Arc<DeviceBuffer>, bytes: usize) {
        lock(&self.0).insert(key, Matrix { buffer, bytes, owner: Owner::Calls(0) });
    }

    /// The memory of a matrix.
    pub fn get(&self, key: u64) -> Option<Arc<DeviceBuffer>> {
        lock(&self.0).get(&key).map(|matrix| Arc::clone(&matrix.buffer))
    }

    /// Frees a matrix, while the table is locked: what is not in it counts as free memory.
    pub fn free(&self, key: u64) {
        lock(&self.0).remove(&key);
    }

    /// Takes a matrix out of the table.
    pub fn remove(&self, key: u64) -> Option<(Arc<DeviceBuffer>, usize)> {
        lock(&self.0).remove(&key).map(|matrix| (matrix.buffer, matrix.bytes))
    }

    /// Counts one more call that uses a copy. Returns false if the copy was freed.
    pub fn begin_use(&self, key: u64) -> bool {
        let mut matrices = lock(&self.0);
        let Some(Matrix { owner: Owner::Calls(calls), .. }) = matrices.get_mut(&key) else { return false };
        *calls += 1;
        true
    }

    /// Counts one call less that uses a copy.
    pub fn end_use(&self, key: u64) {
        if let Some(Matrix { owner: Owner::Calls(calls), .. }) = lock(&self.0).get_mut(&key) {
            *calls -= 1;
        }
    }

    /// Whether a key is that of a copy.
    pub fn is_copy(&self, key: u64) -> bool {
        lock(&self.0).get(&key).is_some_and(|matrix| matrix.owner != Owner::Application)
    }

    /// Whether there are copies that no call uses.
    pub fn has_idle_copies(&self) -> bool {
        lock(&self.0).values().any(|matrix| matrix.owner == Owner::Calls(0))
    }

    /// Frees unused copies, oldest first, until those that remain take at most `max_bytes`.
    pub fn free_copies(&self, max_bytes: usize) {
        let mut matrices = lock(&self.0);
        let idle = matrices.iter().filter(|(_, matrix)| matrix.owner == Owner::Calls(0));
        let idle: Vec<(u64, usize)> = idle.map(|(&key, matrix)| (key, matrix.bytes)).collect();
        let mut held: usize = idle.iter().map(|(_, bytes)| bytes).sum();
        for (key, bytes) in idle {
            if held > max_bytes {
                held -= bytes;
                // freed while the table is locked: what is not in it counts as free memory
                matrices.remove(&key);
            }
        }
    }

    /// Bytes of the matrices that may not be freed.
    pub fn needed_bytes(&self) -> usize {
        lock(&self.0).values().filter(|matrix| matrix.owner != Owner::Calls(0)).map(|matrix| matrix.bytes).sum()
    }
}
