//! A wgpu device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapidary_core::{
    DType, Device, DeviceBuffer, DeviceFacts, Error, ErrorKind, HostRect, Instruction, Operand, Pending, ProgramCache, Result,
    Token, Work,
};
use lapidary_kernels::{Choices, Dialect, Products, Target};

use crate::buffer::Buffer;
use crate::conv::view;
use crate::facts::{FEATURES, facts};
use crate::kernels::Kernels;
use crate::platform::{Found, check, list};
use crate::queue::{Queue, Running};
use crate::transfers::Transfers;

/// The features that a device should be made with: those of ours that the adapter has.
#[must_use]
pub fn required_features(adapter: &wgpu::Adapter) -> wgpu::Features {
    let wanted = FEATURES.iter().fold(wgpu::Features::PIPELINE_CACHE | COHERENT, |all, (feature, _)| all | *feature);
    adapter.features() & (wanted | wgpu::Features::SHADER_F64)
}

/// What groups write is seen by others while they run.
pub(crate) const COHERENT: wgpu::Features = wgpu::Features::MEMORY_DECORATION_COHERENT;

/// The limits that a device should be made with: all that the adapter has.
#[must_use]
pub fn required_limits(adapter: &wgpu::Adapter) -> wgpu::Limits {
    adapter.limits()
}

/// One device with its queue.
#[derive(Debug)]
pub struct WgpuDevice {
    facts: Arc<DeviceFacts>,
    cache: Arc<ProgramCache>,
    kernels: Mutex<Kernels>,
    load: Arc<Transfers>,
    store: Arc<Transfers>,
    queue: Arc<Queue>,
}

impl WgpuDevice {
    /// Opens the device `wgpu:index`, limited to `memory` bytes if given.
    ///
    /// # Errors
    /// There is no such adapter, or it gives no device.
    pub fn open(index: usize, memory: Option<usize>, cache: Arc<ProgramCache>) -> Result<Self> {
        let listing = list();
        let found = listing.device(index)?;
        Self::with_limits(found, index, required_limits(&found.adapter), memory, cache)
    }

    /// Opens an adapter with lower limits than it has.
    ///
    /// # Errors
    /// The adapter gives no such device.
    pub fn with_limits(
        found: &Found,
        index: usize,
        limits: wgpu::Limits,
        memory: Option<usize>,
        cache: Arc<ProgramCache>,
    ) -> Result<Self> {
        let wanted = wgpu::DeviceDescriptor {
            label: Some("lapidary"),
            required_features: required_features(&found.adapter),
            required_limits: limits,
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        };
        let refused = |error: wgpu::RequestDeviceError| {
            Error::new(ErrorKind::DeviceFailed, "open", error.to_string()).with("device", &found.info.name)
        };
        let (device, queue) = pollster::block_on(found.adapter.request_device(&wanted)).map_err(refused)?;
        // errors outside our scopes belong to the application: do not abort
        device.on_uncaptured_error(Arc::new(|_| {}));
        Self::assemble(device, queue, format!("wgpu:{index}"), memory, cache)
    }

