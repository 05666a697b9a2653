//! Counts the bytes that the buffers of a device occupy. Only tests read the counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of bytes that the buffers of a device occupy, and the maximum of this number so far.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Meter {
    /// Returns the number of bytes that are allocated now, and the maximum number that was allocated at any time.
    pub fn read(&self) -> (usize, usize) {
        (self.now.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed))
    }
}

/// The bytes of one buffer. The meter counts them until this value is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Meter>, usize);

impl Counted {
    pub fn new(meter: &Arc<Meter>, bytes: usize) -> Self {
        let now = meter.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        meter.most.fetch_max(now, Ordering::Relaxed);
        Counted(Arc::clone(meter), bytes)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(self.1, Ordering::Relaxed);
    }
}
