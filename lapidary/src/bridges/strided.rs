//! Converts the two strides of a matrix of another crate to a leading dimension and a layout.

use lapidary_core::{Element, Error, Layout, MatMut, MatRef, Result};

/// Size and strides of a matrix of another crate, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strided {
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Distance in elements from a row to the next row.
    pub(super) row_stride: isize,
    /// Distance in elements from a column to the next column.
    pub(super) col_stride: isize,
}

impl Strided {
    /// Returns a view of the elements that begin at `data`.
    ///
    /// # Safety
    /// The caller must fulfil the contract of [`MatRef::from_raw`] for all elements that the strides reach.
    pub(super) unsafe fn view<'a, T: Element>(self, data: *const T) -> Result<MatRef<'a, T>> {
        let (ld, layout) = self.lines()?;
        // SAFETY: the caller fulfils the contract of `from_raw` for all elements that the strides reach, and the view covers just
        // these elements.
        unsafe { MatRef::from_raw(data, self.rows, self.cols, ld, layout) }
    }

    /// Returns a view for reading and writing of the elements that begin at `data`.
    ///
    /// # Safety
    /// The caller must fulfil the contract of [`MatMut::from_raw`] for all elements that the strides reach.
    pub(super) unsafe fn view_mut<'a, T: Element>(self, data: *mut T) -> Result<MatMut<'a, T>> {
        let (ld, layout) = self.lines()?;
        // SAFETY: the caller fulfils the contract of `from_raw` for all elements that the strides reach, and the view covers just
        // these elements.
        unsafe { MatMut::from_raw(data, self.rows, self.cols, ld, layout) }
    }

    /// Returns the leading dimension and the layout, or an error if the strides are those of neither layout.
    fn lines(self) -> Result<(usize, Layout)> {
        let Strided { rows, cols, row_stride, col_stride } = self;
        if rows == 0 || cols == 0 {
            return Ok((rows.max(1), Layout::ColMajor));
        }
        let by_col = leading(rows, row_stride, cols, col_stride).map(|ld| (ld, Layout::ColMajor));
        let by_row = || leading(cols, col_stride, rows, row_stride).map(|ld| (ld, Layout::RowMajor));
        by_col.or_else(by_row).ok_or_else(|| self.refused())
    }

    fn refused(self) -> Error {
        let Strided { rows, cols, row_stride, col_stride } = self;
        let rule = "one must be 1, the other at least the length of such a line";
        Error::invalid("view", format!("a {rows}×{cols} matrix has strides ({row_stride}, {col_stride}); {rule}"))
    }
}

/// Returns the leading dimension of a matrix with `count` contiguous columns (or rows) of `length` elements. Returns `None` if the
/// columns (or rows) are not contiguous or overlap.
fn leading(length: usize, step: isize, count: usize, gap: isize) -> Option<usize> {
    if length > 1 && step != 1 {
        return None;
    }
    if count <= 1 {
        return Some(length);
    }
    usize::try_from(gap).ok().filter(|&ld| ld >= length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rows: usize, cols: usize, row_stride: isize, col_stride: isize) -> Option<(usize, Layout)> {
        Strided { rows, cols, row_stride, col_stride }.lines().ok()
    }

    #[test]
    fn one_stride_is_one_and_the_other_is_long_enough() {
        assert_eq!(lines(3, 2, 1, 4), Some((4, Layout::ColMajor)));
        assert_eq!(lines(3, 2, 4, 1), Some((4, Layout::RowMajor)));
        for (row_stride, col_stride) in [(1, 2), (2, 6), (0, 1), (1, 0), (-1, 3), (1, -3), (1, isize::MIN)] {
            assert_eq!(lines(3, 2, row_stride, col_stride), None, "({row_stride}, {col_stride})");
        }
    }

    #[test]
    fn strides_over_single_rows_and_columns_do_not_matter() {
        assert_eq!(lines(1, 4, -7, 5), Some((5, Layout::ColMajor)));
        assert_eq!(lines(4, 1, 5, 0), Some((5, Layout::RowMajor)));
        assert_eq!(lines(1, 4, 1, 0), None, "a broadcast row");
        assert_eq!(lines(1, 1, 0, -3), Some((1, Layout::ColMajor)));
        assert_eq!(lines(0, 4, 0, 0), Some((1, Layout::ColMajor)));
    }
}
