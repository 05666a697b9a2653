//! Tests of the times of kernels, with the first OpenCL device in double precision.
//!
//! If there is no such device, a test prints a message and passes, unless `LAPIDARY_REQUIRE_OPENCL` is set.
#![cfg(feature = "opencl")]

use std::path::PathBuf;

use lapidary::opencl::list;
use lapidary::{DType, ErrorKind, Getrf, KernelTime, Machine, MatRef, Settings};

/// Opens the device, which records the times of its kernels if `kernel_times` is set.
fn open(kernel_times: bool, nb: Option<usize>) -> Option<Machine> {
    let listing = list();
    let Some(first) = listing.devices.iter().position(|found| found.facts.computes(DType::F64)) else {
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no OpenCL device: {:?}", listing.notes);
        eprintln!("not run: {:?}", listing.notes);
        return None;
    };
    let settings = Settings::default().kernel_times(kernel_times).nb(nb).cache_dir(PathBuf::new());
    Some(Machine::with_settings(&format!("opencl:{first}").parse().unwrap(), &settings).unwrap())
}

#[test]
fn a_device_records_no_times_unless_the_setting_says_so() {
    let Some(machine) = open(false, None) else { return };
    let error = machine.take_kernel_times().unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("`kernel_times`"), "{error}");
}

#[test]
fn kernels_of_both_queues_are_timed() {
    let Some(machine) = open(true, Some(24)) else { return };
    let n = 100;
    let a: Vec<f64> = (0..n * n).map(|at| f64::from(u32::try_from(at * at % 97).unwrap())).collect();
    let mut a = machine.upload(MatRef::col_major(&a, n, n).unwrap()).unwrap();
    let mut ipiv = vec![0; n];
    machine.getrf_into(Getrf::new(a.view_mut(), &mut ipiv)).unwrap().check().unwrap();
    let times = machine.take_kernel_times().unwrap().remove(0);
    let ran = |queue, operation| times.iter().any(|time| (time.queue, time.operation) == (queue, operation));
    assert!(ran(0, "getrf") && ran(1, "gemm") && ran(1, "trsm"), "{times:?}");
    // the kernels of a queue run one after the other, on one clock
    for queue in [0, 1] {
        let of_queue: Vec<&KernelTime> = times.iter().filter(|time| time.queue == queue).collect();
        assert!(of_queue.is_sorted_by(|one, next| one.end <= next.start), "{times:?}");
    }
    assert_eq!(machine.take_kernel_times().unwrap(), [vec![]]);
}
