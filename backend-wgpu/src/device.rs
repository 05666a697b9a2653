//! Implements the trait `Device` of the core for wgpu devices.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapidary_core::{
    BufferRect, Device, DeviceBuffer, DeviceFacts, Error, ErrorKind, Feature, HostRect, Instruction, KernelTime, Operand, Pending,
    ProgramCache, Result, StreamQueue, Token, Work, check_wait,
};
use lapidary_kernels::{Database, Dialect, Tuning};

use crate::buffer::{Buffer, Rect};
use crate::conv::view;
use crate::facts::{FEATURES, facts};
use crate::host;
use crate::kernels::Kernels;
use crate::platform::{Found, check, list, preferred_adapter};
use crate::queue::{Queue, Running};
use crate::stream::Reads;
use crate::transfers::Transfers;

#[cfg(feature = "test-hooks")]
mod hooks;

/// Returns the features with which the application should create a device: all features of the adapter that Lapidary can use.
#[must_use]
pub fn required_features(adapter: &wgpu::Adapter) -> wgpu::Features {
    let wanted = FEATURES.iter().fold(wgpu::Features::PIPELINE_CACHE | COHERENT, |all, (feature, _)| all | *feature);
    adapter.features() & (wanted | wgpu::Features::SHADER_F64)
}

/// Feature of wgpu with which a workgroup sees the writes of other workgroups while those workgroups are running.
pub(crate) const COHERENT: wgpu::Features = wgpu::Features::MEMORY_DECORATION_COHERENT;

/// Returns the limits with which the application should create a device: the limits of the adapter.
#[must_use]
pub fn required_limits(adapter: &wgpu::Adapter) -> wgpu::Limits {
    adapter.limits()
}

/// A wgpu device with its queue, its kernels and its transfers.
#[derive(Debug)]
pub struct WgpuDevice {
    facts: Arc<DeviceFacts>,
    cache: Arc<ProgramCache>,
    kernels: Mutex<Kernels>,
    load: Arc<Transfers>,
    store: Arc<Transfers>,
    reads: Reads,
    queue: Arc<Queue>,
}

impl WgpuDevice {
    /// Opens the device `wgpu:index`. If `memory` is given, the registers, matrices and kernels use at most `memory` bytes of
    /// device memory.
    ///
    /// # Errors
    /// Fails if no adapter has the number `index`, or if the adapter returns no device.
    pub fn open(index: usize, memory: Option<usize>, cache: Arc<ProgramCache>) -> Result<Self> {
        let listing = list();
        let found = listing.device(index)?;
        Self::open_found(found, index, required_limits(&found.adapter), memory, cache)
    }

    /// Opens an adapter as the device `wgpu:index` with the limits `limits`, which may be lower than the limits of the adapter.
    pub(crate) fn open_found(
        found: &Found,
        index: usize,
        limits: wgpu::Limits,
        memory: Option<usize>,
        cache: Arc<ProgramCache>,
    ) -> Result<Self> {
        let opening = Self::on_adapter(&found.adapter, limits, format!("wgpu:{index}"), memory, cache);
        host::block_on("open", opening)?
    }

