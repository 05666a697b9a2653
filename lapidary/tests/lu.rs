//! Tests of operations on LU factors: solves with A and Aᵀ, refinement, condition numbers, and error bounds.

use lapidary::{ErrorKind, Layout, Lu, Machine, MatMut, MatRef, Op, OwnedLu, Select};

const N: usize = 90;

fn machine() -> Machine {
    Machine::open(&"cpu:0,1".parse::<Select>().unwrap()).unwrap()
}

/// Returns a well-conditioned matrix whose large elements lie below the diagonal, so that LU exchanges rows.
fn matrix() -> Vec<f64> {
    let noise = |e: usize| ((e as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1_u64 << 24) as f64 - 0.5;
    let large = |e: usize| if e % N == (e / N + 1) % N { N as f64 } else { 0.0 };
    (0..N * N).map(|e| noise(e) + large(e)).collect()
}

fn column(data: &mut [f64]) -> MatMut<'_, f64> {
    let rows = data.len();
    MatMut::col_major(data, rows, 1).unwrap()
}

fn factor<'a>(machine: &Machine, a: &'a mut [f64]) -> Lu<'a, f64> {
    machine.getrf(MatMut::col_major(a, N, N).unwrap()).unwrap()
}

/// Computes op(A)·x.
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
    // A is the diagonal matrix of 1, 2, …, N with permuted rows: ‖A‖₁ = N, ‖A⁻¹‖₁ = 1
    let mut a = vec![0.0; N * N];
    (0..N).for_each(|i| a[(i + 1) % N + i * N] = 1.0 + i as f64);
    let machine = machine();
    let rcond = factor(&machine, &mut a).rcond(N as f64).unwrap();
    assert!((rcond * N as f64 - 1.0).abs() < 1e-12, "{rcond}");
}

/// Returns a matrix of order 40 and its norm ‖A‖₁. `factor` returns the number by which a row is multiplied.
fn scaled(factor: impl Fn(usize) -> f64) -> (Vec<f64>, f64) {
    let full = matrix();
    let a: Vec<f64> = (0..1600).map(|e| full[e % 40 + e / 40 * N] * factor(e % 40)).collect();
    let norm = a.chunks(40).map(|column| column.iter().map(|v| v.abs()).sum()).fold(0.0, f64::max);
    (a, norm)
}

#[test]
fn the_condition_of_tiny_and_graded_matrices_is_a_number() {
    let machine = machine();
    let rcond = |(mut a, norm): (Vec<f64>, f64)| {
        let lu = machine.getrf(MatMut::col_major(&mut a, 40, 40).unwrap()).unwrap();
        lu.rcond(norm).unwrap()
    };
    let one = rcond(scaled(|_| 1.0));
    for factor in [1e-307, 1e-300, 1e300, 1e305] {
        let other = rcond(scaled(|_| factor));
        assert!((other / one - 1.0).abs() < 1e-9, "{factor}: {other}, {one} without");
    }
    // rows are scaled by 1e±300: the condition number exceeds the range of f64
    assert_eq!(rcond(scaled(|i| if i % 2 == 0 { 1e300 } else { 1e-300 })), 0.0);
}

#[test]
fn a_norm_that_is_none_is_refused() {
    let (machine, mut a) = (machine(), matrix());
    let lu = factor(&machine, &mut a);
    for norm in [-1.0, -f64::MIN_POSITIVE, f64::NEG_INFINITY, f64::INFINITY, f64::NAN] {
        let error = lu.rcond(norm).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(&format!("norm = {norm}")), "{error}");
    }
}

/// Computes the componentwise backward errors of the columns of X.
fn backward_errors(n: usize, a: &[f64], b: &[f64], x: &[f64]) -> Vec<f64> {
    let of_row = |i: usize, b: &[f64], x: &[f64]| {
        let terms = || (0..n).map(|j| a[i + j * n] * x[j]);
        (b[i] - terms().sum::<f64>()).abs() / (b[i].abs() + terms().map(f64::abs).sum::<f64>())
    };
    b.chunks(n).zip(x.chunks(n)).map(|(b, x)| (0..n).map(|i| of_row(i, b, x)).fold(0.0, f64::max)).collect()
}

