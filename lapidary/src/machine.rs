//! A set of devices that work on one call together.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lapidary_backend_cpu::{CpuDevice, Path};
use lapidary_core::algorithms::{Problem, gemm, getrf, getrs, laswp, trsm};
#[cfg(feature = "program-cache")]
use lapidary_core::{CacheCounts, ProgramCache};
use lapidary_core::{
    DType, Device, DeviceFacts, DeviceRuntime, Error, ErrorKind, Gemm, Getrf, Getrs, Info, LanePool, Laswp, Layout, MatMut, Rates,
    RawMat, Result, Routine, Scalar, Trace, TraceEvent, Trsm, TrsmMode, flops,
};

use crate::copy::DeviceCopy;
use crate::lu::{Lu, check_system};
use crate::open::{boxed, open};
use crate::price::{Listener, Pricing, Records, Tell};
use crate::schedules::Schedules;
use crate::select::Select;
use crate::settings::Settings;
use crate::singular::{A_IS_FACTORED, B_STAYS, singular};

/// Up to this many operations the call is one kernel of the first device, if that works on host matrices:
/// planning and waking another device would cost more than it could save.
pub(crate) const DIRECT_FLOPS: f64 = 6.0e6;

/// A set of devices that work on one call together.
///
/// A `Machine` is a handle: a clone refers to the same machine. Threads may share it. Calls on host matrices that use the
/// same device run one after the other. Exceptions are calls of a few kernels on the caller's thread: small calls, solves with
/// factors that a device keeps, and all calls of a machine whose only device is the CPU; these share its threads. Uploads to
/// a device run one after the other, and so do kernels in one of its queues. Calls on different devices do not wait for
/// each other, unless one of them measures the speed of a device. A machine that chooses devices measures each device once
/// for a routine.
///
/// # When memory runs out
/// If a device runs out of memory, its remaining tiles go to the other devices. If no device has memory left, the call
/// starts again with smaller tiles, unless results are already written. If that fails too, the context `outputs` of the
/// error is `as they were` or `partly written`.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Shared>);

/// What all handles of a machine share.
#[derive(Debug)]
struct Shared {
    drivers: Vec<DeviceRuntime>,
    /// Idle pools.
    pools: Mutex<Vec<LanePool>>,
    settings: Settings,
    schedules: Schedules,
    #[cfg(feature = "program-cache")]
    cache: Arc<ProgramCache>,
    /// Set by [`Machine::traced`].
    trace: OnceLock<Trace>,
    /// `Some` if the selection names no device: the machine then chooses devices for each call.
    pricing: Option<Pricing>,
    /// Set by [`Machine::explained`].
    listener: OnceLock<Listener>,
    /// For each device: held while its memory is counted and used, by planned calls, calls with long columns, uploads and visits.
    locks: Vec<Mutex<()>>,
    notes: Vec<String>,
}

impl Machine {
    /// Opens the selected devices with default settings.
    ///
    /// # Errors
    /// The selection names no device.
    pub fn open(select: &Select) -> Result<Self> {
        Self::with_settings(select, &Settings::default())
    }

    /// Opens the devices and uses the settings that the environment names:
    /// `LAPIDARY_DEVICE`, `LAPIDARY_MEMORY_LIMIT`, `LAPIDARY_NB`, `LAPIDARY_CACHE_DIR`.
    ///
    /// # Errors
    /// A variable is malformed, or a device does not exist.
    pub fn from_env() -> Result<Self> {
        let opened = Self::with_settings(&Select::from_env()?, &Settings::from_env()?);
        opened.map_err(Select::attribute_to_env)
    }

    /// Opens the selected devices.
    ///
    /// # Errors
    /// The selection names no device, or a setting makes no sense.
    pub fn with_settings(select: &Select, settings: &Settings) -> Result<Self> {
        settings.check()?;
        let opened = open(select, settings)?;
        let mut shared = Shared {
            notes: opened.notes,
            #[cfg(feature = "program-cache")]
            cache: opened.cache,
            ..Shared::new(opened.devices, settings)
        };
        shared.pricing = select.names_no_device().then(|| shared.new_pricing());
        Ok(Self::share(shared))
    }

    /// A machine of OpenCL devices that the application has opened, so that it
    /// shares its context and its queue with them. The memory limit is the one
    /// that the devices were opened with.
    ///
    /// # Errors
    /// No device is given, or a setting makes no sense.
    #[cfg(feature = "opencl")]
    pub fn from_opencl(devices: Vec<crate::opencl::OpenClDevice>, settings: &Settings) -> Result<Self> {
        settings.check()?;
        let first = devices.first().ok_or_else(|| Error::new(ErrorKind::NoSuchDevice, "from_opencl", "no device is given"))?;
        let cache = Arc::clone(first.cache());
        Ok(Self::share(Shared { cache, ..Shared::new(devices.into_iter().map(boxed).collect(), settings) }))
    }

