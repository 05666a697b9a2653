//! `α·A·B + β·C` in twice the precision of `f64`, with the scale of its error bound.

use lapidary_core::Scalar;

use super::{Dense, Double, loops};
use crate::failure::{Worst, ratio};

/// `α·A·B + β·C` in twice the precision of `f64`, which counts as exact, and its scale `|α||A||B| + |β||C|`.
#[derive(Clone, Debug)]
pub struct Product {
    rows: usize,
    value: Vec<Double>,
    scale: Vec<f64>,
}

/// Computes `α·A·B + β·C` in twice the precision of `f64`. With `α = 0` neither A nor B is read; with `β = 0` C is not read. For an
/// element that is not finite, the plain loop in the precision of `T` defines whether it is NaN, +∞ or −∞.
#[must_use]
pub fn product<T: Scalar>(alpha: f64, a: &Dense, b: &Dense, beta: f64, c: &Dense) -> Product {
    let rows_of_a = a.t();
    let (mut value, mut scale) = (Vec::new(), Vec::new());
    for ((i, j), c) in c.elements() {
        let (x, y) = if alpha == 0.0 { (&[][..], &[][..]) } else { (rows_of_a.column(i), b.column(j)) };
        let exact = element::<T>(alpha, x, y, beta, c);
        value.push(exact);
        scale.push(element_scale(alpha, x, y, beta, c));
    }
    Product { rows: c.rows(), value, scale }
}

fn element<T: Scalar>(alpha: f64, x: &[f64], y: &[f64], beta: f64, c: f64) -> Double {
    let scaled = Double::dot(x, y).scale(alpha);
    let exact = if beta == 0.0 { scaled } else { scaled.add_product(beta, c) };
    if exact.value().is_finite() {
        return exact;
    }
    Double { hi: loops::gemm_element::<T>(alpha, x, y, beta, c), lo: 0.0 }
}

fn element_scale(alpha: f64, x: &[f64], y: &[f64], beta: f64, c: f64) -> f64 {
    let magnitudes: f64 = x.iter().zip(y).map(|(x, y)| (x * y).abs()).sum();
    let old = if beta == 0.0 { 0.0 } else { (beta * c).abs() };
    alpha.abs() * magnitudes + old
}

impl Product {
    /// Element (i, j) of the exact result.
    #[must_use]
    pub fn value(&self, i: usize, j: usize) -> Double {
        self.value[i + j * self.rows]
    }

    /// `(|α||A||B| + |β||C|)_ij`.
    #[must_use]
    pub fn scale(&self, i: usize, j: usize) -> f64 {
        self.scale[i + j * self.rows]
    }

    /// The first element of `got` whose class (finite, NaN, +∞, −∞) differs from that of the exact result. `None` if no class
    /// differs.
    #[must_use]
    pub fn other_class(&self, got: &Dense) -> Option<(usize, usize)> {
        got.elements().find(|&((i, j), got)| !same_class(self.value(i, j).value(), got)).map(|(at, _)| at)
    }

    /// The first element of `got` that differs from the exact result. `+0` and `−0` count as equal.
    #[must_use]
    #[allow(clippy::float_cmp, reason = "exact equality is the property")]
    pub fn unequal(&self, got: &Dense) -> Option<(usize, usize)> {
        got.elements().find(|&((i, j), got)| self.value(i, j).value() != got).map(|(at, _)| at)
    }

    /// The largest `|got − exact| / scale` over the elements whose exact value is finite. The function first subtracts `slack` from
    /// each error, because underflow may cause an error of this size.
    #[must_use]
    pub fn worst(&self, got: &Dense, slack: f64) -> Worst {
        let mut worst = Worst::default();
        for ((i, j), got) in got.elements().filter(|&((i, j), _)| self.value(i, j).hi.is_finite()) {
            let error = self.value(i, j).distance(got) - slack;
            // the function `max` would replace an error that is NaN by zero
            worst.record(ratio(if error < 0.0 { 0.0 } else { error }, self.scale(i, j)), (i, j));
        }
        worst
    }

    /// The matrix of `|got − exact|`, element by element, whose norms some bounds use.
    #[must_use]
    pub fn error(&self, got: &Dense) -> Dense {
        Dense::from_fn(got.rows(), got.cols(), |i, j| self.value(i, j).distance(got.at(i, j)))
    }

    /// The exact result, rounded to `f64`.
    #[must_use]
    pub fn rounded(&self) -> Dense {
        let cols = self.value.len().checked_div(self.rows).unwrap_or(0);
        Dense::from_fn(self.rows, cols, |i, j| self.value(i, j).value())
    }
}

/// Whether two numbers are both finite, both NaN, or the same infinity.
#[must_use]
#[allow(clippy::float_cmp, reason = "infinities compare exactly")]
pub fn same_class(expected: f64, got: f64) -> bool {
    (expected.is_finite() && got.is_finite()) || (expected.is_nan() && got.is_nan()) || expected == got
}
