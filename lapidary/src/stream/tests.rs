//! Tests of streams on a device that fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use lapidary_core::null::NullDevice;
use lapidary_core::{BufferRect, Device, DeviceBuffer, DeviceFacts, ErrorKind, Gemm, HostRect, Instruction, Operand, Result};

use crate::machine::Machine;
use crate::open::boxed;
use crate::resident::DeviceMatrix;
use crate::settings::Settings;
use crate::stream::Reading;

const N: usize = 8;

/// A machine of a null device, with a matrix of zeros. The matrix takes the first two requests to the device.
fn machine(device: NullDevice) -> (Machine, DeviceMatrix<f64>) {
    let machine = Machine::of(vec![boxed(device)], &Settings::default());
    let zeros = machine.zeros_on(0, N, N).unwrap();
    (machine, zeros)
}

#[test]
fn an_error_names_its_call_and_stops_the_stream_until_it_is_reported() {
    let (machine, a) = machine(NullDevice::new(Some(1 << 20)).failing_at(4));
    let (stream, other) = (machine.stream(0).unwrap(), machine.stream(0).unwrap());
    let mut c = machine.zeros_on::<f64>(0, N, N).unwrap();
    let mut multiply = |stream: &crate::Stream| stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut()));
    multiply(&stream).unwrap();
    let ended = stream.done();
    // requests: two allocations, two scalings, the product that fails
    let error = ended.wait().unwrap_err();
    let text = error.to_string();
    assert!(error.kind() == ErrorKind::DeviceFailed && text.contains("call of the stream: 1, gemm"), "{text}");

    multiply(&stream).unwrap();
    stream.wait().unwrap();
    multiply(&other).unwrap();
    other.wait().unwrap();
}

#[test]
fn calls_after_a_failed_call_do_not_run() {
    let (machine, a) = machine(NullDevice::new(Some(1 << 20)).failing_at(5));
    let (stream, other) = (machine.stream(0).unwrap(), machine.stream(0).unwrap());
    let mut c = machine.zeros_on::<f64>(0, N, N).unwrap();
    let mut multiply = |stream: &crate::Stream| stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut()));
    let launches = || {
        let mut count = 0;
        machine.visit_devices(&mut |device| count = device.downcast::<NullDevice>().unwrap().record().requests.len());
        count
    };
    // the first product succeeds and the second one fails; whether the third call is refused or dropped depends on its time
    multiply(&stream).unwrap();
    multiply(&stream).unwrap();
    let third = multiply(&stream);
    let read = stream.read(&a).map(Reading::wait);
    assert!(matches!(read, Err(_) | Ok(Err(_))), "a future of a failed stream returns its error");
    let refused = multiply(&stream).unwrap_err();
    assert!(refused.to_string().contains("call of the stream: 2, gemm"), "{refused}");
    assert!(third.is_ok() || third.unwrap_err().to_string() == refused.to_string());
    // another stream of the device goes on
    multiply(&other).unwrap();
    other.wait().unwrap();
    assert_eq!(launches(), 7, "two allocations, two scalings, two products of the stream, one of the other");
    assert_eq!(stream.wait().unwrap_err().to_string(), refused.to_string());
    stream.wait().unwrap();
    multiply(&stream).unwrap();
    stream.wait().unwrap();
    assert_eq!(launches(), 8);
}

