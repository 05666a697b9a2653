//! Views of matrices: where the elements lie, in which shape, with which stride.
//!
//! A view borrows; it never owns or copies. Host memory is viewed through
//! slices ([`MatRef::new`], [`MatMut::new`]), which is safe, or through raw
//! pointers ([`MatRef::from_raw`]) for foreign callers. A matrix that lies in a
//! device's own memory is viewed through the [`Resident`] name of its buffer.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::enums::Layout;
use crate::error::{Error, Result};
use crate::instruction::Extent;
use crate::scalar::{DType, Element};

/// The name of a buffer that lives in one device's memory across calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resident {
    /// Index of the device in its machine.
    pub device: usize,
    /// Key in that device's table of resident buffers.
    pub key: u64,
}

impl Resident {
    /// The name of a new buffer.
    #[must_use]
    pub fn new(device: usize) -> Self {
        Resident { device, key: Self::next_key() }
    }

    /// A key that no other buffer of the process has; a later one is greater.
    pub(crate) fn next_key() -> u64 {
        static KEYS: AtomicU64 = AtomicU64::new(0);
        KEYS.fetch_add(1, Ordering::Relaxed)
    }
}

/// The memory in which the elements of a view lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Host memory, starting at this address.
    Host(NonNull<u8>),
    /// A device's memory.
    Device(Resident),
}

/// An untyped view: the common part of [`MatRef`] and [`MatMut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawMat {
    /// Where the memory begins.
    pub home: Home,
    /// Elements between the beginning of the memory and element (0, 0).
    pub offset: usize,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Elements between neighbouring columns (column-major) or rows (row-major).
    pub ld: usize,
    /// How elements follow one another.
    pub layout: Layout,
    /// Type of the elements.
    pub dtype: DType,
}

impl Extent for RawMat {
    fn extent(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }
}

impl RawMat {
    /// Bytes of the elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows * self.cols * self.dtype.size()
    }

    /// The transposed matrix over the same memory.
    #[inline]
    #[must_use]
    pub fn t(self) -> RawMat {
        RawMat { rows: self.cols, cols: self.rows, layout: self.layout.flip(), ..self }
    }

    /// Elements from (0, 0) to (i, j).
    #[inline]
    #[must_use]
    pub fn index(&self, i: usize, j: usize) -> usize {
        match self.layout {
            Layout::ColMajor => i + j * self.ld,
            Layout::RowMajor => i * self.ld + j,
        }
    }

    /// Length of the contiguous lines and their number.
    #[inline]
    fn lines(rows: usize, cols: usize, layout: Layout) -> (usize, usize) {
        match layout {
            Layout::ColMajor => (rows, cols),
            Layout::RowMajor => (cols, rows),
        }
    }

    /// Checks the stride and counts the elements the view spans.
    #[inline]
    pub(crate) fn span(rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<usize> {
        let (line, count) = Self::lines(rows, cols, layout);
        let least = line.max(1);
        if ld < least {
            return Err(Error::invalid(
                "view",
                format!("ld = {ld} is below {least}, the length of a line of a {rows}×{cols} {layout} matrix"),
            ));
        }
        if line == 0 || count == 0 {
            return Ok(0);
        }
        (count - 1)
            .checked_mul(ld)
            .and_then(|gap| gap.checked_add(line))
            .filter(|span| span.checked_mul(DType::LARGEST).is_some_and(|bytes| isize::try_from(bytes).is_ok()))
            .ok_or_else(|| Error::invalid("view", format!("rows = {rows}, cols = {cols}, ld = {ld} overflow the address space")))
    }

    /// The stride that kernels get. The stride of a single line is never used; a huge one is replaced, since
    /// multiples of it would overflow.
    #[inline]
    fn bounded_stride(rows: usize, cols: usize, ld: usize, layout: Layout) -> usize {
        /// Bytes of an element times the lines that a kernel takes at once, and more.
        const FACTOR: usize = 1 << 16;
        let (line, count) = Self::lines(rows, cols, layout);
        if count <= 1 && ld > usize::MAX / FACTOR { line.max(1) } else { ld }
    }

    #[inline]
    fn sub(self, rows: &Range<usize>, cols: &Range<usize>) -> RawMat {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows && cols.start <= cols.end && cols.end <= self.cols,
            "sub-view rows {rows:?}, cols {cols:?} lies outside a {}×{} matrix",
            self.rows,
            self.cols
        );
        let (i, j) = if rows.is_empty() || cols.is_empty() { (0, 0) } else { (rows.start, cols.start) };
        RawMat { offset: self.offset + self.index(i, j), rows: rows.len(), cols: cols.len(), ..self }
    }
}

