//! Tests of how long devices keep the factors of a matrix.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lapidary_core::null::{NullDevice, Record, Request};
use lapidary_core::{Gemm, MatMut, MatRef};

use crate::{Lu, Machine, Settings};

const N: usize = 240;
/// Size in bytes of a matrix of order N.
const BYTES: usize = N * N * size_of::<f64>();

/// Number of bytes for columns, such as pivots.
const COLUMNS: usize = 64 << 10;

/// A machine whose only device has memory for `matrices` matrices of order N and some columns.
fn machine(matrices: usize) -> Machine {
    let device = NullDevice::new(Some(matrices * BYTES + COLUMNS));
    Machine::of(vec![Box::new(device)], &Settings::default())
}

fn record(machine: &Machine) -> Record {
    machine.runtimes()[0].device().downcast::<NullDevice>().expect("a null device").record()
}

/// Returns a matrix of ones of order N.
fn matrix() -> Vec<f64> {
    vec![1.0; N * N]
}

fn view(a: &[f64]) -> MatRef<'_, f64> {
    MatRef::col_major(a, N, N).unwrap()
}

fn factor<'a>(machine: &Machine, a: &'a mut [f64]) -> Lu<'a, f64> {
    machine.getrf(MatMut::col_major(a, N, N).unwrap()).unwrap()
}

/// Returns the number of elements that a call transfers to the device.
fn moved(machine: &Machine, call: impl FnOnce()) -> usize {
    let before = record(machine).requests.len();
    call();
    let written = |request: &Request| if let Request::Write(rows, cols) = request { rows * cols } else { 0 };
    record(machine).requests[before..].iter().map(written).sum()
}

/// Returns the number of elements that a solve with `nrhs` right-hand sides transfers to the device.
fn solve(machine: &Machine, lu: &Lu<'_, f64>, nrhs: usize) -> usize {
    moved(machine, || lu.solve(MatMut::col_major(&mut vec![1.0; N * nrhs], N, nrhs).unwrap()).unwrap())
}

#[test]
fn a_device_that_does_not_state_its_memory_keeps_the_newest_factors() {
    let machine = Machine::of(vec![Box::new(NullDevice::new(Some(0)).without_stated_memory())], &Settings::default());
    let mut matrices = [matrix(), matrix()];
    let factors = matrices.each_mut().map(|a| factor(&machine, a));
    assert_eq!([1, 1].map(|number| solve(&machine, &factors[number], 1)), [2 * N; 2]);
    assert!(solve(&machine, &factors[0], 1) > N * N);
}

#[test]
fn parts_of_factors_leave_no_copy_on_the_device() {
    let machine = machine(8);
    let mut a = matrix();
    let lu = factor(&machine, &mut a);
    let held = || {
        machine.runtimes()[0].release_registers();
        record(&machine).held
    };
    let before = held();
    let _ = lu.into_parts();
    assert_eq!([before, held()], [BYTES, 0]);
}

#[test]
fn a_solve_does_not_move_the_factors_again() {
    let machine = machine(8);
    let mut a = matrix();
    let lu = factor(&machine, &mut a);
    // A solve with one right-hand side transfers the right-hand side and the pivots. A solve with several right-hand sides
    // transfers the right-hand sides three times: for the row exchanges, for L and for U.
    assert_eq!([1, 1, 20].map(|nrhs| solve(&machine, &lu, nrhs)), [2 * N, 2 * N, 3 * 20 * N + N]);
    machine.trim();
    assert_eq!(record(&machine).held, 0);
    assert!(solve(&machine, &lu, 1) > N * N, "the factors come from host memory");

    let owned = machine.getrf_owned(matrix(), N).unwrap();
    assert_eq!(solve(&machine, &owned, 1), 2 * N);
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
    let machine = machine(8);
    let mut matrices = [(); 6].map(|()| matrix());
    let factors = matrices.each_mut().map(|a| factor(&machine, a));
    let are_kept = || factors.each_ref().map(|lu| solve(&machine, lu, 1) < N * N);
    assert_eq!(are_kept(), [true; 6]);
    // a product in one tile uses three matrices, so the device keeps the factors of five matrices
    let a = matrix();
    machine.gemm(Gemm::new(view(&a), view(&a), MatMut::col_major(&mut matrix(), N, N).unwrap())).unwrap();
    assert_eq!(are_kept(), [false, true, true, true, true, true]);
    assert!(record(&machine).most <= 8 * BYTES + COLUMNS, "{} bytes", record(&machine).most);
    // four uploaded matrices and the factors of five do not fit into the memory of eight matrices, so the oldest copy is freed
    let uploaded = [(); 4].map(|()| machine.upload(view(&a)).unwrap());
    // factors without a copy are checked last, since a solve with them may free copies of other factors
    let is_kept = |number: usize| solve(&machine, &factors[number], 1) < N * N;
    assert_eq!([2, 3, 4, 5, 1].map(is_kept), [true, true, true, true, false]);
    // a call on resident matrices frees all copies of factors, since it may need scratch memory
    let [a, mut c, ..] = uploaded;
    machine.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).unwrap();
    assert_eq!(are_kept(), [false; 6]);
}