/// Refinement in blocks gives each right-hand side the same result as refinement of this right-hand side alone, and never
/// increases a backward error.
#[test]
fn refinement_of_many_right_hand_sides_makes_none_worse() {
    // X has more than one block of 2^15 elements
    let (machine, n, nrhs) = (machine(), 12, 3000);
    let hilbert: Vec<f64> = (0..n * n).map(|e| 1.0 / (e % n + e / n + 1) as f64).collect();
    let b: Vec<f64> = (0..n * nrhs).map(|e| ((e * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5).collect();
    let mut factors = hilbert.clone();
    let lu = machine.getrf(MatMut::col_major(&mut factors, n, n).unwrap()).unwrap();
    let mut x = b.clone();
    lu.solve(MatMut::col_major(&mut x, n, nrhs).unwrap()).unwrap();
    // disturb every third right-hand side
    (0..n * nrhs).filter(|e| e / n % 3 == 0).for_each(|e| x[e] *= 1.0 + 1e-3 * (e % 5) as f64);
    let before = backward_errors(n, &hilbert, &b, &x);
    let (mut together, a) = (x.clone(), MatRef::col_major(&hilbert, n, n).unwrap());
    let refined =
        lu.refine(a, MatRef::col_major(&b, n, nrhs).unwrap(), MatMut::col_major(&mut together, n, nrhs).unwrap()).unwrap();
    assert!(refined.steps > 0, "{refined:?}");
    let after = backward_errors(n, &hilbert, &b, &together);
    for (k, (before, after)) in before.iter().zip(&after).enumerate() {
        assert!(*after <= before.max(4.0 * f64::EPSILON), "right-hand side {k}: {after:e}, {before:e} before");
        assert!(k % 3 != 0 || *after < 8.0 * f64::EPSILON, "right-hand side {k} stays spoiled: {after:e}");
    }
    for k in (0..nrhs).step_by(97) {
        let column = k * n..(k + 1) * n;
        let mut alone = x[column.clone()].to_vec();
        lu.refine(a, MatRef::col_major(&b[column.clone()], n, 1).unwrap(), MatMut::col_major(&mut alone, n, 1).unwrap()).unwrap();
        assert!(alone.iter().zip(&together[column]).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(1.0)), "{k}");
    }
}

#[test]
fn refinement_mends_solutions_at_the_ends_of_the_range() {
    let machine = machine();
    // ‖A‖·‖x‖ overflows or underflows, but the elements of A and x do not
    for (factor, x_size) in [(1e306, 1e2), (1e-200, 1e-110), (1e160, 1e140)] {
        let (a, _) = scaled(|_| factor);
        let (mut lu, view) = (a.clone(), MatRef::col_major(&a, 40, 40).unwrap());
        let lu = machine.getrf(MatMut::col_major(&mut lu, 40, 40).unwrap()).unwrap();
        let small = |row: usize| (0..40).map(|j| a[row + j * 40] / factor * 0.01).sum::<f64>() * (factor * x_size);
        let b: Vec<f64> = (0..40).map(small).collect();
        let mut x: Vec<f64> = (0..40).map(|i| 0.01 * x_size * (1.0 + 1e-3 * (i % 7) as f64)).collect();
        let refined = lu.refine(view, MatRef::col_major(&b, 40, 1).unwrap(), MatMut::col_major(&mut x, 40, 1).unwrap()).unwrap();
        assert!(refined.steps > 0 && refined.backward_error < 8.0 * f64::EPSILON, "{factor}: {refined:?}");
        assert!(x.iter().all(|x| (x / (0.01 * x_size) - 1.0).abs() < 1e-9), "{factor}: {x:?}");
    }
}

#[test]
fn the_error_that_a_residual_stands_for() {
    // A = [2 0; 1 4]: A⁻¹ = [1/2 0; -1/8 1/4]
    let (machine, mut a) = (machine(), [2.0, 1.0, 0.0, 4.0]);
    let lu = machine.getrf(MatMut::col_major(&mut a, 2, 2).unwrap()).unwrap();
    assert_eq!(lu.error_bound(&[4.0, 0.0], &[1.0, 1.0]).unwrap(), 2.0);
    assert_eq!(lu.error_bound(&[4.0, 8.0], &[0.0, 1.0]).unwrap(), 2.5);
    assert_eq!(lu.error_bound(&[4e300, 8e300], &[1e-300, 2e-300]).unwrap(), 5.0);
    assert_eq!(lu.error_bound(&[0.0, 0.0], &[1.0, 1.0]).unwrap(), 0.0);
    assert_eq!(lu.error_bound(&[f64::NAN, 0.0], &[1.0, 1.0]).unwrap(), f64::INFINITY);
    let error = lu.error_bound(&[0.0, 0.0], &[1.0]).unwrap_err().to_string();
    assert!(error.contains("units holds 1 elements"), "{error}");
}

#[test]
fn factors_of_a_matrix_that_is_not_square_solve_nothing() {
    let (machine, mut a, mut x) = (machine(), [1.0; 6], [1.0; 3]);
    let lu = machine.getrf(MatMut::col_major(&mut a, 3, 2).unwrap()).unwrap();
    let error = lu.solve(column(&mut x)).unwrap_err().to_string();
    assert!(error.contains("3×2, not square"), "{error}");
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

/// An application's struct that holds a machine and factors.
struct Solver {
    machine: Machine,
    lu: OwnedLu<f64>,
}

impl Solver {
    fn new(machine: Machine, a: Vec<f64>) -> Self {
        Solver { lu: machine.getrf_owned(a, N).unwrap(), machine }
    }
}

#[test]
fn owned_factors_live_in_a_struct_and_move_to_another_thread() {
    let (machine, a) = (machine(), matrix());
    let mut borrowed = a.clone();
    let (borrowed, solver) = (factor(&machine, &mut borrowed), Solver::new(machine.clone(), a.clone()));
    let norm = MatRef::col_major(&a, N, N).unwrap().norm_1();
    let b = times(Op::Trans, &a, &[1.0; N]);
    let (x, rcond, info) = std::thread::spawn(move || {
        let mut x = b;
        solver.lu.solve_with(Op::Trans, column(&mut x)).unwrap();
        assert_eq!(solver.machine.devices().count(), 2);
        (x, solver.lu.rcond(norm).unwrap(), solver.lu.info())
    })
    .join()
    .unwrap();
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-9), "{x:?}");
    assert_eq!((rcond, info), (borrowed.rcond(norm).unwrap(), 0));
    let mut pinned = machine.alloc_host(N * N).unwrap();
    pinned.copy_from_slice(&a);
    let (factors, ipiv, _) = machine.getrf_owned(pinned, N).unwrap().into_parts();
    assert_eq!(ipiv, borrowed.ipiv());
    let packed: Vec<f64> = (0..N * N).map(|e| borrowed.factors().at(e % N, e / N)).collect();
    assert_eq!(Vec::from(factors), packed);
}