/// A matrix that may be read.
#[derive(Clone, Copy)]
pub struct MatRef<'a, T> {
    raw: RawMat,
    marker: PhantomData<&'a T>,
}

/// A matrix that may be read and written; two of them never overlap.
pub struct MatMut<'a, T> {
    raw: RawMat,
    marker: PhantomData<&'a mut T>,
}

// SAFETY: a view is a reference (shared or unique) to elements that are Send and Sync.
unsafe impl<T: Element> Send for MatRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for MatRef<'_, T> {}
// SAFETY: as above; the unique borrow moves with the view.
unsafe impl<T: Element> Send for MatMut<'_, T> {}
// SAFETY: a shared reference to the view gives shared access only.
unsafe impl<T: Element> Sync for MatMut<'_, T> {}

fn too_short(len: usize, span: usize, shape: (usize, usize, usize)) -> Error {
    let (rows, cols, ld) = shape;
    Error::invalid("view", format!("data holds {len} elements, {rows}×{cols} with ld = {ld} needs {span}"))
}

impl<'a, T: Element> MatRef<'a, T> {
    /// A view of `rows` × `cols` elements of `data` with stride `ld`.
    ///
    /// # Errors
    /// `ld` is below the length of a line, `data` is too short, or sizes overflow.
    #[inline]
    pub fn new(data: &'a [T], rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<Self> {
        let span = RawMat::span(rows, cols, ld, layout)?;
        if data.len() < span {
            return Err(too_short(data.len(), span, (rows, cols, ld)));
        }
        // SAFETY: the slice covers the span of the view for 'a.
        unsafe { Self::from_raw(data.as_ptr(), rows, cols, ld, layout) }
    }

    /// A packed column-major view: `ld = rows`.
    ///
    /// # Errors
    /// `data` is too short, or sizes overflow.
    #[inline]
    pub fn col_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::new(data, rows, cols, rows.max(1), Layout::ColMajor)
    }

    /// A packed row-major view: `ld = cols`.
    ///
    /// # Errors
    /// `data` is too short, or sizes overflow.
    #[inline]
    pub fn row_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::new(data, rows, cols, cols.max(1), Layout::RowMajor)
    }

    /// Checks at compile time that `T::DTYPE` has the size and alignment of `T`; kernels rely on it.
    const IS_DESCRIBED: () = assert!(T::DTYPE.describes::<T>(), "DTYPE has another size or alignment than the type");

    /// A view of foreign memory. A null `data` stands for memory that is never read.
    ///
    /// # Safety
    /// The span of the view must be readable and not written during `'a`, and `data` aligned for `T`
    /// unless the view is empty.
    ///
    /// # Errors
    /// `ld` is below the length of a line, or sizes overflow.
    #[inline]
    pub unsafe fn from_raw(data: *const T, rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<Self> {
        let () = Self::IS_DESCRIBED;
        RawMat::span(rows, cols, ld, layout)?;
        let ld = RawMat::bounded_stride(rows, cols, ld, layout);
        let home = Home::Host(NonNull::new(data.cast_mut()).unwrap_or(NonNull::dangling()).cast());
        Ok(MatRef { raw: RawMat { home, offset: 0, rows, cols, ld, layout, dtype: T::DTYPE }, marker: PhantomData })
    }

    /// The typed view of the same elements as `raw`.
    ///
    /// # Safety
    /// Its span holds elements of `T` and is not written during `'a`.
    pub(crate) unsafe fn of(raw: RawMat) -> Self {
        MatRef { raw, marker: PhantomData }
    }

    /// A view of a whole resident buffer, packed column-major.
    ///
    /// # Safety
    /// The buffer holds rows × cols elements of `T`, and is not written during `'a`.
    #[must_use]
    pub unsafe fn resident(buffer: Resident, rows: usize, cols: usize) -> Self {
        let () = Self::IS_DESCRIBED;
        let (home, ld, layout) = (Home::Device(buffer), rows.max(1), Layout::ColMajor);
        MatRef { raw: RawMat { home, offset: 0, rows, cols, ld, layout, dtype: T::DTYPE }, marker: PhantomData }
    }

    /// The transposed matrix over the same memory.
    #[must_use]
    pub fn t(self) -> Self {
        MatRef { raw: self.raw.t(), marker: PhantomData }
    }

    /// The elements (i, i), as a matrix of one row.
    #[must_use]
    pub fn diagonal(self) -> Self {
        let RawMat { rows, cols, ld, .. } = self.raw;
        let raw = RawMat { rows: 1, cols: rows.min(cols), ld: ld.saturating_add(1), layout: Layout::ColMajor, ..self.raw };
        MatRef { raw, marker: PhantomData }
    }

    /// The rectangle `rows` × `cols` of the matrix: a view of the same memory, with the same `ld`.
    ///
    /// ```
    /// use lapidary_core::{Layout, MatRef};
    /// // three rows of four columns, five elements apart
    /// let data: Vec<f64> = (0..15).map(f64::from).collect();
    /// let a = MatRef::new(&data, 3, 4, 5, Layout::RowMajor)?;
    /// let right = a.sub(1..3, 2..4);
    /// assert_eq!((right.shape(), right.ld()), ((2, 2), 5));
    /// assert_eq!([right.at(0, 0), right.at(1, 1)], [7.0, 13.0]);
    /// # Ok::<(), lapidary_core::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the rectangle lies outside the matrix.
    #[must_use]
    pub fn sub(self, rows: Range<usize>, cols: Range<usize>) -> Self {
        MatRef { raw: self.raw.sub(&rows, &cols), marker: PhantomData }
    }
}

