//! Tests the errors that a device returns if it is slow, out of memory or lost.

use std::sync::Arc;
use std::time::Duration;

use lapidary_backend_wgpu::{WgpuDevice, list, wgpu};
use lapidary_core::{BufferRect, DType, Device, ErrorKind, HostRect, Instruction, Op, Operand, ProgramCache, Value};

/// Opens the first adapter as a device, or returns `None` if there is no adapter.
fn first() -> Option<WgpuDevice> {
    let listing = list();
    let required = std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_some();
    assert!(!listing.devices.is_empty() || !required, "no adapter: {:?}", listing.notes);
    listing.devices.first().map(|_| WgpuDevice::open(0, None, Arc::new(ProgramCache::new(None))).unwrap())
}

/// Tests a wait whose maximum time is zero. Even on the fastest device, the product takes longer than one poll of the device.
#[test]
fn a_wait_that_lasts_too_long_ends_and_the_device_counts_as_lost() {
    const N: usize = 1024;
    let Some(device) = first() else { return };
    let buffers = [(); 3].map(|()| device.alloc(N * N * size_of::<f32>()).unwrap());
    let operand = |i: usize| Operand::packed(&buffers[i], N, N, DType::F32);
    let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
    let (alpha, beta) = (Value::F32(1.0), Value::F32(0.0));
    let product = Instruction::Gemm { alpha, op_a, a: operand(0), op_b, b: operand(1), beta, c: operand(2) };
    // SAFETY: the buffers belong to this test and have room for the operands, and nothing else accesses the buffers.
    unsafe { device.launch(&product).unwrap() };
    let device = device.with_patience(Duration::ZERO);
    // SAFETY: the buffers belong to this test and have room for the operands, and nothing else accesses the buffers.
    let error = unsafe { device.launch(&product).unwrap_err() };
    assert_eq!(error.kind(), ErrorKind::DeviceLost);
    assert!(error.to_string().contains("no answer within 0ns"), "{error}");
    assert_eq!(device.alloc(8).unwrap_err().kind(), ErrorKind::DeviceLost);
    assert!(device.lost().is_some());
}

/// Allocates more memory than the device has, in buffers of the largest allowed size. CPU drivers grant every request for memory,
/// so the test runs only on devices that are not CPUs.
#[test]
fn memory_that_runs_out_is_an_error_of_its_kind_and_passes() {
    let Some(device) = first().filter(|device| !device.facts().is_cpu()) else { return };
    let largest = device.facts().limits.buffer;
    let mut held = Vec::new();
    // no device of today has 16 TiB of memory
    let refusal = (0..(16_usize << 40) / largest).find_map(|_| device.alloc(largest).map(|buffer| held.push(buffer)).err());
    let error = refusal.expect("memory ends somewhere");
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    drop(held);
    device.alloc(1 << 10).expect("there is memory again");
}

/// Creates a wgpu device and its queue as an application does. Returns `None` if there is no adapter.
fn of_application() -> Option<(wgpu::Device, wgpu::Queue)> {
    let listing = list();
    let found = listing.devices.first()?;
    Some(pollster::block_on(found.adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap())
}

fn from_parts(device: wgpu::Device, queue: wgpu::Queue) -> lapidary_core::Result<WgpuDevice> {
    WgpuDevice::from_parts(device, queue, Arc::new(ProgramCache::new(None)))
}

#[test]
fn a_device_that_was_made_without_timestamps_records_no_times() {
    let Some((device, queue)) = of_application() else { return };
    let error = from_parts(device, queue).unwrap().with_kernel_times().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("TIMESTAMP_QUERY"), "{error}");
}

#[test]
fn a_device_that_was_destroyed_before_counts_as_lost_at_once() {
    for polled in [false, true] {
        let Some((device, queue)) = of_application() else { return };
        device.destroy();
        if polled {
            // this poll runs a device-lost callback before `from_parts` sets its own device-lost callback
            let _ = device.poll(wgpu::PollType::Poll);
        }
        let error = from_parts(device, queue).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
    }
}

#[test]
fn a_queue_of_another_device_is_refused() {
    let (Some((device, own)), Some((other, queue))) = (of_application(), of_application()) else { return };
    let error = from_parts(device.clone(), queue.clone()).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("belong together"), "{error}");
    // the failed call of `from_parts` has changed neither of the two devices
    assert!(from_parts(device, own).is_ok() && from_parts(other, queue).is_ok());
}

#[test]
fn a_queue_at_work_is_waited_for() {
    let Some((device, queue)) = of_application() else { return };
    let usage = wgpu::BufferUsages::COPY_DST;
    let long = device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 64 << 20, usage, mapped_at_creation: false });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    (0..100).for_each(|_| encoder.clear_buffer(&long, 0, None));
    queue.submit([encoder.finish()]);
    assert!(from_parts(device, queue).unwrap().alloc(8).is_ok());
}

/// Tests an application that destroys a device after `from_parts` has wrapped it, and before Lapidary runs a command on the
/// device.
#[test]
fn a_device_that_is_destroyed_is_lost_when_it_is_given_work() {
    let Some((device, queue)) = of_application() else { return };
    let ours = from_parts(device.clone(), queue).unwrap();
    let buffer = ours.alloc(8).unwrap();
    device.destroy();
    // SAFETY: the rectangle is the temporary array of two elements, which nothing else accesses.
    let error = unsafe { ours.write(HostRect::packed(&mut [1.0_f32, 2.0], 2), BufferRect::packed(&buffer, 2)).unwrap_err() };
    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
    assert!(ours.lost().is_some());
}