#[test]
fn parts_are_checked_before_they_are_factors_again() {
    let (machine, a) = (machine(), matrix());
    let (factors, ipiv, info) = machine.getrf_owned(a.clone(), N).unwrap().into_parts();
    let mut x = times(Op::NoTrans, &a, &[1.0; N]);
    let lu = OwnedLu::from_parts(&machine, factors, ipiv).unwrap();
    lu.solve(column(&mut x)).unwrap();
    assert!(info == 0 && lu.info() == 0 && x.iter().all(|x| (x - 1.0).abs() < 1e-9), "{x:?}");

    let singular = OwnedLu::from_parts(&machine, vec![1.0, 2.0, 3.0, 0.0], vec![1, 1]).unwrap();
    assert_eq!(singular.info(), 2);
    assert_eq!(singular.solve(column(&mut [1.0; 2])).unwrap_err().kind(), ErrorKind::Singular { pivot: 2 });

    let of_two = |elements: usize, ipiv: [i32; 2]| OwnedLu::from_parts(&machine, vec![1.0; elements], ipiv.to_vec());
    let errors = [
        (of_two(4, [0, 2]), "ipiv[1] = 2 is no row of 2"),
        (of_two(4, [-1, 1]), "ipiv[0] = -1 is no row of 2"),
        (of_two(3, [0, 1]), "n = 2 is given by 3 elements"),
        (of_two(5, [0, 1]), "n = 2 is given by 5 elements"),
        (machine.getrf_owned(vec![1.0; 3], 2), "n = 2 is given by 3 elements"),
        (machine.getrf_owned(Vec::new(), 1 << 32), "n = 4294967296 is given by 0 elements"),
    ];
    for (result, what) in errors {
        let error = result.unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(what), "{error}");
    }
}

