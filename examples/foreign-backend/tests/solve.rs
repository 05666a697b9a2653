//! Tests machines whose devices belong to a crate outside the workspace of Lapidary.

use foreign_backend::LoopDevice;
use lapidary::backend::Device;
use lapidary::{Machine, MatMut, Settings};

/// The system of this test is diagonally dominant, and each element of its solution is 1.
#[test]
fn a_machine_solves_on_devices_of_another_crate() {
    const N: usize = 250;
    let devices = (0..2).map(|index| Box::new(LoopDevice::new(index, 64 << 10)) as Box<dyn Device>).collect();
    let machine = Machine::with_devices(devices, &Settings::default()).unwrap().traced();
    let mut a: Vec<f64> = (0..N * N).map(|e| (e % 7) as f64 / 7.0).collect();
    (0..N).for_each(|i| a[i + i * N] += N as f64);
    let mut b: Vec<f64> = (0..N).map(|i| (0..N).map(|j| a[i + j * N]).sum()).collect();
    let _lu = machine.gesv(MatMut::col_major(&mut a, N, N).unwrap(), MatMut::col_major(&mut b, N, 1).unwrap()).unwrap();
    assert!(b.iter().all(|x| (x - 1.0).abs() < 1e-12), "{b:?}");
    let events = machine.take_trace();
    assert!(["loops:0", "loops:1"].iter().any(|name| events.iter().any(|event| event.device == *name)), "both are idle");
}

#[test]
fn a_machine_of_no_device_is_refused() {
    assert!(Machine::with_devices(Vec::new(), &Settings::default()).unwrap_err().to_string().contains("no device is given"));
}