#[test]
fn a_lost_device_stays_lost() {
    let (machine, a) = machine(NullDevice::new(Some(1 << 20)).lost_at(2));
    let stream = machine.stream(0).unwrap();
    let read = stream.read(&a).unwrap();
    assert_eq!(read.wait().unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(stream.wait().unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(machine.zeros_on::<f64>(0, 1, 1).map(drop).unwrap_err().kind(), ErrorKind::DeviceLost);
}

#[test]
fn an_error_stays_the_result_of_its_calls_after_it_was_reported() {
    let (machine, a) = machine(NullDevice::new(Some(1 << 20)).failing_at(3));
    let stream = machine.stream(0).unwrap();
    let before = stream.read(&a).unwrap();
    before.wait().unwrap();
    let failed = stream.read(&a).unwrap();
    let also = stream.done();
    assert!(format!("{failed:?}").contains("HostVec { count: 64, .. }"), "{failed:?}");
    let error = stream.wait().unwrap_err();
    assert!(error.to_string().contains("call of the stream: 2, read"), "{error}");
    assert_eq!(failed.wait().map(drop).unwrap_err().to_string(), error.to_string());
    assert_eq!(also.wait().unwrap_err().to_string(), error.to_string());
    // later calls are not concerned
    stream.read(&a).unwrap().wait().unwrap();
    stream.wait().unwrap();
}

/// A null device that completes no instruction while its gate is closed.
#[derive(Debug)]
struct Gated {
    device: NullDevice,
    gate: Arc<Gate>,
    /// Size in bytes of the scratch memory of kernels.
    scratch: usize,
}

#[derive(Debug, Default)]
struct Gate {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set_closed(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.changed.notify_all();
    }
}

impl Device for Gated {
    fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }
    fn scratch_bytes(&self) -> usize {
        self.scratch
    }
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.device.alloc(bytes)
    }
    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        // SAFETY: the caller fulfils the same contract.
        unsafe { self.device.write(from, to) }
    }
    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        // SAFETY: the caller fulfils the same contract.
        unsafe { self.device.read(from, to) }
    }
    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        let closed = self.gate.is_closed.lock().unwrap();
        drop(self.gate.changed.wait_while(closed, |is_closed| *is_closed).unwrap());
        // SAFETY: the caller fulfils the same contract.
        unsafe { self.device.launch(instruction) }
    }
}

#[test]
fn a_call_waits_if_too_many_calls_are_incomplete() {
    const CALLS: usize = 10_000;
    /// Maximum number of incomplete calls, and the calls that may have no token yet.
    const MOST: usize = 2048 + 2 * 256;
    let gate = Arc::new(Gate::default());
    let device = Gated { device: NullDevice::new(Some(1 << 20)), gate: Arc::clone(&gate), scratch: 0 };
    let machine = Machine::of(vec![boxed(device)], &Settings::default());
    let (a, mut c) = (machine.zeros_on::<f64>(0, N, N).unwrap(), machine.zeros_on(0, N, N).unwrap());
    let stream = machine.stream(0).unwrap();
    stream.wait().unwrap();
    gate.set_closed(true);
    let enqueued = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..CALLS {
                stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).unwrap();
                enqueued.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut before = usize::MAX;
        while before != enqueued.load(Ordering::Relaxed) {
            before = enqueued.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
        }
        gate.set_closed(false);
        assert!((256..=MOST).contains(&before), "{before} calls are incomplete");
    });
    stream.wait().unwrap();
    assert_eq!(enqueued.into_inner(), CALLS);
}

#[test]
fn a_lack_of_memory_advises_to_trim_where_that_frees_memory() {
    for (scratch, is_advised) in [(0, false), (1000, true)] {
        let device = Gated { device: NullDevice::new(Some(1000)), gate: Arc::default(), scratch };
        let machine = Machine::of(vec![boxed(device)], &Settings::default());
        let text = machine.zeros_on::<f64>(0, N, 2 * N).unwrap_err().to_string();
        assert_eq!(text.contains("advice: `Machine::trim` frees 1000 bytes of scratch memory"), is_advised, "{text}");
    }
}

#[test]
fn memory_of_dropped_pivots_is_used_again_until_it_is_trimmed() {
    let (machine, mut a) = machine(NullDevice::new(Some(1 << 20)));
    let stream = machine.stream(0).unwrap();
    let held = || {
        let mut held = 0;
        machine.visit_devices(&mut |device| held = device.downcast::<NullDevice>().unwrap().record().held);
        held
    };
    let before = held();
    let first = stream.getrf(a.view_mut()).unwrap();
    let with_pivots = held();
    assert!(with_pivots > before);
    drop(first);
    // the next pivots lie in the memory of the first ones, if they are as many or fewer
    drop(stream.getrf(a.view_mut()).unwrap());
    let small = machine.pivots_on(0, N / 2).unwrap();
    stream.wait().unwrap();
    assert_eq!(held(), with_pivots);
    drop(small);
    machine.trim();
    assert_eq!(held(), before);
}
