//! Views of matrices and vectors of other crates, without copying. The bridge to each crate is enabled by a feature with the name of
//! the crate: `ndarray`, `nalgebra`, `faer`. Each feature also re-exports its crate at the root, for example as `lapidary::ndarray`, in
//! the version whose types have views.
//!
//! A vector (an array with one axis, a slice or a `Vec`) of n elements is viewed as an n×1 matrix.
//!
//! ```
//! use lapidary::bridges::AsLapidaryMut;
//! use lapidary::{Machine, MatMut, Select};
//! let machine = Machine::open(&Select::all())?;
//! let (mut a, mut x) = ([4.0, 1.0, 2.0, 3.0], vec![6.0, 4.0]);
//! let _ = machine.gesv(MatMut::col_major(&mut a, 2, 2)?, x.as_lapidary_mut()?)?;
//! assert!((x[0] - 1.0_f64).abs() < 1e-15 && (x[1] - 1.0).abs() < 1e-15);
//! # Ok::<(), lapidary::Error>(())
//! ```
//!
//! [`AsLapidary::as_lapidary`] returns a [`MatRef`] of a matrix or view of another crate; [`AsLapidaryMut::as_lapidary_mut`]
//! returns a [`MatMut`]. The names `view` and `as_ref` are not used for these methods, because each of the three crates has a
//! method `view` or `as_ref` of its own.
//!
//! One of the two strides of a matrix must be 1, so that each column (or each row) is contiguous. The distance between contiguous
//! columns (or rows) must be at least the number of elements in a column (or row). A stride does not matter if the matrix has at
//! most one element in the direction of the stride. Row- and column-major matrices, rectangles of such matrices and their
//! transposes can therefore be viewed. For reversed views, broadcast views and views of every other element, the two methods return
//! an error that names the strides.

use lapidary_core::{Element, MatMut, MatRef, Result};

#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(any(feature = "faer", feature = "nalgebra", feature = "ndarray"))]
mod strided;

/// A matrix or vector that can be read in place.
pub trait AsLapidary {
    /// Type of the matrix elements.
    type Elem: Element;

    /// Returns a view of the matrix for reading.
    ///
    /// # Errors
    /// The strides are not those of a row- or column-major matrix.
    fn as_lapidary(&self) -> Result<MatRef<'_, Self::Elem>>;
}

/// A matrix or vector that can be read and written in place.
pub trait AsLapidaryMut: AsLapidary {
    /// Returns a view of the matrix for reading and writing.
    ///
    /// # Errors
    /// The method returns the errors of [`AsLapidary::as_lapidary`].
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, Self::Elem>>;
}

/// A slice of n elements becomes a view of an n×1 matrix.
impl<T: Element> AsLapidary for [T] {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        MatRef::col_major(self, self.len(), 1)
    }
}

impl<T: Element> AsLapidaryMut for [T] {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        let rows = self.len();
        MatMut::col_major(self, rows, 1)
    }
}

/// A `Vec` of n elements becomes a view of an n×1 matrix.
impl<T: Element> AsLapidary for Vec<T> {
    type Elem = T;

    fn as_lapidary(&self) -> Result<MatRef<'_, T>> {
        self.as_slice().as_lapidary()
    }
}

impl<T: Element> AsLapidaryMut for Vec<T> {
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, T>> {
        self.as_mut_slice().as_lapidary_mut()
    }
}
