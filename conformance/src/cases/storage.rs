//! The layout of an operand in memory, and a buffer with canaries around the operand.

use std::fmt;

use lapidary_core::{Layout, MatMut, MatRef, Scalar};
use proptest::prelude::*;

use super::fill::canary;
use crate::oracle::Dense;

/// Number of canaries at the end of every buffer.
const TAIL: usize = 9;

/// Layout, gaps and position of an operand in its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Storage {
    /// Storage order of the elements.
    pub layout: Layout,
    /// Number of elements between the end of one column (of a row-major matrix: row) and the beginning of the next.
    pub gap: usize,
    /// Number of rows above the operand, and number of columns to its left, if the operand is a sub-view of a larger matrix.
    pub skip: (usize, usize),
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.layout == Layout::ColMajor { "col" } else { "row" })?;
        if self.gap > 0 {
            write!(f, "+{}", self.gap)?;
        }
        if self.skip == (0, 0) { Ok(()) } else { write!(f, "@{},{}", self.skip.0, self.skip.1) }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Draws the storage of an operand. About half of the drawn operands have gaps, and a third are sub-views.
pub fn storage() -> impl Strategy<Value = Storage> {
    let layout = prop::sample::select(vec![Layout::ColMajor, Layout::RowMajor]);
    let gap = prop_oneof![Just(0), 1..6_usize];
    let skip = prop_oneof![2 => Just((0, 0)), 1 => (0..4_usize, 0..4_usize)];
    (layout, gap, skip).prop_map(|(layout, gap, skip)| Storage { layout, gap, skip })
}

/// A matrix in a buffer. Every element of the buffer outside the matrix is a canary.
#[derive(Clone, Debug)]
pub struct Stored<T> {
    data: Vec<T>,
    rows: usize,
    cols: usize,
    storage: Storage,
}

impl<T: Scalar> Stored<T> {
    /// Stores the elements of `dense` in a new buffer, in the layout that `storage` describes.
    #[must_use]
    pub fn new(dense: &Dense, storage: Storage) -> Self {
        let (rows, cols) = (dense.rows(), dense.cols());
        let mut stored = Stored { data: Vec::new(), rows, cols, storage };
        let lines = match storage.layout {
            Layout::ColMajor => cols + storage.skip.1,
            Layout::RowMajor => rows + storage.skip.0,
        };
        stored.data = vec![canary(); lines * stored.ld() + TAIL];
        let mut view = stored.view_mut();
        for ((i, j), x) in dense.elements() {
            view.set(i, j, T::from_f64(x));
        }
        stored
    }

    fn ld(&self) -> usize {
        let line = match self.storage.layout {
            Layout::ColMajor => self.rows + self.storage.skip.0,
            Layout::RowMajor => self.cols + self.storage.skip.1,
        };
        (line + self.storage.gap).max(1)
    }

    /// The distance in elements between neighbouring rows, and that between neighbouring columns.
    #[must_use]
    pub fn strides(&self) -> [usize; 2] {
        match self.storage.layout {
            Layout::ColMajor => [1, self.ld()],
            Layout::RowMajor => [self.ld(), 1],
        }
    }

    /// Index of element (i, j) in the buffer.
    fn index(&self, i: usize, j: usize) -> usize {
        let (i, j) = (i + self.storage.skip.0, j + self.storage.skip.1);
        match self.storage.layout {
            Layout::ColMajor => i + j * self.ld(),
            Layout::RowMajor => i * self.ld() + j,
        }
    }

    /// Read access to the matrix.
    ///
    /// # Panics
    /// `view` never panics, since the buffer holds the whole matrix.
    #[must_use]
    pub fn view(&self) -> MatRef<'_, T> {
        let (i, j) = self.storage.skip;
        let (rows, cols) = (i + self.rows, j + self.cols);
        let whole = MatRef::new(&self.data, rows, cols, self.ld(), self.storage.layout).expect("the buffer holds it");
        whole.sub(i..rows, j..cols)
    }

    /// Write access to the matrix.
    ///
    /// # Panics
    /// `view_mut` never panics, since the buffer holds the whole matrix.
    #[must_use]
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        let ((i, j), ld) = (self.storage.skip, self.ld());
        let (rows, cols) = (i + self.rows, j + self.cols);
        let whole = MatMut::new(&mut self.data, rows, cols, ld, self.storage.layout).expect("the buffer holds it");
        whole.sub(i..rows, j..cols)
    }

    /// A copy of the matrix in the form of the oracle.
    #[must_use]
    pub fn dense(&self) -> Dense {
        Dense::from_view(self.view())
    }

    /// The first index at which the bits of this buffer differ from those of the buffer of `before`. `None` if all bits are equal.
    #[must_use]
    pub fn changed(&self, before: &Self) -> Option<usize> {
        let mut pairs = self.data.iter().zip(&before.data);
        pairs.position(|(now, before)| now.to_f64().to_bits() != before.to_f64().to_bits())
    }

    /// Index of the first canary that was overwritten. `None` if no canary was overwritten.
    #[must_use]
    pub fn damaged(&self) -> Option<usize> {
        let mut restored = self.clone();
        for j in 0..self.cols {
            for i in 0..self.rows {
                let at = self.index(i, j);
                restored.data[at] = canary();
            }
        }
        let canary = canary::<T>().to_f64().to_bits();
        restored.data.iter().position(|x| x.to_f64().to_bits() != canary)
    }
}