    /// A machine of wgpu devices: opened one by one, or made from the application's own
    /// ([`WgpuDevice::from_parts`](crate::wgpu::WgpuDevice::from_parts)).
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
    /// // the application keeps its own handles of both
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
    /// No device is given, or a setting makes no sense.
    #[cfg(feature = "wgpu")]
    pub fn from_wgpu(devices: Vec<crate::wgpu::WgpuDevice>, settings: &Settings) -> Result<Self> {
        settings.check()?;
        let first = devices.first().ok_or_else(|| Error::new(ErrorKind::NoSuchDevice, "from_wgpu", "no device is given"))?;
        let cache = Arc::clone(first.cache());
        Ok(Self::share(Shared { cache, ..Shared::new(devices.into_iter().map(boxed).collect(), settings) }))
    }

    /// A machine that computes by the definitions of the instructions, in plain
    /// loops: slow, to compare others with.
    ///
    /// # Errors
    /// A setting makes no sense.
    pub fn by_definition(settings: &Settings) -> Result<Self> {
        settings.check()?;
        let device = CpuDevice::new(0, settings.memory_limit).with_path(Path::Reference);
        Ok(Self::of(vec![boxed(device)], settings))
    }

    /// A machine of devices of any backend, the application's own among them. Each device states the limit of its
    /// memory in its `DeviceFacts`; [`Settings::memory_limit`] has no effect on it.
    ///
    /// # Errors
    /// No device is given, or a setting or a device's facts make no sense.
    pub fn with_devices(devices: Vec<Box<dyn Device>>, settings: &Settings) -> Result<Self> {
        settings.check()?;
        if devices.is_empty() {
            return Err(Error::new(ErrorKind::NoSuchDevice, "with_devices", "no device is given"));
        }
        for facts in devices.iter().map(|device| device.facts()) {
            let refuse = |what: &str, value: f64, least: &str| {
                Err(Error::invalid("with_devices", format!("{}: {what} = {value} is not {least}", facts.name)))
            };
            let Rates { flops, bandwidth } = facts.rates;
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

    /// A machine that chooses by price which of the devices take part in a call.
    #[cfg(test)]
    pub(crate) fn choosing(devices: Vec<Box<dyn Device>>, settings: &Settings) -> Self {
        let shared = Shared::new(devices, settings);
        Self::share(Shared { pricing: Some(shared.new_pricing()), ..shared })
    }

    fn share(shared: Shared) -> Self {
        Machine(Arc::new(shared))
    }

    /// Whether both are handles of one machine.
    pub(crate) fn is_same(&self, other: &Machine) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn drivers(&self) -> &[DeviceRuntime] {
        &self.0.drivers
    }

    /// Works with threads that no other call uses.
    pub(crate) fn with_lane_pool<R>(&self, work: impl FnOnce(&LanePool) -> R) -> R {
        let pools = || self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = pools().pop();
        let pool = idle.unwrap_or_default();
        let result = work(&pool);
        pools().push(pool);
        result
    }

    pub(crate) fn schedules(&self) -> &Schedules {
        &self.0.schedules
    }

    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.0.trace.get()
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

    /// Waits for a turn with the memory of devices, whose numbers ascend, so that calls cannot deadlock.
    pub(crate) fn exclusive(&self, devices: &[usize]) -> Vec<MutexGuard<'_, ()>> {
        debug_assert!(devices.is_sorted());
        let wait = |&device: &usize| self.0.locks[device].lock().unwrap_or_else(PoisonError::into_inner);
        devices.iter().map(wait).collect()
    }

    /// Starts to record what the devices do and when, for all handles of the machine; [`take_trace`](Machine::take_trace) returns
    /// the records. A call that is one kernel on small host matrices is not recorded.
    #[must_use]
    pub fn traced(self) -> Self {
        self.0.trace.get_or_init(Trace::default);
        self
    }

    /// What the devices did since the last call of this method; nothing unless the machine is [traced](Machine::traced).
    pub fn take_trace(&self) -> Vec<TraceEvent> {
        self.trace().map(Trace::take).unwrap_or_default()
    }

    /// How often compiled programs were found on disk.
    #[cfg(feature = "program-cache")]
    #[must_use]
    pub fn cache_counts(&self) -> CacheCounts {
        self.0.cache.counts()
    }

    /// The compiled programs on disk.
    #[cfg(feature = "program-cache")]
    #[must_use]
    pub fn program_cache(&self) -> &Arc<ProgramCache> {
        &self.0.cache
    }

    /// Frees the device memory kept for later calls: the copies of the last call on host matrices, factors that serve the solves of
    /// [`Lu`], copies of some columns such as pivots, and scratch memory of kernels. A call that is under way keeps its memory
    /// at its end.
    pub fn trim(&self) {
        self.drivers().iter().for_each(DeviceRuntime::trim);
    }

    /// The facts of the devices.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceFacts> {
        self.drivers().iter().map(DeviceRuntime::facts)
    }

