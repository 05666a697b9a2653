//! Tests of the requests that calls make to devices, and of calls whose devices run out of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lapidary_core::null::{NullDevice, Record, Request};
use lapidary_core::{
    BufferRect, Device, DeviceBuffer, DeviceFacts, ErrorKind, Gemm, Getrf, HostRect, Instruction, MatMut, MatRef, Operand, Outputs,
    Result,
};

use super::MAX_ATTEMPTS;
use crate::open::boxed;
use crate::{Machine, Reason, Settings};

mod noting;
mod waits;

use noting::Noting;

const N: usize = 240;

/// Returns the requests that a null device of a machine has received so far.
fn record(machine: &Machine, device: usize) -> Record {
    machine.runtimes()[device].device().downcast::<NullDevice>().expect("a null device").record()
}

/// Multiplies matrices of ones on a device. All elements of C are −1 before the product. Returns the result of the call, the
/// elements of C, and the requests to the device.
fn product(device: NullDevice) -> (Result<()>, Vec<f64>, Vec<Request>) {
    let settings = Settings::default();
    let machine = Machine::of(vec![Box::new(device)], &settings);
    let (ones, mut c) = (vec![1.0; N * N], vec![-1.0; N * N]);
    let a = MatRef::col_major(&ones, N, N).unwrap();
    let outcome = machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap()));
    (outcome, c, record(&machine, 0).requests)
}