    /// Opens the fast adapter that wgpu or the browser prefers. In a browser this is the only way to open a device. If `memory` is
    /// given, the registers, matrices and kernels use at most `memory` bytes of device memory.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use lapidary_backend_wgpu::WgpuDevice;
    /// use lapidary_core::{ErrorKind, ProgramCache};
    ///
    /// # pollster::block_on(async {
    /// match WgpuDevice::request(None, Arc::new(ProgramCache::new(None))).await {
    ///     Ok(device) => println!("{device:?}"),
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::NoSuchDevice), // no GPU, or a browser without WebGPU
    /// }
    /// # });
    /// ```
    ///
    /// # Errors
    /// There is no adapter (`NoSuchDevice`), or the adapter returns no device.
    pub async fn request(memory: Option<usize>, cache: Arc<ProgramCache>) -> Result<Self> {
        let adapter = preferred_adapter().await?;
        Self::on_adapter(&adapter, required_limits(&adapter), "wgpu".to_owned(), memory, cache).await
    }

    async fn on_adapter(
        adapter: &wgpu::Adapter,
        limits: wgpu::Limits,
        name: String,
        memory: Option<usize>,
        cache: Arc<ProgramCache>,
    ) -> Result<Self> {
        let wanted = wgpu::DeviceDescriptor {
            label: Some("lapidary"),
            required_features: required_features(adapter),
            required_limits: limits,
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        };
        let refused = |error: wgpu::RequestDeviceError| {
            Error::new(ErrorKind::DeviceFailed, "open", error.to_string()).with("device", adapter.get_info().name)
        };
        let (device, queue) = adapter.request_device(&wanted).await.map_err(refused)?;
        // by default, wgpu aborts the program on an error that no error scope catches; this handler ignores the error instead
        device.on_uncaptured_error(Arc::new(|_| {}));
        Self::assemble(device, queue, name, memory, cache)
    }

    /// Wraps the application's own wgpu device and its queue, so that matrices may lie in buffers of the application. The
    /// commands of Lapidary and the commands of the application run in the order in which they are submitted to the queue. The
    /// application should create the device with [`required_features`] and [`required_limits`]. A device that was created with
    /// fewer features and lower limits may lack double precision, may allow only smaller buffers, and may factor matrices more
    /// slowly.
    ///
    /// `from_parts` replaces the device-lost callback of the device, and the application must not set another device-lost
    /// callback afterwards. [`WgpuDevice::lost`] reports the loss of the device. The application must make only one `WgpuDevice`
    /// from each `wgpu::Device`. `from_parts` waits until the queue has finished all submitted work. `from_parts` then runs a
    /// probe, which finds out in at most two seconds whether workgroups may wait for one another. The probe does not run on a
    /// CPU. The probe does not run either if the cache holds the answer of the probe for the device. In a browser, `from_parts` neither
    /// waits nor runs the probe, and does not find out that the queue belongs to another device.
    ///
    /// Calls of routines poll the device, and a poll runs callbacks that the application has registered with the device. A
    /// callback that the application has registered with the device must not call a routine on the machine that uses the device.
    ///
    /// # Errors
    /// Fails if a limit of the device is too low for kernels or transfers, if the device is lost or destroyed, or if the queue
    /// belongs to another device.
    pub fn from_parts(device: wgpu::Device, queue: wgpu::Queue, cache: Arc<ProgramCache>) -> Result<Self> {
        Self::assemble(device, queue, "wgpu".to_owned(), None, cache)
    }

    fn assemble(
        device: wgpu::Device,
        queue: wgpu::Queue,
        name: String,
        memory: Option<usize>,
        cache: Arc<ProgramCache>,
    ) -> Result<Self> {
        check(&device.limits())?;
        let queue = Arc::new(Queue::new(device, queue));
        queue.check()?;
        let facts = Arc::new(facts(&queue, &cache, name, memory));
        let mut kernels = Kernels::new(Arc::clone(&queue), Arc::clone(&facts), Arc::clone(&cache))?;
        if let Some(limit) = memory {
            kernels.limit_memory(limit);
        }
        let kernels = Mutex::new(kernels);
        let load = Arc::new(Transfers::new(Arc::clone(&queue), wgpu::MapMode::Write));
        let store = Arc::new(Transfers::new(Arc::clone(&queue), wgpu::MapMode::Read));
        Ok(WgpuDevice { facts, cache, kernels, load, store, reads: Reads::default(), queue })
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn reads(&self) -> &Reads {
        &self.reads
    }

    pub(crate) fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wraps a buffer of the application that is to hold a matrix of `bytes` bytes. The buffer must belong to the wgpu device
    /// that `self` wraps.
    ///
    /// # Errors
    /// Fails if the buffer is too small for the matrix, is larger than a kernel can address, was created without the usages for
    /// storage and copies, is destroyed, or belongs to another device.
    pub fn adopt(&self, buffer: wgpu::Buffer, bytes: usize) -> Result<Buffer> {
        Buffer::adopt(&self.queue, buffer, bytes)
    }

    /// Submits `instruction`. Returns `None` if the instruction needs no kernel.
    ///
    /// # Safety
    /// The caller upholds the contract of [`Device::submit`] for `instruction`.
    unsafe fn submit_instruction(&self, instruction: &Instruction<Operand<'_>>) -> Result<Option<Running>> {
        // SAFETY: the caller guarantees that `instruction` may access its operands, and that no conflicting access runs at the
        // same time.
        let last = unsafe { self.kernels().run(instruction.dtype(), &instruction.map(view))? };
        Ok(last.map(|submission| Running { queue: Arc::clone(&self.queue), submission, instruction: instruction.name() }))
    }

    /// Returns the program cache that this device uses.
    #[must_use]
    pub fn cache(&self) -> &Arc<ProgramCache> {
        &self.cache
    }

    /// Returns whether `self` and `other` wrap the same wgpu device, so that a copy command of wgpu can copy from a buffer of one
    /// to a buffer of the other.
    fn is_peer_of(&self, other: &WgpuDevice) -> bool {
        self.queue.device() == other.queue.device()
    }

    /// Submits a copy of the first `bytes` bytes of the buffer `from` to the buffer `to`. `bytes` is a multiple of 4.
    fn copy(&self, from: &Buffer, to: &Buffer, bytes: usize) -> Result<()> {
        if from.raw == to.raw {
            // `from` and `to` wrap the same buffer of the application, so there is nothing to copy
            return Ok(());
        }
        self.queue.guarded("copy", |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("copy") });
            encoder.copy_buffer_to_buffer(&from.raw, 0, &to.raw, 0, bytes as u64);
            self.queue.submit(encoder);
        })
    }

    /// Makes the device record the times of its kernels, which [`Device::take_kernel_times`] returns. Each kernel then runs in a pass of
    /// its own, and each instruction is waited for, so that the pauses between kernels are longer. The device keeps the times of at most 2²⁰
    /// kernels.
    ///
    /// # Errors
    /// The device was created without `TIMESTAMP_QUERY`.
    pub fn with_kernel_times(self) -> Result<Self> {
        if !self.facts.has(Feature::Timestamps) {
            let message = "the device was made without TIMESTAMP_QUERY: see required_features";
            return Err(Error::new(ErrorKind::Unsupported, "with_kernel_times", message));
        }
        self.kernels().record_times();
        Ok(self)
    }

    /// Looks up the kernels in `database` instead of the database of this crate.
    #[must_use]
    pub fn with_database(self, database: &Database) -> Self {
        self.kernels().list(Tuning::lookup(database, &self.facts, Dialect::Wgsl));
        self
    }

    /// Limits each wait for a submission to `patience`. If no submission ends within `patience`, the device counts as lost.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        self.queue.set_patience(patience);
        self
    }
}

