//! Tests of the choice of devices by price, with devices that are slow or fail.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapidary_core::{
    BufferRect, Device, DeviceBuffer, DeviceFacts, Error, ErrorKind, Gemm, HostRect, Instruction, MatMut, MatRef, Operand, Result,
};

use super::runs::RUNS_KEPT;
use super::{Bucket, Explanation, HostCall, Price, Priced, PricedSet, Problem, RawMat, Reason, hardware, speeds};
use crate::open::boxed;
use crate::{DType, Machine, Settings};

mod small;

/// Order of the matrices in the products of these tests. A product of this order is not a small call, so it is priced.
const N: usize = 240;

/// A device that computes nothing and sleeps for a given time in each launch.
#[derive(Clone, Debug)]
struct Paced {
    facts: DeviceFacts,
    launch: Duration,
    launches: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    /// The error that all further requests return, if any.
    failure: Arc<Mutex<Option<ErrorKind>>>,
    /// Free bytes of device memory. Devices that are the same hardware share this counter.
    free: Arc<Mutex<usize>>,
}

/// A buffer of a paced device: its size in bytes, and the counter of free bytes.
#[derive(Debug)]
struct Bytes(usize, Arc<Mutex<usize>>);

impl Drop for Bytes {
    fn drop(&mut self) {
        *self.1.lock().unwrap() += self.0;
    }
}

impl Paced {
    fn new(name: &str, launch: Duration) -> Self {
        let mut facts = DeviceFacts::new(name);
        facts.dtypes = vec![DType::F32, DType::F64];
        facts.memory = Some(64 << 20);
        facts.identity.model = "of tests".into();
        Paced {
            facts,
            launch,
            launches: Arc::default(),
            requests: Arc::default(),
            failure: Arc::default(),
            free: Arc::new(Mutex::new(64 << 20)),
        }
    }

    /// The same device with another driver version.
    fn with_driver(mut self, version: &str) -> Self {
        self.facts.identity.driver = version.into();
        self
    }

    fn launches(&self) -> usize {
        self.launches.load(Ordering::Relaxed)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn fail(&self, kind: impl Into<Option<ErrorKind>>) {
        *self.failure.lock().unwrap() = kind.into();
    }

    fn request(&self) -> Result<()> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.failure.lock().unwrap().map_or(Ok(()), |kind| {
            // one call makes several requests; each request that fails sleeps for 5 ms
            std::thread::sleep(Duration::from_millis(5));
            Err(Error::new(kind, "paced", "told to fail"))
        })
    }
}

impl Device for Paced {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.request()?;
        let mut free = self.free.lock().unwrap();
        *free = free.checked_sub(bytes).ok_or_else(|| Error::new(ErrorKind::OutOfMemory, "paced", "nothing is left"))?;
        Ok(DeviceBuffer::new(Bytes(bytes, Arc::clone(&self.free))))
    }
    unsafe fn write(&self, _: HostRect, _: BufferRect<'_>) -> Result<()> {
        self.request()
    }
    unsafe fn read(&self, _: BufferRect<'_>, _: HostRect) -> Result<()> {
        self.request()
    }
    unsafe fn launch(&self, _: &Instruction<Operand<'_>>) -> Result<()> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.launch);
        self.request()
    }
}

/// Returns a slow and a fast device that are different hardware.
fn slow_and_fast() -> [Paced; 2] {
    let mut devices = [Paced::new("paced:0", Duration::from_millis(60)), Paced::new("paced:1", Duration::ZERO)];
    devices[1].facts.identity.model = "of more tests".into();
    devices
}

fn machine(devices: &[Paced], cache: &Path) -> Machine {
    let settings = Settings { cache_dir: Some(cache.to_owned()), ..Settings::default() };
    Machine::choosing(devices.iter().cloned().map(boxed).collect(), &settings)
}

/// Multiplies two matrices of ones of order N.
fn product(machine: &Machine) -> Result<()> {
    with_product(N, |args| machine.gemm(args))
}