    /// Shows the devices themselves, one after the other, between planned calls: for those who
    /// grade them. `visit` must not call this machine.
    pub fn visit_devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        let all: Vec<usize> = (0..self.drivers().len()).collect();
        let _exclusive = self.exclusive(&all);
        self.drivers().iter().for_each(|driver| visit(driver.device()));
    }

    /// Why devices of the selection are not there: a selection that names no numbers
    /// passes over those that do not open.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// `C ← α·op(A)·op(B) + β·C`.
    ///
    /// # Errors
    /// The shapes do not agree, or a device failed.
    pub fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let (problem, memory) = gemm::normalise(&args.check().map_err(Error::untouched)?);
        if problem.is_empty() {
            return Ok(());
        }
        let (m, n, k) = (problem.m, problem.n, problem.k);
        if let Some(driver) = self.direct(T::DTYPE, flops::gemm(m, n, k), &memory) {
            // SAFETY: checked host memory, uniquely borrowed where it is written.
            return unsafe { driver.launch(&problem.instruction(memory)) };
        }
        self.run(&Problem::Gemm(problem), &memory)
    }

    /// `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹` for a triangular A.
    ///
    /// ```
    /// use lapidary::{Diag, Machine, MatMut, MatRef, Select, Trsm, Uplo};
    /// let machine = Machine::open(&Select::all())?;
    /// let a = [2.0, 7.0, 1.0, 4.0]; // column-major; the upper triangle is read: 2·x + y = 8, 4·y = 8
    /// let mut b = [8.0, 8.0];
    /// machine.trsm(Trsm::new(MatRef::col_major(&a, 2, 2)?, MatMut::col_major(&mut b, 2, 1)?).uplo(Uplo::Upper))?;
    /// assert_eq!(b, [3.0, 2.0]);
    /// // the lower triangle, with ones on the diagonal: x = 3, 7·x + y = 2
    /// machine.trsm(Trsm::new(MatRef::col_major(&a, 2, 2)?, MatMut::col_major(&mut b, 2, 1)?).diag(Diag::Unit))?;
    /// assert_eq!(b, [3.0, -19.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes do not agree, or a device failed.
    pub fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let (problem, memory) = trsm::normalise(&args.check().map_err(Error::untouched)?);
        if problem.is_empty() {
            return Ok(());
        }
        let (order, nrhs) = (problem.order(), problem.nrhs());
        let direct = self.direct(T::DTYPE, flops::trsm(order, nrhs), &memory);
        if let Some(driver) = direct.filter(|_| problem.mode == TrsmMode::Substitution) {
            // SAFETY: checked host memory, uniquely borrowed where it is written.
            return unsafe { driver.launch(&problem.instruction(memory)) };
        }
        self.run(&Problem::Trsm(problem), &memory)
    }

    /// `A = P·L·U` in place. The result tells the first pivot that is exactly zero, if there is
    /// one; the factorisation is completed then too, and is no error.
    ///
    /// # Errors
    /// The arguments do not agree, or a device failed.
    pub fn getrf_into<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<Info> {
        self.factor(args).map(|(info, _)| info)
    }

    /// [`Machine::getrf_into`], and the factors on the device that has computed them, if it has them as a whole.
    fn factor<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<(Info, Option<DeviceCopy>)> {
        let args = args.check().map_err(Error::untouched)?;
        let problem = getrf::Problem::new(&args);
        if problem.order() == 0 {
            return Ok((Info::default(), None));
        }
        let mut info = 0_i32;
        let args = args.into_inner();
        let memory = [args.a.raw(), column(args.ipiv)?, column(std::slice::from_mut(&mut info))?];
        let flops = flops::getrf(problem.m, problem.n);
        let copy = match self.direct(T::DTYPE, flops, &memory).filter(|_| problem.layout == Layout::ColMajor) {
            // SAFETY: checked host memory, uniquely borrowed where it is written.
            Some(driver) => unsafe { driver.launch(&problem.instruction(memory)).map(|()| None)? },
            None => self.run_and_keep(&Problem::Getrf { problem, nb: self.0.settings.nb }, &memory)?,
        };
        // no solve uses factors with a pivot of zero
        Ok((Info::new(usize::try_from(info).expect("info counts rows")), copy.filter(|_| info == 0)))
    }

    /// `A = P·L·U` in place, with what is needed to solve with it.
    ///
    /// # Errors
    /// A has more rows than `i32` counts, or a device failed.
    pub fn getrf<'a, T: Scalar>(&self, mut a: MatMut<'a, T>) -> Result<Lu<'a, T>> {
        let mut ipiv = vec![0; a.rows().min(a.cols())];
        let (info, copy) = self.factor(Getrf::new(a.reborrow(), &mut ipiv))?;
        Ok(Lu::new(self.clone(), a, copy, ipiv, info.get()))
    }

    /// `B ← op(A)⁻¹·B` from the factors of A.
    ///
    /// # Errors
    /// [`ErrorKind::Singular`] if a pivot is exactly zero; B stays as it is. The arguments do not agree, or a
    /// device failed.
    pub fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        self.require_pivots(Routine::Getrs.name(), args.lu)?;
        self.solve_with_pivots(args.into_inner(), None)
    }

    /// [`Machine::getrs`] with factors of which no pivot is zero, and of which a device may have a copy.
    pub(crate) fn solve_with_pivots<T: Scalar>(&self, args: Getrs<'_, T>, copy: Option<&DeviceCopy>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        let (problem, [lu, b]) = getrs::normalise(&args);
        if problem.is_empty() {
            return Ok(());
        }
        let (n, nrhs) = problem.size();
        let memory = [lu, read_column(args.ipiv)?, b];
        if let Some(driver) = self.direct(T::DTYPE, flops::getrs(n, nrhs), &memory) {
            // SAFETY: checked host memory, uniquely borrowed where it is written.
            return problem.instructions(memory).iter().try_for_each(|step| unsafe { driver.launch(step) });
        }
        let mut args = args.into_inner();
        let problem = Problem::Getrs(problem);
        match copy.and_then(|copy| copy.solve(&problem, &mut args)) {
            Some(solved) => solved,
            None => self.run(&problem, &memory),
        }
    }

    /// Exchanges rows of A: row `i` with row `ipiv[i]`, in order or in reverse order.
    ///
    /// # Errors
    /// The arguments do not agree, or a device failed.
    pub fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        let (problem, a) = laswp::normalise(&args);
        if problem.is_empty() {
            return Ok(());
        }
        let memory = [a, read_column(args.ipiv)?];
        self.run(&Problem::Laswp(problem), &memory)
    }

    /// `B ← A⁻¹·B`; A is replaced by its factors.
    ///
    /// # Errors
    /// [`ErrorKind::Singular`] if a pivot is exactly zero: A holds its factors then, and B stays as it is. A is
    /// not square, B has another number of rows, or a device failed.
    pub fn gesv<'a, T: Scalar>(&self, a: MatMut<'a, T>, b: MatMut<'_, T>) -> Result<Lu<'a, T>> {
        check_system(Routine::Gesv.name(), &a.as_ref(), b.rows()).map_err(Error::untouched)?;
        let lu = self.getrf(a)?;
        if lu.info() != 0 {
            return Err(singular(Routine::Gesv.name(), lu.info(), A_IS_FACTORED));
        }
        lu.solve(b).map_err(|error| match error.outputs() {
            Some(B_STAYS) => error.with_outputs(A_IS_FACTORED),
            _ => error.with_outputs("A holds its factors, B is partly written"),
        })?;
        Ok(lu)
    }
}

