//! Matrices in host memory, which own their elements.

use lapidary::{DType, Layout, MatMut, MatRef, Op, Scalar};

use crate::failure::{Failure, Result};
use crate::memory;

/// A packed matrix in host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    data: Vec<T>,
    rows: usize,
    cols: usize,
    layout: Layout,
}

impl<T: Scalar> Dense<T> {
    /// Wraps `rows · cols` elements, which `data` holds in the order of `layout`.
    pub fn from_vec(data: Vec<T>, rows: usize, cols: usize, layout: Layout) -> Self {
        debug_assert_eq!(data.len(), rows * cols);
        Dense { data, rows, cols, layout }
    }

    /// Allocates a column-major matrix of zeros. Fails if the host does not have enough memory.
    pub fn zeros(rows: usize, cols: usize) -> Result<Self> {
        let mut data = Self::room(rows, cols)?;
        data.resize(rows * cols, T::ZERO);
        Ok(Dense { data, rows, cols, layout: Layout::ColMajor })
    }

    /// Allocates an empty vector with capacity for the elements of a matrix. Fails if the host does not have enough memory.
    pub fn room(rows: usize, cols: usize) -> Result<Vec<T>> {
        let mut data = Vec::new();
        let room = rows.checked_mul(cols).is_some_and(|len| data.try_reserve_exact(len).is_ok());
        if room { Ok(data) } else { Err(too_large::<T>(rows, cols)) }
    }

    /// Draws a column-major matrix of uniform random numbers in [-0.5, 0.5).
    pub fn random(rows: usize, cols: usize, rng: &mut fastrand::Rng) -> Result<Self> {
        let mut a = Self::zeros(rows, cols)?;
        a.data.fill_with(|| T::from_f64(rng.f64() - 0.5));
        Ok(a)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The elements of the matrix in the order of memory.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// The elements of the matrix in the order of memory, for writing.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// A view of the matrix for reading.
    pub fn view(&self) -> MatRef<'_, T> {
        let ld = self.line().max(1);
        MatRef::new(&self.data, self.rows, self.cols, ld, self.layout).expect("a packed matrix has a view")
    }

    /// A view of the matrix for writing.
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        let ld = self.line().max(1);
        MatMut::new(&mut self.data, self.rows, self.cols, ld, self.layout).expect("a packed matrix has a view")
    }

    /// Number of elements in a column of a column-major matrix, or in a row of a row-major matrix.
    fn line(&self) -> usize {
        match self.layout {
            Layout::ColMajor => self.rows,
            Layout::RowMajor => self.cols,
        }
    }

    /// Calls `f(i, j, element)` for each element in the order of memory, so that the pass over the matrix is fast.
    pub fn for_each(&self, mut f: impl FnMut(usize, usize, f64)) {
        for (l, line) in self.data.chunks(self.line().max(1)).enumerate() {
            for (e, value) in line.iter().enumerate() {
                match self.layout {
                    Layout::ColMajor => f(e, l, value.to_f64()),
                    Layout::RowMajor => f(l, e, value.to_f64()),
                }
            }
        }
    }

    /// Replaces every element by `f(i, j, element)`.
    pub fn map(&mut self, f: impl Fn(usize, usize, f64) -> f64) {
        let (line, layout) = (self.line().max(1), self.layout);
        for (at, value) in self.data.iter_mut().enumerate() {
            let (l, e) = (at / line, at % line);
            let (i, j) = if layout == Layout::ColMajor { (e, l) } else { (l, e) };
            *value = T::from_f64(f(i, j, value.to_f64()));
        }
    }

    /// Makes a column-major copy of the matrix.
    pub fn to_col_major(&self) -> Result<Self> {
        let mut copy = Self::zeros(self.rows, self.cols)?;
        let rows = self.rows;
        self.for_each(|i, j, value| copy.data[i + j * rows] = T::from_f64(value));
        Ok(copy)
    }

    /// Computes `op(A)·t` in double precision. The function uses `weigh(i, j, a_ij)` in place of each element a_ij of A.
    pub fn times(&self, op: Op, t: &[f64], weigh: impl Fn(usize, usize, f64) -> f64) -> Vec<f64> {
        let mut y = vec![0.0; op.shape((self.rows, self.cols)).0];
        self.for_each(|i, j, value| {
            let weighed = weigh(i, j, value);
            if op.is_trans() { y[j] += weighed * t[i] } else { y[i] += weighed * t[j] }
        });
        y
    }
}

