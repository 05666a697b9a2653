//! Tests of systems whose numbers exceed the range of a type, and of the errors of their solutions.

use lapidary::{DType, Equilibration, ErrorKind, Layout, Machine, MatMut, MatRef, Rounding, Select};

fn machine() -> Machine {
    Machine::open(&"cpu:0".parse::<Select>().unwrap()).unwrap()
}

/// Computes 2^e exactly, even if the result is subnormal.
fn power(e: i32) -> f64 {
    let half = e / 2;
    2.0_f64.powi(half) * 2.0_f64.powi(e - half)
}

#[test]
fn rows_and_columns_reach_one_without_rounding() {
    let (rows, cols) = ([900, -1000, 40], [-60, 0, 70]);
    // The matrix has 1.75 on the diagonal and 0.3 elsewhere, before its rows and columns are multiplied by powers of two. The
    // largest element of each row and column of the equilibrated matrix is therefore on the diagonal.
    let at = |i: usize, j: usize| (if i == j { 1.75 } else { 0.3 }) * power(rows[i] + cols[j]);
    for layout in [Layout::ColMajor, Layout::RowMajor] {
        let by_lines = |l: usize, e: usize| if layout == Layout::ColMajor { at(e, l) } else { at(l, e) };
        let data: Vec<f64> = (0..9).map(|at| by_lines(at / 3, at % 3)).collect();
        let a = MatRef::new(&data, 3, 3, 3, layout).unwrap();
        let scales = Equilibration::new(a, DType::F64).unwrap();
        assert!(scales.is_needed());
        let mut scaled = [0.0_f64; 9];
        assert_eq!(scales.scale_matrix(a, MatMut::col_major(&mut scaled, 3, 3).unwrap()).unwrap(), Rounding::default());
        for j in 0..3 {
            let ends = |values: [f64; 3]| (0.5..2.0).contains(&values.iter().copied().fold(0.0, f64::max));
            assert!(ends([scaled[j], scaled[3 + j], scaled[6 + j]]), "row {j} of {scaled:?}");
            assert!(ends([scaled[3 * j], scaled[3 * j + 1], scaled[3 * j + 2]]), "column {j} of {scaled:?}");
        }
        for (at, &value) in scaled.iter().enumerate() {
            let (i, j) = (at % 3, at / 3);
            assert_eq!(value * power(-scales.rows()[i] - scales.cols()[j]), a.at(i, j));
        }
    }
}

#[test]
fn matrices_of_like_rows_and_columns_stay_as_they_are() {
    let data = [1.0_f64, 7.9, 2.0, -3.0];
    let a = MatRef::col_major(&data, 2, 2).unwrap();
    for dtype in [DType::F32, DType::F64] {
        assert!(!Equilibration::new(a, dtype).unwrap().is_needed());
    }
    // elements near 1e-25 need no scaling for f64, but need it for f32, since the product of two of them underflows in f32
    let data = data.map(|value| value * 1e-25);
    let a = MatRef::col_major(&data, 2, 2).unwrap();
    assert!(Equilibration::new(a, DType::F32).unwrap().is_needed());
    assert!(!Equilibration::new(a, DType::F64).unwrap().is_needed());
}

/// The counts of inexact, underflowed and overflowed elements.
fn counts(rounding: Rounding) -> [usize; 3] {
    [rounding.inexact, rounding.underflowed, rounding.overflowed]
}

#[test]
fn what_single_precision_cannot_hold_is_solved_at_another_scale() {
    // A = 1e-30·I and b = 1e-50: the solution x = 1e-20 is in the range of f32, b is not
    let (a, b) = ([1e-30_f64, 0.0, 0.0, 1e-30], [1e-50_f64, 3e-50]);
    let (a, b) = (MatRef::col_major(&a, 2, 2).unwrap(), MatRef::col_major(&b, 2, 1).unwrap());
    let scales = Equilibration::new(a, DType::F32).unwrap();
    let (mut lu, mut x) = ([0.0_f32; 4], [0.0_f32; 2]);
    let rounding = scales.scale_matrix(a, MatMut::col_major(&mut lu, 2, 2).unwrap()).unwrap();
    assert_eq!(counts(rounding), [2, 0, 0]);
    let rhs = scales.scale_rhs(b, MatMut::col_major(&mut x, 2, 1).unwrap()).unwrap();
    assert_eq!(counts(rhs.rounding), [2, 0, 0]);
    let machine = machine();
    let _ = machine.gesv(MatMut::col_major(&mut lu, 2, 2).unwrap(), MatMut::col_major(&mut x, 2, 1).unwrap()).unwrap();
    let rounding = scales.unscale(MatMut::col_major(&mut x, 2, 1).unwrap(), &rhs.exponents).unwrap();
    assert_eq!(rounding, Rounding::default());
    assert!((x[0] / 1e-20 - 1.0).abs() < 4.0 * f32::EPSILON && (x[1] / 3e-20 - 1.0).abs() < 4.0 * f32::EPSILON, "{x:?}");
}

#[test]
fn what_is_lost_is_counted() {
    let data = [1.0_f64, 1e-50, 0.1, 1e-42, 2.0, 0.0, 1e30, 1e30, 0.5];
    let a = MatRef::col_major(&data, 3, 3).unwrap();
    let scales = Equilibration::new(MatRef::col_major(&[1.0_f64; 9], 3, 3).unwrap(), DType::F32).unwrap();
    let mut scaled = [0.0_f32; 9];
    let rounding = scales.scale_matrix(a, MatMut::col_major(&mut scaled, 3, 3).unwrap()).unwrap();
    // 1e-50 becomes zero, 1e-42 becomes subnormal, 0.1 and 1e30 are rounded
    assert_eq!(counts(rounding), [5, 2, 0]);
    let mut x = [1e30_f32];
    let one = Equilibration::new(MatRef::col_major(&[1.0_f32], 1, 1).unwrap(), DType::F32).unwrap();
    let rounding = one.unscale(MatMut::col_major(&mut x, 1, 1).unwrap(), &[-40]).unwrap();
    assert_eq!((x[0], counts(rounding)), (f32::INFINITY, [1, 0, 1]));
}

#[test]
fn wrong_shapes_and_elements_are_refused_by_name() {
    let data = [1.0_f64, f64::NAN, 2.0, 3.0];
    let a = MatRef::col_major(&data, 2, 2).unwrap();
    let message = |error: lapidary::Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.to_string()
    };
    assert!(message(Equilibration::new(a, DType::F64).unwrap_err()).contains("element (1, 0) of A is NaN"));
    let one = MatRef::col_major(&data[..1], 1, 1).unwrap();
    assert!(message(Equilibration::new(one, DType::I32).unwrap_err()).contains("i32"));
    let scales = Equilibration::new(one, DType::F64).unwrap();
    let mut out = [0.0_f64; 4];
    assert!(message(scales.scale_matrix(a, MatMut::col_major(&mut out, 2, 2).unwrap()).unwrap_err()).contains("1 rows"));
    assert!(message(scales.scale_rhs(one, MatMut::col_major(&mut out, 2, 1).unwrap()).unwrap_err()).contains("(2, 1)"));
    assert!(message(scales.unscale(MatMut::col_major(&mut out, 1, 2).unwrap(), &[0]).unwrap_err()).contains("(1, 2)"));
}
