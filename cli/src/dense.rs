//! Matrices in host memory, which own their elements. All hardware threads take part in passes over large matrices. The results do not
//! depend on the number of threads.

use lapidary::{DType, Layout, MatMut, MatRef, Op, Scalar};
use rayon::prelude::*;

use crate::failure::{Failure, Result};
use crate::memory;

/// Smallest number of elements for which one more thread takes part in a pass. After a pass, idle threads poll for work for some
/// microseconds, which would disturb the timing of a short call.
const MIN_LEN: usize = 1 << 18;

/// Smallest number of adjacent sums for one thread in [`Dense::fold`], so that a thread reads adjacent elements.
const MIN_SUMS: usize = 512;

/// A packed matrix in host memory.
#[derive(Debug, PartialEq)]
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
        Self::generate(rows, cols, |_| T::ZERO)
    }

    /// Allocates a column-major matrix and sets the element with the index `index` in memory to `element(index)`.
    fn generate(rows: usize, cols: usize, element: impl Fn(usize) -> T + Sync + Send) -> Result<Self> {
        let mut data = Self::room(rows, cols)?;
        (0..rows * cols).into_par_iter().with_min_len(MIN_LEN).map(element).collect_into_vec(&mut data);
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
        let parts: Vec<_> = a.data.chunks_mut(MIN_LEN).map(|part| (part, rng.fork())).collect();
        parts.into_par_iter().for_each(|(part, mut rng)| part.fill_with(|| T::from_f64(rng.f64() - 0.5)));
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

    /// Sets every element to `value`.
    pub fn fill(&mut self, value: T) {
        self.data.par_iter_mut().with_min_len(MIN_LEN).for_each(|element| *element = value);
    }

    /// Copies the elements of a matrix of the same shape and layout.
    pub fn copy_from(&mut self, from: &Self) {
        assert_eq!((self.rows, self.cols, self.layout), (from.rows, from.cols, from.layout));
        self.data.par_iter_mut().zip(&from.data).with_min_len(MIN_LEN).for_each(|(to, from)| *to = *from);
    }

    /// Replaces every element by `f(i, j, element)`.
    pub fn map(&mut self, f: impl Fn(usize, usize, f64) -> f64 + Sync) {
        let (line, is_col_major) = (self.line().max(1), self.layout == Layout::ColMajor);
        self.data.par_chunks_mut(line).enumerate().with_min_len(MIN_LEN.div_ceil(line)).for_each(|(l, values)| {
            for (e, value) in values.iter_mut().enumerate() {
                let (i, j) = if is_col_major { (e, l) } else { (l, e) };
                *value = T::from_f64(f(i, j, value.to_f64()));
            }
        });
    }

    /// Makes a column-major copy of the matrix.
    pub fn to_col_major(&self) -> Result<Self> {
        let (from, rows) = (self.view(), self.rows.max(1));
        Self::generate(self.rows, self.cols, |index| from.at(index % rows, index / rows))
    }

    /// Multiplies op(A) by the vector `t` with any sum of products: calls `add(&mut sums[i], &t[j], i, j, a_ij)` for each element a_ij of
    /// A, in the order of j. If `op` transposes A, the function calls `add(&mut sums[j], &t[i], i, j, a_ij)` in the order of i. One
    /// thread computes each sum in this order, so that the result does not depend on the number of threads.
    pub fn fold<X: Sync, S: Send>(&self, op: Op, t: &[X], sums: &mut [S], add: impl Fn(&mut S, &X, usize, usize, f64) + Sync) {
        assert_eq!((sums.len(), t.len()), op.shape((self.rows, self.cols)));
        let (line, is_col_major) = (self.line().max(1), self.layout == Layout::ColMajor);
        let min_sums = (MIN_LEN * sums.len() / self.data.len().max(1)).max(1);
        let add = |sum: &mut S, t: &X, l: usize, e: usize, value: &T| {
            let (i, j) = if is_col_major { (e, l) } else { (l, e) };
            add(sum, t, i, j, value.to_f64());
        };
        if op.is_trans() == is_col_major {
            // each sum is that of a line
            sums.par_iter_mut().zip(self.data.par_chunks(line)).enumerate().with_min_len(min_sums).for_each(
                |(l, (sum, values))| {
                    values.iter().enumerate().zip(t).for_each(|((e, value), t)| add(sum, t, l, e, value));
                },
            );
            return;
        }
        let block = min_sums.max(MIN_SUMS);
        sums.par_chunks_mut(block).enumerate().for_each(|(b, sums)| {
            for ((l, values), t) in self.data.chunks(line).enumerate().zip(t) {
                let elements = (b * block..).zip(&values[b * block..]);
                sums.iter_mut().zip(elements).for_each(|(sum, (e, value))| add(sum, t, l, e, value));
            }
        });
    }

    /// Computes `op(A)·t` in double precision. The function uses `weigh(i, j, a_ij)` in place of each element a_ij of A.
    pub fn times(&self, op: Op, t: &[f64], weigh: impl Fn(usize, usize, f64) -> f64 + Sync) -> Vec<f64> {
        let mut y = vec![0.0; op.shape((self.rows, self.cols)).0];
        self.fold(op, t, &mut y, |y, t, i, j, value| *y += weigh(i, j, value) * t);
        y
    }
}

impl<T: Scalar> Clone for Dense<T> {
    fn clone(&self) -> Self {
        let mut data = Vec::new();
        self.data.par_iter().with_min_len(MIN_LEN).copied().collect_into_vec(&mut data);
        Dense { data, ..*self }
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
    fn numbers_and_sums_do_not_depend_on_the_number_of_threads() {
        let compute = || {
            let mut a = Dense::<f64>::random(1200, 800, &mut fastrand::Rng::with_seed(1)).unwrap();
            a.map(|i, j, value| if i == j { 1.0 } else { value });
            let products = [(Op::NoTrans, 800), (Op::Trans, 1200)].map(|(op, len)| a.times(op, &vec![1.1; len], |_, _, v| v));
            (a.clone(), a.to_col_major().unwrap(), products)
        };
        let with = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(compute);
        let (a, copy, products) = with(1);
        assert_eq!(a, copy);
        let row_1: f64 = (0..800).map(|j| a.view().at(1, j) * 1.1).sum();
        let column_1: f64 = (0..1200).map(|i| a.view().at(i, 1) * 1.1).sum();
        assert_eq!([products[0][1], products[1][1]], [row_1, column_1]);
        assert!(with(3) == (a, copy, products));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Dense::<f64>::zeros(usize::MAX, 2).is_err());
        assert!(Dense::<f64>::zeros(1 << 40, 1 << 20).is_err());
    }
}
