//! Views of matrices. A view describes the memory, the shape and the leading dimension of a matrix.
//!
//! A view borrows its elements; it never owns or copies them. Safe constructors make views of slices ([`MatRef::new`],
//! [`MatMut::new`]). Unsafe constructors make views from raw pointers ([`MatRef::from_raw`]), for callers that are written in
//! other languages than Rust. Views can also be made of a buffer in a device's own memory, which a [`Resident`] names.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::enums::Layout;
use crate::error::{Error, Result};
use crate::instruction::Extent;
use crate::scalar::{DType, Element};

/// The name of a buffer that stays in the memory of one device from one call of a routine to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resident {
    /// Index of the device that holds the buffer, in the list of devices of its machine.
    pub device: usize,
    /// Key of the buffer in the device's table of resident buffers.
    pub key: u64,
}

impl Resident {
    /// A name for a new buffer on the device with index `device`.
    #[must_use]
    pub fn new(device: usize) -> Self {
        Resident { device, key: Self::next_key() }
    }

    /// A key that no other buffer of the process has. Each call of this function returns a greater key than all preceding calls.
    pub(crate) fn next_key() -> u64 {
        static KEYS: AtomicU64 = AtomicU64::new(0);
        KEYS.fetch_add(1, Ordering::Relaxed)
    }
}

/// The memory that contains the elements of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Host memory that begins at this address.
    Host(NonNull<u8>),
    /// A buffer in the memory of a device.
    Device(Resident),
}

/// A view whose element type is known only at run time: the common part of [`MatRef`] and [`MatMut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawMat {
    /// The memory that contains the elements of the matrix.
    pub home: Home,
    /// Number of elements between the beginning of the memory `home` and element (0, 0) of the matrix.
    pub offset: usize,
    /// Number of rows of the matrix.
    pub rows: usize,
    /// Number of columns of the matrix.
    pub cols: usize,
    /// Number of elements from one column to the next (column-major) or from one row to the next (row-major).
    pub ld: usize,
    /// The order of the elements of the matrix in memory.
    pub layout: Layout,
    /// Type of the elements of the matrix.
    pub dtype: DType,
}

impl Extent for RawMat {
    fn extent(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }
}

impl RawMat {
    /// Size of all elements of the matrix in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows * self.cols * self.dtype.size()
    }

    /// A view of the transposed matrix. The transposed matrix occupies the memory of the original matrix.
    #[inline]
    #[must_use]
    pub fn t(self) -> RawMat {
        RawMat { rows: self.cols, cols: self.rows, layout: self.layout.flip(), ..self }
    }

    /// Number of elements between element (0, 0) and element (i, j) in memory.
    #[inline]
    #[must_use]
    pub fn index(&self, i: usize, j: usize) -> usize {
        match self.layout {
            Layout::ColMajor => i + j * self.ld,
            Layout::RowMajor => i * self.ld + j,
        }
    }

    /// The length and the number of the columns of a column-major matrix, or of the rows of a row-major matrix.
    #[inline]
    fn lines(rows: usize, cols: usize, layout: Layout) -> (usize, usize) {
        match layout {
            Layout::ColMajor => (rows, cols),
            Layout::RowMajor => (cols, rows),
        }
    }

    /// Checks the leading dimension `ld` of a view. Returns the number of elements in memory from the first to the last element
    /// of the view, both included.
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

    /// The leading dimension that kernels receive. A huge `ld` of a matrix with a single column (column-major) or row (row-major)
    /// is replaced: no kernel needs it, but multiples of a huge `ld` would overflow.
    #[inline]
    fn bounded_stride(rows: usize, cols: usize, ld: usize, layout: Layout) -> usize {
        /// An upper bound of the element size in bytes times the number of lines that a kernel processes at once.
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

/// A view of a matrix for reading.
#[derive(Clone, Copy)]
pub struct MatRef<'a, T> {
    raw: RawMat,
    marker: PhantomData<&'a T>,
}

/// A view of a matrix for reading and writing. Two `MatMut` views never overlap.
pub struct MatMut<'a, T> {
    raw: RawMat,
    marker: PhantomData<&'a mut T>,
}

