//! A set of devices that work on one call together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lapidary_backend_cpu::{CpuDevice, Path};
#[cfg(feature = "program-cache")]
use lapidary_core::{CacheCounts, ProgramCache};
use lapidary_core::{
    DType, Device, DeviceFacts, DeviceRuntime, Error, ErrorKind, LanePool, MatMut, ProgressListener, Rates, RawMat, Result,
    RunProgress, StreamState, Trace, TraceEvent, Watch,
};

use crate::open::{boxed, open};
use crate::price::speeds::product_rate;
use crate::price::{Listener, Pricing, Records, Tell};
use crate::schedules::Schedules;
use crate::select::Select;
use crate::settings::Settings;

/// Maximum number of floating-point operations of a small call. A small call runs as one kernel of the first device that works on host
/// matrices, since planning the call and waking another device would take longer than the kernel.
pub(crate) const DIRECT_FLOPS: f64 = 6.0e6;

/// A set of devices that work on one call together.
///
/// A `Machine` is a handle: a clone refers to the same machine. Several threads may share a machine. Calls on host matrices that
/// use the same device run one after the other, unless they are small calls or the CPU alone runs them without a plan. A solve with
/// factors that a device keeps waits only for the call that uses the device when the solve begins. Calls that run on the CPU at the
/// same time share its threads. Uploads to the same device run one after the other, and so do kernels in the same queue of a
/// device. Calls on different devices do not wait for each other, unless one of these calls measures the speed of a device. A
/// machine that chooses devices measures each device once for each routine.
///
/// # When memory runs out
/// If a device runs out of memory, the other devices compute its remaining tiles. If no device has memory left, the call starts
/// again with smaller tiles, unless results have been written. If a call fails for lack of memory, [`Error::outputs`] states
/// whether the outputs are unchanged or partly written ([`Outputs`](crate::Outputs)).
#[derive(Clone, Debug)]
pub struct Machine(Arc<Shared>);

/// The state of a machine, which all of its handles share.
#[derive(Debug)]
struct Shared {
    runtimes: Vec<DeviceRuntime>,
    /// Thread pools that no call uses at present.
    pools: Mutex<Vec<LanePool>>,
    settings: Settings,
    schedules: Schedules,
    #[cfg(feature = "program-cache")]
    cache: Arc<ProgramCache>,
    /// The trace that [`Machine::traced`] starts.
    trace: OnceLock<Trace>,
    /// The function that [`Machine::with_progress`] has received.
    progress: OnceLock<ProgressListener>,
    /// The data for the choice of devices by price. `Some` if the selection names no device: the machine then chooses the devices
    /// of each call by price.
    pricing: Option<Pricing>,
    /// The function that [`Machine::explained`] has received.
    listener: OnceLock<Listener>,
    /// The measured speeds of the devices in products ([`Machine::product_rate`]).
    product_rates: Mutex<HashMap<(usize, DType), f64>>,
    /// Whether a call was long although the speeds of its devices were not measured.
    has_long_call: AtomicBool,
    /// A lock for each device. Planned calls, uploads, measurements of speed, `visit_devices`, and calls on resident matrices with
    /// long columns in host memory hold the lock of a device while they count and use its memory.
    locks: Vec<Mutex<()>>,
    /// For each device, the calls that fill new matrices and pivots.
    fills: Vec<Arc<StreamState>>,
    notes: Vec<String>,
}

impl Machine {
    /// Opens the selected devices with default settings.
    ///
    /// # Errors
    /// A device that the selection names by number does not open, or no device of a backend that the selection names opens.
    pub fn open(select: &Select) -> Result<Self> {
        Self::with_settings(select, &Settings::default())
    }

    /// Opens the devices that the environment names, with the settings that the environment names. The environment variables are
    /// `LAPIDARY_DEVICE`, `LAPIDARY_MEMORY_LIMIT`, `LAPIDARY_NB`, `LAPIDARY_REPRODUCIBLE`, `LAPIDARY_CACHE_DIR` and
    /// `LAPIDARY_KERNELS_DIR`.
    ///
    /// # Errors
    /// An environment variable is malformed, or names a device that does not exist.
    pub fn from_env() -> Result<Self> {
        let opened = Self::with_settings(&Select::from_env()?, &Settings::from_env()?);
        opened.map_err(Select::attribute_to_env)
    }

