//! A subject of plain loops that follow the definitions of the routines.

use lapidary_conformance::Subject;
use lapidary_conformance::subject::Factors;
use lapidary_core::{Diag, Gemm, Getrf, Getrs, Laswp, MatMut, MatRef, Op, Result, Scalar, Side, Trsm, Uplo};

use crate::mixed::solve_mixed;

/// The subject whose routines are plain loops.
pub struct Naive;

/// Element (i, j) of `op(A)`.
pub fn under<T: Scalar>(a: &MatRef<'_, T>, op: Op, i: usize, j: usize) -> T {
    if op.is_trans() { a.at(j, i) } else { a.at(i, j) }
}

/// Exchanges rows `i` and `p` of a matrix.
pub fn swap<T: Scalar>(a: &mut MatMut<'_, T>, i: usize, p: usize) {
    for j in 0..a.cols() {
        let (x, y) = (a.at(i, j), a.at(p, j));
        a.set(i, j, y);
        a.set(p, j, x);
    }
}

/// Solves `op(A)·X = B` in place, column by column.
fn substitute<T: Scalar>(a: &MatRef<'_, T>, op: Op, uplo: Uplo, diag: Diag, b: &mut MatMut<'_, T>) {
    let n = a.rows();
    let order: Vec<usize> = if uplo.under(op) == Uplo::Lower { (0..n).collect() } else { (0..n).rev().collect() };
    for j in 0..b.cols() {
        for (done, &i) in order.iter().enumerate() {
            let mut rest = b.at(i, j);
            for &p in &order[..done] {
                rest -= under(a, op, i, p) * b.at(p, j);
            }
            b.set(i, j, if diag == Diag::Unit { rest } else { rest / a.at(i, i) });
        }
    }
}

/// `‖op(L·U)‖₁` of a square matrix, computed from its factors L and U.
pub fn norm_one<T: Scalar>(lu: &MatRef<'_, T>, op: Op) -> f64 {
    let n = lu.rows();
    let l = |i: usize, p: usize| if i == p { 1.0 } else { lu.at(i, p).to_f64() };
    let element = |i: usize, j: usize| -> f64 { (0..=i.min(j)).map(|p| l(i, p) * lu.at(p, j).to_f64()).sum() };
    let at = |i, j| if op.is_trans() { element(j, i) } else { element(i, j) };
    (0..n).map(|j| (0..n).map(|i| at(i, j).abs()).sum()).fold(0.0, f64::max)
}

impl Subject for Naive {
    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        Some(solve_mixed(a, b, x, None))
    }
    fn name(&self) -> String {
        "naive".into()
    }

    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let Gemm { alpha, op_a, a, op_b, b, beta, mut c } = args.check()?.into_inner();
        let k = op_a.shape(a.shape()).1;
        for i in 0..c.rows() {
            for j in 0..c.cols() {
                let product = if alpha == T::ZERO {
                    T::ZERO
                } else {
                    alpha * (0..k).map(|p| under(&a, op_a, i, p) * under(&b, op_b, p, j)).sum::<T>()
                };
                let old = if beta == T::ZERO { T::ZERO } else { beta * c.at(i, j) };
                c.set(i, j, product + old);
            }
        }
        Ok(())
    }

    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let Trsm { side, uplo, op, diag, alpha, a, mut b, .. } = args.check()?.into_inner();
        for i in 0..b.rows() {
            for j in 0..b.cols() {
                b.set(i, j, if alpha == T::ZERO { T::ZERO } else { alpha * b.at(i, j) });
            }
        }
        match side {
            _ if alpha == T::ZERO => {}
            Side::Left => substitute(&a, op, uplo, diag, &mut b),
            Side::Right => substitute(&a, op.flip(), uplo, diag, &mut b.t()),
        }
        Ok(())
    }

    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        let Getrf { mut a, ipiv, pivoting, .. } = args.check()?.into_inner();
        let (m, n) = a.shape();
        let mut info = 0;
        for (j, exchange) in ipiv.iter_mut().enumerate() {
            let mut p = j;
            for i in j + 1..m {
                if pivoting && a.at(i, j).abs() > a.at(p, j).abs() {
                    p = i;
                }
            }
            *exchange = i32::try_from(p).expect("few rows");
            swap(&mut a, j, p);
            let pivot = a.at(j, j);
            if pivot == T::ZERO {
                info = if info == 0 { j + 1 } else { info };
                continue;
            }
            for i in j + 1..m {
                let l = a.at(i, j) / pivot;
                a.set(i, j, l);
                for q in j + 1..n {
                    a.set(i, q, a.at(i, q) - l * a.at(j, q));
                }
            }
        }
        Ok(info)
    }

    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        let Getrs { op, lu, ipiv, mut b, .. } = args.check()?.into_inner();
        if op.is_trans() {
            substitute(&lu, op, Uplo::Upper, Diag::NonUnit, &mut b);
            substitute(&lu, op, Uplo::Lower, Diag::Unit, &mut b);
            self.laswp(Laswp::new(b, ipiv).backward())
        } else {
            self.laswp(Laswp::new(b.reborrow(), ipiv))?;
            substitute(&lu, op, Uplo::Lower, Diag::Unit, &mut b);
            substitute(&lu, op, Uplo::Upper, Diag::NonUnit, &mut b);
            Ok(())
        }
    }

    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        let Laswp { mut a, ipiv, forward } = args.check()?.into_inner();
        let mut exchanges: Vec<(usize, usize)> =
            ipiv.iter().enumerate().map(|(i, &p)| (i, usize::try_from(p).expect("checked"))).collect();
        if !forward {
            exchanges.reverse();
        }
        for (i, p) in exchanges {
            swap(&mut a, i, p);
        }
        Ok(())
    }
}