// SAFETY: a `MatRef` acts as a shared reference to elements that are `Send` and `Sync`.
unsafe impl<T: Element> Send for MatRef<'_, T> {}
// SAFETY: a reference to a `MatRef` gives only shared access to the elements, which are `Send` and `Sync`.
unsafe impl<T: Element> Sync for MatRef<'_, T> {}
// SAFETY: a `MatMut` acts as a unique reference to elements that are `Send` and `Sync`.
unsafe impl<T: Element> Send for MatMut<'_, T> {}
// SAFETY: a shared reference to a `MatMut` gives only shared access to the elements, which are `Send` and `Sync`.
unsafe impl<T: Element> Sync for MatMut<'_, T> {}

fn too_short(len: usize, span: usize, shape: (usize, usize, usize)) -> Error {
    let (rows, cols, ld) = shape;
    Error::invalid("view", format!("data holds {len} elements, {rows}×{cols} with ld = {ld} needs {span}"))
}

impl<'a, T: Element> MatRef<'a, T> {
    /// A view of a `rows` × `cols` matrix in `data`, with leading dimension `ld`.
    ///
    /// # Errors
    /// Fails if `ld` is below the length of a column (column-major) or row (row-major), if `data` does not contain all elements
    /// of the view, or if a size overflows.
    #[inline]
    pub fn new(data: &'a [T], rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<Self> {
        let span = RawMat::span(rows, cols, ld, layout)?;
        if data.len() < span {
            return Err(too_short(data.len(), span, (rows, cols, ld)));
        }
        // SAFETY: the slice `data` contains all elements of the view, and `data` stays borrowed for the lifetime 'a.
        unsafe { Self::from_raw(data.as_ptr(), rows, cols, ld, layout) }
    }

    /// A column-major view of a matrix without gaps between its columns: `ld = rows`.
    ///
    /// # Errors
    /// Fails if `data` has fewer than `rows · cols` elements, or if a size overflows.
    #[inline]
    pub fn col_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::new(data, rows, cols, rows.max(1), Layout::ColMajor)
    }

    /// A row-major view of a matrix without gaps between its rows: `ld = cols`.
    ///
    /// # Errors
    /// Fails if `data` has fewer than `rows · cols` elements, or if a size overflows.
    #[inline]
    pub fn row_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::new(data, rows, cols, cols.max(1), Layout::RowMajor)
    }

    /// An assertion at compile time that `T::DTYPE` states the size and the alignment of `T`. Kernels rely on the stated size and
    /// alignment.
    const IS_DESCRIBED: () = assert!(T::DTYPE.describes::<T>(), "DTYPE has another size or alignment than the type");

    /// A view of a matrix in the memory at a raw pointer. If `data` is null, the caller guarantees that nothing reads the
    /// elements.
    ///
    /// # Safety
    /// All elements of the view must be readable, and nothing may write them, during `'a`. `data` must be aligned for `T` unless
    /// the view is empty.
    ///
    /// # Errors
    /// Fails if `ld` is below the length of a column (column-major) or row (row-major), or if a size overflows.
    #[inline]
    pub unsafe fn from_raw(data: *const T, rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<Self> {
        let () = Self::IS_DESCRIBED;
        RawMat::span(rows, cols, ld, layout)?;
        let ld = RawMat::bounded_stride(rows, cols, ld, layout);
        let home = Home::Host(NonNull::new(data.cast_mut()).unwrap_or(NonNull::dangling()).cast());
        Ok(MatRef { raw: RawMat { home, offset: 0, rows, cols, ld, layout, dtype: T::DTYPE }, marker: PhantomData })
    }

    /// The view of the elements of `raw`, with the element type `T`.
    ///
    /// # Safety
    /// The elements of `raw` must have the type `T`, and nothing may write them during `'a`.
    pub(crate) unsafe fn of(raw: RawMat) -> Self {
        MatRef { raw, marker: PhantomData }
    }

    /// A view of a whole resident buffer, as a column-major matrix with `ld = rows`.
    ///
    /// # Safety
    /// The buffer must contain rows × cols elements of type `T`, and nothing may write them during `'a`.
    #[must_use]
    pub unsafe fn resident(buffer: Resident, rows: usize, cols: usize) -> Self {
        let () = Self::IS_DESCRIBED;
        let (home, ld, layout) = (Home::Device(buffer), rows.max(1), Layout::ColMajor);
        MatRef { raw: RawMat { home, offset: 0, rows, cols, ld, layout, dtype: T::DTYPE }, marker: PhantomData }
    }

    /// A view of the transposed matrix. The transposed matrix occupies the memory of the original matrix.
    #[must_use]
    pub fn t(self) -> Self {
        MatRef { raw: self.raw.t(), marker: PhantomData }
    }

    /// The diagonal elements (i, i), as a matrix of one row.
    #[must_use]
    pub fn diagonal(self) -> Self {
        let RawMat { rows, cols, ld, .. } = self.raw;
        let raw = RawMat { rows: 1, cols: rows.min(cols), ld: ld.saturating_add(1), layout: Layout::ColMajor, ..self.raw };
        MatRef { raw, marker: PhantomData }
    }

    /// A view of the rectangle of the matrix with the given rows and columns. The rectangle stays in the memory of the matrix,
    /// with the `ld` of the matrix.
    ///
    /// ```
    /// # extern crate lapidary_core as lapidary; // an application uses `lapidary`
    /// use lapidary::{Layout, MatRef};
    /// // a 3×4 matrix whose rows begin five elements apart
    /// let data: Vec<f64> = (0..15).map(f64::from).collect();
    /// let a = MatRef::new(&data, 3, 4, 5, Layout::RowMajor)?;
    /// let right = a.sub(1..3, 2..4);
    /// assert_eq!((right.shape(), right.ld()), ((2, 2), 5));
    /// assert_eq!([right.at(0, 0), right.at(1, 1)], [7.0, 13.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Panics
    /// Panics if `rows` or `cols` is not a range inside the matrix.
    #[must_use]
    pub fn sub(self, rows: Range<usize>, cols: Range<usize>) -> Self {
        MatRef { raw: self.raw.sub(&rows, &cols), marker: PhantomData }
    }
}

