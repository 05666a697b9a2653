//! Views of `ndarray` arrays with one or two axes.

use lapidary_core::{Element, MatMut, MatRef, Result};
use ndarray::{ArrayRef1, ArrayRef2};

use super::strided::Strided;
use super::{AsLapidary, AsLapidaryMut};

fn strided<T>(array: &ArrayRef2<T>) -> Strided {
    let (rows, cols) = array.dim();
    let [row_stride, col_stride] = [array.strides()[0], array.strides()[1]];
    Strided { rows, cols, row_stride, col_stride }
}

fn strided_column<T>(array: &ArrayRef1<T>) -> Strided {
    let rows = array.dim();
    Strided { rows, cols: 1, row_stride: array.strides()[0], col_stride: 1 }
}

/// Implemented for owned arrays and views, since all of them dereference to `ArrayRef2`.
///
/// ```
/// use lapidary::bridges::{AsLapidary, AsLapidaryMut};
/// use lapidary::{Gemm, Machine, Select};
/// use ndarray::{Array2, array, s};
///
/// let machine = Machine::open(&Select::all())?;
/// let a = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let mut c = Array2::zeros((3, 2));
/// // C ← Aᵀ·A(:, 1..)
/// let (transposed, columns) = (a.t(), a.slice(s![.., 1..]));
/// machine.gemm(Gemm::new(transposed.as_lapidary()?, columns.as_lapidary()?, c.as_lapidary_mut()?))?;
/// assert_eq!(c, array![[22.0, 27.0], [29.0, 36.0], [36.0, 45.0]]);
///
/// let reversed = a.slice(s![.., ..;-1]);
/// assert!(reversed.as_lapidary().unwrap_err().to_string().contains("strides (3, -1)"));
/// assert_eq!(Array2::<f32>::zeros((0, 3)).as_lapidary()?.shape(), (0, 3));
/// # Ok::<(), lapidary::Error>(())
/// ```
impl<T: Element> AsLapidary for ArrayRef2<T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        // SAFETY: `ndarray` guarantees that the array is valid for reads of all elements that its strides reach, and the result
        // borrows the array, so that nothing writes the elements meanwhile.
        unsafe { strided(self).view(self.as_ptr()) }
    }
}

impl<T: Element> AsLapidaryMut for ArrayRef2<T> {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        let strided = strided(self);
        // SAFETY: `ndarray` guarantees that the array is valid for reads and writes of all elements that its strides reach, and the
        // result borrows the array mutably, so that nothing else accesses the elements meanwhile.
        unsafe { strided.view_mut(self.as_mut_ptr()) }
    }
}

/// An array with one axis of n elements becomes a view of an n×1 matrix. The elements need not be contiguous.
///
/// ```
/// use lapidary::bridges::{AsLapidary, AsLapidaryMut};
/// use lapidary::ndarray::{array, s};
/// use lapidary::{Machine, Select};
///
/// let machine = Machine::open(&Select::all())?;
/// let (mut a, mut x) = (array![[4.0, 2.0], [1.0, 3.0]], array![6.0, 4.0]);
/// let _ = machine.gesv(a.as_lapidary_mut()?, x.as_lapidary_mut()?)?;
/// assert!((x - array![1.0, 1.0]).iter().all(|error: &f64| error.abs() < 1e-15));
///
/// let all = array![0.0, 1.0, 2.0, 3.0, 4.0];
/// let every_other = all.slice(s![..;2]);
/// let view = every_other.as_lapidary()?;
/// assert_eq!((view.shape(), view.at(2, 0)), ((3, 1), 4.0));
/// assert!(all.slice(s![..;-1]).as_lapidary().unwrap_err().to_string().contains("strides (-1, 1)"));
/// # Ok::<(), lapidary::Error>(())
/// ```
impl<T: Element> AsLapidary for ArrayRef1<T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        // SAFETY: `ndarray` guarantees that the array is valid for reads of all elements that its stride reaches, and the result
        // borrows the array, so that nothing writes the elements meanwhile.
        unsafe { strided_column(self).view(self.as_ptr()) }
    }
}

impl<T: Element> AsLapidaryMut for ArrayRef1<T> {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        let strided = strided_column(self);
        // SAFETY: `ndarray` guarantees that the array is valid for reads and writes of all elements that its stride reaches, and the
        // result borrows the array mutably, so that nothing else accesses the elements meanwhile.
        unsafe { strided.view_mut(self.as_mut_ptr()) }
    }
}