    /// Opens the selected devices with the given settings.
    ///
    /// # Errors
    /// A setting is invalid, or as for [`Machine::open`].
    pub fn with_settings(select: &Select, settings: &Settings) -> Result<Self> {
        settings.check()?;
        let opened = open(select, settings)?;
        let mut shared = Shared {
            notes: opened.notes,
            #[cfg(feature = "program-cache")]
            cache: opened.cache,
            ..Shared::new(opened.devices, settings)
        };
        let chooses_by_price = select.names_no_device() && !settings.reproducible;
        shared.pricing = chooses_by_price.then(|| shared.new_pricing());
        Ok(Self::share(shared))
    }

    /// Makes a machine of OpenCL devices that the application has opened. The machine uses the context and the queue of the
    /// application. The memory limit of each device is the limit with which the application opened the device.
    ///
    /// # Errors
    /// `devices` is empty, or a setting is invalid.
    #[cfg(feature = "opencl")]
    pub fn from_opencl(devices: Vec<crate::opencl::OpenClDevice>, settings: &Settings) -> Result<Self> {
        settings.check()?;
        let first = devices.first().ok_or_else(|| Error::new(ErrorKind::NoSuchDevice, "from_opencl", "no device is given"))?;
        let cache = Arc::clone(first.cache());
        Ok(Self::share(Shared { cache, ..Shared::new(devices.into_iter().map(boxed).collect(), settings) }))
    }

    /// Makes a machine of wgpu devices. Each wgpu device is either opened by [`WgpuDevice::open`](crate::wgpu::WgpuDevice::open)
    /// or made from a device of the application ([`WgpuDevice::from_parts`](crate::wgpu::WgpuDevice::from_parts)).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use lapidary::wgpu::{WgpuDevice, list, required_features, required_limits, wgpu};
    /// use lapidary::{Gemm, Machine, MatMut, MatRef, Settings};
    ///
    /// let listing = list();
    /// let Some(found) = listing.devices.first() else { return Ok(()) }; // no adapter
    /// let descriptor = wgpu::DeviceDescriptor {
    ///     required_features: required_features(&found.adapter),
    ///     required_limits: required_limits(&found.adapter),
    ///     ..Default::default()
    /// };
    /// let (device, queue) = pollster::block_on(found.adapter.request_device(&descriptor))?;
    ///
    /// let settings = Settings::default();
    /// // the application keeps its own handles of the device and the queue
    /// let ours = WgpuDevice::from_parts(device.clone(), queue.clone(), Arc::new(settings.program_cache()))?;
    /// let machine = Machine::from_wgpu(vec![ours], &settings)?;
    /// let (a, mut c) = ([1.0_f32, 1.0, 0.0, 1.0], [0.0; 4]);
    /// let a = MatRef::col_major(&a, 2, 2)?;
    /// machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, 2, 2)?))?; // A²
    /// assert_eq!(c, [1.0, 2.0, 0.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `devices` is empty, or a setting is invalid.
    #[cfg(feature = "wgpu")]
    pub fn from_wgpu(devices: Vec<crate::wgpu::WgpuDevice>, settings: &Settings) -> Result<Self> {
        settings.check()?;
        let first = devices.first().ok_or_else(|| Error::new(ErrorKind::NoSuchDevice, "from_wgpu", "no device is given"))?;
        let cache = Arc::clone(first.cache());
        Ok(Self::share(Shared { cache, ..Shared::new(devices.into_iter().map(boxed).collect(), settings) }))
    }

    /// Makes a machine that computes each instruction by plain loops, as the instruction is defined. A machine that runs plain
    /// loops is slow and serves as a reference for comparisons.
    ///
    /// # Errors
    /// A value in `settings` is invalid.
    pub fn by_definition(settings: &Settings) -> Result<Self> {
        settings.check()?;
        let device = CpuDevice::new(0, settings.memory_limit).with_path(Path::Reference);
        Ok(Self::of(vec![boxed(device)], settings))
    }

