//! Compares the batched routines with the routines for one matrix, for every vector type.

use super::*;
use crate::fast;

const COUNTS: [usize; 4] = [0, 1, 3, 40];

/// The two code paths of a batched routine: `true` for the fast path with a team, `false` for the reference path.
const PATHS: [bool; 2] = [true, false];

fn column(data: &mut [i32]) -> Tile<i32> {
    // SAFETY: the slice holds all elements of the column.
    unsafe { Tile::new(data.as_mut_ptr(), data.len(), 1, data.len()) }
}

fn part<T: Lanes>(batch: &mut Matrix<T>, cols: usize, i: usize) -> Tile<T> {
    batch.tile().sub(0, i * cols, batch.rows, cols)
}

fn products_agree<T: Lanes>(team: &Team) {
    let mut r = Random(29);
    for case in 0..80 {
        let (m, n, k, count) = (sizes(&mut r), sizes(&mut r), sizes(&mut r), COUNTS[case % 4]);
        let (op_a, op_b) = (OPS[r.below(2)], OPS[r.below(2)]);
        let (sa, sb) = (op_a.shape((m, k)), op_b.shape((k, n)));
        let (mut a, mut b) = (Matrix::<T>::random(sa.0, sa.1 * count, &mut r), Matrix::random(sb.0, sb.1 * count, &mut r));
        let (alpha, beta) = (T::from_f64([1.0, -0.5, 0.0][r.below(3)]), T::from_f64([1.0, 0.0, -2.0][r.below(3)]));
        let mut old = Matrix::random(m, n * count, &mut r);
        if beta == T::ZERO {
            old.data.fill(T::from_f64(f64::NAN));
        }
        let mut want = old.clone();
        for i in 0..count {
            let (a, b, c) = (part(&mut a, sa.1, i), part(&mut b, sb.1, i), part(&mut want, n, i));
            // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
            unsafe { fast::gemm(&Team::alone(), op_a, op_b, alpha, a, b, beta, c) }
        }
        for fast in PATHS {
            let mut c = old.clone();
            let (a, b, tile) = (a.tile(), b.tile(), c.tile());
            // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
            unsafe {
                match fast {
                    true => fast::gemm_batched(team, count, op_a, op_b, alpha, a, b, beta, tile),
                    false => reference::gemm_batched(count, op_a, op_b, alpha, a, b, beta, tile),
                }
            }
            // twice bound 1 of docs/numerics.md, as for single products
            let bound = 4.0 * (k as f64 + 3.0) * T::UNIT_ROUNDOFF * (k as f64 + 2.0);
            assert!(c.distance(&want) <= bound, "{count} of {m}×{n}×{k} {op_a}{op_b}, fast: {fast}: {}", c.distance(&want));
        }
    }
}

#[test]
fn a_batch_of_products_is_each_product() {
    each_way(products_agree::<f32>);
    each_way(products_agree::<f64>);
}

fn systems_agree<T: Lanes>(team: &Team) {
    let mut r = Random(31);
    for case in 0..60 {
        let (m, n, count) = (sizes(&mut r), sizes(&mut r), COUNTS[case % 4]);
        let (nrhs, order, op) = (sizes(&mut r), m.min(n), OPS[case / 4 % 2]);
        let mut a = Matrix::<T>::random(m, n * count, &mut r);
        let old_b = Matrix::<T>::random(order, nrhs * count, &mut r);
        if count > 1 && order > 1 {
            // the second matrix of the batch becomes singular
            (0..m).for_each(|i| a.data[i + (n + 1) * a.ld] = T::ZERO);
        }
        for fast in PATHS {
            let (mut lu, mut pivots, mut info) = (a.clone(), vec![-1; count * order], vec![-7; count]);
            let (tile, ipiv, told) = (lu.tile(), column(&mut pivots), column(&mut info));
            // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
            unsafe {
                match fast {
                    true => fast::getrf_batched(team, count, true, tile, ipiv, told),
                    false => reference::getrf_batched(count, true, tile, ipiv, told),
                }
            }
            for i in 0..count {
                let (original, mut factors) = (alone(&a, n, i), alone(&lu, n, i));
                let mut pivots_of_matrix: Vec<i32> = pivots[i * order..][..order].iter().map(|p| p + 10).collect();
                check_factors(&original, &mut factors, &mut pivots_of_matrix, true);
                let (mut plain, mut p, mut expected) = (original.clone(), vec![-1; order], 0);
                // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
                unsafe { reference::getrf(true, 0, plain.tile(), column(&mut p), &mut expected) }
                assert_eq!(info[i], expected, "matrix {i} of {m}×{n}, fast: {fast}");
                // the fast path rounds differently from the reference path, because it computes with vectors
                assert!(fast || factors.distance(&plain) == 0.0, "matrix {i} of {m}×{n}");
            }
            if m == n {
                let (mut x, mut zeros) = (old_b.clone(), vec![-7; count]);
                let (lu, told, b) = (lu.tile(), column(&mut zeros), x.tile());
                // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
                unsafe {
                    match fast {
                        true => fast::zero_pivots(team, count, lu, told),
                        false => reference::zero_pivots(count, lu, told),
                    }
                    match fast {
                        true => fast::getrs_batched(team, count, op, lu, ipiv, b),
                        false => reference::getrs_batched(count, op, lu, ipiv, b),
                    }
                }
                assert_eq!(zeros, info);
                // op(A)·X must equal B within bound 8 of docs/numerics.md, for each column of B
                for i in (0..count).filter(|&i| info[i] == 0) {
                    solved(op, &a, &x, &old_b, (n, nrhs, i));
                }
            }
        }
    }
}