    /// Wraps the application's own device and its queue. Matrices may lie in the application's buffers. The work of calls and
    /// the work of the application run in the order in which they are submitted to the queue.
    /// The device should be made with [`required_features`] and [`required_limits`]:
    /// without them it has no double precision, less room and a slower LU.
    ///
    /// This replaces the device-lost callback of the device; set no other one afterwards. [`WgpuDevice::lost`] reports a loss.
    /// Make only one `WgpuDevice` from each `wgpu::Device`. The function waits until the queue has finished its
    /// earlier work. Then a probe finds out whether workgroups may wait for one another, which takes two seconds at most. The
    /// probe does not run on a CPU, nor if the cache holds its answer for the device.
    ///
    /// Calls poll the device, which runs callbacks that the application has registered with it: a callback must not call the
    /// machine.
    ///
    /// # Errors
    /// A limit of the device is too low for any kernel, it is lost or destroyed, or the queue is another device's.
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
        Ok(WgpuDevice { facts, cache, kernels, load, store, queue })
    }

    fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the device's memory that registers, matrices and kernels hold, and the most that they have held at once. An
    /// application's buffers and memory for transfers are not counted.
    #[must_use]
    pub fn allocated(&self) -> (usize, usize) {
        self.queue.meter().read()
    }

    /// Wraps a buffer of the application for a matrix of `bytes` bytes. The buffer belongs to the same device.
    ///
    /// # Errors
    /// The buffer is too small, too large for a kernel, or was not made for storage and copies.
    pub fn adopt(&self, buffer: wgpu::Buffer, bytes: usize) -> Result<Buffer> {
        Buffer::adopt(&self.queue, buffer, bytes)
    }

    /// Runs `instruction` `times` times in a row, and waits once.
    ///
    /// # Safety
    /// As [`Device::launch`].
    pub(crate) unsafe fn launch_times(&self, instruction: &Instruction<Operand<'_>>, times: usize) -> Result<()> {
        // SAFETY: as the caller promises.
        let running = unsafe { self.submit_times(instruction, times)? };
        running.map_or(Ok(()), |running| running.wait())
    }

    /// Submits `instruction` `times` times. `None` if it needs no kernel.
    ///
    /// # Safety
    /// As [`Device::submit`].
    unsafe fn submit_times(&self, instruction: &Instruction<Operand<'_>>, times: usize) -> Result<Option<Running>> {
        // SAFETY: as the caller promises.
        let last = unsafe { self.kernels().run(instruction.dtype(), &instruction.map(view), times)? };
        Ok(last.map(|submission| Running { queue: Arc::clone(&self.queue), submission, instruction: instruction.name() }))
    }

    /// The programs it keeps.
    #[must_use]
    pub fn cache(&self) -> &Arc<ProgramCache> {
        &self.cache
    }

    /// Whether both are one device of wgpu, which then copies between their buffers by itself.
    #[must_use]
    pub fn is_peer_of(&self, other: &WgpuDevice) -> bool {
        self.queue.device() == other.queue.device()
    }

    /// Submits a copy of the beginning of a buffer of the device to another, so many bytes, a multiple of 4.
    fn copy(&self, from: &Buffer, to: &Buffer, bytes: usize) -> Result<()> {
        if from.raw == to.raw {
            // an application's buffer that was wrapped twice
            return Ok(());
        }
        self.queue.guarded("copy", |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("copy") });
            encoder.copy_buffer_to_buffer(&from.raw, 0, &to.raw, 0, bytes as u64);
            self.queue.submit(encoder);
        })
    }

    /// Computes products, panels and exchanges through workgroup memory, and panels by
    /// many small workgroups, even where another way is faster, so that tests reach all.
    ///
    /// # Errors
    /// The device has too little workgroup memory.
    pub fn with_tiles(self) -> Result<Self> {
        let too_small = |reason| Error::new(ErrorKind::Unsupported, "with_tiles", reason).with("device", &self.facts.name);
        let choices = Choices::shared(&self.facts, Dialect::Wgsl).map_err(too_small)?;
        Ok(self.choosing(|Choices { max_scratch_bytes, waits, .. }| Choices {
            strips: 32,
            multi_group_min_rows: 16,
            max_scratch_bytes,
            waits,
            ..choices
        }))
    }

    /// Factors panels by strips in workgroups of `items` invocations, a power of two, or column by column if `items` is less
    /// than 4. Tests use this to reach both kernels.
    ///
    /// # Errors
    /// The device has no such workgroups.
    pub fn with_strips(self, items: usize) -> Result<Self> {
        let choices = self.kernels().choices().with_strips(items, &self.facts.limits);
        let choices = choices.map_err(|reason| Error::invalid("with_strips", reason))?;
        Ok(self.choosing(|_| choices))
    }

    /// Factors panels by strips whose workgroups wait for those that began before them, or are launched
    /// one by one, so that tests reach both. A device that is no processor is asked when it is opened whether they may wait; this
    /// overrides its answer. It is for drivers whose workgroups go on while others wait: others hang, and llvmpipe
    /// ends each wait after 65535 looks, with wrong results.
    ///
    /// # Errors
    /// They are to wait, and the device was made without `MEMORY_DECORATION_COHERENT`.
    pub fn with_waits(self, waits: bool) -> Result<Self> {
        if waits && !self.queue.device().features().contains(COHERENT) {
            let message = "the device was made without MEMORY_DECORATION_COHERENT: see required_features";
            return Err(Error::new(ErrorKind::Unsupported, "with_waits", message));
        }
        Ok(self.choosing(|choices| Choices { waits, ..choices }))
    }

    /// Computes products, in f32 and in f64, in ways that tests or measurements choose.
    ///
    /// # Errors
    /// A way does not fit the device.
    pub fn with_products(self, products: [Products; 2]) -> Result<Self> {
        for (dtype, products) in [DType::F32, DType::F64].into_iter().zip(products) {
            let fits = products.check(dtype, &self.facts.limits);
            fits.map_err(|reason| Error::invalid("with_products", format!("{products:?} in {dtype}: {reason}")))?;
        }
        Ok(self.choosing(|choices| Choices { products, ..choices }))
    }

    fn choosing(self, choose: impl FnOnce(Choices) -> Choices) -> Self {
        let mut kernels = self.kernels();
        let choices = choose(*kernels.choices());
        kernels.use_choices(choices);
        drop(kernels);
        self
    }

    /// Compiles kernels with every check that wgpu can make while they run, so that
    /// tests can compare.
    #[must_use]
    pub fn with_checks(self) -> Self {
        self.kernels().use_checks();
        self
    }

    /// Moves rectangles in pieces of that size, so that tests reach many.
    #[must_use]
    pub fn in_pieces(self, bytes: usize) -> Self {
        let in_pieces =
            |transfers: Arc<Transfers>| Arc::new(Arc::into_inner(transfers).expect("nothing is on its way").in_pieces(bytes));
        WgpuDevice { load: in_pieces(self.load), store: in_pieces(self.store), ..self }
    }

    /// Waits at most that long for what the device was given; after that it counts as lost.
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
                self.kernels().trim();
            }
        })
    }

    unsafe fn write(&self, from: HostRect, to: &DeviceBuffer) -> Result<()> {
        // SAFETY: the contract of the trait.
        unsafe { self.load.run(from, to.get()) }
    }

    unsafe fn read(&self, from: &DeviceBuffer, to: HostRect) -> Result<()> {
        // SAFETY: the contract of the trait.
        unsafe { self.store.run(to, from.get()) }
    }

    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        // SAFETY: the contract of the trait.
        unsafe { self.launch_times(instruction, 1) }
    }

    unsafe fn launch_and_read(&self, instruction: &Instruction<Operand<'_>>, reads: &[(&DeviceBuffer, HostRect)]) -> Result<()> {
        // SAFETY: the contract of the trait; the one queue copies after the kernels.
        unsafe {
            let Some(running) = self.submit_times(instruction, 1)? else { return self.store.read_each(reads) };
            let read = self.store.read_each(reads);
            running.wait().and(read)
        }
    }

    unsafe fn submit(&self, work: Work<'_>, _: &[&Token]) -> Result<Token> {
        // SAFETY: the contract of the trait; the one queue keeps kernels in order.
        unsafe {
            Ok(match work {
                Work::Write { from, to } => self.load.begin(from, to.get()),
                Work::Read { from, to } => self.store.begin(to, from.get()),
                Work::Run { instruction, .. } => self.submit_times(instruction, 1)?.map_or(Token::DONE, Token::new),
            })
        }
    }

    fn lost(&self) -> Option<Error> {
        self.queue.lost()
    }

    fn scratch_bytes(&self) -> usize {
        self.kernels().scratch_bytes()
    }

    fn trim(&self) {
        self.kernels().trim();
    }

    fn copy_from(&self, peer: &dyn Device, from: &DeviceBuffer, to: &DeviceBuffer, bytes: usize) -> Option<Result<()>> {
        let is_peer = peer.downcast::<WgpuDevice>().is_some_and(|peer| self.is_peer_of(peer));
        is_peer.then(|| self.copy(from.get(), to.get(), bytes))
    }
}
