//! Residuals of factorisations and solutions, divided by the scales of their bounds.

use lapidary_core::{Diag, Scalar, Uplo};

use super::product::product;
use super::{Dense, Product, loops};
use crate::bounds::{epsilon, real};
use crate::failure::ratio;

/// The triangle of `a` that `uplo` and `diag` name. Elements outside the triangle are zero, and the elements of a unit diagonal are
/// one.
#[must_use]
pub fn triangle(a: &Dense, uplo: Uplo, diag: Diag) -> Dense {
    Dense::from_fn(a.rows(), a.cols(), |i, j| match (uplo, diag) {
        (_, Diag::Unit) if i == j => 1.0,
        (Uplo::Lower, _) if i < j => 0.0,
        (Uplo::Upper, _) if i > j => 0.0,
        _ => a.at(i, j),
    })
}

/// `A·X − α·B` and its scale `|A||X| + |α||B|`, as the oracle computes them.
#[must_use]
pub fn linear<T: Scalar>(a: &Dense, x: &Dense, alpha: f64, b: &Dense) -> Product {
    product::<T>(1.0, a, x, -alpha, b)
}

/// Splits the result of getrf into L (m × min(m, n)) and U (min(m, n) × n).
#[must_use]
pub fn unpack(lu: &Dense) -> (Dense, Dense) {
    let least = lu.rows().min(lu.cols());
    let left = Dense::from_fn(lu.rows(), least, |i, j| lu.at(i, j));
    let right = Dense::from_fn(least, lu.cols(), |i, j| lu.at(i, j));
    (triangle(&left, Uplo::Lower, Diag::Unit), triangle(&right, Uplo::Upper, Diag::NonUnit))
}

/// `‖P·L·U − A‖₁ / (n·‖A‖₁·ε)`, as in LAPACK's dget01.
#[must_use]
pub fn factors<T: Scalar>(lu: &Dense, ipiv: &[usize], a: &Dense) -> f64 {
    ratio(of_factors::<T>(lu, ipiv, a).norm_one(), scale_of_factors::<T>(a))
}

/// `‖P₁·L₁·U₁ − P₂·L₂·U₂‖₁` of two factorisations of A, divided by the scale of [`factors`].
#[must_use]
pub fn factors_apart<T: Scalar>(factored: [(&Dense, &[usize]); 2], a: &Dense) -> f64 {
    let [here, there] = factored.map(|(lu, ipiv)| of_factors::<T>(lu, ipiv, a));
    ratio(here.minus(&there).norm_one(), scale_of_factors::<T>(a))
}

/// The residual `P·L·U − A` of a factorisation. The function computes `L·U − Pᵀ·A` and then moves the rows back into the order of
/// A.
fn of_factors<T: Scalar>(lu: &Dense, ipiv: &[usize], a: &Dense) -> Dense {
    let (l, u) = unpack(lu);
    let mut permuted = a.clone();
    loops::exchange(&mut permuted, ipiv, true);
    let mut residual = product::<T>(1.0, &l, &u, -1.0, &permuted).rounded();
    loops::exchange(&mut residual, ipiv, false);
    residual
}

fn scale_of_factors<T: Scalar>(a: &Dense) -> f64 {
    real(a.cols()) * a.norm_one() * epsilon::<T>()
}

/// `‖(L·U − Pᵀ·A)·t‖₁ / (n·‖A‖₁·‖t‖₁·ε)` for one vector t, in O(n²) operations. The suite uses this function for sizes at which
/// [`factors`] takes too long.
#[must_use]
pub fn factors_by_checksum<T: Scalar>(lu: &Dense, ipiv: &[usize], a: &Dense, t: &Dense) -> f64 {
    let (l, u) = unpack(lu);
    let mut permuted = a.clone();
    loops::exchange(&mut permuted, ipiv, true);
    let expected = times::<T>(&permuted, t);
    let ut = times::<T>(&u, t);
    let residual = linear::<T>(&l, &ut, 1.0, &expected).rounded().norm_one();
    ratio(residual, real(a.cols()) * a.norm_one() * t.norm_one() * epsilon::<T>())
}

