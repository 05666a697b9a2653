//! Views of batches, which consist of many matrices of one shape at equal distances in memory.
//!
//! Matrix i of a batch begins `i·stride` elements after the first matrix. A stride larger than a matrix leaves gaps between the
//! matrices, and no routine accesses the gaps. The matrices of a batch may overlap if the batch is only read. With `stride = 0`
//! all matrices of the batch are the same matrix.

use std::fmt;
use std::marker::PhantomData;

use crate::enums::Layout;
use crate::error::{Error, Result};
use crate::matrix::{MatMut, MatRef, RawMat};
use crate::scalar::Element;

/// The shape of a batch: the number and the sizes of the matrices, and the distances between their elements in memory.
///
/// ```
/// # extern crate lapidary_core as lapidary; // an application uses `lapidary`
/// use lapidary::{Batch, BatchShape};
/// // three 2×2 matrices; five elements from one to the next
/// let data: Vec<f64> = (0..14).map(f64::from).collect();
/// let batch = Batch::new(&data, BatchShape::col_major(2, 2, 3).stride(5))?;
/// assert_eq!([batch.get(2).at(0, 0), batch.get(2).at(1, 1)], [10.0, 13.0]);
/// # Ok::<(), lapidary::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchShape {
    /// Number of rows of each matrix.
    pub rows: usize,
    /// Number of columns of each matrix.
    pub cols: usize,
    /// Whether the matrices are column-major or row-major.
    pub layout: Layout,
    /// Number of elements from one column (column-major) or row (row-major) of a matrix to the next.
    pub ld: usize,
    /// Number of elements from the first element of a matrix to the first element of the next matrix.
    pub stride: usize,
    /// Number of matrices in the batch.
    pub count: usize,
}

impl BatchShape {
    /// The shape of a batch of column-major matrices, which lie one after the other without gaps.
    #[must_use]
    pub fn col_major(rows: usize, cols: usize, count: usize) -> Self {
        let layout = Layout::ColMajor;
        BatchShape { rows, cols, layout, ld: rows.max(1), stride: rows.saturating_mul(cols), count }
    }

    /// The shape of a batch of row-major matrices, which lie one after the other without gaps.
    #[must_use]
    pub fn row_major(rows: usize, cols: usize, count: usize) -> Self {
        let layout = Layout::RowMajor;
        BatchShape { rows, cols, layout, ld: cols.max(1), stride: rows.saturating_mul(cols), count }
    }

    /// Sets the number of elements from one column or row to the next. The stride of the batch does not change, so the caller
    /// must set a new stride too, unless the matrices are to interleave.
    #[must_use]
    pub fn ld(self, ld: usize) -> Self {
        BatchShape { ld, ..self }
    }

    /// Sets the number of elements from the first element of a matrix to the first element of the next matrix.
    #[must_use]
    pub fn stride(self, stride: usize) -> Self {
        BatchShape { stride, ..self }
    }

    /// Checks `ld` and the stride, and returns the number of elements that the batch spans.
    fn span(&self) -> Result<usize> {
        let BatchShape { rows, cols, layout, ld, stride, count } = *self;
        let each = RawMat::span(rows, cols, ld, layout)?;
        if each == 0 || count == 0 {
            return Ok(0);
        }
        let begin = (count - 1).checked_mul(stride);
        begin
            .and_then(|begin| begin.checked_add(each))
            .filter(|&span| isize::try_from(span).is_ok())
            .ok_or_else(|| Error::invalid("batch", format!("stride = {stride}, count = {count} overflow the address space")))
    }