impl<'a, T: Element> MatMut<'a, T> {
    /// A view of `rows` × `cols` elements of `data` with stride `ld`.
    ///
    /// # Errors
    /// `ld` is below the length of a line, `data` is too short, or sizes overflow.
    #[inline]
    pub fn new(data: &'a mut [T], rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<Self> {
        let span = RawMat::span(rows, cols, ld, layout)?;
        if data.len() < span {
            return Err(too_short(data.len(), span, (rows, cols, ld)));
        }
        // SAFETY: the slice covers the span of the view, uniquely for 'a.
        unsafe { Self::from_raw(data.as_mut_ptr(), rows, cols, ld, layout) }
    }

    /// A packed column-major view: `ld = rows`.
    ///
    /// # Errors
    /// `data` is too short, or sizes overflow.
    #[inline]
    pub fn col_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self> {
        Self::new(data, rows, cols, rows.max(1), Layout::ColMajor)
    }

    /// A packed row-major view: `ld = cols`.
    ///
    /// # Errors
    /// `data` is too short, or sizes overflow.
    #[inline]
    pub fn row_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self> {
        Self::new(data, rows, cols, cols.max(1), Layout::RowMajor)
    }

    /// A view of foreign memory.
    ///
    /// # Safety
    /// The span of the view must be readable and writable, and reached through
    /// nothing else, during `'a`, and `data` aligned for `T` unless the view is empty.
    ///
    /// # Errors
    /// `ld` is below the length of a line, or sizes overflow.
    #[inline]
    pub unsafe fn from_raw(data: *mut T, rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<Self> {
        // SAFETY: the caller's promise covers reading.
        let view = unsafe { MatRef::from_raw(data, rows, cols, ld, layout)? };
        Ok(MatMut { raw: view.raw, marker: PhantomData })
    }

    /// The view that an untyped one describes.
    ///
    /// # Safety
    /// Its elements are of type `T` and are reached through nothing else during `'a`.
    pub(crate) unsafe fn of(raw: RawMat) -> Self {
        MatMut { raw, marker: PhantomData }
    }

    /// A view of a whole resident buffer, packed column-major.
    ///
    /// # Safety
    /// The buffer holds rows × cols elements of `T`, and is reached through
    /// nothing else during `'a`.
    #[must_use]
    pub unsafe fn resident(buffer: Resident, rows: usize, cols: usize) -> Self {
        // SAFETY: the caller's promise covers reading.
        let view = unsafe { MatRef::<T>::resident(buffer, rows, cols) };
        MatMut { raw: view.raw, marker: PhantomData }
    }

    /// The same matrix, for reading.
    #[must_use]
    pub fn as_ref(&self) -> MatRef<'_, T> {
        MatRef { raw: self.raw, marker: PhantomData }
    }

