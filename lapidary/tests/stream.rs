//! Tests of streams on the CPU and on the first device of each other backend: order, futures, errors and the end of a machine.

#[path = "support/first_devices.rs"]
mod first_devices;
#[cfg(feature = "wgpu")]
#[path = "support/shared_wgpu.rs"]
mod shared_wgpu;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use first_devices::machines;
use lapidary::{DType, DeviceMatrix, ErrorKind, Gemm, Machine, MatMut, MatRef, Op, Stream};

const N: usize = 48;

fn name(machine: &Machine) -> &str {
    &machine.devices().next().unwrap().name
}

/// Returns small integers, so that their products and sums are exact in any order.
fn integers(seed: usize) -> Vec<f32> {
    (0..N * N).map(|i| ((i * 7 + seed * 13) % 5) as f32 - 2.0).collect()
}

fn product(a: &[f32], b: &[f32]) -> Vec<f32> {
    (0..N * N).map(|at| (0..N).map(|k| a[at % N + k * N] * b[k + at / N * N]).sum()).collect()
}

fn uploaded(machine: &Machine, data: &[f32]) -> DeviceMatrix<f32> {
    machine.upload(MatRef::col_major(data, N, N).unwrap()).unwrap()
}

fn zeros(machine: &Machine) -> DeviceMatrix<f32> {
    machine.zeros_on(0, N, N).unwrap()
}

fn multiply(stream: &Stream, a: &DeviceMatrix<f32>, b: &DeviceMatrix<f32>, c: &mut DeviceMatrix<f32>) {
    stream.gemm(Gemm::new(a.view(), b.view(), c.view_mut())).unwrap();
}

#[test]
fn calls_of_two_streams_and_of_the_machine_run_in_the_order_of_the_program() {
    for machine in machines() {
        let (one, two) = (machine.stream(0).unwrap(), machine.stream(0).unwrap());
        let data = integers(1);
        let (a, mut c, mut d, mut e) = (uploaded(&machine, &data), zeros(&machine), zeros(&machine), zeros(&machine));
        let square = product(&data, &data);
        for round in 0..20 {
            multiply(&one, &a, &a, &mut c);
            multiply(&two, &c, &a, &mut d);
            // a call of the machine reads what a stream writes, and is read by a stream
            machine.gemm(Gemm::new(d.view(), a.view(), e.view_mut())).unwrap();
            one.copy(e.view(), c.view_mut()).unwrap();
            let mut read = vec![0.0; N * N];
            c.download(MatMut::col_major(&mut read, N, N).unwrap()).unwrap();
            assert!(read == product(&square, &square), "{}, round {round}", name(&machine));
            // overwrites a matrix that a stream still reads
            multiply(&one, &a, &c, &mut d);
            c.write(MatRef::col_major(&data, N, N).unwrap()).unwrap();
            let kept = two.read(&d).unwrap().wait().unwrap();
            assert!(*kept == product(&data, &read), "{}, round {round}", name(&machine));
        }
    }
}