    /// Returns an error if two matrices of the batch share an element.
    fn check_apart(&self) -> Result<()> {
        let BatchShape { rows, cols, layout, ld, stride, count } = *self;
        let (line, lines) = if layout == Layout::ColMajor { (rows, cols) } else { (cols, rows) };
        // let a matrix begin `apart` elements after another: column l of the first matrix (or row l, if row-major) can share
        // elements with column l' (row l') of the second matrix only if l − l' is `down` or `down + 1`
        let meet = |apart: usize| {
            let (down, across) = (apart / ld, apart % ld);
            (down < lines && across < line) || (down + 1 < lines && ld - across < line)
        };
        let span = RawMat::span(rows, cols, ld, layout)?;
        let near = (1..count).map_while(|i| i.checked_mul(stride).filter(|&apart| apart < span).map(|apart| (i, apart)));
        match near.into_iter().find(|&(_, apart)| meet(apart)) {
            None => Ok(()),
            Some((i, _)) => Err(Error::invalid(
                "batch",
                format!("stride = {stride} makes matrices 0 and {i} overlap: each is {rows}×{cols} with ld = {ld}"),
            )),
        }
    }
}

/// A batch without its element type and lifetime: the common part of [`Batch`] and [`BatchMut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawBatch {
    /// The first matrix of the batch.
    pub first: RawMat,
    /// Number of elements from the first element of a matrix to the first element of the next matrix.
    pub stride: usize,
    /// Number of matrices in the batch.
    pub count: usize,
}

impl RawBatch {
    /// Returns matrix i of the batch.
    #[must_use]
    pub fn get(&self, i: usize) -> RawMat {
        RawMat { offset: self.first.offset + i * self.stride, ..self.first }
    }

    /// Returns the batch of the transposed matrices.
    #[must_use]
    pub fn t(self) -> Self {
        RawBatch { first: self.first.t(), ..self }
    }

    /// Returns all matrices of the batch side by side as one column-major matrix, the form in which a batched instruction takes
    /// its operands. Returns `None` if the matrices do not lie side by side in memory.
    #[must_use]
    pub fn side_by_side(&self) -> Option<RawMat> {
        let RawMat { rows, cols, ld, layout, .. } = self.first;
        // a contiguous column lies in memory in the same way in both layouts
        let is_column = cols == 1 && (layout == Layout::ColMajor || ld == 1);
        let ld = match (is_column, self.count) {
            (true, 0 | 1) => rows.max(1),
            // matrices of one column may lie at any distance from each other
            (true, _) => self.stride,
            (false, _) => ld,
        };
        let fits = is_column || (layout == Layout::ColMajor && (self.count <= 1 || self.stride == cols * ld));
        (fits && ld >= rows.max(1)).then(|| RawMat { cols: cols * self.count, ld, layout: Layout::ColMajor, ..self.first })
    }
}

/// A batch of matrices that can be read. The matrices of the batch have equal shapes and lie at equal distances in memory.
#[derive(Clone, Copy)]
pub struct Batch<'a, T> {
    raw: RawBatch,
    marker: PhantomData<&'a T>,
}

/// A batch of matrices that can be read and written. The matrices of the batch have equal shapes, lie at equal distances in
/// memory, and do not overlap.
pub struct BatchMut<'a, T> {
    raw: RawBatch,
    marker: PhantomData<&'a mut T>,
}

// SAFETY: a `Batch` acts as a shared reference, which another thread may use because the elements are `Sync`.
unsafe impl<T: Element> Send for Batch<'_, T> {}
// SAFETY: a `Batch` acts as a shared reference to elements that are `Sync`.
unsafe impl<T: Element> Sync for Batch<'_, T> {}
// SAFETY: a `BatchMut` acts as a unique reference to elements that are `Send`.
unsafe impl<T: Element> Send for BatchMut<'_, T> {}
// SAFETY: a shared reference to a `BatchMut` gives only shared access to its elements.
unsafe impl<T: Element> Sync for BatchMut<'_, T> {}

/// Returns the stride of a batch, or 0 if the batch has at most one matrix. The stride of a batch with one matrix may be huge,
/// and its multiples could overflow.
fn bounded(shape: &BatchShape) -> usize {
    if shape.count <= 1 { 0 } else { shape.stride }
}