fn with_product<R>(n: usize, call: impl FnOnce(Gemm<'_, f64>) -> R) -> R {
    let (ones, mut c) = (vec![1.0; n * n], vec![0.0; n * n]);
    let a = MatRef::col_major(&ones, n, n).unwrap();
    call(Gemm::new(a, a, MatMut::col_major(&mut c, n, n).unwrap()))
}

fn normalised(args: Gemm<'_, f64>) -> (Problem, Vec<RawMat>) {
    let (problem, memory) = lapidary_core::algorithms::gemm::normalise(&args.check().unwrap());
    (Problem::Gemm(problem), memory.to_vec())
}

/// Prices a product on devices 0 and 1 of the machine.
fn priced(machine: &Machine, args: Gemm<'_, f64>) -> Priced {
    let (problem, memory) = normalised(args);
    let call = HostCall { machine, problem: &problem, memory: &memory, capable: &[0, 1] };
    machine.pricing().unwrap().price(&call)
}

/// Returns the number of launches on each device while `work` runs.
fn launches(devices: &[Paced], work: impl FnOnce()) -> Vec<usize> {
    let before: Vec<usize> = devices.iter().map(Paced::launches).collect();
    work();
    devices.iter().zip(before).map(|(device, before)| device.launches() - before).collect()
}

#[test]
fn the_fastest_device_takes_the_call() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let machine = machine(&devices, folder.path());
    let explanation = with_product(N, |args| machine.explain(args)).unwrap();
    assert_eq!((&explanation.devices[..], explanation.reason), (&["paced:1".to_owned()][..], Reason::Price));
    let of = |name: &str| explanation.considered.iter().find(|set| set.devices == [name]).unwrap();
    assert!(of("paced:0").seconds > 5.0 * of("paced:1").seconds && of("paced:0").runs == 0, "{explanation}");
    assert_eq!(launches(&devices, || product(&machine).unwrap())[0], 0);
}

/// If the memory limit is lower than a measurement needs, no device is measured twice, and the first device runs the calls.
#[test]
fn devices_with_too_little_memory_to_be_measured_are_not_measured_again() {
    let mut devices = slow_and_fast();
    devices.iter_mut().for_each(|device| device.facts.memory = Some(speeds::LEAST_MEMORY - 1));
    let folder = tempfile::tempdir().unwrap();
    let machine = machine(&devices, folder.path());
    let explanation = with_product(N, |args| machine.explain(args)).unwrap();
    assert_eq!((&explanation.devices[..], explanation.reason), (&["paced:0".to_owned()][..], Reason::Unmeasured));
    let before = devices.each_ref().map(Paced::requests);
    assert_eq!(launches(&devices, || product(&machine).unwrap())[1], 0);
    let after = devices.each_ref().map(Paced::requests);
    assert!(after[0] > before[0] && after[1] == before[1], "{before:?} {after:?}");
}

/// The first run of a size may include the compilation of kernels for this size.
#[test]
fn the_first_run_of_each_size_does_not_count() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let machine = machine(&devices, folder.path());
    let runs = |n| {
        with_product(n, |args| machine.gemm(args)).unwrap();
        let explanation = with_product(n, |args| machine.explain(args)).unwrap();
        explanation.considered.iter().find(|set| set.devices == ["paced:1"]).unwrap().runs
    };
    assert_eq!([N, N, N, 2 * N, 2 * N].map(runs), [0, 1, 2, 0, 1]);
}

/// The time of a call is added to `seconds_on_other_sets` of every set of devices that did not run the call.
#[test]
fn calls_pass_over_other_devices() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let machine = machine(&devices, folder.path());
    (0..3).for_each(|_| product(&machine).unwrap());
    let prices = with_product(N, |args| priced(&machine, args)).prices;
    let seconds_on_other_sets =
        [0, 1].map(|device| prices.iter().find(|price| price.devices == [device]).unwrap().seconds_on_other_sets);
    assert!(seconds_on_other_sets[0] > 0.0 && seconds_on_other_sets[1] == 0.0, "{seconds_on_other_sets:?}");
}

