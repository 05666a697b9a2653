//! Square matrices of the host, in the plainest terms.

use lapidary_core::{Diag, Op, Scalar, Uplo};

use crate::Failure;
use crate::oracle::Dense;

/// More than a triangle's block, a narrow panel, a work-item's tile; prime.
pub(super) const N: usize = 37;

/// A square matrix of the host.
pub(super) type Matrix<T> = Vec<T>;

pub(super) fn matrix<T: Scalar>(seed: usize) -> Matrix<T> {
    let value = |i: usize| (((i + 13) * 7919 * (seed + 3)) % 1009) as f64 / 1009.0 - 0.5;
    (0..N * N).map(|i| T::from_f64(value(i) + if i % (N + 1) == 0 { 3.0 } else { 0.0 })).collect()
}

pub(super) fn wide<T: Scalar>(a: &Matrix<T>) -> Vec<f64> {
    turned(Op::NoTrans, a)
}

pub(super) fn turned<T: Scalar>(op: Op, a: &Matrix<T>) -> Vec<f64> {
    let at = |i: usize, j: usize| if op.is_trans() { a[j + i * N] } else { a[i + j * N] };
    (0..N * N).map(|e| at(e % N, e / N).to_f64()).collect()
}

pub(super) fn triangle<T: Scalar>(a: &Matrix<T>, uplo: Uplo, diag: Diag) -> Matrix<T> {
    let element = |(i, j): (usize, usize)| match i.cmp(&j) {
        std::cmp::Ordering::Equal if diag == Diag::Unit => T::ONE,
        std::cmp::Ordering::Equal => a[i + j * N],
        order => {
            if (order == std::cmp::Ordering::Greater) == (uplo == Uplo::Lower) {
                a[i + j * N]
            } else {
                T::ZERO
            }
        }
    };
    (0..N * N).map(|e| element((e % N, e / N))).collect()
}

pub(super) fn unit() -> impl Iterator<Item = f64> {
    (0..N * N).map(|e| f64::from(u8::from(e % (N + 1) == 0)))
}

pub(super) fn sizes(a: &[f64]) -> Vec<f64> {
    a.iter().map(|x| x.abs()).collect()
}

/// The largest column sum; NaN if there is one.
pub(super) fn norm(a: &[f64]) -> f64 {
    Dense::from_fn(N, N, |i, j| a[i + j * N]).norm_one()
}

pub(super) fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    let element = |i: usize, j: usize| (0..N).map(|k| a[i + k * N] * b[k + j * N]).sum();
    (0..N * N).map(|e| element(e % N, e / N)).collect()
}

/// Where nothing rounds.
pub(super) fn equal<E: PartialEq + std::fmt::Debug>(check: &'static str, computed: &[E], right: &[E]) -> Result<(), Failure> {
    match computed.iter().zip(right).position(|(computed, right)| computed != right) {
        None => Ok(()),
        Some(e) => Err(Failure::new(check, format!("element {e} is {:?}, not {:?}", computed[e], right[e]))),
    }
}
