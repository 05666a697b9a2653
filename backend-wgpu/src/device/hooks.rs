//! Methods of [`WgpuDevice`] for tests only: kernels that the device would not choose itself, lower limits, small pieces of transfers,
//! and a count of allocated bytes.

use std::sync::Arc;

use lapidary_core::{Error, ErrorKind, ProgramCache, Result};
use lapidary_kernels::{Dialect, Target, Tuning};

use super::{COHERENT, WgpuDevice};
use crate::platform::Found;
use crate::transfers::Transfers;

impl WgpuDevice {
    /// Opens an adapter as the device `wgpu:index` with the limits `limits`, which may be lower than the limits of the adapter.
    ///
    /// # Errors
    /// The adapter does not support the limits `limits`.
    pub fn with_limits(
        found: &Found,
        index: usize,
        limits: wgpu::Limits,
        memory: Option<usize>,
        cache: Arc<ProgramCache>,
    ) -> Result<Self> {
        Self::open_found(found, index, limits, memory, cache)
    }

    /// Returns the number of bytes of device memory that registers, matrices and scratch memory occupy now, and the maximum of
    /// this number so far. Buffers of the application and staging memory are not counted.
    #[must_use]
    pub fn allocated(&self) -> (usize, usize) {
        self.queue.meter().read()
    }

    /// Makes the device use kernels with workgroup memory for products, panels and row exchanges, and many small workgroups for
    /// panels, even if other kernels are faster. Tests call this function so that the kernels with workgroup memory run on every
    /// device.
    ///
    /// # Errors
    /// The device has too little workgroup memory.
    pub fn with_tiles(self) -> Result<Self> {
        let tuning = Tuning::shared(&self.facts, Dialect::Wgsl);
        let items = 1 << 256.min(self.facts.limits.work_group).ilog2();
        let groups = format!("strips items=32\ncolumns rows>=16 items={items}");
        let tuning = tuning.preferring(&groups, &self.facts, Dialect::Wgsl);
        let mut tuning = tuning.map_err(|reason| Error::invalid("with_tiles", reason).with("device", &self.facts.name))?;
        let mut kernels = self.kernels();
        tuning.groups_may_wait = kernels.tuning().groups_may_wait;
        kernels.list(tuning);
        drop(kernels);
        Ok(self)
    }

    /// Chooses how the device factors panels by strips. If `groups_may_wait` is set, one launch factors all strips of a panel,
    /// and a workgroup waits for workgroups that began before it. If `groups_may_wait` is not set, each strip has a launch of its
    /// own. Tests call this function so that the kernels with and without waits run on every device. The value of
    /// `groups_may_wait` overrides the answer of the probe. The caller may set `groups_may_wait` only if the driver lets a
    /// workgroup make progress while another workgroup waits. Most drivers that do not guarantee the progress of a workgroup
    /// during the wait of another hang in the wait. The driver llvmpipe ends each wait after 65535 reads, so that the results are
    /// wrong.
    ///
    /// # Errors
    /// `groups_may_wait` is set, and the device was created without `MEMORY_DECORATION_COHERENT`.
    pub fn with_waits(self, groups_may_wait: bool) -> Result<Self> {
        if groups_may_wait && !self.queue.device().features().contains(COHERENT) {
            let message = "the device was made without MEMORY_DECORATION_COHERENT: see required_features";
            return Err(Error::new(ErrorKind::Unsupported, "with_waits", message));
        }
        let mut tuning = self.kernels().tuning().clone();
        tuning.groups_may_wait = groups_may_wait;
        self.kernels().list(tuning);
        Ok(self)
    }

    /// Makes the device compile its kernels with all run-time checks that wgpu offers, such as checks of buffer indices. Tests compare the
    /// results of kernels with checks and of kernels without checks.
    #[must_use]
    pub fn with_checks(self) -> Self {
        self.kernels().use_checks();
        self
    }

    /// Makes the device transfer rectangles in pieces of at most `bytes` bytes, so that the transfers of tests consist of many
    /// pieces.
    #[must_use]
    pub fn in_pieces(self, bytes: usize) -> Self {
        let in_pieces =
            |transfers: Arc<Transfers>| Arc::new(Arc::into_inner(transfers).expect("nothing is on its way").in_pieces(bytes));
        WgpuDevice { load: in_pieces(self.load), store: in_pieces(self.store), ..self }
    }
}