impl<'a, T: Element> MatMut<'a, T> {
    /// A view of a `rows` × `cols` matrix in `data`, with leading dimension `ld`.
    ///
    /// # Errors
    /// Fails if `ld` is below the length of a column (column-major) or row (row-major), if `data` does not contain all elements
    /// of the view, or if a size overflows.
    #[inline]
    pub fn new(data: &'a mut [T], rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<Self> {
        let span = RawMat::span(rows, cols, ld, layout)?;
        if data.len() < span {
            return Err(too_short(data.len(), span, (rows, cols, ld)));
        }
        // SAFETY: the slice `data` contains all elements of the view, and `data` stays uniquely borrowed for the lifetime 'a.
        unsafe { Self::from_raw(data.as_mut_ptr(), rows, cols, ld, layout) }
    }

    /// A column-major view of a matrix without gaps between its columns: `ld = rows`.
    ///
    /// # Errors
    /// Fails if `data` has fewer than `rows · cols` elements, or if a size overflows.
    #[inline]
    pub fn col_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self> {
        Self::new(data, rows, cols, rows.max(1), Layout::ColMajor)
    }

    /// A row-major view of a matrix without gaps between its rows: `ld = cols`.
    ///
    /// # Errors
    /// Fails if `data` has fewer than `rows · cols` elements, or if a size overflows.
    #[inline]
    pub fn row_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self> {
        Self::new(data, rows, cols, cols.max(1), Layout::RowMajor)
    }

    /// A view of a matrix in the memory at a raw pointer, for reading and writing.
    ///
    /// # Safety
    /// All elements of the view must be readable and writable during `'a`, and nothing else may access them. `data` must be
    /// aligned for `T` unless the view is empty.
    ///
    /// # Errors
    /// Fails if `ld` is below the length of a column (column-major) or row (row-major), or if a size overflows.
    #[inline]
    pub unsafe fn from_raw(data: *mut T, rows: usize, cols: usize, ld: usize, layout: Layout) -> Result<Self> {
        // SAFETY: the caller guarantees that the elements of the view may be read and written, and that nothing else accesses
        // them.
        let view = unsafe { MatRef::from_raw(data, rows, cols, ld, layout)? };
        Ok(MatMut { raw: view.raw, marker: PhantomData })
    }

    /// The view of the elements of `raw`, with the element type `T`.
    ///
    /// # Safety
    /// The elements of `raw` must have the type `T`, and nothing else may access them during `'a`.
    pub(crate) unsafe fn of(raw: RawMat) -> Self {
        MatMut { raw, marker: PhantomData }
    }

    /// A view of a whole resident buffer, as a column-major matrix with `ld = rows`.
    ///
    /// # Safety
    /// The buffer must contain rows × cols elements of type `T`, and nothing else may access them during `'a`.
    #[must_use]
    pub unsafe fn resident(buffer: Resident, rows: usize, cols: usize) -> Self {
        // SAFETY: the caller guarantees that the elements of the view may be read and written, and that nothing else accesses
        // them.
        let view = unsafe { MatRef::<T>::resident(buffer, rows, cols) };
        MatMut { raw: view.raw, marker: PhantomData }
    }