/// The largest value, or NaN if a value is NaN. [`f64::max`] would ignore NaN.
pub fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, larger)
}

/// The larger of two values, or NaN if one of them is NaN.
pub fn larger(most: f64, value: f64) -> f64 {
    if most.is_nan() || value <= most { most } else { value }
}

fn too_large<T: Scalar>(rows: usize, cols: usize) -> Failure {
    let gib = rows as f64 * cols as f64 * T::DTYPE.size() as f64 / f64::from(1 << 30);
    Failure::usage(format!("a {rows}×{cols} matrix of {} takes {gib:.1} GiB, more memory than there is", T::DTYPE))
}

/// A matrix in the precision of the file from which it was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// A matrix in single precision.
    F32(Dense<f32>),
    /// A matrix in double precision.
    F64(Dense<f64>),
}

impl Numbers {
    /// The element type of the matrix.
    pub fn dtype(&self) -> DType {
        match self {
            Numbers::F32(_) => DType::F32,
            Numbers::F64(_) => DType::F64,
        }
    }

    /// The first element that is infinite or NaN, as (row, column, value).
    pub fn first_non_finite(&self) -> Option<(usize, usize, f64)> {
        match self {
            Numbers::F32(a) => non_finite(a),
            Numbers::F64(a) => non_finite(a),
        }
    }

    /// Converts the matrix to double precision. Fails if the host does not have enough memory for the copy.
    pub fn into_f64(self) -> Result<Dense<f64>> {
        match self {
            Numbers::F32(a) => {
                memory::check_matrices::<f64>("the copy in f64 of a matrix in f32", &[(a.rows, a.cols)])?;
                Ok(convert(a))
            }
            Numbers::F64(a) => Ok(a),
        }
    }
}

fn convert<S: Scalar, T: Scalar>(a: Dense<S>) -> Dense<T> {
    let data = a.data.into_iter().map(|value| T::from_f64(value.to_f64())).collect();
    Dense { data, rows: a.rows, cols: a.cols, layout: a.layout }
}

fn non_finite<T: Scalar>(a: &Dense<T>) -> Option<(usize, usize, f64)> {
    let at = a.data.iter().position(|value| !value.is_finite())?;
    let (l, e) = (at / a.line(), at % a.line());
    let (i, j) = if a.layout == Layout::ColMajor { (e, l) } else { (l, e) };
    Some((i, j, a.data[at].to_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(layout: Layout) -> Dense<f64> {
        Dense::from_vec(vec![1.0, -2.0, 3.0, 4.0, 5.0, -6.0], 2, 3, layout)
    }

    #[test]
    fn layouts_agree_on_elements() {
        let (col, row) = (sample(Layout::ColMajor), sample(Layout::RowMajor));
        let at = |a: &Dense<f64>, i, j| a.view().at(i, j);
        assert_eq!([at(&col, 1, 0), at(&row, 1, 0), at(&row, 0, 2)], [-2.0, 4.0, 3.0]);
        assert_eq!(row.to_col_major().unwrap().data(), [1.0, 4.0, -2.0, 5.0, 3.0, -6.0]);
    }

    #[test]
    fn products_and_largest_values() {
        let a = sample(Layout::RowMajor);
        assert_eq!(a.times(Op::NoTrans, &[1.0, 1.0, 1.0], |_, _, v| v), [2.0, 3.0]);
        assert_eq!(a.times(Op::Trans, &[1.0, 1.0], |_, _, v| v), [5.0, 3.0, -3.0]);
        assert!(largest(&[1.0, f64::NAN, 2.0]).is_nan());
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Dense::<f64>::zeros(usize::MAX, 2).is_err());
        assert!(Dense::<f64>::zeros(1 << 40, 1 << 20).is_err());
    }
}
