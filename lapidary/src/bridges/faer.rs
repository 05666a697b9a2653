//! Views of `faer` matrices and columns.

use lapidary_core::{Element, MatMut, MatRef, Result};

use super::strided::Strided;
use super::{AsLapidary, AsLapidaryMut};

fn strided<T>(matrix: faer::MatRef<'_, T>) -> Strided {
    let (rows, cols) = matrix.shape();
    Strided { rows, cols, row_stride: matrix.row_stride(), col_stride: matrix.col_stride() }
}

/// Implemented for views, mutable views and owned matrices.
///
/// ```
/// use lapidary::bridges::{AsLapidary, AsLapidaryMut};
/// use lapidary::{Gemm, Machine, Select};
/// use faer::{Mat, mat};
///
/// let machine = Machine::open(&Select::all())?;
/// let a = mat![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let mut c = Mat::zeros(3, 3);
/// // C(:, 1..) ← Aᵀ·A(:, 1..)
/// let mut right = c.subcols_mut(1, 2);
/// machine.gemm(Gemm::new(a.transpose().as_lapidary()?, a.subcols(1, 2).as_lapidary()?, right.as_lapidary_mut()?))?;
/// assert_eq!(c, mat![[0.0, 22.0, 27.0], [0.0, 29.0, 36.0], [0.0, 36.0, 45.0]]);
///
/// assert!(a.reverse_cols().as_lapidary().unwrap_err().to_string().contains("strides (1, -"));
/// assert_eq!(Mat::<f32>::zeros(0, 3).as_lapidary()?.shape(), (0, 3));
/// # Ok::<(), lapidary::Error>(())
/// ```
impl<T: Element> AsLapidary for faer::MatRef<'_, T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        // SAFETY: `faer` guarantees that the view is valid for reads of all elements that its strides reach, and the result borrows
        // the view, so that nothing writes the elements meanwhile.
        unsafe { strided(*self).view(self.as_ptr()) }
    }
}

impl<T: Element> AsLapidary for faer::MatMut<'_, T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        let view = self.as_ref();
        // SAFETY: `faer` guarantees that the view is valid for reads of all elements that its strides reach, and the result borrows
        // the view, so that nothing writes the elements meanwhile.
        unsafe { strided(view).view(view.as_ptr()) }
    }
}

impl<T: Element> AsLapidaryMut for faer::MatMut<'_, T> {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        let strided = strided(self.as_ref());
        // SAFETY: `faer` guarantees that the view is valid for reads and writes of all elements that its strides reach, and the
        // result borrows the view mutably, so that nothing else accesses the elements meanwhile.
        unsafe { strided.view_mut(self.as_ptr_mut()) }
    }
}

impl<T: Element> AsLapidary for faer::Mat<T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        let view = self.as_ref();
        // SAFETY: `faer` guarantees that the matrix is valid for reads of all elements that its strides reach, and the result
        // borrows the matrix, so that nothing writes the elements meanwhile.
        unsafe { strided(view).view(view.as_ptr()) }
    }
}

impl<T: Element> AsLapidaryMut for faer::Mat<T> {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        let strided = strided(self.as_ref());
        // SAFETY: `faer` guarantees that the matrix is valid for reads and writes of all elements that its strides reach, and the
        // result borrows the matrix mutably, so that nothing else accesses the elements meanwhile.
        unsafe { strided.view_mut(self.as_mut().as_ptr_mut()) }
    }
}

/// A column of n elements becomes a view of an n×1 matrix.
///
/// ```
/// use lapidary::bridges::{AsLapidary, AsLapidaryMut};
/// use lapidary::faer::{Col, mat};
/// use lapidary::{Machine, Select};
///
/// let machine = Machine::open(&Select::all())?;
/// let (mut a, mut x) = (mat![[4.0, 2.0], [1.0, 3.0]], Col::from_fn(2, |i| [6.0_f64, 4.0][i]));
/// let _ = machine.gesv(a.as_lapidary_mut()?, x.as_lapidary_mut()?)?;
/// assert!((0..2).all(|i| (x[i] - 1.0).abs() < 1e-15));
///
/// // a row of a matrix, as a column whose elements are not contiguous
/// let row = a.row(1).transpose();
/// assert_eq!((row.as_lapidary()?.shape(), row.as_lapidary()?.at(1, 0)), ((2, 1), a[(1, 1)]));
/// # Ok::<(), lapidary::Error>(())
/// ```
impl<T: Element> AsLapidary for faer::ColRef<'_, T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        let view = self.as_mat();
        // SAFETY: `faer` guarantees that the column is valid for reads of all elements that its stride reaches, and the result borrows
        // the view, so that nothing writes the elements meanwhile.
        unsafe { strided(view).view(view.as_ptr()) }
    }
}

impl<T: Element> AsLapidary for faer::ColMut<'_, T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        let view = self.as_ref().as_mat();
        // SAFETY: `faer` guarantees that the column is valid for reads of all elements that its stride reaches, and the result borrows
        // the view, so that nothing writes the elements meanwhile.
        unsafe { strided(view).view(view.as_ptr()) }
    }
}

impl<T: Element> AsLapidaryMut for faer::ColMut<'_, T> {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        let strided = strided(self.as_ref().as_mat());
        // SAFETY: `faer` guarantees that the column is valid for reads and writes of all elements that its stride reaches, and the
        // result borrows the view mutably, so that nothing else accesses the elements meanwhile.
        unsafe { strided.view_mut(self.as_ptr_mut()) }
    }
}

impl<T: Element> AsLapidary for faer::Col<T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        let view = self.as_ref().as_mat();
        // SAFETY: `faer` guarantees that the column is valid for reads of all elements that its stride reaches, and the result borrows
        // the column, so that nothing writes the elements meanwhile.
        unsafe { strided(view).view(view.as_ptr()) }
    }
}

impl<T: Element> AsLapidaryMut for faer::Col<T> {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        let strided = strided(self.as_ref().as_mat());
        // SAFETY: `faer` guarantees that the column is valid for reads and writes of all elements that its stride reaches, and the
        // result borrows the column mutably, so that nothing else accesses the elements meanwhile.
        unsafe { strided.view_mut(self.as_mut().as_ptr_mut()) }
    }
}
