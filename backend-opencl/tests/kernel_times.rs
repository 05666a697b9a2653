//! Tests of the times of kernels.

use std::sync::Arc;

use lapidary_backend_opencl::{OpenClDevice, list};
use lapidary_conformance::Instructions;
use lapidary_core::{DType, Device, ProgramCache};

/// A device that was opened to record times records the time of each kernel, with the operation of the kernel, in the order of the starts.
#[test]
fn times_of_kernels() {
    let listing = list();
    let Some(first) = listing.devices.iter().position(|found| found.facts.computes(DType::F64)) else {
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no OpenCL device: {:?}", listing.notes);
        eprintln!("not run: {:?}", listing.notes);
        return;
    };
    let open = || OpenClDevice::open(first, None, Arc::new(ProgramCache::new(None))).unwrap();
    assert!(open().take_kernel_times().is_none());
    let device = open().with_kernel_times().unwrap();
    let take = || device.take_kernel_times().expect("the device records times").unwrap();
    assert_eq!(take(), []);
    Instructions(&device).panels::<f64>();
    let times = take();
    let operations = ["getrf", "laswp", "trsm", "gemm"].map(|operation| times.iter().any(|time| time.operation == operation));
    assert_eq!((operations, times[0].start), ([true; 4], 0.0));
    let is_named = |kernel| times.iter().filter(|time| time.kernel == kernel).all(|time| time.operation == "getrf");
    assert!(is_named("getrf_panel"));
    assert!(times.iter().all(|time| time.start <= time.end && time.end < 600.0 && time.queue == 0));
    assert!(times.is_sorted_by(|one, other| one.start <= other.start));
    assert!(times.last().unwrap().end > 0.0, "the clock runs");
    assert_eq!(take(), []);
}