#[test]
fn a_chain_waits_once_and_pivots_stay_on_the_device() {
    for machine in machines() {
        let stream = machine.stream(0).unwrap();
        let (mut a, mut b, mut x) = (zeros(&machine), zeros(&machine), machine.zeros_on::<f32>(0, N, 1).unwrap());
        // the matrix is a diagonal matrix whose rows are permuted, so that the computed solution has no rounding errors
        let mut permuted = vec![0.0; N * N];
        (0..N).for_each(|i| permuted[(i + 5) % N + i * N] = 2.0);
        let mut identity = vec![0.0; N * N];
        (0..N).for_each(|i| identity[i + i * N] = 1.0);
        stream.write(permuted, &mut a).unwrap();
        stream.write(identity, &mut b).unwrap();
        stream.write((0..N).map(|i| i as f32).collect::<Vec<_>>(), &mut x).unwrap();
        let mut c = zeros(&machine);
        multiply(&stream, &a, &b, &mut c);
        let pivots = stream.getrf(c.view_mut()).unwrap();
        stream.getrs(Op::NoTrans, c.view(), &pivots, x.view_mut()).unwrap();
        let (solution, told) = (stream.read(&x).unwrap(), stream.read_pivots(&pivots).unwrap());
        let solution = solution.wait().unwrap();
        assert!((0..N).all(|i| solution[i] == ((i + 5) % N) as f32 / 2.0), "{}: {solution:?}", name(&machine));
        let (ipiv, info) = told.wait().unwrap();
        assert!(info.get() == 0 && ipiv[0] == 5, "{}: {ipiv:?}", name(&machine));

        // a second factorisation with the same pivots begins with info 0
        let mut pivots = pivots;
        stream.write(vec![0.0; N * N], &mut c).unwrap();
        stream.getrf_into(c.view_mut(), &mut pivots).unwrap();
        assert_eq!(stream.read_pivots(&pivots).unwrap().wait().unwrap().1.get(), 1);
        stream.write((0..N * N).map(|at| f32::from(at % N == at / N)).collect::<Vec<_>>(), &mut c).unwrap();
        stream.getrf_into(c.view_mut(), &mut pivots).unwrap();
        assert_eq!(pollster::block_on(stream.read_pivots(&pivots).unwrap()).unwrap().1.get(), 0);
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn another_thread_may_poll_each_time_and_the_last_waker_is_woken() {
    for machine in machines() {
        let stream = machine.stream(0).unwrap();
        let a = uploaded(&machine, &integers(2));
        let mut c = zeros(&machine);
        for _ in 0..50 {
            multiply(&stream, &a, &a, &mut c);
        }
        let mut done = Box::pin(stream.done());
        loop {
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&woken));
            let poll = || {
                // a waker of an earlier poll counts no longer
                let _ = done.as_mut().poll(&mut Context::from_waker(Waker::noop())).map(Result::unwrap);
                let outcome = done.as_mut().poll(&mut Context::from_waker(&waker));
                (done, outcome)
            };
            let (back, outcome) = std::thread::scope(|scope| scope.spawn(poll).join().unwrap());
            done = back;
            if let Poll::Ready(outcome) = outcome {
                outcome.unwrap();
                break;
            }
            let start = std::time::Instant::now();
            while !woken.0.load(Ordering::Acquire) {
                assert!(start.elapsed().as_secs() < 60, "{}: nothing wakes the task", name(&machine));
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn dropped_and_leaked_futures_leave_the_stream_as_it_is() {
    for machine in machines() {
        let stream = machine.stream(0).unwrap();
        let data = integers(3);
        let a = uploaded(&machine, &data);
        let mut c = zeros(&machine);
        for _ in 0..10 {
            multiply(&stream, &a, &a, &mut c);
            drop(stream.read(&c).unwrap());
            std::mem::forget(stream.read(&c).unwrap());
            let mut half_way = pin!(stream.read(&c).unwrap());
            let _ = half_way.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let read = pollster::block_on(stream.read(&c).unwrap()).unwrap();
        assert!(*read == product(&data, &data), "{}", name(&machine));
        pollster::block_on(async { (&stream).await }).unwrap();
    }
}

#[test]
fn a_machine_may_be_dropped_with_work_pending() {
    for machine in machines() {
        let data = integers(4);
        let (stream, a, mut c) = (machine.stream(0).unwrap(), uploaded(&machine, &data), zeros(&machine));
        for _ in 0..100 {
            multiply(&stream, &a, &a, &mut c);
        }
        let read = stream.read(&c).unwrap();
        let name = name(&machine).to_owned();
        drop((machine, stream, a, c));
        // the future keeps what it needs
        assert!(*read.wait().unwrap() == product(&data, &data), "{name}");
    }
    for machine in machines() {
        let (stream, a, mut c) = (machine.stream(0).unwrap(), uploaded(&machine, &integers(5)), zeros(&machine));
        for _ in 0..100 {
            multiply(&stream, &a, &a, &mut c);
        }
        stream.write(vec![1.0; N * N], &mut c).unwrap();
        drop(stream.read(&c).unwrap());
    }
}

#[test]
fn wrong_arguments_are_refused_at_once_and_change_nothing() {
    for machine in machines() {
        let stream = machine.stream(0).unwrap();
        let data = integers(6);
        let (a, mut c) = (uploaded(&machine, &data), zeros(&machine));
        let refused = |outcome: lapidary::Result<()>, part: &str| {
            let error = outcome.unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(part), "{error}");
        };
        refused(stream.gemm(Gemm::new(MatRef::col_major(&data, N, N).unwrap(), a.view(), c.view_mut())), "host memory");
        refused(stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut().sub(0..3, 0..3))), "rows");
        refused(stream.write(vec![0.0; 3], &mut c), "3 elements");
        let pivots = machine.pivots_on(0, N).unwrap();
        refused(stream.getrs(Op::NoTrans, a.view(), &pivots, c.view_mut()), "no factorisation");
        refused(stream.laswp(c.view_mut(), &pivots, true), "no factorisation");
        let mut pivots = machine.pivots_on(0, N - 1).unwrap();
        refused(stream.getrf_into(c.view_mut(), &mut pivots), "min(m, n)");
        refused(stream.write_pivots(&[N as i32; N - 1], N, &mut pivots), "no row");
        // pivots of a taller matrix than A
        stream.write_pivots(&[N as i32 - 1; N - 1], N, &mut pivots).unwrap();
        refused(stream.laswp(c.view_mut().sub(0..N - 1, 0..N), &pivots, true), "rows");
        // the same memory may then hold pivots of a shorter matrix
        stream.write_pivots(&[0; N - 1], N - 1, &mut pivots).unwrap();
        stream.laswp(c.view_mut().sub(0..N - 1, 0..N), &pivots, true).unwrap();
        refused(stream.read_pivots(&machine.pivots_on(0, 3).unwrap()).map(drop), "no factorisation");
        let other = Machine::open(&"cpu:0".parse().unwrap()).unwrap();
        refused(stream.gemm(Gemm::new(uploaded(&other, &data).view(), a.view(), c.view_mut())), "another machine");
        assert_eq!(machine.stream(1).unwrap_err().kind(), ErrorKind::NoSuchDevice);
        stream.wait().unwrap();
        assert!(stream.read(&c).unwrap().wait().unwrap().iter().all(|&x| x == 0.0), "{}", name(&machine));
    }
}

#[test]
fn matrices_without_elements_are_accepted() {
    for machine in machines() {
        let stream = machine.stream(0).unwrap();
        let mut none = machine.zeros_on::<f32>(0, 0, 4).unwrap();
        stream.write(Vec::new(), &mut none).unwrap();
        let pivots = stream.getrf(none.view_mut()).unwrap();
        assert_eq!(stream.read_pivots(&pivots).unwrap().wait().unwrap(), (vec![], lapidary::Info::default()));
        assert!(stream.read(&none).unwrap().wait().unwrap().is_empty());
    }
}

#[test]
fn double_precision_is_refused_where_it_is_missing() {
    for machine in machines() {
        let outcome = machine.zeros_on::<f64>(0, 2, 2).map(drop);
        let has_f64 = machine.devices().next().unwrap().computes(DType::F64);
        assert!(if has_f64 { outcome.is_ok() } else { outcome.unwrap_err().kind() == ErrorKind::Unsupported });
    }
}

/// An application destroys its wgpu device while calls of a stream are incomplete.
#[cfg(feature = "wgpu")]
#[test]
fn a_destroyed_device_is_an_error_of_every_wait_and_call() {
    let Some((machine, device)) = shared_wgpu::shared() else { return };
    let stream = machine.stream(0).unwrap();
    let a = uploaded(&machine, &integers(7));
    let mut c = zeros(&machine);
    stream.wait().unwrap();
    for _ in 0..100 {
        multiply(&stream, &a, &a, &mut c);
    }
    let read = stream.read(&c).unwrap();
    device.destroy();
    // the read may have completed before
    let lost = |error: lapidary::Error| assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
    let _ = read.wait().map_err(lost);
    let _ = stream.wait().map_err(lost);
    // the loss is found at the latest when a call uses the device again
    let outcome = stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).and_then(|()| stream.wait());
    lost(outcome.unwrap_err());
    lost(pollster::block_on(async { stream.read(&c)?.await }).map(drop).unwrap_err());
}

#[test]
fn streams_of_two_devices_work_side_by_side() {
    let machine = Machine::open(&"cpu:0,1".parse().unwrap()).unwrap();
    let data = integers(8);
    let streams = [0, 1].map(|device| machine.stream(device).unwrap());
    let matrices = [0, 1].map(|device| machine.upload_to(device, MatRef::col_major(&data, N, N).unwrap()).unwrap());
    let mut results = [0, 1].map(|device| machine.zeros_on::<f32>(device, N, N).unwrap());
    for _ in 0..10 {
        for ((stream, a), c) in streams.iter().zip(&matrices).zip(&mut results) {
            multiply(stream, a, a, c);
        }
    }
    let error = streams[0].gemm(Gemm::new(matrices[1].view(), matrices[1].view(), results[1].view_mut())).unwrap_err();
    assert!(error.to_string().contains("A lies on device 1, the stream is one of device 0"), "{error}");
    for (stream, c) in streams.iter().zip(&results) {
        assert!(*stream.read(c).unwrap().wait().unwrap() == product(&data, &data));
    }
    // a matrix moves from device to device through host memory
    let moved = streams[0].read(&results[0]).unwrap().wait().unwrap();
    streams[1].write(moved, &mut results[1]).unwrap();
    assert!(*streams[1].read(&results[1]).unwrap().wait().unwrap() == product(&data, &data));
}
