//! How long devices keep the factors of a matrix.

use lapidary_core::null::{NullDevice, Record, Request};
use lapidary_core::{Gemm, MatMut, MatRef};

use crate::{Lu, Machine, Settings};

const N: usize = 240;
/// Bytes of a matrix of order N.
const BYTES: usize = N * N * size_of::<f64>();

/// A machine whose only device has memory for so many matrices of order N, and some columns.
fn machine(matrices: usize) -> Machine {
    let device = NullDevice::new(Some(matrices * BYTES + (64 << 10)));
    Machine::of(vec![Box::new(device)], &Settings::default())
}

fn record(machine: &Machine) -> Record {
    machine.drivers()[0].device().downcast::<NullDevice>().expect("a null device").record()
}

/// Ones.
fn matrix() -> Vec<f64> {
    vec![1.0; N * N]
}

fn view(a: &[f64]) -> MatRef<'_, f64> {
    MatRef::col_major(a, N, N).unwrap()
}

fn factor<'a>(machine: &Machine, a: &'a mut [f64]) -> Lu<'a, f64> {
    machine.getrf(MatMut::col_major(a, N, N).unwrap()).unwrap()
}

/// Elements that a call moves to the device.
fn moved(machine: &Machine, call: impl FnOnce()) -> usize {
    let before = record(machine).requests.len();
    call();
    let written = |request: &Request| if let Request::Write(rows, cols) = request { rows * cols } else { 0 };
    record(machine).requests[before..].iter().map(written).sum()
}

/// Elements that a solve with so many right-hand sides moves to the device.
fn solve(machine: &Machine, lu: &Lu<'_, f64>, nrhs: usize) -> usize {
    moved(machine, || lu.solve(MatMut::col_major(&mut vec![1.0; N * nrhs], N, nrhs).unwrap()).unwrap())
}

#[test]
fn a_solve_does_not_move_the_factors_again() {
    let machine = machine(8);
    let mut a = matrix();
    let lu = factor(&machine, &mut a);
    // the right-hand side and the pivots; several right-hand sides are moved for the exchanges, for L and for U
    assert_eq!([1, 1, 20].map(|nrhs| solve(&machine, &lu, nrhs)), [2 * N, 2 * N, 3 * 20 * N + N]);
    machine.trim();
    assert_eq!(record(&machine).held, 0);
    assert!(solve(&machine, &lu, 1) > N * N, "the factors come from host memory");
}

#[test]
fn the_memory_of_factors_serves_the_next_factorisation() {
    let machine = machine(8);
    let again = || {
        let before = record(&machine).requests.len();
        drop(factor(&machine, &mut matrix()));
        record(&machine).requests[before..].iter().filter(|request| matches!(request, Request::Alloc(_))).count()
    };
    assert!(again() > 0);
    assert_eq!(again(), 0);
    assert!(record(&machine).held < 2 * BYTES);
}

#[test]
fn factors_give_way_to_other_calls_oldest_first() {
    let machine = machine(4);
    let mut matrices = [matrix(), matrix(), matrix()];
    let [first, second, third] = matrices.each_mut().map(|a| factor(&machine, a));
    let are_kept = || [&first, &second, &third].map(|lu| solve(&machine, lu, 1) < N * N);
    assert_eq!(are_kept(), [true; 3]);
    let a = matrix();
    machine.gemm(Gemm::new(view(&a), view(&a), MatMut::col_major(&mut matrix(), N, N).unwrap())).unwrap();
    assert!(record(&machine).most <= 4 * BYTES + (64 << 10), "the limit: {} bytes", record(&machine).most);
    let kept = are_kept();
    assert!(!kept[0] && kept.is_sorted(), "{kept:?}");
}