/// The times of calls that reuse a cached choice of devices are recorded when the next call is priced.
#[test]
fn runs_on_cached_devices_are_recorded() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let machine = machine(&devices, folder.path());
    let seconds_on_other_sets = || {
        let prices = with_product(N, |args| priced(&machine, args)).prices;
        prices.iter().find(|price| price.devices == [0]).unwrap().seconds_on_other_sets
    };
    // the time of the first call is not recorded
    (0..=RUNS_KEPT).for_each(|_| product(&machine).unwrap());
    let before = seconds_on_other_sets();
    let reason = || with_product(N, |args| machine.explain(args)).unwrap().reason;
    assert_eq!(reason(), Reason::Price, "an explanation caches no choice");
    // The next call is priced, and its choice of devices is cached.
    product(&machine).unwrap();
    assert_eq!(reason(), Reason::Cached);
    for calls in 1..=3 {
        product(&machine).unwrap();
        assert_eq!(machine.pricing().unwrap().cache().ended.len(), calls, "the choice is reused");
    }
    assert!(seconds_on_other_sets() > before);
    (3..8).for_each(|_| product(&machine).unwrap());
    assert_eq!(reason(), Reason::Price, "it is reused for eight calls");
    product(&machine).unwrap();
    assert_eq!(reason(), Reason::Cached);
    devices[1].fail(ErrorKind::DeviceFailed);
    product(&machine).unwrap_err();
    devices[1].fail(None);
    assert_eq!(reason(), Reason::Price, "an error that is returned clears the cache");
    product(&machine).unwrap();
    assert_eq!(reason(), Reason::Cached);
    devices[1].fail(ErrorKind::DeviceLost);
    product(&machine).unwrap();
    let (problem, _) = with_product(N, normalised);
    let cache = machine.pricing().unwrap().cache();
    assert!(cache.price(&problem, &[0, 1]).is_none(), "so does one after which others take over");
}

/// An explanation names cached devices that have no price any more, as long as calls reuse the cached choice of devices.
#[test]
fn cached_devices_without_a_price_are_explained() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let machine = machine(&devices, folder.path());
    (0..RUNS_KEPT + 2).for_each(|_| product(&machine).unwrap());
    machine.pricing().unwrap().state().speeds[1] = super::Speed::Failed;
    let explanation = with_product(N, |args| machine.explain(args)).unwrap();
    assert_eq!((explanation.reason, &explanation.devices[..]), (Reason::Cached, &["paced:1".to_owned()][..]), "{explanation}");
}

/// If each device alone took seven times its estimate, the price of both devices together is also multiplied by seven.
#[test]
fn runs_of_devices_alone_correct_the_price_of_both() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let machine = machine(&devices, folder.path());
    let prices = || with_product(N, |args| priced(&machine, args)).prices;
    let both = |prices: &[Price]| prices.iter().find(|price| price.devices.len() == 2).map(|price| price.seconds).unwrap();
    let before = both(&prices());
    for device in [0, 1] {
        let problem = with_product(N, |args| normalised(args).0);
        machine.pricing().unwrap().state().set(&[device]).runs.add(Bucket::of(&problem), 7.0);
    }
    assert!((both(&prices()) / before - 7.0).abs() < 1e-6);
}

/// The listener receives an explanation of each call that is not small, from all handles of the machine.
#[test]
fn a_listener_is_told_of_each_call() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let machine = machine(&devices, folder.path());
    let explained = machine.clone().explained(move |explanation| listener.lock().unwrap().push(explanation.call.clone()));
    product(&machine).unwrap();
    product(&explained).unwrap();
    assert_eq!(*heard.lock().unwrap(), ["gemm f64 m=240 n=240 k=240"; 2]);
}

#[test]
fn others_take_over_from_a_device_that_is_lost_or_out_of_memory() {
    for kind in [ErrorKind::DeviceLost, ErrorKind::OutOfMemory] {
        let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
        let machine = machine(&devices, folder.path());
        product(&machine).unwrap();
        devices[1].fail(kind);
        assert!(launches(&devices, || product(&machine).unwrap())[0] > 0, "{kind:?}");
        // the time of the whole call is recorded as a run of the failed device
        (0..4).for_each(|_| product(&machine).unwrap());
        assert_eq!(with_product(N, |args| machine.explain(args)).unwrap().devices, ["paced:0"], "{kind:?}");
        devices[0].fail(kind);
        assert_eq!(product(&machine).unwrap_err().kind(), kind);
    }
}