    /// Makes a machine of devices of any backend, including backends of the application. Each device states the limit of its
    /// memory in its `DeviceFacts`; [`Settings::memory_limit`] has no effect on the device.
    ///
    /// # Errors
    /// `devices` is empty, or a setting or the facts of a device are invalid.
    pub fn with_devices(devices: Vec<Box<dyn Device>>, settings: &Settings) -> Result<Self> {
        settings.check()?;
        if devices.is_empty() {
            return Err(Error::new(ErrorKind::NoSuchDevice, "with_devices", "no device is given"));
        }
        for facts in devices.iter().map(|device| device.facts()) {
            let refuse = |what: &str, value: f64, least: &str| {
                Err(Error::invalid("with_devices", format!("{}: {what} = {value} is not {least}", facts.name)))
            };
            let Rates { flops, bandwidth, .. } = facts.rates;
            match () {
                () if facts.queues == 0 => refuse("queues", 0.0, "at least 1")?,
                () if flops.is_nan() || flops < 0.0 => refuse("rates.flops", flops, "at least 0")?,
                () if bandwidth.is_nan() || bandwidth < 0.0 => refuse("rates.bandwidth", bandwidth, "at least 0")?,
                () => {}
            }
        }
        Ok(Self::of(devices, settings))
    }

    pub(crate) fn of(devices: Vec<Box<dyn Device>>, settings: &Settings) -> Self {
        Self::share(Shared::new(devices, settings))
    }

    /// Makes a machine that chooses the devices of each call by price.
    #[cfg(test)]
    pub(crate) fn choosing(devices: Vec<Box<dyn Device>>, settings: &Settings) -> Self {
        let shared = Shared::new(devices, settings);
        Self::share(Shared { pricing: Some(shared.new_pricing()), ..shared })
    }

    fn share(shared: Shared) -> Self {
        Machine(Arc::new(shared))
    }

    /// Whether two handles refer to the same machine.
    pub(crate) fn is_same(&self, other: &Machine) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn runtimes(&self) -> &[DeviceRuntime] {
        &self.0.runtimes
    }

    /// Calls `work` with a pool of threads that no other call uses at the same time.
    pub(crate) fn with_lane_pool<R>(&self, work: impl FnOnce(&LanePool) -> R) -> R {
        let pools = || self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = pools().pop();
        let pool = idle.unwrap_or_default();
        let result = work(&pool);
        pools().push(pool);
        result
    }

    pub(crate) fn fills(&self, device: usize) -> &Arc<StreamState> {
        &self.0.fills[device]
    }

    /// The number of floating-point operations of products that a device computes per second, as measured or else as its facts estimate.
    pub(crate) fn product_rate(&self, device: usize, dtype: DType) -> f64 {
        let rates = self.0.product_rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.get(&(device, dtype)).copied().unwrap_or(self.runtimes()[device].facts().rates.flops)
    }