#[test]
fn determinants_keep_their_sign_and_exceed_no_range() {
    let machine = machine();
    let det = |elements: &[f64], n: usize| machine.getrf_owned(elements.to_vec(), n).unwrap().log_abs_det().unwrap();
    assert_eq!(det(&[], 0), (0.0, 1.0));
    assert_eq!(det(&[0.0, 1.0, 1.0, 0.0], 2), (0.0, -1.0));
    assert_eq!(det(&[0.0, 1.0, -1.0, 0.0], 2), (0.0, 1.0));
    assert_eq!(det(&[1.0, 2.0, 2.0, 4.0], 2), (f64::NEG_INFINITY, 0.0));
    assert_eq!(det(&[f64::INFINITY, 0.0, 0.0, -1.0], 2), (f64::INFINITY, -1.0));
    let (log, sign) = det(&[f64::NAN, 0.0, 0.0, 0.0], 2);
    assert!(log.is_nan() && sign.is_nan());
    // the diagonal matrix of 1e-300 has the determinant 1e-12000
    let diagonal: Vec<f64> = (0..1600).map(|e| if e % 41 == 0 { -1e-300 } else { 0.0 }).collect();
    let (log, sign) = det(&diagonal, 40);
    assert!((log / (-12000.0 * 10.0_f64.ln()) - 1.0).abs() < 1e-14 && sign == 1.0, "{log}, {sign}");
    let mut wide = [1.0; 6];
    let error = machine.getrf(MatMut::col_major(&mut wide, 2, 3).unwrap()).unwrap().log_abs_det().unwrap_err().to_string();
    assert!(error.contains("2×3, not square"), "{error}");
}

/// The parts of borrowed factors are the view of the caller, with its layout and gaps, and what the methods of `Lu` return.
#[test]
fn borrowed_factors_come_apart() {
    let machine = machine();
    let mut a = [2.0, 1.0, 9.0, 4.0, 2.0, 9.0, 4.0, 6.0, 9.0]; // 3 × 2, row-major, with a gap after each row
    let lu = machine.getrf(MatMut::new(&mut a, 3, 2, 3, Layout::RowMajor).unwrap()).unwrap();
    let (ipiv, elements) = (lu.ipiv().to_vec(), [0, 1, 2].map(|i| [0, 1].map(|j| lu.factors().at(i, j))));
    let (mut factors, swaps, info) = lu.into_parts();
    drop(machine);
    assert_eq!((factors.shape(), factors.ld(), factors.layout()), ((3, 2), 3, Layout::RowMajor));
    assert_eq!((swaps, info), (ipiv, 0));
    assert_eq!([0, 1, 2].map(|i| [0, 1].map(|j| factors.at(i, j))), elements);
    factors.set(2, 1, -1.0);
    assert_eq!((a[7], a[8]), (-1.0, 9.0));

    let (_, ipiv, info) = self::machine().getrf(MatMut::col_major(&mut [1.0, 2.0, 2.0, 4.0], 2, 2).unwrap()).unwrap().into_parts();
    assert_eq!((ipiv, info), (vec![1, 1], 2));
}
