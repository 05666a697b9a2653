//! The routines as plain loops. The suite uses them to find the class of a result (finite, NaN, +∞, −∞), and for factorisations
//! without rounding errors.

use lapidary_core::Scalar;

use super::Dense;

/// One element of `α·A·B + β·C` by the plain loop in the precision of `T`. The loop skips no product, so that `0·∞` is NaN.
#[must_use]
pub fn gemm_element<T: Scalar>(alpha: f64, x: &[f64], y: &[f64], beta: f64, c: f64) -> f64 {
    let mut sum = T::ZERO;
    for (&x, &y) in x.iter().zip(y) {
        sum += T::from_f64(x) * T::from_f64(y);
    }
    let scaled = if alpha == 0.0 { T::ZERO } else { T::from_f64(alpha) * sum };
    let old = if beta == 0.0 { T::ZERO } else { T::from_f64(beta) * T::from_f64(c) };
    (scaled + old).to_f64()
}

/// `A⁻¹·B` for a lower triangular A by forward substitution in the precision of `T`.
#[must_use]
pub fn forward_substitution<T: Scalar>(a: &Dense, b: &Dense) -> Dense {
    let mut x = b.clone();
    for j in 0..b.cols() {
        for i in 0..b.rows() {
            let mut rest = T::from_f64(b.at(i, j));
            for p in 0..i {
                rest -= T::from_f64(a.at(i, p)) * T::from_f64(x.at(p, j));
            }
            x.set(i, j, (rest / T::from_f64(a.at(i, i))).to_f64());
        }
    }
    x
}

/// Factors `A = P·L·U` in place of A. Returns the factors, the row exchanges and `info`. The algorithm is unblocked and
/// right-looking, and of several candidates with the same magnitude it takes the first as the pivot. The suite uses this function
/// only where every intermediate result is exact in `f64`.
#[must_use]
pub fn factor(mut a: Dense) -> (Dense, Vec<usize>, usize) {
    let (mut ipiv, mut info) = (Vec::new(), 0);
    for j in 0..a.rows().min(a.cols()) {
        let pivot = first_largest(&a.column(j)[j..]) + j;
        ipiv.push(pivot);
        a.swap_rows(j, pivot);
        if a.at(j, j) == 0.0 {
            info = if info == 0 { j + 1 } else { info };
        } else {
            eliminate(&mut a, j);
        }
    }
    (a, ipiv, info)
}

fn first_largest(column: &[f64]) -> usize {
    let mut best = 0;
    for (i, x) in column.iter().enumerate() {
        if x.abs() > column[best].abs() {
            best = i;
        }
    }
    best
}

/// Does step `j` of the elimination: `A21 ← A21 / a11`, `A22 ← A22 − A21·A12`.
fn eliminate(a: &mut Dense, j: usize) {
    for i in j + 1..a.rows() {
        a.set(i, j, a.at(i, j) / a.at(j, j));
        for q in j + 1..a.cols() {
            a.set(i, q, a.at(i, q) - a.at(i, j) * a.at(j, q));
        }
    }
}

/// Exchanges row `i` with row `ipiv[i]` for each i, in ascending (`forward`) or descending order of i.
pub fn exchange(a: &mut Dense, ipiv: &[usize], forward: bool) {
    let exchanges = ipiv.iter().copied().enumerate();
    if forward {
        exchanges.for_each(|(i, p)| a.swap_rows(i, p));
    } else {
        exchanges.rev().for_each(|(i, p)| a.swap_rows(i, p));
    }
}