    /// Whether the speed of a device in products of a type has been measured.
    pub(crate) fn has_product_rate(&self, device: usize, dtype: DType) -> bool {
        self.0.product_rates.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&(device, dtype))
    }

    /// Records that a call was long although the speeds of its devices were not measured.
    pub(crate) fn record_long_call(&self) {
        self.0.has_long_call.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_long_call(&self) -> bool {
        self.0.has_long_call.load(Ordering::Relaxed)
    }

    /// Measures the speeds of devices in products of a type, which takes up to a second for each device. A speed that has been measured is not
    /// measured again, and the estimate stands for a speed whose measurement fails. The caller holds the locks of the devices.
    pub(crate) fn measure_rates(&self, devices: &[usize], dtype: DType) {
        for &device in devices {
            let runtime = &self.runtimes()[device];
            if self.has_product_rate(device, dtype) {
                continue;
            }
            runtime.make_room();
            let rate = product_rate(runtime, dtype).unwrap_or(runtime.facts().rates.flops);
            self.set_product_rate(device, dtype, rate);
        }
    }

    /// Sets the speed of a device in products of a type.
    pub(crate) fn set_product_rate(&self, device: usize, dtype: DType, rate: f64) {
        self.0.product_rates.lock().unwrap_or_else(PoisonError::into_inner).insert((device, dtype), rate);
    }

    pub(crate) fn schedules(&self) -> &Schedules {
        &self.0.schedules
    }

    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.0.trace.get()
    }

    pub(crate) fn watch(&self) -> Watch<'_> {
        Watch { trace: self.trace(), progress: self.0.progress.get() }
    }

    pub(crate) fn pricing(&self) -> Option<&Pricing> {
        self.0.pricing.as_ref()
    }

    pub(crate) fn listener(&self) -> Option<&Listener> {
        self.0.listener.get()
    }

    pub(crate) fn listen(&self, tell: Box<Tell>) {
        self.0.listener.get_or_init(|| Listener(tell));
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Blocks until the caller holds the locks of these devices, which give it exclusive use of their memory. The indices of the
    /// devices must ascend, so that calls cannot deadlock.
    pub(crate) fn exclusive(&self, devices: &[usize]) -> Vec<MutexGuard<'_, ()>> {
        debug_assert!(devices.is_sorted());
        let wait = |&device: &usize| self.0.locks[device].lock().unwrap_or_else(PoisonError::into_inner);
        devices.iter().map(wait).collect()
    }

    /// Starts to record the commands of all devices with their times, for all handles of the machine.
    /// [`take_trace`](Machine::take_trace) returns the recorded commands. Small calls, which run as one kernel on host matrices,
    /// are not recorded.
    ///
    /// ```
    /// use lapidary::{Gemm, Machine, MatMut, MatRef, Select, Settings};
    /// // the memory limit makes the machine compute by tiles
    /// let machine = Machine::with_settings(&Select::cpu([0, 1]), &Settings::default().memory_limit(Some(1 << 20)))?.traced();
    /// let (a, mut c) = (vec![1.0; 300 * 300], vec![0.0; 300 * 300]);
    /// let a = MatRef::col_major(&a, 300, 300)?;
    /// machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, 300, 300)?))?;
    /// for event in machine.take_trace() {
    ///     println!("{} {}: {:.6} s to {:.6} s", event.device, event.label, event.start, event.end);
    /// }
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    #[must_use]
    pub fn traced(self) -> Self {
        self.0.trace.get_or_init(Trace::default);
        self
    }

    /// Returns the commands recorded since the previous call of this method. Returns nothing if the machine is not
    /// [traced](Machine::traced).
    pub fn take_trace(&self) -> Vec<TraceEvent> {
        self.trace().map(Trace::take).unwrap_or_default()
    }

    /// From now on, all handles of the machine call `tell` with the progress of each call that runs by a plan: when the call begins and
    /// after each command with floating-point operations. A call may run several plans. The CPU alone, and most calls on resident
    /// matrices, run without a plan, and `tell` is not called. The threads that drive the devices call `tell`, one at a time for each
    /// plan, so that `tell` should return soon. `tell` must not call the machine. If `with_progress` is called more than once, the machine
    /// keeps the first function `tell`.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Select, Settings};
    /// // the memory limit makes the machine compute by tiles
    /// let settings = Settings::default().memory_limit(1 << 20).nb(64);
    /// let machine = Machine::with_settings(&Select::cpu([0, 1]), &settings)?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let machine = machine.with_progress(move |run| tell.send(run.done_flops / run.plan_flops).unwrap());
    /// let mut a: Vec<f64> = (0..300 * 300).map(|i| f64::from(i % 17) + if i % 301 == 0 { 300.0 } else { 0.0 }).collect();
    /// machine.getrf(MatMut::col_major(&mut a, 300, 300)?)?;
    /// let shares: Vec<f64> = told.try_iter().collect();
    /// assert!(shares.len() > 2 && shares[0] == 0.0 && shares[shares.len() - 1] > 0.999);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    #[must_use]
    pub fn with_progress(self, tell: impl Fn(RunProgress) + Send + Sync + 'static) -> Self {
        self.0.progress.get_or_init(|| ProgressListener::new(tell));
        self
    }

    /// Returns how often compiled programs were found in the cache on disk, and how often not.
    #[cfg(feature = "program-cache")]
    #[must_use]
    pub fn cache_counts(&self) -> CacheCounts {
        self.0.cache.counts()
    }

    /// Returns the cache of compiled programs on disk.
    #[cfg(feature = "program-cache")]
    #[must_use]
    pub fn program_cache(&self) -> &Arc<ProgramCache> {
        &self.0.cache
    }

    /// Frees the device memory kept for later calls: copies of matrices of the last call on host matrices, factors kept for the
    /// solves of [`Lu`](crate::Lu), copies of columns such as pivots, and scratch memory of kernels. Also frees the mapped memory through
    /// which wgpu devices copy matrices. A call that runs at the same time as `trim` keeps its memory for later calls when it ends.
    pub fn trim(&self) {
        self.runtimes().iter().for_each(DeviceRuntime::trim);
    }

    /// Returns the facts of the devices, in the order of the selection: the index of a device is its position. With [`Select::all`],
    /// device 0 is the CPU, and the OpenCL devices and the wgpu adapters follow.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// // the first GPU, or the CPU if there is none
    /// let gpu = machine.devices().position(|facts| !facts.is_cpu()).unwrap_or(0);
    /// let stream = machine.stream(gpu)?;
    /// # assert_eq!(stream.device(), gpu);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    pub fn devices(&self) -> impl Iterator<Item = &DeviceFacts> {
        self.runtimes().iter().map(DeviceRuntime::facts)
    }

    /// Calls `visit` with each device, while no planned call runs. The conformance suite tests the devices themselves through
    /// this method. `visit` must not call the machine.
    pub fn visit_devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        let all: Vec<usize> = (0..self.runtimes().len()).collect();
        let _exclusive = self.exclusive(&all);
        self.runtimes().iter().for_each(|runtime| visit(runtime.device()));
    }

    /// Returns the reasons why devices of the selection were not opened, and why entries of the user's tuned kernels were skipped. A
    /// selection without device numbers skips devices that do not open.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }
}