#[test]
fn factors_that_no_solve_takes_are_not_kept() {
    let machine = machine(8);
    let mut a = matrix();
    let held = |shape: (usize, usize), a: &mut [f64]| {
        machine.trim();
        let lu = machine.getrf(MatMut::col_major(a, shape.0, shape.1).unwrap()).unwrap();
        machine.runtimes()[0].release_registers();
        let held = record(&machine).held;
        drop(lu);
        held
    };
    assert_eq!([(N, N), (N, N / 2), (N / 2, N)].map(|shape| held(shape, &mut a)), [BYTES, 0, 0]);
}

/// A solve with a device's copy that runs out of memory starts again with the factors in host memory, unless elements of B have
/// been written.
#[test]
fn a_solve_that_lacks_memory_begins_again_with_the_factors_in_host_memory() {
    let (mut first, mut last) = (0, 0);
    for request in 0.. {
        let device = NullDevice::new(Some(8 * BYTES)).out_of_memory_at(request);
        let machine = Machine::of(vec![Box::new(device)], &Settings::default());
        let mut a = matrix();
        let Ok(lu) = machine.getrf(MatMut::col_major(&mut a, N, N).unwrap()) else { continue };
        if record(&machine).requests.len() > request {
            continue;
        }
        let mut b = vec![1.0; N];
        let solved = lu.solve(MatMut::col_major(&mut b, N, 1).unwrap());
        let requests = record(&machine).requests;
        if requests.len() <= request {
            last = request - 1;
            break;
        }
        first = if first == 0 { request } else { first };
        let is_read = matches!(requests[request], Request::Read(..));
        assert_eq!(solved.is_err(), is_read, "request {request}: {:?}", requests[request]);
        assert!(solved.is_ok_and(|()| requests[request..].contains(&Request::Write(N, N))) || is_read, "request {request}");
    }
    assert!(last - first >= 5, "columns are written, kernels run, and the solution is read");
}

/// Two threads that factor and solve, and one thread that multiplies, stay within the memory limit.
#[test]
fn threads_that_share_a_device_stay_within_its_memory() {
    let (machine, factoring, start) = (machine(4), AtomicUsize::new(2), Instant::now());
    let is_late = || start.elapsed() > Duration::from_secs(60);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (mut round, mut kept, mut freed) = (0, 0, 0);
                while !is_late() && (round < 600 || kept == 0 || freed == 0) {
                    round += 1;
                    let mut a = matrix();
                    let lu = factor(&machine, &mut a);
                    for _ in 0..3 {
                        let is_kept = lu.is_kept();
                        (kept, freed) = (kept + usize::from(is_kept), freed + usize::from(!is_kept));
                        lu.solve(MatMut::col_major(&mut vec![1.0; N], N, 1).unwrap()).unwrap();
                    }
                }
                factoring.fetch_sub(1, Ordering::Relaxed);
                assert!(kept > 0 && freed > 0, "{kept} solves with kept factors, {freed} with others");
            });
        }
        scope.spawn(|| {
            let a = matrix();
            while factoring.load(Ordering::Relaxed) > 0 && !is_late() {
                machine.gemm(Gemm::new(view(&a), view(&a), MatMut::col_major(&mut matrix(), N, N).unwrap())).unwrap();
            }
        });
    });
    let most = record(&machine).most;
    assert!(most <= 4 * BYTES + COLUMNS, "{most} bytes of {}", 4 * BYTES + COLUMNS);
}
