//! Tiles: rectangles of column-major memory, which are the operands of all instructions.
//!
//! # The contract of functions on tiles
//! Because a [`Tile`] is a pointer without a lifetime, the functions of [`reference`](crate::reference) and [`fast`](crate::fast)
//! are `unsafe` and share one contract. The caller guarantees that, while the function runs,
//!
//! 1. every element of a tile that the function reads is initialised, and no
//!    other code writes it,
//! 2. every element of a tile that the function writes lies in no other tile of
//!    the same call, and no other code reads or writes it,
//! 3. the shapes agree, as each function states with `debug_assert!`.
//!
//! In each column, the functions on tiles never access the memory between `rows` and `ld`.

/// A `rows` × `cols` matrix in column-major order. Element (i, j) lies `i + j·ld` elements after element (0, 0).
#[derive(Debug)]
pub struct Tile<T> {
    ptr: *mut T,
    rows: usize,
    cols: usize,
    ld: usize,
}

// SAFETY: only unsafe functions access the memory of a tile, and their callers rule out data races.
unsafe impl<T: Sync> Sync for Tile<T> {}

// `Clone` and `Copy` are not derived, because the derived implementations would require `T: Clone` and `T: Copy`
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

    /// Returns a tile over the memory of `self`, with elements of type `U`.
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

    /// The distance between neighbouring elements of a row, in elements.
    #[inline]
    #[must_use]
    pub fn ld(self) -> usize {
        self.ld
    }

    /// Number of rows and number of columns.
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

    /// The address of element (`row`, `col`), which may lie one row below or one column right of the tile.
    #[inline]
    #[must_use]
    pub fn at(self, row: usize, col: usize) -> *mut T {
        debug_assert!(row <= self.rows && col <= self.cols);
        self.ptr.wrapping_add(row + col * self.ld)
    }

    /// The `rows` × `cols` part of the tile that starts at element (`row`, `col`).
    #[inline]
    #[must_use]
    pub fn sub(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        debug_assert!(row + rows <= self.rows && col + cols <= self.cols);
        Tile { ptr: self.at(row, col), rows, cols, ld: self.ld }
    }

    /// Reads element (`i`, `j`).
    ///
    /// # Safety
    /// The [contract](self) of functions on tiles holds, and (`i`, `j`) lies inside the tile.
    #[inline]
    #[must_use]
    pub unsafe fn get(self, i: usize, j: usize) -> T {
        debug_assert!(i < self.rows && j < self.cols);
        // SAFETY: the caller guarantees that the element lies inside the tile, is initialised, and is not written by other code.
        unsafe { *self.at(i, j) }
    }

    /// Writes element (`i`, `j`).
    ///
    /// # Safety
    /// The [contract](self) of functions on tiles holds, and (`i`, `j`) lies inside the tile.
    #[inline]
    pub unsafe fn set(self, i: usize, j: usize, value: T) {
        debug_assert!(i < self.rows && j < self.cols);
        // SAFETY: the caller guarantees that the element lies inside the tile and that no other code accesses it.
        unsafe { *self.at(i, j) = value }
    }

    /// Exchanges two elements of the tile.
    ///
    /// # Safety
    /// The [contract](self) of functions on tiles holds, and both elements lie inside the tile.
    #[inline]
    pub unsafe fn swap(self, (i, j): (usize, usize), (k, l): (usize, usize)) {
        debug_assert!(i < self.rows && j < self.cols && k < self.rows && l < self.cols);
        // SAFETY: the caller guarantees that both elements lie inside the tile and that no other code accesses them.
        unsafe { std::ptr::swap(self.at(i, j), self.at(k, l)) }
    }

    /// Column `j` of the tile as a raw slice.
    #[inline]
    #[must_use]
    pub fn col(self, j: usize) -> *mut [T] {
        std::ptr::slice_from_raw_parts_mut(self.at(0, j), self.rows)
    }
}