/// The time of the first call of a size is not recorded, except for a device that failed in this call.
#[test]
fn the_first_run_counts_if_the_device_fails() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let machine = machine(&devices, folder.path());
    let explain = || with_product(N, |args| machine.explain(args)).unwrap();
    assert_eq!(explain().devices, ["paced:1"], "measured before it fails");
    devices[1].fail(ErrorKind::OutOfMemory);
    product(&machine).unwrap();
    let runs = explain().considered.into_iter().map(|set| (set.devices, set.runs));
    let of_one: Vec<_> = runs.filter(|(devices, _)| devices.len() == 1).map(|(devices, runs)| (devices[0].clone(), runs)).collect();
    assert!(of_one.contains(&("paced:1".to_owned(), 1)) && of_one.contains(&("paced:0".to_owned(), 0)), "{of_one:?}");
}

#[test]
fn a_device_that_fails_otherwise_is_an_error_of_the_call() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let machine = machine(&devices, folder.path());
    product(&machine).unwrap();
    devices[1].fail(ErrorKind::DeviceFailed);
    assert_eq!(product(&machine).unwrap_err().kind(), ErrorKind::DeviceFailed);
}

/// A device that fails while its speed is measured takes part in no call. If no device can be measured, calls run without prices
/// and return the error of the device.
#[test]
fn a_device_that_cannot_be_measured_is_left_out() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    devices[1].fail(ErrorKind::DeviceFailed);
    let only_slow = machine(&devices, folder.path());
    let explanation = with_product(N, |args| only_slow.explain(args)).unwrap();
    assert_eq!(explanation.devices, ["paced:0"]);
    product(&only_slow).unwrap();
    devices[0].fail(ErrorKind::DeviceFailed);
    let none = machine(&devices, tempfile::tempdir().unwrap().path());
    assert_eq!(product(&none).unwrap_err().kind(), ErrorKind::DeviceFailed);
}

/// Speeds are measured once for each driver version. If the stored record of a device is damaged, the speeds of the device are
/// measured again.
#[cfg(feature = "program-cache")]
#[test]
fn speeds_are_kept_for_a_driver() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let explain = |devices: &[Paced]| {
        launches(devices, || {
            with_product(N, |args| machine(devices, folder.path()).explain(args)).unwrap();
        })
    };
    assert!(explain(&devices).iter().all(|&launches| launches > 0), "measured");
    assert_eq!(explain(&devices), [0, 0], "kept");
    let newer = devices.clone().map(|device| device.with_driver("2.0"));
    assert!(explain(&newer).iter().all(|&launches| launches > 0), "measured for another driver");
    assert_eq!(explain(&devices), [0, 0], "kept beside");
    let mut damaged = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        damaged += 1;
    }
    assert!(damaged >= 4, "{damaged} records");
    assert!(explain(&devices).iter().all(|&launches| launches > 0), "measured again");
    assert_eq!(explain(&devices), [0, 0], "kept again");
}

/// A process loads the run times that an earlier process has recorded.
#[cfg(feature = "program-cache")]
#[test]
fn runs_are_kept() {
    let (devices, folder) = (slow_and_fast(), tempfile::tempdir().unwrap());
    let runs = |machine: &Machine| with_product(N, |args| machine.explain(args)).unwrap().considered[0].runs;
    let first = machine(&devices, folder.path());
    assert_eq!(runs(&first), 0);
    (0..4).for_each(|_| product(&first).unwrap());
    assert_eq!(runs(&first), super::ENOUGH_RUNS, "the first of four runs does not count");
    assert_eq!(runs(&machine(&devices, folder.path())), super::ENOUGH_RUNS);
    // If a size has fewer than `ENOUGH_RUNS` run times, its run times are saved when the last handle of the machine is dropped.
    (0..2).for_each(|_| with_product(2 * N, |args| first.gemm(args)).unwrap());
    let sizes = || {
        let next = machine(&devices, folder.path());
        runs(&next);
        next.pricing().unwrap().state().sets.iter().map(|set| set.runs.0.len()).max()
    };
    drop(first.clone());
    assert_eq!(sizes(), Some(1), "another handle is left");
    drop(first);
    assert_eq!(sizes(), Some(2));
}

