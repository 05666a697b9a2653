//! Views of `nalgebra` matrices.

use lapidary_core::{Element, MatMut, MatRef, Result};
use nalgebra::{Dim, Matrix, RawStorage, RawStorageMut};

use super::strided::Strided;
use super::{AsLapidary, AsLapidaryMut};

fn strided<T, R: Dim, C: Dim, S: RawStorage<T, R, C>>(matrix: &Matrix<T, R, C, S>) -> Strided {
    let (rows, cols) = matrix.shape();
    let (row_stride, col_stride) = matrix.strides();
    // memory cannot have a stride beyond `isize`: such a stride is refused like a negative stride
    let signed = |stride: usize| isize::try_from(stride).unwrap_or(-1);
    Strided { rows, cols, row_stride: signed(row_stride), col_stride: signed(col_stride) }
}

/// Implemented for matrices, vectors and views of static or dynamic size.
///
/// ```
/// use lapidary::bridges::{AsLapidary, AsLapidaryMut};
/// use lapidary::{Gemm, Machine, Select};
/// use nalgebra::{DMatrix, Matrix2, Matrix2x3, Vector2};
///
/// let machine = Machine::open(&Select::all())?;
/// let a = Matrix2x3::new(1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
/// let mut c = DMatrix::zeros(2, 2);
/// // C ← A(:, ..2)·A(:, 1..)
/// let (left, right) = (a.columns(0, 2), a.columns(1, 2));
/// machine.gemm(Gemm::new(left.as_lapidary()?, right.as_lapidary()?, c.as_lapidary_mut()?))?;
/// assert_eq!(c, Matrix2::new(12.0, 15.0, 33.0, 42.0));
///
/// // a vector is an n×1 matrix
/// let mut x = Vector2::new(27.0, 75.0);
/// machine.gesv(c.as_lapidary_mut()?, x.as_lapidary_mut()?)?;
/// assert!((x - Vector2::new(1.0, 1.0)).norm() < 1e-13);
///
/// let outer = a.columns_with_step(0, 2, 1);
/// assert_eq!(outer.as_lapidary()?.ld(), 4);
/// let tall = DMatrix::<f32>::zeros(5, 2);
/// let every_other = tall.view_with_steps((0, 0), (3, 2), (1, 0));
/// assert!(every_other.as_lapidary().unwrap_err().to_string().contains("strides (2, 5)"));
/// assert_eq!(DMatrix::<f32>::zeros(3, 0).as_lapidary()?.shape(), (3, 0));
/// # Ok::<(), lapidary::Error>(())
/// ```
impl<T: Element, R: Dim, C: Dim, S: RawStorage<T, R, C>> AsLapidary for Matrix<T, R, C, S> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        // SAFETY: `nalgebra` guarantees that the matrix is valid for reads of all elements that its strides reach, and the result
        // borrows the matrix, so that nothing writes the elements meanwhile.
        unsafe { strided(self).view(self.as_ptr()) }
    }
}

impl<T: Element, R: Dim, C: Dim, S: RawStorageMut<T, R, C>> AsLapidaryMut for Matrix<T, R, C, S> {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        let strided = strided(self);
        // SAFETY: `nalgebra` guarantees that the matrix is valid for reads and writes of all elements that its strides reach, and
        // the result borrows the matrix mutably, so that nothing else accesses the elements meanwhile.
        unsafe { strided.view_mut(self.as_mut_ptr()) }
    }
}
