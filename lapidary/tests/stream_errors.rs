//! Tests of the errors of streams and of allocations: an error names the call and the operand, and a refused call changes nothing.

#[path = "support/first_devices.rs"]
mod first_devices;
#[cfg(feature = "wgpu")]
#[path = "support/shared_wgpu.rs"]
mod shared_wgpu;

use std::fmt::Debug;
use std::future::Future;

use first_devices::machines;
use lapidary::{DeviceMatrix, DevicePivots, ErrorKind, Gemm, Machine, MatMut, MatRef, Op, Result, Select, Settings, Stream, Trsm};

const N: usize = 8;

fn identity(machine: &Machine) -> DeviceMatrix<f32> {
    let identity: Vec<f32> = (0..N * N).map(|at| f32::from(at % N == at / N)).collect();
    machine.upload_to(0, MatRef::col_major(&identity, N, N).unwrap()).unwrap()
}

/// Pivots of a factorisation that exchanges each row with the last row.
fn pivots(machine: &Machine, stream: &Stream) -> DevicePivots {
    let mut pivots = machine.pivots_on(0, N).unwrap();
    stream.write_pivots(&[N as i32 - 1; N], N, &mut pivots).unwrap();
    pivots
}

fn refused<R: Debug>(outcome: Result<R>, operation: &str, message: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert_eq!(error.to_string(), format!("{operation}: invalid argument: {message}"));
}

#[test]
fn an_operand_elsewhere_is_named() {
    for machine in machines() {
        let stream = machine.stream(0).unwrap();
        let (a, mut c, mut own) = (identity(&machine), identity(&machine), pivots(&machine, &stream));
        let cpus = Machine::open(&"cpu:0,1".parse().unwrap()).unwrap();
        let elsewhere = cpus.stream(0).unwrap();
        let (mut foreign, mut theirs) = (identity(&cpus), pivots(&cpus, &elsewhere));
        // the message is that of the operand that lies elsewhere
        let other = "belongs to another machine";
        refused(stream.gemm(Gemm::new(a.view(), foreign.view(), c.view_mut())), "gemm", &format!("B {other}"));
        refused(stream.gemm(Gemm::new(a.view(), a.view(), foreign.view_mut().t())), "gemm", &format!("C {other}"));
        refused(stream.trsm(Trsm::new(foreign.view(), c.view_mut())), "trsm", &format!("A {other}"));
        refused(stream.copy(foreign.view(), c.view_mut()), "copy", &format!("`from` {other}"));
        refused(stream.copy(a.view(), foreign.view_mut()), "copy", &format!("`to` {other}"));
        refused(stream.read(&foreign), "read", &format!("`from` {other}"));
        refused(stream.write(vec![0.0; N * N], &mut foreign), "write", &format!("`to` {other}"));
        refused(stream.getrf(foreign.view_mut()), "getrf", &format!("A {other}"));
        refused(stream.getrf_into(foreign.view_mut(), &mut own), "getrf", &format!("A {other}"));
        refused(stream.getrf_into(c.view_mut(), &mut theirs), "getrf", &format!("`pivots` {other}"));
        refused(stream.getrs(Op::NoTrans, foreign.view(), &own, c.view_mut()), "getrs", &format!("A {other}"));
        refused(stream.getrs(Op::NoTrans, a.view(), &theirs, c.view_mut()), "getrs", &format!("`pivots` {other}"));
        refused(stream.getrs(Op::NoTrans, a.view(), &own, foreign.view_mut()), "getrs", &format!("B {other}"));
        refused(stream.laswp(c.view_mut(), &theirs, true), "laswp", &format!("`pivots` {other}"));
        refused(stream.laswp(foreign.view_mut().t(), &own, true), "laswp", &format!("A {other}"));
        refused(stream.read_pivots(&theirs), "read_pivots", &format!("`pivots` {other}"));
        refused(stream.write_pivots(&[0; N], N, &mut theirs), "write_pivots", &format!("`pivots` {other}"));
        // operands on two devices of one machine
        let second = cpus.zeros_on::<f32>(1, N, N).unwrap();
        let message = "B lies on device 1, the stream is one of device 0";
        refused(elsewhere.gemm(Gemm::new(foreign.view(), second.view(), identity(&cpus).view_mut())), "gemm", message);
        stream.wait().unwrap();
        elsewhere.wait().unwrap();
    }
}

#[test]
fn a_transposed_view_is_refused_only_where_it_cannot_be_used() {
    for machine in machines() {
        let stream = machine.stream(0).unwrap();
        let (a, mut c, own) = (identity(&machine), identity(&machine), pivots(&machine, &stream));
        let message = "is a transposed view; pass the matrix untransposed";
        refused(stream.copy(a.view().t(), c.view_mut()), "copy", &format!("`from` {message}"));
        refused(stream.copy(a.view(), c.view_mut().t()), "copy", &format!("`to` {message}"));
        refused(stream.getrf(c.view_mut().t()), "getrf", &format!("A {message}"));
        stream.gemm(Gemm::new(a.view().t(), a.view(), c.view_mut().t())).unwrap();
        stream.getrs(Op::NoTrans, a.view().t(), &own, c.view_mut().t()).unwrap();
        stream.laswp(c.view_mut().t(), &own, false).unwrap();
        stream.wait().unwrap();
    }
}

