//! A rectangle of column-major memory: the operand of every instruction.
//!
//! # The contract of functions on tiles
//! A [`Tile`] is a pointer without a lifetime, so the functions of
//! [`reference`](crate::reference) and [`fast`](crate::fast) are `unsafe` and
//! share one contract. The caller guarantees that, while the function runs,
//!
//! 1. every element of a tile that the function reads is initialised and not
//!    written by anybody else,
//! 2. every element of a tile that it writes is neither read nor written by
//!    anybody else, and lies in no other tile of the same call,
//! 3. the shapes agree, as each function states with `debug_assert!`.
//!
//! The rows between `rows` and `ld` are never touched.

/// A `rows` × `cols` matrix in column-major order: element (i, j) at `i + j·ld`.
#[derive(Debug)]
pub struct Tile<T> {
    ptr: *mut T,
    rows: usize,
    cols: usize,
    ld: usize,
}

// SAFETY: a tile is an address with a shape. Only unsafe functions access the memory; their callers rule out data races.
unsafe impl<T: Sync> Sync for Tile<T> {}

// Derived impls would ask for `T: Copy`.
impl<T> Clone for Tile<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Tile<T> {}

impl<T: Copy> Tile<T> {
    /// A tile over memory that starts at `ptr`.
    ///
    /// # Safety
    /// `ptr` is aligned, and the elements `i + j·ld` for all `i < rows`,
    /// `j < cols` lie in one allocation that outlives the use of the tile.
    /// A tile that is only read may point to memory that must not be written.
    #[must_use]
    pub unsafe fn new(ptr: *mut T, rows: usize, cols: usize, ld: usize) -> Self {
        debug_assert!(cols <= 1 || ld >= rows, "ld = {ld} is below rows = {rows}");
        Tile { ptr, rows, cols, ld }
    }

    /// The same memory as elements of another type.
    ///
    /// # Safety
    /// `U` has the size and the representation of `T`.
    #[must_use]
    pub unsafe fn cast<U>(self) -> Tile<U> {
        Tile { ptr: self.ptr.cast(), rows: self.rows, cols: self.cols, ld: self.ld }
    }

    /// The number of rows.
    #[inline]
    #[must_use]
    pub fn rows(self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[inline]
    #[must_use]
    pub fn cols(self) -> usize {
        self.cols
    }

    /// The distance of two neighbours in a row.
    #[inline]
    #[must_use]
    pub fn ld(self) -> usize {
        self.ld
    }

    /// Rows and columns.
    #[inline]
    #[must_use]
    pub fn shape(self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// The address of element (0, 0).
    #[inline]
    #[must_use]
    pub fn ptr(self) -> *mut T {
        self.ptr
    }

    /// The address of element (`row`, `col`), which may be one past an edge.
    #[inline]
    #[must_use]
    pub fn at(self, row: usize, col: usize) -> *mut T {
        debug_assert!(row <= self.rows && col <= self.cols);
        self.ptr.wrapping_add(row + col * self.ld)
    }

    /// The `rows` × `cols` part that starts at (`row`, `col`).
    #[inline]
    #[must_use]
    pub fn sub(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        debug_assert!(row + rows <= self.rows && col + cols <= self.cols);
        Tile { ptr: self.at(row, col), rows, cols, ld: self.ld }
    }

    /// Reads element (`i`, `j`).
    ///
    /// # Safety
    /// The [contract](self) of functions on tiles; (`i`, `j`) is inside.
    #[inline]
    #[must_use]
    pub unsafe fn get(self, i: usize, j: usize) -> T {
        debug_assert!(i < self.rows && j < self.cols);
        // SAFETY: inside the tile, readable by the contract.
        unsafe { *self.at(i, j) }
    }

    /// Writes element (`i`, `j`).
    ///
    /// # Safety
    /// The [contract](self) of functions on tiles; (`i`, `j`) is inside.
    #[inline]
    pub unsafe fn set(self, i: usize, j: usize, value: T) {
        debug_assert!(i < self.rows && j < self.cols);
        // SAFETY: inside the tile, writable by the contract.
        unsafe { *self.at(i, j) = value }
    }

    /// Exchanges two elements.
    ///
    /// # Safety
    /// The [contract](self) of functions on tiles; both are inside.
    #[inline]
    pub unsafe fn swap(self, (i, j): (usize, usize), (k, l): (usize, usize)) {
        debug_assert!(i < self.rows && j < self.cols && k < self.rows && l < self.cols);
        // SAFETY: inside the tile, writable by the contract.
        unsafe { std::ptr::swap(self.at(i, j), self.at(k, l)) }
    }

    /// Column `j` as a raw slice.
    #[inline]
    #[must_use]
    pub fn col(self, j: usize) -> *mut [T] {
        std::ptr::slice_from_raw_parts_mut(self.at(0, j), self.rows)
    }
}