/// A copy of matrix i of the batch, as a matrix of its own.
fn alone<T: Lanes>(batch: &Matrix<T>, cols: usize, i: usize) -> Matrix<T> {
    let columns = i * cols * batch.ld..(i + 1) * cols * batch.ld;
    Matrix { data: batch.data[columns].to_vec(), cols, ..*batch }
}

fn solved<T: Lanes>(op: Op, a: &Matrix<T>, x: &Matrix<T>, b: &Matrix<T>, (n, nrhs, i): (usize, usize, usize)) {
    let coefficient = |r: usize, c: usize| if op.is_trans() { a.get(c, i * n + r) } else { a.get(r, i * n + c) };
    for j in i * nrhs..(i + 1) * nrhs {
        let norm: f64 = (0..n).map(|c| x.get(c, j).abs()).sum();
        for r in 0..n {
            let residual = (0..n).map(|c| coefficient(r, c) * x.get(c, j)).sum::<f64>() - b.get(r, j);
            let bound = 30.0 * n as f64 * 2.0 * T::UNIT_ROUNDOFF * (norm + 1.0);
            assert!(residual.abs() <= bound, "matrix {i} of order {n} {op}, ({r}, {j}): {residual}");
        }
    }
}

#[test]
fn a_batch_of_systems_is_each_system() {
    each_way(systems_agree::<f32>);
    each_way(systems_agree::<f64>);
}

/// Tests batches of matrices so large that the whole team computes one matrix after the other.
#[test]
fn a_batch_of_large_matrices_is_each_of_them() {
    let (mut r, team, n) = (Random(37), Team::eager(3), 500);
    let (mut a, mut b) = (Matrix::<f64>::random(n, 2 * n, &mut r), Matrix::<f64>::random(n, 2 * n, &mut r));
    let (mut c, mut want) = (Matrix::random(n, 2 * n, &mut r), Matrix::random(n, 2 * n, &mut r));
    want.ld = c.ld;
    want.data = c.data.clone();
    // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
    unsafe {
        reference::gemm_batched(2, Op::Trans, Op::NoTrans, 1.0, a.tile(), b.tile(), 1.0, want.tile());
        fast::gemm_batched(&team, 2, Op::Trans, Op::NoTrans, 1.0, a.tile(), b.tile(), 1.0, c.tile());
    }
    let bound = 4.0 * (n as f64 + 3.0) * f64::UNIT_ROUNDOFF * (n as f64 + 2.0);
    assert!(c.distance(&want) <= bound, "{}", c.distance(&want));
    let (mut lu, mut pivots, mut info) = (a.clone(), vec![-1; 2 * n], vec![-7; 2]);
    let mut x = b.clone();
    // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
    unsafe {
        fast::getrf_batched(&team, 2, true, lu.tile(), column(&mut pivots), column(&mut info));
        fast::getrs_batched(&team, 2, Op::NoTrans, lu.tile(), column(&mut pivots), x.tile());
    }
    assert_eq!(info, [0, 0]);
    (0..2).for_each(|i| solved(Op::NoTrans, &a, &x, &b, (n, n, i)));
}
