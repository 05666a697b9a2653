//! Views of matrices of other crates, without copying. The bridge to each crate is enabled by a feature with the name of the
//! crate: `ndarray`, `nalgebra`, `faer`.
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

/// A matrix of another crate that can be read in place.
pub trait AsLapidary {
    /// Type of the matrix elements.
    type Elem: Element;

    /// Returns a view of the matrix for reading.
    ///
    /// # Errors
    /// The strides are not those of a row- or column-major matrix.
    fn as_lapidary(&self) -> Result<MatRef<'_, Self::Elem>>;
}

/// A matrix of another crate that can be read and written in place.
pub trait AsLapidaryMut: AsLapidary {
    /// Returns a view of the matrix for reading and writing.
    ///
    /// # Errors
    /// The method returns the errors of [`AsLapidary::as_lapidary`].
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, Self::Elem>>;
}
