//! What factors are good for: solves with A and Aᵀ, refinement, the condition.

use lapidary::{ErrorKind, Lu, Machine, MatMut, MatRef, Op, Select};

const N: usize = 90;

fn machine() -> Machine {
    Machine::open(&"cpu:0,1".parse::<Select>().unwrap()).unwrap()
}

/// A well-conditioned matrix whose large entries stand below the diagonal, so
/// that rows must be exchanged.
fn matrix() -> Vec<f64> {
    let noise = |e: usize| ((e as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1_u64 << 24) as f64 - 0.5;
    let large = |e: usize| if e % N == (e / N + 1) % N { N as f64 } else { 0.0 };
    (0..N * N).map(|e| noise(e) + large(e)).collect()
}

fn column(data: &mut [f64]) -> MatMut<'_, f64> {
    let rows = data.len();
    MatMut::col_major(data, rows, 1).unwrap()
}

fn factor<'m, 'a>(machine: &'m Machine, a: &'a mut [f64]) -> Lu<'m, 'a, f64> {
    machine.getrf(MatMut::col_major(a, N, N).unwrap()).unwrap()
}

/// op(A)·x.
fn times(op: Op, a: &[f64], x: &[f64]) -> Vec<f64> {
    let at = |i: usize, j: usize| if op == Op::NoTrans { a[i + j * N] } else { a[j + i * N] };
    (0..N).map(|i| (0..N).map(|j| at(i, j) * x[j]).sum()).collect()
}

#[test]
fn solves_with_the_matrix_and_with_the_transposed_one() {
    let (machine, a) = (machine(), matrix());
    let mut lu = a.clone();
    let lu = factor(&machine, &mut lu);
    let expected: Vec<f64> = (0..N).map(|i| 1.0 + i as f64 / N as f64).collect();
    for op in [Op::NoTrans, Op::Trans] {
        let mut x = times(op, &a, &expected);
        lu.solve_with(op, column(&mut x)).unwrap();
        assert!(x.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-9), "{op}: {x:?}");
    }
}

#[test]
fn refinement_mends_a_spoiled_solution() {
    let (machine, a) = (machine(), matrix());
    let mut lu = a.clone();
    let lu = factor(&machine, &mut lu);
    let b = times(Op::NoTrans, &a, &[1.0; N]);
    let mut x: Vec<f64> = (0..N).map(|i| 1.0 + 1e-3 * (i % 7) as f64).collect();
    let view = |data, cols| MatRef::col_major(data, N, cols).unwrap();
    let refined = lu.refine(view(&a, N), view(&b, 1), column(&mut x)).unwrap();
    assert!(refined.steps > 0 && refined.backward_error < 8.0 * f64::EPSILON, "{refined:?}");
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-9), "{x:?}");
}

#[test]
fn the_condition_of_a_known_matrix() {
    // A = D with d(i) = 1 + i, one row exchanged with another: ‖A‖₁ = N, ‖A⁻¹‖₁ = 1
    let mut a = vec![0.0; N * N];
    (0..N).for_each(|i| a[(i + 1) % N + i * N] = 1.0 + i as f64);
    let machine = machine();
    let rcond = factor(&machine, &mut a).rcond(N as f64).unwrap();
    assert!((rcond * N as f64 - 1.0).abs() < 1e-12, "{rcond}");
}

#[test]
fn factors_of_a_matrix_that_is_not_square_solve_nothing() {
    let (machine, mut a, mut x) = (machine(), [1.0; 6], [1.0; 3]);
    let lu = machine.getrf(MatMut::col_major(&mut a, 3, 2).unwrap()).unwrap();
    let error = lu.solve(column(&mut x)).unwrap_err().to_string();
    assert!(error.contains("3×2, not square"), "{error}");
}

#[test]
fn a_norm_that_is_negative_is_refused_and_one_that_is_no_number_gives_none() {
    let (machine, mut a) = (machine(), matrix());
    let lu = factor(&machine, &mut a);
    for norm in [-1.0, f64::NEG_INFINITY, -f64::MIN_POSITIVE] {
        let error = lu.rcond(norm).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("norm = -"), "{error}");
    }
    assert!(lu.rcond(f64::NAN).unwrap().is_nan());
}

#[test]
fn a_system_of_no_equations_takes_no_time_however_many_right_hand_sides() {
    let machine = machine();
    let lu = machine.getrf(MatMut::<f64>::col_major(&mut [], 0, 0).unwrap()).unwrap();
    let (b, x) = (MatRef::col_major(&[], 0, usize::MAX).unwrap(), MatMut::col_major(&mut [], 0, usize::MAX).unwrap());
    let refined = lu.refine(MatRef::col_major(&[], 0, 0).unwrap(), b, x).unwrap();
    assert_eq!((refined.steps, refined.backward_error), (0, 0.0));
    lu.solve(MatMut::col_major(&mut [], 0, usize::MAX).unwrap()).unwrap();
    assert_eq!(lu.rcond(0.0).unwrap(), 1.0);
}
