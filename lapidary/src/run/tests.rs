//! What calls ask of devices, and what becomes of a call when memory runs out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lapidary_core::null::{NullDevice, Record, Request};
use lapidary_core::{
    Device, DeviceBuffer, DeviceInfo, ErrorKind, Gemm, Getrf, HostRect, Instruction, MatMut, MatRef, Operand, Result,
};

use super::{CpuDevice, MOST_ATTEMPTS};
use crate::open::boxed;
use crate::{Machine, Settings};

const N: usize = 240;

/// What a null device of a machine was asked so far.
fn record(machine: &Machine, device: usize) -> Record {
    machine.drivers()[device].device().downcast::<NullDevice>().expect("a null device").record()
}

/// A product of ones on a device; what became of it, of C, which is −1 before, and the requests to the device.
fn product(device: NullDevice) -> (Result<()>, Vec<f64>, Vec<Request>) {
    let settings = Settings::default();
    let machine = Machine::of(vec![Box::new(device)], &settings);
    let (ones, mut c) = (vec![1.0; N * N], vec![-1.0; N * N]);
    let a = MatRef::col_major(&ones, N, N).unwrap();
    let outcome = machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap()));
    (outcome, c, record(&machine, 0).requests)
}

/// A product where the device runs short at one of its requests; which elements were computed.
/// A null device stores nothing: what it did is as it was.
fn computed(request: usize) -> usize {
    let (outcome, c, _) = product(NullDevice::new(Some(1 << 20)).short_at(request));
    outcome.unwrap();
    assert!(c.iter().all(|&x| x == -1.0 || x == N as f64), "request {request}");
    c.iter().filter(|&&x| x != -1.0).count()
}

#[test]
fn the_processor_finishes_what_a_device_began() {
    let computed: Vec<usize> = (0..60).map(computed).collect();
    // before anything is stored the device itself begins again, in smaller tiles
    assert!(computed[..4].iter().all(|&count| count == 0), "{computed:?}");
    assert!(computed.iter().any(|&count| 0 < count && count < N * N), "{computed:?}");
}

#[test]
fn a_device_that_does_nothing_is_an_error_and_the_processor_does_not_step_in() {
    let refusing = NullDevice::new(Some(80 << 30)).with_only(0);
    let lost = NullDevice::new(Some(80 << 30)).lost_at(0);
    for (device, kind) in [(refusing, ErrorKind::OutOfMemory), (lost, ErrorKind::DeviceLost)] {
        let (outcome, c, requests) = product(device);
        let error = outcome.unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains("outputs: as they were"), "{error}");
        assert!(c.iter().all(|&x| x == -1.0), "{error}");
        assert!(requests.len() <= 2 * MOST_ATTEMPTS as usize, "{requests:?}");
    }
}

#[test]
fn the_memory_of_copies_is_kept_for_the_next_call_and_given_back_when_asked() {
    let settings = Settings::default();
    let machine = Machine::of(vec![Box::new(NullDevice::new(Some(1 << 20)))], &settings);
    let ones = vec![1.0; N * N];
    let a = MatRef::col_major(&ones, N, N).unwrap();
    let allocations = || {
        let mut c = vec![0.0; N * N];
        let before = record(&machine, 0).requests.len();
        machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
        record(&machine, 0).requests[before..].iter().filter(|request| matches!(request, Request::Alloc(_))).count()
    };
    assert!(allocations() > 0);
    assert_eq!(allocations(), 0);
    machine.trim();
    assert_eq!(record(&machine, 0).held, 0);
    assert!(allocations() > 0);
    let matrix = machine.upload(a).unwrap();
    assert_eq!(record(&machine, 0).held, N * N * size_of::<f64>());
    drop(matrix);
}

/// A CPU device gains nothing by queues of their own, and a wake-up costs more than a small tile.
#[test]
fn the_callers_thread_copies_and_computes_for_a_cpu_device_with_a_limit() {
    const LIMIT: Option<usize> = Some(64 << 10);
    let settings = Settings::default();
    let threads = |device: Box<dyn Device>| {
        let machine = Machine::of(vec![device], &settings);
        let (ones, mut c) = (vec![1.0; N * N], vec![0.0; N * N]);
        let a = MatRef::col_major(&ones, N, N).unwrap();
        machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
        machine.with_crew(|crew| format!("{crew:?}"))
    };
    assert_eq!(threads(Box::new(CpuDevice::new(0, LIMIT))), "Crew(0 threads)");
    assert_eq!(threads(Box::new(NullDevice::new(LIMIT))), "Crew(2 threads)");
}

/// Matrices on one device find the memory free that calls on host matrices had, on all that may share it.
#[test]
fn matrices_on_a_device_have_the_memory_of_copies() {
    let settings = Settings::default();
    let null = || boxed(NullDevice::new(Some(4 << 20)));
    let machine = Machine::of(vec![null(), null()], &settings);
    let held = || [0, 1].map(|device| record(&machine, device).held);
    let (ones, bytes) = (vec![1.0; N * N], N * N * size_of::<f64>());
    let a = MatRef::col_major(&ones, N, N).unwrap();
    let on_host = || {
        let mut c = vec![0.0; N * N];
        machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
        assert!(held()[0] > 0, "the first device works, and keeps its memory: {:?}", held());
    };
    on_host();
    let mut matrix = machine.upload_to(1, a).unwrap();
    assert_eq!(held(), [0, bytes]);
    on_host();
    // pivots lie in host memory
    let _ = machine.getrf_into(Getrf::new(matrix.view_mut(), &mut [0; N])).unwrap();
    assert!(held()[0] == 0 && held()[1] < bytes + (4 << 10), "more than pivots and info: {:?}", held());
}

