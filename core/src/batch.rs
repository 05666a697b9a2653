//! Views of batches: many matrices of one shape, at equal distances.
//!
//! Matrix i begins `i·stride` elements after the first one. Distances larger than a matrix leave gaps, which no routine
//! touches; matrices that are only read may overlap, or be one matrix (`stride = 0`).

use std::fmt;
use std::marker::PhantomData;

use crate::enums::Layout;
use crate::error::{Error, Result};
use crate::matrix::{MatMut, MatRef, RawMat};
use crate::scalar::Element;

/// The shape of a batch.
///
/// ```
/// use lapidary_core::{Batch, BatchShape};
/// // three 2×2 matrices; five elements from one to the next
/// let data: Vec<f64> = (0..14).map(f64::from).collect();
/// let batch = Batch::new(&data, BatchShape::col_major(2, 2, 3).stride(5))?;
/// assert_eq!([batch.get(2).at(0, 0), batch.get(2).at(1, 1)], [10.0, 13.0]);
/// # Ok::<(), lapidary_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchShape {
    /// Rows of each matrix.
    pub rows: usize,
    /// Columns of each matrix.
    pub cols: usize,
    /// How the elements of a matrix follow one another.
    pub layout: Layout,
    /// Elements between neighbouring columns (column-major) or rows (row-major) of a matrix.
    pub ld: usize,
    /// Elements from the first element of a matrix to that of the next.
    pub stride: usize,
    /// Number of matrices.
    pub count: usize,
}

impl BatchShape {
    /// Column-major matrices one after the other, without gaps.
    #[must_use]
    pub fn col_major(rows: usize, cols: usize, count: usize) -> Self {
        let layout = Layout::ColMajor;
        BatchShape { rows, cols, layout, ld: rows.max(1), stride: rows.saturating_mul(cols), count }
    }

    /// Row-major matrices one after the other, without gaps.
    #[must_use]
    pub fn row_major(rows: usize, cols: usize, count: usize) -> Self {
        let layout = Layout::RowMajor;
        BatchShape { rows, cols, layout, ld: cols.max(1), stride: rows.saturating_mul(cols), count }
    }

    /// Sets the elements between neighbouring columns or rows. The stride stays: set it, too, unless matrices interleave.
    #[must_use]
    pub fn ld(self, ld: usize) -> Self {
        BatchShape { ld, ..self }
    }

    /// Sets the elements from a matrix to the next.
    #[must_use]
    pub fn stride(self, stride: usize) -> Self {
        BatchShape { stride, ..self }
    }

    /// Checks the strides and counts the elements that the batch spans.
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

    /// Refuses matrices that share elements.
    fn check_apart(&self) -> Result<()> {
        let BatchShape { rows, cols, layout, ld, stride, count } = *self;
        let (line, lines) = if layout == Layout::ColMajor { (rows, cols) } else { (cols, rows) };
        // lines l and l' of two matrices that lie so far apart meet if l − l' is one of two numbers
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

/// An untyped batch: the common part of [`Batch`] and [`BatchMut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawBatch {
    /// The first matrix.
    pub first: RawMat,
    /// Number of elements from the beginning of a matrix to that of the next one.
    pub stride: usize,
    /// Number of matrices.
    pub count: usize,
}

impl RawBatch {
    /// Matrix i.
    #[must_use]
    pub fn get(&self, i: usize) -> RawMat {
        RawMat { offset: self.first.offset + i * self.stride, ..self.first }
    }

    /// The transposed matrices.
    #[must_use]
    pub fn t(self) -> Self {
        RawBatch { first: self.first.t(), ..self }
    }