    /// The same matrix, for a shorter while.
    #[must_use]
    pub fn reborrow(&mut self) -> MatMut<'_, T> {
        MatMut { raw: self.raw, marker: PhantomData }
    }

    /// The transposed matrix over the same memory.
    #[must_use]
    pub fn t(self) -> Self {
        MatMut { raw: self.raw.t(), marker: PhantomData }
    }

    /// The rectangle `rows` × `cols` of the matrix.
    ///
    /// # Panics
    /// If the rectangle lies outside the matrix.
    #[must_use]
    pub fn sub(self, rows: Range<usize>, cols: Range<usize>) -> Self {
        MatMut { raw: self.raw.sub(&rows, &cols), marker: PhantomData }
    }

    /// Columns before `col` and from `col` on, as two views that do not overlap.
    ///
    /// # Panics
    /// If `col` exceeds the number of columns.
    #[must_use]
    pub fn split_cols(self, col: usize) -> (Self, Self) {
        let (rows, cols) = (self.raw.rows, self.raw.cols);
        let part = |range: Range<usize>| MatMut { raw: self.raw.sub(&(0..rows), &range), marker: PhantomData };
        (part(0..col), part(col..cols))
    }

    /// Rows before `row` and from `row` on, as two views that do not overlap.
    ///
    /// # Panics
    /// If `row` exceeds the number of rows.
    #[must_use]
    pub fn split_rows(self, row: usize) -> (Self, Self) {
        let (top, bottom) = self.t().split_cols(row);
        (top.t(), bottom.t())
    }
}

/// What both views answer alike.
macro_rules! shared_access {
    ($($view:ident),+) => {$(
        impl<T: Element> $view<'_, T> {
            /// Number of rows.
            #[must_use]
            pub fn rows(&self) -> usize {
                self.raw.rows
            }
            /// Number of columns.
            #[must_use]
            pub fn cols(&self) -> usize {
                self.raw.cols
            }
            /// Rows and columns.
            #[must_use]
            pub fn shape(&self) -> (usize, usize) {
                (self.raw.rows, self.raw.cols)
            }
            /// Elements between neighbouring lines.
            #[must_use]
            pub fn ld(&self) -> usize {
                self.raw.ld
            }
            /// How elements follow one another.
            #[must_use]
            pub fn layout(&self) -> Layout {
                self.raw.layout
            }
            /// The view without its type and lifetime.
            #[inline]
            #[must_use]
            pub fn raw(&self) -> RawMat {
                self.raw
            }
            /// Address of element (0, 0), if the matrix lies in host memory.
            #[must_use]
            pub fn host_ptr(&self) -> Option<*mut T> {
                match self.raw.home {
                    // wrapping: the pointer may dangle when nothing is to be read
                    Home::Host(base) => Some(base.as_ptr().cast::<T>().wrapping_add(self.raw.offset)),
                    Home::Device(_) => None,
                }
            }
            /// Element (i, j) of a matrix in host memory.
            ///
            /// # Panics
            /// If the indices are out of range or the matrix lies on a device.
            #[must_use]
            pub fn at(&self, i: usize, j: usize) -> T {
                assert!(i < self.rows() && j < self.cols(), "({i}, {j}) is outside a {}×{} matrix", self.rows(), self.cols());
                let origin = self.host_ptr().expect("elements are read and written in host memory: download the matrix first");
                // SAFETY: the index is inside the span that the view may read.
                unsafe { origin.add(self.raw.index(i, j)).read() }
            }
        }

        impl<T> fmt::Debug for $view<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let RawMat { rows, cols, ld, layout, .. } = self.raw;
                write!(f, concat!(stringify!($view), "({}×{} {}, ld {}, {})"), rows, cols, std::any::type_name::<T>(), ld, layout)
            }
        }
    )+};
}

shared_access!(MatRef, MatMut);

impl<T: Element> MatMut<'_, T> {
    /// Writes element (i, j) of a matrix in host memory.
    ///
    /// # Panics
    /// If the indices are out of range or the matrix lies on a device.
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        assert!(i < self.rows() && j < self.cols(), "({i}, {j}) is outside a {}×{} matrix", self.rows(), self.cols());
        let origin = self.host_ptr().expect("elements are read and written in host memory: download the matrix first");
        // SAFETY: the index is inside the span that the view may write.
        unsafe { origin.add(self.raw.index(i, j)).write(value) }
    }
}

#[cfg(test)]
mod tests;
