//! What a device does that is slow, full or gone.

use std::sync::Arc;
use std::time::Duration;

use lapidary_backend_wgpu::{WgpuDevice, list};
use lapidary_core::{Device, ErrorKind, Instruction, Memory, Op, Operand, ProgramCache};

/// The first adapter as a device; none where there is no adapter.
fn first() -> Option<WgpuDevice> {
    let listing = list();
    let required = std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_some();
    assert!(!listing.devices.is_empty() || !required, "no adapter: {:?}", listing.notes);
    listing.devices.first().map(|_| WgpuDevice::open(0, None, Arc::new(ProgramCache::new(None))).unwrap())
}

/// A product that takes the fastest device longer than it takes to look once.
#[test]
fn a_wait_that_lasts_too_long_ends_and_the_device_counts_as_lost() {
    const N: usize = 1024;
    let Some(device) = first() else { return };
    let buffers = [(); 3].map(|()| device.alloc(N * N * size_of::<f32>()).unwrap());
    let operand = |i: usize| Operand { memory: Memory::Buffer(&buffers[i]), offset: 0, rows: N, cols: N, ld: N };
    let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
    let product = Instruction::Gemm { alpha: 1.0_f32, op_a, a: operand(0), op_b, b: operand(1), beta: 0.0, c: operand(2) };
    // SAFETY: the buffers are ours and hold the operands.
    unsafe { device.launch(&product).unwrap() };
    let device = device.with_patience(Duration::ZERO);
    // SAFETY: as before.
    let error = unsafe { device.launch(&product).unwrap_err() };
    assert_eq!(error.kind(), ErrorKind::DeviceLost);
    assert!(error.to_string().contains("no answer within 0ns"), "{error}");
    assert_eq!(device.alloc(8).unwrap_err().kind(), ErrorKind::DeviceLost);
    assert!(device.lost().is_some());
}

/// More memory than there is, in buffers that are each allowed. Drivers for processors promise
/// whatever is asked, so that only a device with memory of its own is filled.
#[test]
fn memory_that_runs_out_is_an_error_of_its_kind_and_passes() {
    let Some(device) = first().filter(|device| !device.is_cpu()) else { return };
    let largest = device.info().largest_buffer.unwrap();
    let mut held = Vec::new();
    // 16 TiB are more than any machine of today has
    let refusal = (0..(16_usize << 40) / largest).find_map(|_| device.alloc(largest).map(|buffer| held.push(buffer)).err());
    let error = refusal.expect("memory ends somewhere");
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    drop(held);
    device.alloc(1 << 10).expect("there is memory again");
}