    /// All matrices side by side in one column-major matrix, as batched instructions take them; `None` if they lie otherwise.
    #[must_use]
    pub fn side_by_side(&self) -> Option<RawMat> {
        let RawMat { rows, cols, ld, layout, .. } = self.first;
        // a single column is the same in both layouts
        let is_column = cols == 1 && (layout == Layout::ColMajor || ld == 1);
        let ld = match (is_column, self.count) {
            (true, 0 | 1) => rows.max(1),
            // columns may be at any distance
            (true, _) => self.stride,
            (false, _) => ld,
        };
        let fits = is_column || (layout == Layout::ColMajor && (self.count <= 1 || self.stride == cols * ld));
        (fits && ld >= rows.max(1)).then(|| RawMat { cols: cols * self.count, ld, layout: Layout::ColMajor, ..self.first })
    }
}

/// A batch of matrices, to be read. They have equal shapes and lie at equal distances in memory.
#[derive(Clone, Copy)]
pub struct Batch<'a, T> {
    raw: RawBatch,
    marker: PhantomData<&'a T>,
}

/// A batch of matrices, to be read and written. They have equal shapes, lie at equal distances in memory, and do not overlap.
pub struct BatchMut<'a, T> {
    raw: RawBatch,
    marker: PhantomData<&'a mut T>,
}

// SAFETY: a batch is a reference (shared or unique) to elements that are Send and Sync.
unsafe impl<T: Element> Send for Batch<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Batch<'_, T> {}
// SAFETY: as above; the unique borrow moves with the batch.
unsafe impl<T: Element> Send for BatchMut<'_, T> {}
// SAFETY: a shared reference to the batch gives shared access only.
unsafe impl<T: Element> Sync for BatchMut<'_, T> {}

/// The distance of matrices, which is never used if there is one matrix only: multiples of a huge one would overflow.
fn bounded(shape: &BatchShape) -> usize {
    if shape.count <= 1 { 0 } else { shape.stride }
}

fn too_short(len: usize, span: usize, shape: &BatchShape) -> Error {
    let BatchShape { rows, cols, ld, stride, count, .. } = *shape;
    let what = format!("{count} matrices of {rows}×{cols} with ld = {ld}, stride = {stride}");
    Error::invalid("batch", format!("data holds {len} elements, {what} need {span}"))
}

/// The matrices that `shape` describes in memory of `len` elements.
fn described<T: Element>(data: *const T, len: usize, shape: BatchShape) -> Result<RawBatch> {
    let BatchShape { rows, cols, ld, layout, count, .. } = shape;
    let span = shape.span()?;
    if len < span {
        return Err(too_short(len, span, &shape));
    }
    // SAFETY: the memory holds the first matrix, if there is one that is read; the view ends here.
    let first = unsafe { MatRef::from_raw(data, rows, cols, ld, layout)? };
    Ok(RawBatch { first: first.raw(), stride: bounded(&shape), count })
}

/// The batch of a matrix whose columns are divided equally among `count` matrices.
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
    /// The matrices in `data` that `shape` describes.
    ///
    /// # Errors
    /// `ld` is below the length of a line, `data` is too short, or sizes overflow.
    pub fn new(data: &'a [T], shape: BatchShape) -> Result<Self> {
        Ok(Batch { raw: described(data.as_ptr(), data.len(), shape)?, marker: PhantomData })
    }

    /// `count` column-major matrices one after the other, without gaps.
    ///
    /// # Errors
    /// `data` is too short, or sizes overflow.
    pub fn col_major(data: &'a [T], rows: usize, cols: usize, count: usize) -> Result<Self> {
        Self::new(data, BatchShape::col_major(rows, cols, count))
    }

    /// `count` row-major matrices one after the other, without gaps.
    ///
    /// # Errors
    /// `data` is too short, or sizes overflow.
    pub fn row_major(data: &'a [T], rows: usize, cols: usize, count: usize) -> Result<Self> {
        Self::new(data, BatchShape::row_major(rows, cols, count))
    }

    /// `count` matrices of equal width, side by side in the columns of one. So a matrix on a device is a batch.
    ///
    /// # Errors
    /// `count` does not divide the number of columns.
    pub fn from_columns(matrix: MatRef<'a, T>, count: usize) -> Result<Self> {
        Ok(Batch { raw: divided(matrix.raw(), count)?, marker: PhantomData })
    }

    /// Matrix i.
    ///
    /// # Panics
    /// If there is no matrix i.
    #[must_use]
    pub fn get(&self, i: usize) -> MatRef<'a, T> {
        assert!(i < self.count(), "there is no matrix {i} of {}", self.count());
        // SAFETY: a matrix of the batch, which is borrowed for 'a.
        unsafe { MatRef::of(self.raw.get(i)) }
    }
}