/// What a machine asks of its null device for a call.
fn requests(machine: &Machine, call: impl FnOnce()) -> Vec<Request> {
    let before = record(machine, 0).requests.len();
    call();
    record(machine, 0).requests.split_off(before)
}

/// A call on matrices of a device is one instruction on the caller's thread, and its pivots find their memory again.
#[test]
fn a_repeated_call_on_a_device_asks_for_no_memory_and_no_thread() {
    use Request::{Alloc, Launch, Read, Write};
    let machine = Machine::of(vec![boxed(NullDevice::new(Some(4 << 20)))], &Settings::default());
    let ones = vec![1.0; N * N];
    let [mut a, mut c] = [0, 1].map(|_| machine.upload(MatRef::col_major(&ones, N, N).unwrap()).unwrap());
    let product = requests(&machine, || machine.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).unwrap());
    assert_eq!(product, [Launch("gemm")]);
    let mut factor = || {
        let _ = machine.getrf_into(Getrf::new(a.view_mut(), &mut [0; N])).unwrap();
    };
    let (first, again) = (requests(&machine, &mut factor), requests(&machine, &mut factor));
    let done = [Launch("getrf"), Read(N, 1), Read(1, 1)];
    assert_eq!(first, [&[Alloc(4 * N), Write(N, 1), Alloc(4), Write(1, 1)], &done[..]].concat());
    assert_eq!(again, [&[Write(N, 1), Write(1, 1)], &done[..]].concat());
    assert_eq!(machine.with_crew(|crew| format!("{crew:?}")), "Crew(0 threads)");
}

/// An error says what became of the matrices: before the kernel they are as they were.
#[test]
fn an_error_of_a_call_on_a_device_says_what_became_of_its_outputs() {
    // the matrix: memory, load; pivots: memory, load; info: memory, load; the kernel; pivots and info stored
    let outputs = ["as they were"; 4].into_iter().chain(["partly written"; 3]);
    for (request, outputs) in (2..).zip(outputs) {
        let machine = Machine::of(vec![boxed(NullDevice::new(Some(4 << 20)).failing_at(request))], &Settings::default());
        let ones = vec![1.0; N * N];
        let mut a = machine.upload(MatRef::col_major(&ones, N, N).unwrap()).unwrap();
        let error = machine.getrf_into(Getrf::new(a.view_mut(), &mut [0; N])).unwrap_err();
        let context = |wanted| error.context().find(|(key, _)| *key == wanted).map(|(_, value)| value);
        assert_eq!((context("outputs"), context("device")), (Some(outputs), Some("null:0")), "request {request}: {error}");
    }
}

/// A device whose kernels wait until so many are under way, on all devices that share the count.
#[derive(Debug)]
struct Meeting(NullDevice, Arc<AtomicUsize>);

impl Device for Meeting {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.0.alloc(bytes)
    }
    unsafe fn write(&self, from: HostRect, to: &DeviceBuffer) -> Result<()> {
        // SAFETY: the contract of the trait.
        unsafe { self.0.write(from, to) }
    }
    unsafe fn read(&self, from: &DeviceBuffer, to: HostRect) -> Result<()> {
        // SAFETY: the contract of the trait.
        unsafe { self.0.read(from, to) }
    }
    unsafe fn launch(&self, _: &Instruction<Operand<'_>>) -> Result<()> {
        let start = Instant::now();
        self.1.fetch_add(1, Ordering::Relaxed);
        while self.1.load(Ordering::Relaxed) < 2 {
            assert!(start.elapsed() < Duration::from_secs(20), "the other device has nothing to do");
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[test]
fn calls_on_two_devices_of_a_machine_do_not_wait_for_each_other() {
    let under_way = Arc::new(AtomicUsize::new(0));
    let device = || boxed(Meeting(NullDevice::new(Some(4 << 20)), Arc::clone(&under_way)));
    let ones = vec![1.0; N * N];
    // a plan each, and one instruction each
    for traced in [true, false] {
        under_way.store(0, Ordering::Relaxed);
        let machine = Machine::of(vec![device(), device()], &Settings::default());
        let machine = if traced { machine.traced() } else { machine };
        let [mut a, mut b] = [0, 1].map(|device| machine.upload_to(device, MatRef::col_major(&ones, N, N).unwrap()).unwrap());
        std::thread::scope(|scope| {
            for matrix in [&mut a, &mut b] {
                scope.spawn(|| {
                    let _ = machine.getrf_into(Getrf::new(matrix.view_mut(), &mut [0; N])).unwrap();
                });
            }
        });
    }
}

/// A matrix goes where a call on it is fastest, if there is room.
#[test]
fn a_matrix_is_uploaded_to_the_fastest_device_with_room() {
    let device = |memory, flops| boxed(NullDevice::new(Some(memory)).with_flops(flops));
    let machine = Machine::of(vec![device(4 << 20, 1e9), device(1 << 20, 3e9), device(4 << 20, 2e9)], &Settings::default());
    let ones = vec![1.0; N * N];
    let _matrices = [0, 1, 2].map(|_| machine.upload(MatRef::col_major(&ones, N, N).unwrap()).unwrap());
    // two fill the fastest device
    assert_eq!([0, 1, 2].map(|device| record(&machine, device).held / size_of_val(&ones[..])), [0, 2, 1]);
}

/// What a device promises beyond the needs of a call is no reason to give up.
#[test]
fn tiles_shrink_from_what_the_call_needs() {
    let (outcome, _, requests) = product(NullDevice::new(Some(80 << 30)).with_only(100 << 10));
    outcome.unwrap();
    assert!(requests.iter().any(|request| matches!(request, Request::Read(..))), "the device itself did it");
}