impl Shared {
    fn new(devices: Vec<Box<dyn Device>>, settings: &Settings) -> Self {
        Shared {
            locks: devices.iter().map(|_| Mutex::default()).collect(),
            drivers: devices.into_iter().map(DeviceRuntime::new).collect(),
            pools: Mutex::default(),
            settings: settings.clone(),
            schedules: Schedules::default(),
            #[cfg(feature = "program-cache")]
            cache: Arc::new(settings.program_cache()),
            trace: OnceLock::new(),
            pricing: None,
            listener: OnceLock::new(),
            notes: Vec::new(),
        }
    }

    fn new_pricing(&self) -> Pricing {
        #[cfg(feature = "program-cache")]
        let records = Records::new(&self.drivers, Arc::clone(&self.cache));
        #[cfg(not(feature = "program-cache"))]
        let records = Records;
        Pricing::new(&self.drivers, records)
    }
}

/// A slice of indices as a matrix of one column.
pub(crate) fn column(indices: &mut [i32]) -> Result<RawMat> {
    let rows = indices.len();
    debug_assert_eq!(DType::I32.size(), size_of::<i32>());
    Ok(MatMut::col_major(indices, rows, 1)?.raw())
}

/// A slice of indices that is only read, as a matrix of one column.
pub(crate) fn read_column(indices: &[i32]) -> Result<RawMat> {
    Ok(lapidary_core::MatRef::col_major(indices, indices.len(), 1)?.raw())
}