/// The product `A·t`, computed in twice the precision of `f64` and rounded once.
#[must_use]
pub fn times<T: Scalar>(a: &Dense, t: &Dense) -> Dense {
    let zero = Dense::from_fn(a.rows(), t.cols(), |_, _| 0.0);
    product::<T>(1.0, a, t, 0.0, &zero).rounded()
}

/// The growth factor of a factorisation: `max |u_ij| / max |a_ij|`.
#[must_use]
pub fn growth(lu: &Dense, a: &Dense) -> f64 {
    ratio(unpack(lu).1.max_abs(), a.max_abs())
}

/// `‖B − A·X‖₁ / (‖A‖₁·‖X‖₁·ε)` of the worst right-hand side, as in LAPACK's dget02.
#[must_use]
pub fn solution<T: Scalar>(a: &Dense, x: &Dense, b: &Dense) -> f64 {
    let residual = linear::<T>(a, x, 1.0, b).rounded();
    let norm = a.norm_one() * epsilon::<T>();
    worst_column(&residual, |j, residual| ratio(residual, norm * sum(x.column(j))), sum)
}

/// `‖A·X₁ − A·X₂‖₁` of two solutions, divided by the mean of their scales in [`solution`], for the worst right-hand side. The
/// function subtracts the residuals of the two solutions, since the products `A·X₁` and `A·X₂` alone would be rounded.
#[must_use]
pub fn solutions_apart<T: Scalar>(a: &Dense, [x, y]: [&Dense; 2], b: &Dense) -> f64 {
    let [here, there] = [x, y].map(|x| linear::<T>(a, x, 1.0, b).rounded());
    let norm = a.norm_one() * epsilon::<T>();
    let scale = |j| norm * (sum(x.column(j)) + sum(y.column(j))) / 2.0;
    worst_column(&here.minus(&there), |j, difference| ratio(difference, scale(j)), sum)
}

/// `‖A·x − b‖_∞ / (ε·(‖A‖_∞·‖x‖_∞ + ‖b‖_∞)·n)` of the worst right-hand side, as in HPL.
#[must_use]
pub fn hpl<T: Scalar>(a: &Dense, x: &Dense, b: &Dense) -> f64 {
    let residual = linear::<T>(a, x, 1.0, b).rounded();
    let (norm, n) = (a.norm_inf(), real(a.rows()));
    let scale = |j| epsilon::<T>() * (norm * largest(x.column(j)) + largest(b.column(j))) * n;
    worst_column(&residual, |j, residual| ratio(residual, scale(j)), largest)
}

/// The residual of a refined solution in double precision, divided by its limit in bound 14, for the worst right-hand side.
#[must_use]
pub fn refined(a: &Dense, x: &Dense, b: &Dense) -> f64 {
    let residual = linear::<f64>(a, x, 1.0, b).rounded();
    let (norm, n, u) = (a.norm_inf(), real(a.rows()), f64::UNIT_ROUNDOFF);
    let gamma = (n + 1.0) * u / (1.0 - (n + 1.0) * u);
    let limit = |ax: f64, b: f64| n.sqrt() * u * ax + gamma * (ax + b);
    let scaled = |j, residual| ratio(residual, limit(norm * largest(x.column(j)), largest(b.column(j))));
    worst_column(&residual, scaled, largest)
}

fn worst_column(r: &Dense, scaled: impl Fn(usize, f64) -> f64, norm: fn(&[f64]) -> f64) -> f64 {
    let ratios = r.columns().enumerate().map(|(j, column)| scaled(j, norm(column)));
    ratios.fold(0.0, |worst, ratio| if ratio.is_nan() || ratio > worst { ratio } else { worst })
}

fn sum(column: &[f64]) -> f64 {
    column.iter().map(|x| x.abs()).sum()
}

fn largest(column: &[f64]) -> f64 {
    column.iter().fold(0.0, |a, x| if x.is_nan() || x.abs() > a { x.abs() } else { a })
}
