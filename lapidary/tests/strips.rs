//! Tests of products and triangular solves so large that a device with its own memory works strip by strip. Their matrices hold small
//! integers, so that each result is exact.

#[path = "support/first_devices.rs"]
mod first_devices;

use lapidary::{DType, Diag, Gemm, Machine, MatMut, MatRef, Op, Result, Scalar, Select, Settings, Side, Trsm, TrsmMode, Uplo};

/// A column-major matrix of elements from -4 to 4.
fn integers<T: Scalar>(rows: usize, cols: usize, seed: usize) -> Vec<T> {
    let element = |at: usize| T::from_f64((at.wrapping_mul(2_654_435_761 + 2 * seed) >> 7) as f64 % 9.0 - 4.0);
    (0..rows * cols).map(element).collect()
}

/// Runs `check` in both element types on the first device of each backend that computes with them.
fn everywhere(check: fn(&Machine) -> Result<()>, in_f64: fn(&Machine) -> Result<()>) {
    // a CPU with a memory limit copies matrices, as a device with its own memory does
    let copying = Machine::with_settings(&Select::cpu([0]), &Settings::default().memory_limit(1 << 30)).unwrap();
    for machine in first_devices::machines().into_iter().chain([copying]) {
        check(&machine).unwrap();
        if machine.devices().all(|device| device.computes(DType::F64)) {
            in_f64(&machine).unwrap();
        }
    }
}

#[test]
fn products_in_strips_are_exact() {
    everywhere(products::<f32>, products::<f64>);
}

/// The sizes have several strips of C, and panels of several widths.
fn products<T: Scalar>(machine: &Machine) -> Result<()> {
    let (m, n, k) = (1030, 1100, 1100);
    let old = integers::<T>(m, n, 3);
    for (op_a, op_b, beta) in [(Op::NoTrans, Op::NoTrans, 0.0), (Op::Trans, Op::Trans, -2.0), (Op::NoTrans, Op::Trans, 1.0)] {
        let ((rows_a, cols_a), (rows_b, cols_b)) = (op_a.shape((m, k)), op_b.shape((k, n)));
        let (a, b) = (integers::<T>(rows_a, cols_a, 1), integers::<T>(rows_b, cols_b, 2));
        let mut c = if beta == 0.0 { vec![T::from_f64(f64::NAN); m * n] } else { old.clone() };
        let view = |data, rows, cols| MatRef::col_major(data, rows, cols);
        let product = Gemm::new(view(&a, rows_a, cols_a)?, view(&b, rows_b, cols_b)?, MatMut::col_major(&mut c, m, n)?);
        machine.gemm(product.op_a(op_a).op_b(op_b).beta(T::from_f64(beta)))?;
        let of_a = |i: usize, l: usize| a[if op_a == Op::NoTrans { i + l * m } else { l + i * k }].to_f64();
        let of_b = |l: usize, j: usize| b[if op_b == Op::NoTrans { l + j * k } else { j + l * n }].to_f64();
        // a step that is prime to m visits all rows and columns
        for at in (0..m * n).step_by(1049) {
            let sum: f64 = (0..k).map(|l| of_a(at % m, l) * of_b(l, at / m)).sum();
            let expected = if beta == 0.0 { sum } else { sum + beta * old[at].to_f64() };
            assert_eq!(c[at].to_f64(), expected, "{op_a:?} {op_b:?} β = {beta}: element {at}");
        }
    }
    Ok(())
}

#[test]
fn triangular_solves_in_strips_are_exact() {
    everywhere(solves::<f32>, solves::<f64>);
}

/// The sizes have several strips of right-hand sides and several diagonal blocks.
fn solves<T: Scalar>(machine: &Machine) -> Result<()> {
    let (n, nrhs) = (700, 2100);
    for (side, uplo, op) in [
        (Side::Left, Uplo::Lower, Op::NoTrans),
        (Side::Left, Uplo::Lower, Op::Trans),
        (Side::Right, Uplo::Upper, Op::NoTrans),
        (Side::Right, Uplo::Lower, Op::Trans),
    ] {
        // few elements of a row differ from zero, so that all intermediate results are small
        let is_stored = |i: usize, j: usize| if uplo == Uplo::Lower { i > j } else { i < j };
        let element = |i: usize, j: usize| if is_stored(i, j) && (i * 31 + j * 17).is_multiple_of(101) { 1.0 } else { 0.0 };
        // the other triangle must not be read
        let stored = |at: usize| if is_stored(at % n, at / n) { element(at % n, at / n) } else { f64::NAN };
        let a: Vec<T> = (0..n * n).map(|at| T::from_f64(stored(at))).collect();
        let (rows, cols) = if side == Side::Left { (n, nrhs) } else { (nrhs, n) };
        let x = integers::<T>(rows, cols, 4);
        let t = |i: usize, j: usize| {
            if i == j {
                1.0
            } else if op == Op::NoTrans {
                element(i, j)
            } else {
                element(j, i)
            }
        };
        let nonzero: Vec<Vec<usize>> = (0..n)
            .map(|i| (0..n).filter(|&j| if side == Side::Left { t(i, j) != 0.0 } else { t(j, i) != 0.0 }).collect())
            .collect();
        let product = |at: usize| -> f64 {
            let (i, j) = (at % rows, at / rows);
            match side {
                Side::Left => nonzero[i].iter().map(|&l| x[l + j * rows].to_f64()).sum(),
                Side::Right => nonzero[j].iter().map(|&l| x[i + l * rows].to_f64()).sum(),
            }
        };
        let mut b: Vec<T> = (0..rows * cols).map(|at| T::from_f64(product(at))).collect();
        let call = Trsm::new(MatRef::col_major(&a, n, n)?, MatMut::col_major(&mut b, rows, cols)?);
        machine.trsm(call.side(side).uplo(uplo).op(op).diag(Diag::Unit).mode(TrsmMode::Substitution))?;
        assert!(b == x, "{side:?} {uplo:?} {op:?}");
    }
    Ok(())
}