fn too_short(len: usize, span: usize, shape: &BatchShape) -> Error {
    let BatchShape { rows, cols, ld, stride, count, .. } = *shape;
    let what = format!("{count} matrices of {rows}×{cols} with ld = {ld}, stride = {stride}");
    Error::invalid("batch", format!("data holds {len} elements, {what} need {span}"))
}

/// Checks that the `len` elements at `data` hold a batch of this shape, and describes the batch.
fn described<T: Element>(data: *const T, len: usize, shape: BatchShape) -> Result<RawBatch> {
    let BatchShape { rows, cols, ld, layout, count, .. } = shape;
    let span = shape.span()?;
    if len < span {
        return Err(too_short(len, span, &shape));
    }
    // SAFETY: the `len` elements at `data` hold the first matrix. If the batch is empty, no element of the first matrix is read.
    let first = unsafe { MatRef::from_raw(data, rows, cols, ld, layout)? };
    Ok(RawBatch { first: first.raw(), stride: bounded(&shape), count })
}

/// Divides the columns of the matrix `raw` equally among the `count` matrices of a batch.
fn divided(raw: RawMat, count: usize) -> Result<RawBatch> {
    let cols = match raw.cols.checked_div(count) {
        Some(cols) if cols * count == raw.cols => cols,
        None if raw.cols == 0 => 0,
        _ => return Err(Error::invalid("batch", format!("{} columns are not {count} matrices of equal width", raw.cols))),
    };
    let first = RawMat { cols, ..raw };
    Ok(RawBatch { first, stride: first.index(0, cols), count })
}

impl<'a, T: Element> Batch<'a, T> {
    /// Views `data` as a batch of the given shape.
    ///
    /// # Errors
    /// `ld` is less than the length of a column (column-major) or row (row-major), `data` is too short, or the size of the batch
    /// overflows.
    pub fn new(data: &'a [T], shape: BatchShape) -> Result<Self> {
        Ok(Batch { raw: described(data.as_ptr(), data.len(), shape)?, marker: PhantomData })
    }

    /// Views `data` as `count` column-major matrices, which lie one after the other without gaps.
    ///
    /// # Errors
    /// `data` is too short, or the size of the batch overflows.
    pub fn col_major(data: &'a [T], rows: usize, cols: usize, count: usize) -> Result<Self> {
        Self::new(data, BatchShape::col_major(rows, cols, count))
    }

    /// Views `data` as `count` row-major matrices, which lie one after the other without gaps.
    ///
    /// # Errors
    /// `data` is too short, or the size of the batch overflows.
    pub fn row_major(data: &'a [T], rows: usize, cols: usize, count: usize) -> Result<Self> {
        Self::new(data, BatchShape::row_major(rows, cols, count))
    }

    /// Divides the columns of a matrix among `count` matrices of equal width. With this function a matrix on a device can be used
    /// as a batch.
    ///
    /// # Errors
    /// `count` does not divide the number of columns of the matrix.
    pub fn from_columns(matrix: MatRef<'a, T>, count: usize) -> Result<Self> {
        Ok(Batch { raw: divided(matrix.raw(), count)?, marker: PhantomData })
    }

    /// Returns matrix i of the batch.
    ///
    /// # Panics
    /// If the batch has no matrix i.
    #[must_use]
    pub fn get(&self, i: usize) -> MatRef<'a, T> {
        assert!(i < self.count(), "there is no matrix {i} of {}", self.count());
        // SAFETY: the batch contains matrix i, and the elements of the batch are borrowed for `'a`.
        unsafe { MatRef::of(self.raw.get(i)) }
    }
}

impl<'a, T: Element> BatchMut<'a, T> {
    /// Views `data` as a batch of the given shape.
    ///
    /// # Errors
    /// Matrices of the batch overlap, `ld` is less than the length of a column (column-major) or row (row-major), `data` is too
    /// short, or the size of the batch overflows.
    pub fn new(data: &'a mut [T], shape: BatchShape) -> Result<Self> {
        shape.check_apart()?;
        // the matrices are written through the pointer in `raw`, so this pointer must come from the unique borrow
        Ok(BatchMut { raw: described(data.as_mut_ptr(), data.len(), shape)?, marker: PhantomData })
    }

