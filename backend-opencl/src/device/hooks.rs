//! Methods of [`OpenClDevice`] for tests only. They make the device use kernels that it would not choose itself, transfer small pieces, or
//! fail to allocate memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapidary_core::Result;

use super::OpenClDevice;
use crate::transfers::Transfers;

impl OpenClDevice {
    /// Makes the device use kernels with local memory for products and panels, even if other kernels are faster. Tests call this method so
    /// that the kernels with local memory run on every device.
    ///
    /// # Errors
    /// The smallest tile exceeds a limit of the device.
    pub fn with_tiles(self) -> Result<Self> {
        self.kernels().use_tiles()?;
        Ok(self)
    }

    /// Moves unpinned rectangles through staging memory in pieces of `bytes` bytes, even where the driver
    /// moves them faster directly. Tests call this method to run transfers through staging memory on any device.
    #[must_use]
    pub fn in_pieces(self, bytes: usize) -> Self {
        let in_pieces =
            |transfers: Arc<Transfers>| Arc::new(Arc::into_inner(transfers).expect("nothing is on its way").in_pieces(bytes));
        OpenClDevice { load: in_pieces(self.load), store: in_pieces(self.store), ..self }
    }

    /// Makes memory request number `request`, counted from 0, exceed the memory of any device, so that the driver refuses this
    /// request. Only tests call this method.
    #[must_use]
    pub fn out_of_memory_at(self, request: usize) -> Self {
        OpenClDevice { short: Some(AtomicUsize::new(request)), ..self }
    }

    /// Number of bytes to request from the driver: `bytes`, or `usize::MAX` if a test makes this request fail.
    pub(super) fn asked(&self, bytes: usize) -> usize {
        let is_next = |left: &AtomicUsize| left.fetch_sub(1, Ordering::Relaxed) == 0;
        if self.short.as_ref().is_some_and(is_next) { usize::MAX } else { bytes }
    }
}