/// If a request fails before results are stored, the call starts again with smaller tiles. If a request fails after results are
/// stored, the error says that C is partly written.
#[test]
fn a_shortage_is_an_error_only_where_something_is_stored() {
    let mut refused = 0;
    for request in 0..60 {
        let (outcome, _, requests) = product(NullDevice::new(Some(1 << 20)).out_of_memory_at(request));
        let stored = requests.iter().take(request + 1).any(|request| matches!(request, Request::Read(..)));
        if let Err(error) = outcome {
            assert!(stored && error.kind() == ErrorKind::OutOfMemory, "request {request}: {error}");
            assert!(error.to_string().contains("outputs: partly written"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 0, "no request came after a store");
}

#[test]
fn a_device_that_does_nothing_is_an_error() {
    let refusing = NullDevice::new(Some(80 << 30)).with_only(0);
    let lost = NullDevice::new(Some(80 << 30)).lost_at(0);
    for (device, kind) in [(refusing, ErrorKind::OutOfMemory), (lost, ErrorKind::DeviceLost)] {
        let (outcome, c, requests) = product(device);
        let error = outcome.unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains("outputs: as they were"), "{error}");
        assert!(c.iter().all(|&x| x == -1.0), "{error}");
        assert!(requests.len() <= 2 * MAX_ATTEMPTS as usize, "{requests:?}");
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

/// A repeated call of the same shape makes no new plan and allocates no memory, both for host matrices and for resident matrices.
#[test]
fn a_repeated_call_takes_no_plan_and_no_memory() {
    let device = boxed(NullDevice::new(Some(4 << 20)).with_queues(2));
    let machine = Machine::of(vec![device], &Settings { nb: Some(N / 4), ..Settings::default() });
    let ones = vec![1.0; N * N];
    let view = || MatRef::col_major(&ones, N, N).unwrap();
    let mut resident = machine.upload(view()).unwrap();
    let mut call = || {
        let before = machine.schedules().count();
        let asked = requests(&machine, || {
            let mut c = ones.clone();
            machine.gemm(Gemm::new(view(), view(), MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
            let _ = machine.getrf_into(Getrf::new(MatMut::col_major(&mut c, N, N).unwrap(), &mut [0; N])).unwrap();
            let _ = machine.getrf_into(Getrf::new(resident.view_mut(), &mut [0; N])).unwrap();
        });
        let memory = asked.iter().filter(|request| matches!(request, Request::Alloc(_))).count();
        (machine.schedules().count() - before, memory)
    };
    let (plans, memory) = call();
    assert!(plans == 3 && memory > 0, "{plans} plans, {memory} requests for memory");
    // a call on resident matrices frees memory that calls on host matrices keep
    call();
    let (plans, _) = call();
    assert_eq!(plans, 0);
    let product = || {
        let mut c = ones.clone();
        requests(&machine, || machine.gemm(Gemm::new(view(), view(), MatMut::col_major(&mut c, N, N).unwrap())).unwrap())
    };
    product();
    assert!(!product().iter().any(|request| matches!(request, Request::Alloc(_))));
}

/// The caller's thread issues the commands of the first device, and each further device has a thread of its own.
#[test]
fn the_callers_thread_drives_the_first_device() {
    let threads = |devices: usize| {
        let devices = (0..devices).map(|_| boxed(NullDevice::new(Some(64 << 10)))).collect();
        let machine = Machine::of(devices, &Settings::default());
        let (ones, mut c) = (vec![1.0; N * N], vec![0.0; N * N]);
        let a = MatRef::col_major(&ones, N, N).unwrap();
        machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
        machine.with_lane_pool(|pool| format!("{pool:?}"))
    };
    assert_eq!([1, 3].map(threads), ["LanePool(0 threads)", "LanePool(2 threads)"]);
}

/// A call on resident matrices can use the memory that calls on host matrices have kept, on all devices that may be the same
/// hardware.
#[test]
fn matrices_on_a_device_have_the_memory_of_copies() {
    let settings = Settings::default();
    let null = || boxed(NullDevice::new(Some(4 << 20)));
    let machine = Machine::of(vec![null(), null()], &settings);
    let held = || [0, 1].map(|device| record(&machine, device).held);
    let (ones, bytes) = (vec![1.0; N * N], N * N * size_of::<f64>());
    let a = MatRef::col_major(&ones, N, N).unwrap();
    let on_host = |resident: usize| {
        let mut c = vec![0.0; N * N];
        machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
        assert!(held().iter().sum::<usize>() > resident, "a device works, and keeps its memory: {:?}", held());
    };
    on_host(0);
    let mut matrix = machine.upload_to(1, a).unwrap();
    assert_eq!(held(), [0, bytes]);
    on_host(bytes);
    // the pivots lie in host memory and are copied to the device
    let _ = machine.getrf_into(Getrf::new(matrix.view_mut(), &mut [0; N])).unwrap();
    assert!(held()[0] == 0 && held()[1] < bytes + (4 << 10), "more than pivots and info: {:?}", held());
}

/// Returns the requests that a call makes to the only device of a machine.
fn requests(machine: &Machine, call: impl FnOnce()) -> Vec<Request> {
    let before = record(machine, 0).requests.len();
    call();
    record(machine, 0).requests.split_off(before)
}

/// A repeated call on resident matrices is one instruction on the caller's thread, and its pivots reuse their device memory.
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
    // no request copies the pivots to the device, since the kernel overwrites them
    let done = [Write(1, 1), Launch("getrf"), Read(N, 1), Read(1, 1)];
    assert_eq!(first, [&[Alloc(4 * N), Alloc(4)], &done[..]].concat());
    assert_eq!(again, done);
    assert_eq!(machine.with_lane_pool(|pool| format!("{pool:?}")), "LanePool(0 threads)");
}

/// If a call on resident matrices fails before its kernel is launched, the error says that the matrices are unchanged. If a call on
/// resident matrices fails at the launch of its kernel or later, the error says that the matrices are partly written.
#[test]
fn an_error_of_a_call_on_a_device_says_what_became_of_its_outputs() {
    // requests after the upload of the matrix: allocate the pivots, allocate info, write info, launch the kernel, read the
    // pivots, read info
    let outputs = [Outputs::Unchanged; 3].into_iter().chain([Outputs::PartlyWritten; 3]);
    for (request, outputs) in (2..).zip(outputs) {
        let machine = Machine::of(vec![boxed(NullDevice::new(Some(4 << 20)).failing_at(request))], &Settings::default());
        let ones = vec![1.0; N * N];
        let mut a = machine.upload(MatRef::col_major(&ones, N, N).unwrap()).unwrap();
        let error = machine.getrf_into(Getrf::new(a.view_mut(), &mut [0; N])).unwrap_err();
        let device = error.context().find(|(key, _)| *key == "device").map(|(_, value)| value);
        assert_eq!((error.outputs(), device), (Some(outputs), Some("null:0")), "request {request}: {error}");
    }
}

/// Tests what an error of a factorisation by panels says about the outputs. Every request of the factorisation fails in turn,
/// including the copy of the pivots to host memory.
#[test]
fn an_error_of_a_call_by_panels_says_what_became_of_its_outputs() {
    let by_panels = Settings { nb: Some(N / 4), ..Settings::default() };
    let ones = vec![1.0; N * N];
    let outcome = |device: NullDevice| {
        let machine = Machine::of(vec![boxed(device)], &by_panels);
        let mut a = machine.upload(MatRef::col_major(&ones, N, N).unwrap()).unwrap();
        let result = machine.getrf_into(Getrf::new(a.view_mut(), &mut [0; N]));
        (result.map(drop), record(&machine, 0).requests)
    };
    let device = || NullDevice::new(Some(4 << 20)).with_queues(2);
    let (_, requests) = outcome(device());
    let first_kernel = requests.iter().position(|request| matches!(request, Request::Launch(_))).unwrap();
    for request in 2..requests.len() {
        let error = outcome(device().failing_at(request)).0.unwrap_err();
        let told = |wanted| error.context().filter(|(key, _)| *key == wanted).map(|(_, value)| value).collect::<Vec<_>>();
        let outputs = if request < first_kernel { Outputs::Unchanged } else { Outputs::PartlyWritten };
        assert_eq!((error.outputs(), told("device")), (Some(outputs), vec!["null:0"]), "request {request}: {error}");
    }
}

/// A device whose kernels block until two kernels have been launched, counted over all devices that share the counter.
#[derive(Debug)]
struct Meeting(NullDevice, Arc<AtomicUsize>);

impl Device for Meeting {
    fn facts(&self) -> &DeviceFacts {
        self.0.facts()
    }
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.0.alloc(bytes)
    }
    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        // SAFETY: the caller fulfils the contract of the trait `Device` for `from` and `to`, which `self.0` requires as well.
        unsafe { self.0.write(from, to) }
    }
    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        // SAFETY: the caller fulfils the contract of the trait `Device` for `from` and `to`, which `self.0` requires as well.
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

/// A solve on resident matrices submits all its kernels before it waits for the first one. The solve waits for each submitted
/// kernel even if another kernel fails, and returns the first error.
#[test]
fn the_instructions_of_a_call_on_a_device_are_given_in_a_row() {
    let entries = ["submit laswp", "submit trsm", "submit trsm", "wait laswp", "wait trsm", "wait trsm"];
    let all = [0, 1, 2, 3, 4, 5];
    for (failures, told, log) in [
        (&[][..], None, &all[..]),
        (&["submit laswp"], Some("submit laswp"), &[0]),
        (&["submit trsm"], Some("submit trsm"), &[0, 1, 3]),
        (&["wait laswp"], Some("wait laswp"), &all),
        (&["wait trsm"], Some("wait trsm"), &all),
        (&["wait laswp", "submit trsm"], Some("wait laswp"), &[0, 1, 3]),
    ] {
        let device = Noting::new(failures);
        let machine = Machine::of(vec![boxed(device.clone())], &Settings::default());
        let ones = vec![1.0; N * N];
        let [mut a, mut b] = [0, 1].map(|_| machine.upload(MatRef::col_major(&ones, N, N).unwrap()).unwrap());
        let lu = machine.getrf(a.view_mut()).unwrap();
        device.log.lock().unwrap().clear();
        let outcome = lu.solve(b.view_mut());
        assert_eq!(*device.log.lock().unwrap(), log.iter().map(|&at| entries[at]).collect::<Vec<_>>(), "{failures:?}");
        assert_eq!(outcome.err().map(|error| error.to_string().contains(told.unwrap())), told.map(|_| true), "{failures:?}");
    }
}

/// A device that has once returned the error `DeviceLost` takes part in no later call, although it does not implement the method
/// that reports a loss.
#[test]
fn a_loss_is_remembered() {
    // the second device is so slow that it leaves all tasks to the first device until the first device is lost
    let devices = || [NullDevice::new(Some(4 << 20)).lost_at(0), NullDevice::new(Some(4 << 20)).with_flops(1.0)].map(boxed);
    let machine = Machine::of(devices().into(), &Settings::default());
    let ones = vec![1.0; N * N];
    let view = || MatRef::col_major(&ones, N, N).unwrap();
    let product = || {
        let mut c = ones.clone();
        machine.gemm(Gemm::new(view(), view(), MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
    };
    product();
    let asked = record(&machine, 0).requests.len();
    product();
    assert_eq!((asked, record(&machine, 0).requests.len()), (1, 1));
    // if no other device is left, the call returns the loss as its error
    let alone = Machine::of(devices().into_iter().take(1).collect(), &Settings::default());
    let error = || alone.upload(view()).unwrap_err();
    assert_eq!([error().kind(), error().kind()], [ErrorKind::DeviceLost; 2]);
    assert_eq!(record(&alone, 0).requests.len(), 1);
}

/// Device facts that no schedule can use are errors.
#[test]
fn facts_without_sense_are_refused() {
    let device = || NullDevice::new(Some(4 << 20));
    for (device, what) in [
        (device().with_flops(-1.0), "null:0: rates.flops = -1 is not at least 0"),
        (device().with_flops(f64::NAN), "null:0: rates.flops = NaN is not at least 0"),
        (device().with_queues(0), "null:0: queues = 0 is not at least 1"),
    ] {
        let error = Machine::with_devices(vec![boxed(device)], &Settings::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(what), "{error}");
    }
    assert!(Machine::with_devices(vec![boxed(device().with_flops(0.0))], &Settings::default()).is_ok());
}

/// If the solve of `gesv` fails after the factorisation, the error says that A holds its factors.
#[test]
fn an_error_of_the_second_half_of_gesv_says_what_a_holds() {
    for (failures, outputs) in
        [(&["submit laswp"][..], Outputs::FactorsInAPartlyWrittenB), (&["submit getrf"], Outputs::PartlyWritten)]
    {
        let machine = Machine::of(vec![boxed(Noting::new(failures))], &Settings::default());
        let ones = vec![1.0; N * N];
        let [mut a, mut b] = [0, 1].map(|_| machine.upload(MatRef::col_major(&ones, N, N).unwrap()).unwrap());
        let error = machine.gesv(a.view_mut(), b.view_mut()).unwrap_err();
        assert_eq!(error.outputs(), Some(outputs), "{error}");
    }
    // the pivots are the last data that the solve writes to the device; B is unchanged before this write
    let solved = |device| {
        let machine = Machine::of(vec![boxed(device)], &Settings::default());
        let ones = vec![1.0; N * N];
        let [mut a, mut b] = [0, 1].map(|_| machine.upload(MatRef::col_major(&ones, N, N).unwrap()).unwrap());
        let outcome = machine.gesv(a.view_mut(), b.view_mut()).map(drop);
        (outcome, record(&machine, 0).requests)
    };
    let (outcome, requests) = solved(NullDevice::new(Some(4 << 20)));
    outcome.unwrap();
    let pivots = requests.iter().rposition(|request| matches!(request, Request::Write(..))).unwrap();
    let error = solved(NullDevice::new(Some(4 << 20)).failing_at(pivots)).0.unwrap_err();
    assert_eq!(error.outputs(), Some(Outputs::FactorsInA), "{error}");
}

#[test]
fn calls_on_two_devices_of_a_machine_do_not_wait_for_each_other() {
    let under_way = Arc::new(AtomicUsize::new(0));
    let device = || boxed(Meeting(NullDevice::new(Some(4 << 20)), Arc::clone(&under_way)));
    let ones = vec![1.0; N * N];
    // with `nb` each call is planned, without `nb` each call is one instruction
    for nb in [Some(N), None] {
        under_way.store(0, Ordering::Relaxed);
        let machine = Machine::of(vec![device(), device()], &Settings { nb, ..Settings::default() });
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

#[test]
fn a_call_on_matrices_of_a_device_does_not_wait_for_a_planned_one() {
    let under_way = Arc::new(AtomicUsize::new(0));
    let device = boxed(Meeting(NullDevice::new(Some(16 << 20)), Arc::clone(&under_way)));
    let machine = Machine::of(vec![device], &Settings::default());
    let ones = vec![1.0; N * N];
    let view = || MatRef::col_major(&ones, N, N).unwrap();
    let mut resident = machine.upload(view()).unwrap();
    let mut c = vec![0.0; N * N];
    std::thread::scope(|scope| {
        scope.spawn(|| machine.gemm(Gemm::new(view(), view(), MatMut::col_major(&mut c, N, N).unwrap())).unwrap());
        scope.spawn(|| {
            let _ = machine.getrf_into(Getrf::new(resident.view_mut(), &mut [0; N])).unwrap();
        });
    });
}

/// Copies of columns reuse kept device memory that is large enough, even if another call has allocated this memory.
#[test]
fn columns_of_several_lengths_share_their_memory() {
    let machine = Machine::of(vec![boxed(NullDevice::new(Some(16 << 20)))], &Settings::default());
    let ones = vec![1.0; N * N];
    let mut matrices = [N, N / 2].map(|n| machine.upload(MatRef::col_major(&ones[..n * n], n, n).unwrap()).unwrap());
    let mut factor = |machine: &Machine| {
        for matrix in &mut matrices {
            let n = matrix.view().rows();
            let _ = machine.getrf_into(Getrf::new(matrix.view_mut(), &mut vec![0; n])).unwrap();
        }
    };
    let _ = requests(&machine, || factor(&machine));
    let again = requests(&machine, || factor(&machine));
    assert!(!again.iter().any(|request| matches!(request, Request::Alloc(_))), "{again:?}");
}

/// All matrices are uploaded to one device, the fastest one.
#[test]
fn matrices_are_uploaded_to_the_fastest_device() {
    let device = |memory, flops| boxed(NullDevice::new(Some(memory)).with_flops(flops));
    let machine = Machine::of(vec![device(4 << 20, 1e9), device(1 << 20, 3e9), device(4 << 20, 2e9)], &Settings::default());
    let ones = vec![1.0; N * N];
    let view = || MatRef::col_major(&ones, N, N).unwrap();
    let _matrices = [0, 1].map(|_| machine.upload(view()).unwrap());
    assert_eq!([0, 1, 2].map(|device| record(&machine, device).held / size_of_val(&ones[..])), [0, 2, 0]);
    // a third matrix is not silently uploaded to a slower device
    assert_eq!(machine.upload(view()).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert!(machine.upload_to(2, view()).is_ok());
}

#[test]
fn an_explanation_names_the_devices_that_take_part() {
    let device = || boxed(NullDevice::new(Some(4 << 20)).with_flops(1e12));
    let machine = Machine::of(vec![device(), device()], &Settings::default());
    let (mut a, mut ipiv) = (vec![1.0; N * N], vec![0; N]);
    let told = machine.explain(Getrf::new(MatMut::col_major(&mut a, N, N).unwrap(), &mut ipiv)).unwrap();
    assert_eq!((told.devices.len(), told.reason), (1, Reason::Faster));
}

/// If a device has less memory than it reported, tiles shrink from the size that the call needs, not from the size that the
/// device reported.
#[test]
fn tiles_shrink_from_what_the_call_needs() {
    let (outcome, _, requests) = product(NullDevice::new(Some(80 << 30)).with_only(100 << 10));
    outcome.unwrap();
    assert!(requests.iter().any(|request| matches!(request, Request::Read(..))), "the device itself did it");
}

/// `explain` returns an error for a matrix of another machine, as the call itself does.
#[test]
fn a_call_on_a_matrix_of_another_machine_is_not_explained() {
    let machine =
        |count: usize| Machine::of((0..count).map(|_| boxed(NullDevice::new(Some(4 << 20)))).collect(), &Settings::default());
    let (two, one, ones) = (machine(2), machine(1), vec![1.0; N * N]);
    let matrix = two.upload_to(1, MatRef::col_major(&ones, N, N).unwrap()).unwrap();
    let mut c = two.upload_to(1, MatRef::col_major(&ones, N, N).unwrap()).unwrap();
    let error = one.explain(Gemm::new(matrix.view(), matrix.view(), c.view_mut())).unwrap_err();
    assert!(error.to_string().contains("uploaded to another machine"), "{error}");
}

/// If an error of a batched factorisation says that the outputs are unchanged, `info` is also unchanged.
#[test]
fn a_batch_that_fails_before_it_runs_leaves_info() {
    let machine = Machine::of(vec![boxed(NullDevice::new(Some(4 << 20)).with_only(0))], &Settings::default());
    let (mut a, mut ipiv, mut info) = (vec![1.0; 8], vec![0; 4], vec![-7; 2]);
    let batch = lapidary_core::BatchMut::col_major(&mut a, 2, 2, 2).unwrap();
    let error = machine.getrf_batched(lapidary_core::GetrfBatched::new(batch, &mut ipiv, &mut info)).unwrap_err();
    assert_eq!((error.outputs(), &info[..]), (Some(Outputs::Unchanged), &[-7, -7][..]), "{error}");
}