    /// A read-only view of the same matrix.
    #[must_use]
    pub fn as_ref(&self) -> MatRef<'_, T> {
        MatRef { raw: self.raw, marker: PhantomData }
    }

    /// A view of the same matrix with a shorter lifetime.
    #[must_use]
    pub fn reborrow(&mut self) -> MatMut<'_, T> {
        MatMut { raw: self.raw, marker: PhantomData }
    }

    /// A view of the transposed matrix. The transposed matrix occupies the memory of the original matrix.
    #[must_use]
    pub fn t(self) -> Self {
        MatMut { raw: self.raw.t(), marker: PhantomData }
    }

    /// A view of the rectangle of the matrix with the given rows and columns.
    ///
    /// # Panics
    /// Panics if `rows` or `cols` is not a range inside the matrix.
    #[must_use]
    pub fn sub(self, rows: Range<usize>, cols: Range<usize>) -> Self {
        MatMut { raw: self.raw.sub(&rows, &cols), marker: PhantomData }
    }

    /// Splits the matrix into the columns before `col` and the columns from `col` on. The two returned views do not overlap.
    ///
    /// # Panics
    /// Panics if `col` exceeds the number of columns.
    #[must_use]
    pub fn split_cols(self, col: usize) -> (Self, Self) {
        let (rows, cols) = (self.raw.rows, self.raw.cols);
        let part = |range: Range<usize>| MatMut { raw: self.raw.sub(&(0..rows), &range), marker: PhantomData };
        (part(0..col), part(col..cols))
    }
}

/// Implements the methods that `MatRef` and `MatMut` have in common.
macro_rules! shared_access {
    ($($view:ident),+) => {$(
        impl<T: Element> $view<'_, T> {
            /// Number of rows of the matrix.
            #[must_use]
            pub fn rows(&self) -> usize {
                self.raw.rows
            }
            /// Number of columns of the matrix.
            #[must_use]
            pub fn cols(&self) -> usize {
                self.raw.cols
            }
            /// Number of rows and number of columns of the matrix.
            #[must_use]
            pub fn shape(&self) -> (usize, usize) {
                (self.raw.rows, self.raw.cols)
            }
            /// Number of elements from one column to the next (column-major) or from one row to the next (row-major).
            #[must_use]
            pub fn ld(&self) -> usize {
                self.raw.ld
            }
            /// The order of the elements of the matrix in memory.
            #[must_use]
            pub fn layout(&self) -> Layout {
                self.raw.layout
            }
            /// The view without its element type and its lifetime.
            #[inline]
            #[must_use]
            pub fn raw(&self) -> RawMat {
                self.raw
            }
            /// Address of element (0, 0). Returns `None` if the matrix lies in the memory of a device.
            #[must_use]
            pub fn host_ptr(&self) -> Option<*mut T> {
                match self.raw.home {
                    // the pointer of a view that nobody reads may dangle, and `wrapping_add` is defined for any pointer
                    Home::Host(base) => Some(base.as_ptr().cast::<T>().wrapping_add(self.raw.offset)),
                    Home::Device(_) => None,
                }
            }
            /// Element (i, j) of a matrix in host memory.
            ///
            /// # Panics
            /// Panics if the indices are out of range, or if the matrix lies in the memory of a device.
            #[must_use]
            pub fn at(&self, i: usize, j: usize) -> T {
                assert!(i < self.rows() && j < self.cols(), "({i}, {j}) is outside a {}×{} matrix", self.rows(), self.cols());
                let origin = self.host_ptr().expect("elements are read and written in host memory: download the matrix first");
                // SAFETY: element (i, j) lies inside the view, whose elements may be read: the caller who made the view
                // guarantees this.
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
    /// Panics if the indices are out of range, or if the matrix lies in the memory of a device.
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        assert!(i < self.rows() && j < self.cols(), "({i}, {j}) is outside a {}×{} matrix", self.rows(), self.cols());
        let origin = self.host_ptr().expect("elements are read and written in host memory: download the matrix first");
        // SAFETY: element (i, j) lies inside the view, and only this view may access its elements: the caller who made the view
        // guarantees this.
        unsafe { origin.add(self.raw.index(i, j)).write(value) }
    }
}

mod norm;
#[cfg(test)]
mod tests;
