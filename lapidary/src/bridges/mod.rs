//! Views of other crates' matrices, without copying. Each crate is a feature:
//! `ndarray`, `nalgebra`, `faer`.
//!
//! [`AsLapidary::as_lapidary`] gives a [`MatRef`] of a matrix or view of the
//! other crate, [`AsLapidaryMut::as_lapidary_mut`] a [`MatMut`]. The names are
//! long because all three crates have a `view` or an `as_ref` of their own.
//!
//! One stride must be 1 and the other at least the length of such a line; a
//! stride over an extent of 0 or 1 does not matter. So row- and column-major
//! matrices, their rectangles and their transposes can be viewed; reversed,
//! broadcast and every-other-element views are refused, and the error names
//! their strides.

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
    /// Type of the elements.
    type Elem: Element;

    /// The matrix, for reading.
    ///
    /// # Errors
    /// The strides are not those of a row- or column-major matrix.
    fn as_lapidary(&self) -> Result<MatRef<'_, Self::Elem>>;
}

/// A matrix of another crate that can be read and written in place.
pub trait AsLapidaryMut: AsLapidary {
    /// The matrix, for reading and writing.
    ///
    /// # Errors
    /// As [`AsLapidary::as_lapidary`].
    fn as_lapidary_mut(&mut self) -> Result<MatMut<'_, Self::Elem>>;
}