#[test]
fn a_refused_call_leaves_the_pivots_as_they_were() {
    for machine in machines() {
        let stream = machine.stream(0).unwrap();
        let (mut c, mut own) = (identity(&machine), pivots(&machine, &stream));
        let other = Machine::open(&"cpu:0".parse().unwrap()).unwrap();
        let mut foreign = identity(&other);
        let mut host = [0.0_f32; N * N];
        stream.getrf_into(MatMut::col_major(&mut host, N, N).unwrap(), &mut own).unwrap_err();
        stream.getrf_into(c.view_mut().t(), &mut own).unwrap_err();
        stream.getrf_into(foreign.view_mut(), &mut own).unwrap_err();
        stream.getrf_into(c.view_mut().sub(0..N - 1, 0..N), &mut own).unwrap_err();
        stream.write_pivots(&[N as i32; N], N, &mut own).unwrap_err();
        let (ipiv, info) = stream.read_pivots(&own).unwrap().wait().unwrap();
        assert_eq!((ipiv, info.get()), (vec![N as i32 - 1; N], 0));
        // another machine refuses the pivots, and they stay usable where they lie
        let elsewhere = other.stream(0).unwrap();
        elsewhere.getrf_into(foreign.view_mut(), &mut own).unwrap_err();
        elsewhere.write_pivots(&[0; N], N, &mut own).unwrap_err();
        stream.laswp(c.view_mut(), &own, true).unwrap();
        stream.wait().unwrap();
    }
}

#[test]
fn a_lack_of_memory_names_the_call_and_the_pivots() {
    let limit = N * N * 4 + 64;
    let machine = Machine::with_settings(&Select::cpu(0), &Settings::default().memory_limit(Some(limit))).unwrap();
    let out_of_memory = |error: lapidary::Error, begin: &str, part: &str| {
        let text = error.to_string();
        assert!(error.kind() == ErrorKind::OutOfMemory && text.starts_with(begin) && text.contains(part), "{text}");
    };
    let name = |operation: &str| format!("{operation}: out of device memory: ");
    out_of_memory(machine.zeros_on::<f32>(0, 2 * N, N).unwrap_err(), &name("zeros_on"), "512 bytes");
    out_of_memory(machine.pivots_on(0, 100).unwrap_err(), &name("pivots_on"), "memory: 100 pivots");
    let (mut a, stream) = (machine.zeros_on::<f32>(0, N, N).unwrap(), machine.stream(0).unwrap());
    let _full = machine.zeros_on::<f32>(0, 4, 4).unwrap();
    out_of_memory(stream.getrf(a.view_mut()).unwrap_err(), &name("getrf"), "memory: 8 pivots");
}

/// An application destroys its wgpu device.
#[cfg(feature = "wgpu")]
#[test]
fn the_error_of_a_lost_device_names_the_call_and_says_what_to_do() {
    let Some((machine, device)) = shared_wgpu::shared() else { return };
    let (stream, a) = (machine.stream(0).unwrap(), identity(&machine));
    device.destroy();
    // wgpu reports the loss when the device has completed its work, and errors of another kind before
    let start = std::time::Instant::now();
    let read = loop {
        let outcome = stream.read(&a).and_then(lapidary::Reading::wait).map(drop);
        let _ = stream.wait();
        match outcome {
            Err(error) if error.kind() == ErrorKind::DeviceLost => break error,
            outcome => assert!(start.elapsed().as_secs() < 60, "the loss is not found: {outcome:?}"),
        }
    };
    let allocated = machine.zeros_on::<f32>(0, N, N).map(drop).unwrap_err();
    for (error, call) in [(read, "read"), (allocated, "zeros_on")] {
        let text = error.to_string();
        assert!(text.starts_with(&format!("{call}: device lost: the application has destroyed the device (step: ")), "{text}");
        assert!(text.contains("advice: open a new machine"), "{text}");
    }
}

#[test]
#[should_panic(expected = "`ReadingPivots` was polled after it had completed")]
fn a_future_that_is_polled_after_its_end_names_itself() {
    use std::task::{Context, Waker};

    let machine = Machine::open(&"cpu:0".parse().unwrap()).unwrap();
    let stream = machine.stream(0).unwrap();
    let mut read = Box::pin(stream.read_pivots(&pivots(&machine, &stream)).unwrap());
    let _ = pollster::block_on(read.as_mut()).unwrap();
    let _ = Future::poll(read.as_mut(), &mut Context::from_waker(Waker::noop()));
}
