//! What a device does that is slow, full or gone.

use std::sync::Arc;
use std::time::Duration;

use lapidary_backend_wgpu::{WgpuDevice, list};
use lapidary_core::{Device, ErrorKind, HostRect, ProgramCache};

/// The first adapter as a device; none where there is no adapter.
fn first() -> Option<WgpuDevice> {
    let listing = list();
    let required = std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_some();
    assert!(!listing.devices.is_empty() || !required, "no adapter: {:?}", listing.notes);
    listing.devices.first().map(|_| WgpuDevice::open(0, None, Arc::new(ProgramCache::new(None))).unwrap())
}

#[test]
fn a_wait_that_lasts_too_long_ends_and_the_device_counts_as_lost() {
    let Some(device) = first() else { return };
    let mut numbers = vec![1.0_f32; 1 << 20];
    let rect = HostRect { origin: numbers.as_mut_ptr(), row_stride: 1, col_stride: 1 << 20, rows: 1 << 20, cols: 1 };
    let buffer = device.alloc(4 << 20).unwrap();
    // SAFETY: the rectangle is ours, and nothing else touches it or the buffer.
    unsafe { device.write(rect, &buffer).unwrap() };
    let device = device.with_patience(Duration::ZERO);
    // SAFETY: as before.
    let error = unsafe { device.write(rect, &buffer).unwrap_err() };
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