impl Shared {
    fn new(devices: Vec<Box<dyn Device>>, settings: &Settings) -> Self {
        Shared {
            locks: devices.iter().map(|_| Mutex::default()).collect(),
            fills: devices.iter().map(|_| Arc::default()).collect(),
            runtimes: devices.into_iter().map(DeviceRuntime::new).collect(),
            pools: Mutex::default(),
            settings: settings.clone(),
            schedules: Schedules::default(),
            #[cfg(feature = "program-cache")]
            cache: Arc::new(settings.program_cache()),
            trace: OnceLock::new(),
            progress: OnceLock::new(),
            pricing: None,
            listener: OnceLock::new(),
            product_rates: Mutex::default(),
            has_long_call: AtomicBool::new(false),
            notes: Vec::new(),
        }
    }

    fn new_pricing(&self) -> Pricing {
        #[cfg(feature = "program-cache")]
        let records = Records::new(&self.runtimes, Arc::clone(&self.cache));
        #[cfg(not(feature = "program-cache"))]
        let records = Records;
        Pricing::new(&self.runtimes, records)
    }
}

/// Returns a matrix of one column that refers to a slice of indices.
pub(crate) fn column(indices: &mut [i32]) -> Result<RawMat> {
    let rows = indices.len();
    debug_assert_eq!(DType::I32.size(), size_of::<i32>());
    Ok(MatMut::col_major(indices, rows, 1)?.raw())
}

/// Returns a matrix of one column that refers to a slice of indices, for reading only.
pub(crate) fn read_column(indices: &[i32]) -> Result<RawMat> {
    Ok(lapidary_core::MatRef::col_major(indices, indices.len(), 1)?.raw())
}
