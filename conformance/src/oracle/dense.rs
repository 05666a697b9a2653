//! A plain column-major matrix of `f64`, with the norms that the bounds need.

use lapidary_core::{MatRef, Op, Scalar};

/// A matrix of operands or results, in the form that the oracle uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Dense {
    /// Creates the matrix with the elements `f(i, j)`. The closure `f` is called column by column.
    #[must_use]
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Dense {
        let mut data = Vec::with_capacity(rows * cols);
        for j in 0..cols {
            data.extend((0..rows).map(|i| f(i, j)));
        }
        Dense { rows, cols, data }
    }

    /// Copies a matrix from host memory. The conversion to `f64` is exact for `f32` and `f64`.
    #[must_use]
    pub fn from_view<T: Scalar>(view: MatRef<'_, T>) -> Dense {
        Dense::from_fn(view.rows(), view.cols(), |i, j| view.at(i, j).to_f64())
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Element (i, j).
    #[must_use]
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.data[i + j * self.rows]
    }

    /// Writes element (i, j).
    pub fn set(&mut self, i: usize, j: usize, value: f64) {
        self.data[i + j * self.rows] = value;
    }

    /// The elements of column j.
    #[must_use]
    pub fn column(&self, j: usize) -> &[f64] {
        &self.data[j * self.rows..][..self.rows]
    }

    /// All columns of the matrix, in order.
    pub fn columns(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.cols).map(|j| self.column(j))
    }

    /// All index pairs (i, j) with their elements, column by column.
    pub fn elements(&self) -> impl Iterator<Item = ((usize, usize), f64)> {
        (0..self.cols).flat_map(move |j| (0..self.rows).map(move |i| ((i, j), self.at(i, j))))
    }

    /// The transposed matrix.
    #[must_use]
    pub fn t(&self) -> Dense {
        Dense::from_fn(self.cols, self.rows, |i, j| self.at(j, i))
    }

    /// The matrix `op(A)` for this matrix A.
    #[must_use]
    pub fn under(&self, op: Op) -> Dense {
        if op.is_trans() { self.t() } else { self.clone() }
    }

    /// A matrix of the same shape with `f(x)` in place of each element x.
    #[must_use]
    pub fn map(&self, f: impl FnMut(f64) -> f64) -> Dense {
        Dense { data: self.data.iter().copied().map(f).collect(), ..*self }
    }

    /// The difference between this matrix and the matrix `other` of the same shape.
    #[must_use]
    pub fn minus(&self, other: &Dense) -> Dense {
        Dense::from_fn(self.rows, self.cols, |i, j| self.at(i, j) - other.at(i, j))
    }

    /// Exchanges rows i and p.
    pub fn swap_rows(&mut self, i: usize, p: usize) {
        for j in 0..self.cols {
            self.data.swap(i + j * self.rows, p + j * self.rows);
        }
    }

    /// Whether every element is finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.data.iter().all(|x| x.is_finite())
    }

    /// The largest magnitude of all elements. Returns NaN if an element is NaN.
    #[must_use]
    pub fn max_abs(&self) -> f64 {
        self.data.iter().map(|x| x.abs()).fold(0.0, worse)
    }

    /// `‖A‖₁`: the largest column sum of magnitudes.
    #[must_use]
    pub fn norm_one(&self) -> f64 {
        self.columns().map(|column| column.iter().map(|x| x.abs()).sum()).fold(0.0, worse)
    }

    /// `‖A‖_∞`: the largest row sum of magnitudes.
    #[must_use]
    pub fn norm_inf(&self) -> f64 {
        self.t().norm_one()
    }

    /// `‖A‖_F`. The function divides all elements by the largest magnitude first, so that no square overflows.
    #[must_use]
    pub fn norm_frobenius(&self) -> f64 {
        let largest = self.max_abs();
        if largest == 0.0 {
            return 0.0;
        }
        largest * self.data.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
    }
}

/// The larger of two numbers. A NaN counts as larger than every number.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}