impl Device for WgpuDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        Buffer::new(&self.queue, bytes).map(DeviceBuffer::new).inspect_err(|error| {
            if error.kind() == ErrorKind::OutOfMemory {
                self.trim();
            }
        })
    }

    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        check_wait("write", host::MAY_WAIT)?;
        // SAFETY: the caller guarantees, by the contract of the trait `Device`, that the operands or the rectangle are valid and
        // that no conflicting access runs at the same time.
        unsafe { self.load.run(from, &Rect::of(to)) }
    }

    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        check_wait("read", host::MAY_WAIT)?;
        // SAFETY: the caller guarantees, by the contract of the trait `Device`, that the operands or the rectangle are valid and
        // that no conflicting access runs at the same time.
        unsafe { self.store.run(to, &Rect::of(from)) }
    }

    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        check_wait("launch", host::MAY_WAIT)?;
        // SAFETY: the caller guarantees, by the contract of the trait `Device`, that the operands or the rectangle are valid and
        // that no conflicting access runs at the same time.
        unsafe { self.submit_instruction(instruction)? }.map_or(Ok(()), |running| running.wait())
    }

    unsafe fn launch_and_read(&self, instructions: &[Instruction<Operand<'_>>], reads: &[(&DeviceBuffer, HostRect)]) -> Result<()> {
        check_wait("launch", host::MAY_WAIT)?;
        let mut running = Vec::new();
        // SAFETY: the caller upholds the contract of `Device::launch_and_read` for the operands and the rectangles. A wgpu device
        // has a single queue, which runs the instructions in order and the copies after them.
        let read = unsafe {
            let mut submit = |instruction| self.submit_instruction(instruction).map(|submitted| running.extend(submitted));
            instructions.iter().try_for_each(&mut submit).and_then(|()| self.store.read_each(reads))
        };
        running.iter().map(Running::wait).fold(Ok(()), Result::and).and(read)
    }

    unsafe fn submit(&self, work: Work<'_>, _: &[&Token]) -> Result<Token> {
        // SAFETY: the caller upholds the contract of `Device::submit` for the operands and the rectangle. A wgpu device has a
        // single queue, which runs kernels and copies in order.
        unsafe {
            Ok(match work {
                Work::Write { from, to } => self.load.begin(from, &Rect::of(to)),
                Work::Read { from, to } => self.store.begin(to, &Rect::of(from)),
                Work::Run { instruction, .. } => self.submit_instruction(instruction)?.map_or(Token::DONE, Token::new),
            })
        }
    }

    fn stream_queue(&self) -> Option<&dyn StreamQueue> {
        Some(self)
    }

    fn lost(&self) -> Option<Error> {
        self.queue.lost()
    }

    fn scratch_bytes(&self) -> usize {
        self.kernels().scratch_bytes()
    }

    fn prefer_kernels(&self, entries: &str) -> Option<Result<()>> {
        Some(self.kernels().prefer(entries))
    }

    fn trim(&self) {
        self.kernels().trim();
        self.load.trim();
        self.store.trim();
    }

    fn take_kernel_times(&self) -> Option<Result<Vec<KernelTime>>> {
        self.kernels().take_times()
    }

    fn copy_from(&self, peer: &dyn Device, from: &DeviceBuffer, to: &DeviceBuffer, bytes: usize) -> Option<Result<()>> {
        let is_peer = peer.downcast::<WgpuDevice>().is_some_and(|peer| self.is_peer_of(peer));
        is_peer.then(|| self.copy(from.get(), to.get(), bytes))
    }
}
