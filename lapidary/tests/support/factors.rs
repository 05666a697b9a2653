//! Tests of solves while a device keeps the factors, and after the device has freed them.

use std::sync::{Arc, Mutex};

use lapidary::{Layout, Machine, MatMut, Op, Reason, Scalar};

/// Order of the matrix A. A factorisation of this order is not a small call, and no block size divides the order.
const N: usize = 301;
/// Number of right-hand sides in solves with several right-hand sides.
const COLS: usize = 7;
/// Threshold of bound 9 in docs/numerics.md.
const HPL_THRESHOLD: f64 = 16.0;

/// Returns the row and the column of an element of a packed matrix.
fn place(element: usize, rows: usize, cols: usize, layout: Layout) -> (usize, usize) {
    if layout == Layout::ColMajor { (element % rows, element / rows) } else { (element / cols, element % cols) }
}

/// Makes a packed matrix from a function of row and column.
fn packed<T: Scalar>(rows: usize, cols: usize, layout: Layout, at: impl Fn(usize, usize) -> f64) -> Vec<T> {
    let element = |e| place(e, rows, cols, layout);
    (0..rows * cols).map(|e| T::from_f64(at(element(e).0, element(e).1))).collect()
}

fn view<T: Scalar>(data: &mut [T], rows: usize, cols: usize, layout: Layout) -> MatMut<'_, T> {
    let ld = if layout == Layout::ColMajor { rows } else { cols };
    MatMut::new(data, rows, cols, ld, layout).unwrap()
}

/// Returns multiples of 1/64, which both element types represent exactly.
fn noise(seed: usize) -> f64 {
    ((seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as f64 / 64.0 - 0.5
}

/// Solves with A and Aᵀ, with one and with several right-hand sides, in both layouts. Each solve runs first with the factors on
/// the device, then with the factors in host memory.
pub fn solves_with_kept_factors<T: Scalar>(machine: Machine) {
    let reasons = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&reasons);
    let machine = machine.explained(move |explanation| told.lock().unwrap().push((explanation.reason, explanation.devices.len())));
    let all = machine.devices().count();
    let layouts = [Layout::ColMajor, Layout::RowMajor];
    let (at, b_at) = (|i: usize, j: usize| noise(i + j * N), |i: usize, j: usize| noise(N * N + i + j * N));
    for layout in layouts {
        let mut a = packed::<T>(N, N, layout, at);
        let lu = machine.getrf(view(&mut a, N, N, layout)).unwrap();
        for factors in ["kept", "freed"] {
            for (op, nrhs, of_b) in [Op::NoTrans, Op::Trans]
                .into_iter()
                .flat_map(|op| [1, COLS].into_iter().flat_map(move |nrhs| layouts.into_iter().map(move |of_b| (op, nrhs, of_b))))
            {
                let mut x = packed::<T>(N, nrhs, of_b, b_at);
                lu.solve_with(op, view(&mut x, N, nrhs, of_b)).unwrap();
                // each device of the machine has a part of the factors
                let is_on_devices = reasons.lock().unwrap().last() == Some(&(Reason::Resident, all));
                assert_eq!(is_on_devices, factors == "kept", "{layout} {op}, {nrhs} columns {of_b}");
                let of_a = |i: usize, j: usize| if op == Op::NoTrans { at(i, j) } else { at(j, i) };
                for column in 0..nrhs {
                    let x: Vec<f64> =
                        (0..N * nrhs).filter(|&e| place(e, N, nrhs, of_b).1 == column).map(|e| x[e].to_f64()).collect();
                    let residual = residual(of_a, |i| b_at(i, column), &x) / (2.0 * T::UNIT_ROUNDOFF);
                    assert!(residual < HPL_THRESHOLD, "{layout} {op}, {nrhs} columns {of_b}, {factors}: {residual}");
                }
            }
            machine.trim();
        }
    }
}

/// Computes ‖A·x − b‖∞ / ((‖A‖∞·‖x‖∞ + ‖b‖∞)·n).
fn residual(a: impl Fn(usize, usize) -> f64, b: impl Fn(usize) -> f64, x: &[f64]) -> f64 {
    let largest = |of: &dyn Fn(usize) -> f64| {
        (0..N).map(of).fold(0.0, |most: f64, value| if value > most || value.is_nan() { value } else { most })
    };
    let difference = largest(&|i| ((0..N).map(|j| a(i, j) * x[j]).sum::<f64>() - b(i)).abs());
    let norm = largest(&|i| (0..N).map(|j| a(i, j).abs()).sum());
    difference / ((norm * largest(&|i| x[i].abs()) + largest(&|i| b(i).abs())) * N as f64)
}