impl<'a, T: Element> BatchMut<'a, T> {
    /// The matrices in `data` that `shape` describes.
    ///
    /// # Errors
    /// Matrices overlap, `ld` is below the length of a line, `data` is too short, or sizes overflow.
    pub fn new(data: &'a mut [T], shape: BatchShape) -> Result<Self> {
        shape.check_apart()?;
        // the pointer comes from the unique borrow, since matrices are written by it
        Ok(BatchMut { raw: described(data.as_mut_ptr(), data.len(), shape)?, marker: PhantomData })
    }

    /// `count` column-major matrices one after the other, without gaps.
    ///
    /// # Errors
    /// `data` is too short, or sizes overflow.
    pub fn col_major(data: &'a mut [T], rows: usize, cols: usize, count: usize) -> Result<Self> {
        Self::new(data, BatchShape::col_major(rows, cols, count))
    }

    /// `count` row-major matrices one after the other, without gaps.
    ///
    /// # Errors
    /// `data` is too short, or sizes overflow.
    pub fn row_major(data: &'a mut [T], rows: usize, cols: usize, count: usize) -> Result<Self> {
        Self::new(data, BatchShape::row_major(rows, cols, count))
    }

    /// `count` matrices of equal width, side by side in the columns of one. So a matrix on a device is a batch.
    ///
    /// # Errors
    /// `count` does not divide the number of columns.
    #[expect(clippy::needless_pass_by_value, reason = "the unique borrow moves into the batch")]
    pub fn from_columns(matrix: MatMut<'a, T>, count: usize) -> Result<Self> {
        Ok(BatchMut { raw: divided(matrix.raw(), count)?, marker: PhantomData })
    }

    /// The same matrices, for reading.
    #[must_use]
    pub fn as_ref(&self) -> Batch<'_, T> {
        Batch { raw: self.raw, marker: PhantomData }
    }

    /// The same matrices, borrowed for a shorter lifetime.
    #[must_use]
    pub fn reborrow(&mut self) -> BatchMut<'_, T> {
        BatchMut { raw: self.raw, marker: PhantomData }
    }

    /// Matrix i, for reading and writing.
    ///
    /// # Panics
    /// If there is no matrix i.
    #[must_use]
    pub fn get_mut(&mut self, i: usize) -> MatMut<'_, T> {
        assert!(i < self.count(), "there is no matrix {i} of {}", self.count());
        // SAFETY: a matrix of the batch, which is borrowed uniquely.
        unsafe { MatMut::of(self.raw.get(i)) }
    }

    /// The matrices one by one.
    pub fn into_matrices(self) -> impl Iterator<Item = MatMut<'a, T>> {
        let raw = self.raw;
        // SAFETY: each matrix is given away once, and none overlaps another.
        (0..raw.count).map(move |i| unsafe { MatMut::of(raw.get(i)) })
    }
}

/// What both views answer alike.
macro_rules! shared_access {
    ($($view:ident),+) => {$(
        impl<T: Element> $view<'_, T> {
            /// Number of matrices.
            #[must_use]
            pub fn count(&self) -> usize {
                self.raw.count
            }
            /// Rows and columns of each matrix.
            #[must_use]
            pub fn shape(&self) -> (usize, usize) {
                (self.raw.first.rows, self.raw.first.cols)
            }
            /// The batch without its type and lifetime.
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