/// If the application passes devices to the machine, all of them take part in each call that is not small.
#[test]
fn a_machine_of_named_devices_has_no_prices() {
    let devices = slow_and_fast();
    for count in [1, 2] {
        let machine = Machine::of(devices[..count].iter().cloned().map(boxed).collect(), &Settings::default());
        let explanation = with_product(N, |args| machine.explain(args)).unwrap();
        assert_eq!((explanation.reason, explanation.devices.len(), explanation.considered), (Reason::Selected, count, Vec::new()));
    }
}

/// Tests two devices that are the same hardware. The memory that one device keeps for its next call is freed only if the other
/// device runs out of memory.
#[test]
fn devices_of_one_hardware_keep_their_memory_until_it_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let of_opencl = Paced::new("opencl:0", Duration::ZERO);
    let of_wgpu = Paced { free: Arc::clone(&of_opencl.free), ..Paced::new("wgpu:0", Duration::ZERO) };
    let machine = machine(&[of_opencl.clone(), of_wgpu], folder.path());
    let run_on = |device: usize| {
        let (a, mut c) = (vec![1.0; N * N], vec![0.0; N * N]);
        let view = MatRef::col_major(&a, N, N).unwrap();
        let args = Gemm::new(view, view, MatMut::col_major(&mut c, N, N).unwrap());
        let (problem, memory) = normalised(args);
        machine.run_planned(&problem, &memory, &[device], false)
    };
    let free = || *of_opencl.free.lock().unwrap();
    let all = free();
    run_on(0).unwrap();
    let kept = all - free();
    assert!(kept > 0);
    run_on(1).unwrap();
    assert_eq!(all - free(), 2 * kept);
    machine.trim();
    run_on(0).unwrap();
    // while the first device keeps its memory, one byte less is free than the second device needs
    *of_opencl.free.lock().unwrap() = kept - 1;
    run_on(1).unwrap();
    assert_eq!(free(), kept - 1, "the first device has given its memory back");
}

/// Two backends may open the same GPU. If there are two equal GPUs, the first GPU of one backend is the same hardware as the first
/// GPU of the other backend.
#[test]
fn devices_of_two_backends_are_one_hardware() {
    let of = |names: &[&str], model: &str| {
        let with_model = |name: &&str| {
            let mut device = Paced::new(name, Duration::ZERO);
            device.facts.identity.model = model.into();
            boxed(device)
        };
        hardware(Machine::of(names.iter().map(with_model).collect(), &Settings::default()).runtimes())
    };
    assert_eq!(of(&["cpu", "opencl:0", "wgpu:0"], "G"), [0, 0, 0]);
    assert_eq!(of(&["opencl:0", "opencl:1", "wgpu:0", "wgpu:1"], "G"), [0, 1, 0, 1]);
    assert_eq!(of(&["opencl:0", "wgpu:0"], ""), [0, 1], "a driver that names no model");
}

#[test]
fn an_explanation_is_a_table() {
    let set = |devices: &[&str], seconds, runs| PricedSet {
        devices: devices.iter().map(|&name| name.to_owned()).collect(),
        seconds,
        runs,
    };
    let explanation = Explanation {
        call: "gemm f64 m=1000 n=1000 k=1000".to_owned(),
        devices: vec!["wgpu:0".to_owned()],
        reason: Reason::Price,
        considered: vec![set(&["wgpu:0"], 1.84e-3, 3), set(&["cpu", "wgpu:0"], 2.5e-3, 1), set(&["cpu"], 3.79e-3, 0)],
    };
    let expected = "\
gemm f64 m=1000 n=1000 k=1000: on wgpu:0, since of these sets, the first is expected to be the fastest
  wgpu:0          1.8400 ms  corrected by 3 runs
  cpu+wgpu:0      2.5000 ms  corrected by 1 run
  cpu             3.7900 ms  by measured speeds";
    assert_eq!(explanation.to_string(), expected);
}