    /// Views `data` as `count` column-major matrices, which lie one after the other without gaps.
    ///
    /// # Errors
    /// `data` is too short, or the size of the batch overflows.
    pub fn col_major(data: &'a mut [T], rows: usize, cols: usize, count: usize) -> Result<Self> {
        Self::new(data, BatchShape::col_major(rows, cols, count))
    }

    /// Views `data` as `count` row-major matrices, which lie one after the other without gaps.
    ///
    /// # Errors
    /// `data` is too short, or the size of the batch overflows.
    pub fn row_major(data: &'a mut [T], rows: usize, cols: usize, count: usize) -> Result<Self> {
        Self::new(data, BatchShape::row_major(rows, cols, count))
    }

    /// Divides the columns of a matrix among `count` matrices of equal width. With this function a matrix on a device can be used
    /// as a batch.
    ///
    /// # Errors
    /// `count` does not divide the number of columns of the matrix.
    #[expect(clippy::needless_pass_by_value, reason = "the unique borrow moves into the batch")]
    pub fn from_columns(matrix: MatMut<'a, T>, count: usize) -> Result<Self> {
        Ok(BatchMut { raw: divided(matrix.raw(), count)?, marker: PhantomData })
    }

    /// Returns this batch as a [`Batch`], for reading only.
    #[must_use]
    pub fn as_ref(&self) -> Batch<'_, T> {
        Batch { raw: self.raw, marker: PhantomData }
    }

    /// Returns this batch, borrowed for a shorter lifetime.
    #[must_use]
    pub fn reborrow(&mut self) -> BatchMut<'_, T> {
        BatchMut { raw: self.raw, marker: PhantomData }
    }

    /// Returns matrix i of the batch, for reading and writing.
    ///
    /// # Panics
    /// If the batch has no matrix i.
    #[must_use]
    pub fn get_mut(&mut self, i: usize) -> MatMut<'_, T> {
        assert!(i < self.count(), "there is no matrix {i} of {}", self.count());
        // SAFETY: the batch contains matrix i, and this method borrows the batch uniquely.
        unsafe { MatMut::of(self.raw.get(i)) }
    }

    /// Returns the matrices of the batch one by one, for reading and writing.
    pub fn into_matrices(self) -> impl Iterator<Item = MatMut<'a, T>> {
        let raw = self.raw;
        // SAFETY: the iterator returns each matrix only once, and the matrices neither overlap nor outlive the borrow `'a`.
        (0..raw.count).map(move |i| unsafe { MatMut::of(raw.get(i)) })
    }
}

/// Implements the methods that `Batch` and `BatchMut` have in common.
macro_rules! shared_access {
    ($($view:ident),+) => {$(
        impl<T: Element> $view<'_, T> {
            /// Number of matrices in the batch.
            #[must_use]
            pub fn count(&self) -> usize {
                self.raw.count
            }
            /// Number of rows and number of columns of each matrix.
            #[must_use]
            pub fn shape(&self) -> (usize, usize) {
                (self.raw.first.rows, self.raw.first.cols)
            }
            /// The batch without its element type and lifetime.
            #[must_use]
            pub fn raw(&self) -> RawBatch {
                self.raw
            }
        }

        impl<T> fmt::Debug for $view<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let RawBatch { first: RawMat { rows, cols, ld, layout, .. }, stride, count } = self.raw;
                let t = std::any::type_name::<T>();
                write!(f, concat!(stringify!($view), "({} of {}×{} {}, ld {}, {}, stride {})"), count, rows, cols, t, ld, layout, stride)
            }
        }
    )+};
}

shared_access!(Batch, BatchMut);

#[cfg(test)]
mod tests;
