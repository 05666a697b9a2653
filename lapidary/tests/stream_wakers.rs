//! Tests of wakers that use the device for whose work they are called. An executor may poll a task inside a waker, and a task may wait.

#[path = "support/first_devices.rs"]
mod first_devices;

use std::future::Future;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use first_devices::machines;
use lapidary::{DeviceMatrix, Gemm, Machine, MatMut, MatRef};

const N: usize = 256;

/// Time after which a test counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// A waker that calls a function once.
struct Call(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Call {
    fn waker(call: impl FnOnce() + Send + 'static) -> Waker {
        Waker::from(Arc::new(Call(Mutex::new(Some(Box::new(call))))))
    }
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        // the lock is released before the call
        let call = self.0.lock().unwrap().take();
        if let Some(call) = call {
            call();
        }
    }
}

fn ones(machine: &Machine) -> DeviceMatrix<f32> {
    machine.upload(MatRef::col_major(&[1.0; N * N], N, N).unwrap()).unwrap()
}

/// Polls a future of incomplete products with a waker that runs `call`.
fn poll_with(machine: &Machine, call: impl FnOnce() + Send + 'static) {
    let stream = machine.stream(0).unwrap();
    let (a, mut c) = (ones(machine), ones(machine));
    let waker = Call::waker(call);
    // a fast device may have completed the products before the poll
    for _ in 0..1000 {
        for _ in 0..10 {
            stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).unwrap();
        }
        if Box::pin(stream.done()).as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            return;
        }
    }
    panic!("no poll was pending");
}

/// Polls a future of incomplete products with a waker that runs `call`, and returns the result of `call`.
fn from_waker<R: Send + 'static>(machine: &Machine, call: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = channel();
    poll_with(machine, move || sender.send(call()).unwrap());
    let name = &machine.devices().next().unwrap().name;
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{name}: the waker does not return"))
}

#[test]
fn a_waker_may_wait_for_the_device() {
    for machine in machines() {
        let (own, other) = (machine.clone(), machine.stream(0).unwrap());
        let (a, mut b, mut c) = (ones(&machine), ones(&machine), ones(&machine));
        let call = move || {
            other.gemm(Gemm::new(a.view(), a.view(), b.view_mut())).unwrap();
            let read = other.read(&b).unwrap().wait().unwrap();
            own.gemm(Gemm::new(a.view(), ones(&own).view(), c.view_mut())).unwrap();
            let mut host = vec![0.0; N * N];
            c.download(MatMut::col_major(&mut host, N, N).unwrap()).unwrap();
            other.wait().unwrap();
            read.iter().chain(&host).all(|&x| x == N as f32)
        };
        assert!(from_waker(&machine, call));
        // the device runs further calls
        let stream = machine.stream(0).unwrap();
        assert!(stream.read(&ones(&machine)).unwrap().wait().unwrap().iter().all(|&x| x == 1.0));
    }
}

/// A future that a waker awaits needs another thread that wakes it.
#[test]
fn a_waker_may_wait_for_a_future() {
    for machine in machines() {
        let own = machine.clone();
        let within = move || from_waker(&own, || 2) + 1;
        assert_eq!(from_waker(&machine, within), 3);
    }
}

#[test]
fn a_waker_that_panics_ends_no_other_future() {
    for machine in machines() {
        let (sender, receiver) = channel();
        poll_with(&machine, move || {
            sender.send(()).unwrap();
            panic!("a waker of the test panics")
        });
        receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!(from_waker(&machine, || 1), 1);
        assert_eq!(from_waker(&machine, || 2), 2);
    }
}

/// The drop of a machine waits for the threads of its device, but not for the thread that runs the waker.
#[test]
fn a_waker_may_drop_the_last_owner_of_the_machine() {
    for machine in machines() {
        let name = machine.devices().next().unwrap().name.clone();
        let (is_last, waits_for_last) = channel();
        let (sender, receiver) = channel();
        let own = machine.clone();
        poll_with(&machine, move || {
            waits_for_last.recv().unwrap();
            drop(own);
            sender.send(()).unwrap();
        });
        drop(machine);
        is_last.send(()).unwrap();
        receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{name}: the drop does not return"));
    }
}
