//! Tests of the devices that take part in a call, and of their shares.

use lapidary_core::algorithms::{gemm, getrf};
use lapidary_core::null::NullDevice;
use lapidary_core::{DType, Layout, MatMut, MatRef, Op, Value};

use super::*;
use crate::Settings;
use crate::machine::read_column;
use crate::open::boxed;

const N: usize = 1200;

/// The devices that take part in an LU of order N, if two devices have the given bytes of memory, speeds and models. A device without memory of
/// its own works in place.
fn factoring(memory: [Option<usize>; 2], speeds: [f64; 2], models: [&str; 2]) -> Vec<usize> {
    factoring_of_order(N, memory, speeds, models)
}

/// The devices that take part in an LU of order n, as in [`factoring`].
fn factoring_of_order(n: usize, memory: [Option<usize>; 2], speeds: [f64; 2], models: [&str; 2]) -> Vec<usize> {
    let device = |at: usize| boxed(NullDevice::new(memory[at]).with_model(models[at]).with_flops(speeds[at]));
    let machine = Machine::of(vec![device(0), device(1)], &Settings::default());
    speeds.into_iter().zip(0..).for_each(|(flops, device)| machine.set_product_rate(device, DType::F64, flops));
    let problem = getrf::Problem::pivoted((n, n), Layout::ColMajor, DType::F64);
    let (problem, mut a, ipiv) = (Problem::Getrf { problem, nb: None }, vec![1.0; n * n], vec![0; n]);
    let memory = [MatMut::col_major(&mut a, n, n).unwrap().raw(), read_column(&ipiv).unwrap(), read_column(&[0]).unwrap()];
    Planner { machine: &machine, problem: &problem, memory: &memory, devices: &[0, 1], resident: false }.taking_part()
}

/// A device that is too slow for a share of an LU takes no part in it, so that the other device holds the matrix as if it were alone.
#[test]
fn a_device_without_a_share_takes_no_part_in_an_lu() {
    let of_speed = |slow| factoring([Some(64 << 20); 2], [1e9, slow], ["fast", "slow"]);
    assert_eq!([5e8, 9.9e7].map(of_speed), [vec![0, 1], vec![0]]);
    // a matrix beyond the memory of the fast device, and a slow device that works in place
    let beyond = |slow| factoring([Some(N * N * 4), None], [1e9, slow], ["fast", "slow"]);
    assert_eq!([5e8, 9.9e7].map(beyond), [vec![0, 1], vec![0]]);
}

/// A device gets a share if its estimated speed is at least half, or its measured speed at least a tenth, of the speed of the fastest device.
#[test]
fn a_slow_device_has_a_share_once_its_speed_is_measured() {
    let device = |model, flops| boxed(NullDevice::new(Some(64 << 20)).with_model(model).with_flops(flops));
    let machine = Machine::of(vec![device("fast", 1e12), device("slow", 4e11), device("other", 6e11)], &Settings::default());
    let x = vec![1.0; N * N];
    let (raw, alpha) = (MatRef::col_major(&x, N, N).unwrap().raw(), Value::F64(1.0));
    let problem = gemm::Problem { m: N, n: N, k: N, alpha, op_a: Op::NoTrans, op_b: Op::NoTrans, beta: alpha };
    let (problem, memory) = (Problem::Gemm(problem), [raw; 3]);
    let planner = Planner { machine: &machine, problem: &problem, memory: &memory, devices: &[0, 1, 2], resident: false };
    assert_eq!(planner.shares(), [16, 0, 9]);
    // By the estimates, the call is not long. The machine therefore measures the speeds only after a call that took a second.
    let is_measured_after = |seconds| {
        planner.record(Duration::from_secs_f64(seconds));
        planner.measured();
        [0, 1, 2].map(|device| machine.has_product_rate(device, DType::F64))
    };
    assert_eq!([0.9, 1.0].map(is_measured_after), [[false; 3], [true; 3]]);
    [(0, 1e12), (1, 4e11), (2, 9e10)].into_iter().for_each(|(device, flops)| machine.set_product_rate(device, DType::F64, flops));
    assert_eq!(planner.shares(), [16, 6, 0]);
}

/// One of two equal devices factors a matrix that is small for their speed or small in general, unless its memory has no room for the matrix.
#[test]
fn a_matrix_that_is_small_for_the_devices_is_factored_by_one() {
    let of = |memory, speed| factoring([Some(memory); 2], [speed; 2], ["one"; 2]);
    assert_eq!([1e9, 1e12].map(|speed| of(64 << 20, speed)), [vec![0, 1], vec![0]]);
    assert_eq!(of(N * N * 8, 1e12), [0, 1]);
    let of_order = |n| factoring_of_order(n, [Some(64 << 20); 2], [1e9; 2], ["one"; 2]);
    assert_eq!([LEAST_DISTRIBUTED - 1, LEAST_DISTRIBUTED].map(of_order), [vec![0], vec![0, 1]]);
    // of two devices of which one works in place, the faster one; two devices that work in place
    let beside = |n, speeds| factoring_of_order(n, [None, Some(64 << 20)], speeds, ["in place", "copying"]);
    let small = LEAST_DISTRIBUTED - 1;
    assert_eq!([beside(small, [2e9, 1e9]), beside(small, [1e9, 2e9]), beside(N, [2e9, 1e9])], [vec![0], vec![1], vec![0, 1]]);
    assert_eq!(factoring_of_order(small, [None; 2], [1e9; 2], ["one"; 2]), [0, 1]);
}

/// If two devices together have no room for a matrix, one of them factors it left-looking, unless transfers are fast.
#[test]
fn a_matrix_beyond_the_memory_of_all_devices_is_factored_by_one() {
    let of_speed = |speed| factoring([Some(N * N * 2); 2], [speed; 2], ["one"; 2]);
    assert_eq!([1e9, 1e12].map(of_speed), [vec![0, 1], vec![0]]);
}
