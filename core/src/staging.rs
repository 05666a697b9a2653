//! Cuts a rectangle of host memory into pieces. A backend copies several pieces at a time through staging memory.

use crate::device::HostRect;

/// A piece of a packed column-major matrix: several whole columns, or a part of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    row: usize,
    col: usize,
    rows: usize,
    cols: usize,
}

impl Piece {
    /// Cuts a rectangle of `rows` × `cols` into pieces of at most `most` elements. Each piece is contiguous in the packed matrix.
    /// The returned pieces have the same order as in the packed matrix.
    ///
    /// # Panics
    /// Panics if `most` is 0 and the rectangle is not empty.
    #[must_use]
    pub fn cut(rows: usize, cols: usize, most: usize) -> Vec<Piece> {
        if rows == 0 || cols == 0 {
            return Vec::new();
        }
        if rows <= most {
            let together = most / rows;
            let columns = (0..cols).step_by(together);
            return columns.map(|col| Piece { row: 0, col, rows, cols: together.min(cols - col) }).collect();
        }
        let column = |col| (0..rows).step_by(most).map(move |row| Piece { row, col, rows: most.min(rows - row), cols: 1 });
        (0..cols).flat_map(column).collect()
    }

    /// Number of elements of the piece.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows * self.cols
    }

    /// Number of elements that precede the piece in a packed matrix with `rows` rows.
    #[must_use]
    pub fn offset(&self, rows: usize) -> usize {
        self.row + self.col * rows
    }

    /// The parts of the piece that are contiguous in a column-major matrix on the device with the leading dimension `ld`, whose element
    /// (0, 0) lies at `offset`. Each part is described by the position of its first element there, the position of this element in the packed
    /// piece, and its number of elements.
    pub fn runs_at(&self, offset: usize, ld: usize) -> impl ExactSizeIterator<Item = [usize; 3]> + use<> {
        let Piece { row, col, rows, cols } = *self;
        let (count, length) = if rows == ld || cols == 1 { (1, rows * cols) } else { (cols, rows) };
        (0..count).map(move |run| [offset + row + (col + run) * ld, run * length, length])
    }

    /// Number of rows and number of columns of the piece.
    #[must_use]
    pub fn extent(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// The part of a rectangle that the piece covers.
    #[must_use]
    pub fn of(&self, rect: &HostRect) -> HostRect {
        let Piece { row, col, rows, cols } = *self;
        let origin = rect.origin.wrapping_add((row * rect.row_stride + col * rect.col_stride) * rect.dtype.size());
        HostRect { origin, rows, cols, ..*rect }
    }

    /// Copies the piece from a rectangle of host memory into packed staging memory.
    ///
    /// # Safety
    /// The piece must lie in `rect`, and the caller must have read access to `rect`. The memory at `staged` must have room for
    /// the elements of the piece, and must not overlap `rect`.
    pub unsafe fn pack(&self, rect: &HostRect, staged: *mut u8) {
        // SAFETY: the caller guarantees that the piece lies in `rect`, that `staged` has room for the piece, and that `rect` and
        // `staged` do not overlap.
        self.runs(rect, staged, |host, staged, bytes| unsafe { std::ptr::copy_nonoverlapping(host, staged, bytes) });
    }

    /// Copies the piece from packed staging memory into a rectangle of host memory.
    ///
    /// # Safety
    /// The piece must lie in `rect`, and nothing else may access `rect`. The memory at `staged` must hold the elements of the
    /// piece, and must not overlap `rect`.
    pub unsafe fn unpack(&self, staged: *const u8, rect: &HostRect) {
        // SAFETY: the caller guarantees that the piece lies in `rect`, that `staged` has room for the piece, and that `rect` and
        // `staged` do not overlap.
        let copy = |host, staged: *mut u8, bytes| unsafe { std::ptr::copy_nonoverlapping(staged.cast_const(), host, bytes) };
        // SAFETY: as above.
        let stream = |host, staged: *mut u8, bytes| unsafe { copy_non_temporal(staged.cast_const(), host, bytes) };
        let column = rect.rows.saturating_mul(rect.dtype.size());
        if rect.row_stride == 1 && column >= MIN_COLUMN && column.saturating_mul(rect.cols) >= MIN_NON_TEMPORAL {
            self.runs(rect, staged.cast_mut(), stream);
            fence_non_temporal();
        } else {
            self.runs(rect, staged.cast_mut(), copy);
        }
    }

    /// Calls `visit` for each sequence of bytes that is contiguous both in host memory and in staging memory. The arguments of
    /// `visit` are the address in host memory, the address in staging memory, and the number of bytes.
    fn runs(&self, rect: &HostRect, staged: *mut u8, visit: impl Fn(*mut u8, *mut u8, usize)) {
        // if the element size is a compile-time constant, the compiler emits one instruction for the copy of an element
        match rect.dtype.size() {
            4 => self.runs_of(4, rect, staged, visit),
            8 => self.runs_of(8, rect, staged, visit),
            size => self.runs_of(size, rect, staged, visit),
        }
    }

    #[inline(always)]
    fn runs_of(&self, size: usize, rect: &HostRect, staged: *mut u8, visit: impl Fn(*mut u8, *mut u8, usize)) {
        let Piece { row, col, rows, cols } = *self;
        let host =
            |i: usize, j: usize| rect.origin.wrapping_add(((row + i) * rect.row_stride + (col + j) * rect.col_stride) * size);
        let staged = |i: usize, j: usize| staged.wrapping_add((i + j * rows) * size);
        if rect.row_stride == 1 {
            (0..cols).for_each(|j| visit(host(0, j), staged(0, j), rows * size));
            return;
        }
        // a row-major rectangle is copied square by square, so that the cache holds the source and the destination of a square
        for j0 in (0..cols).step_by(SQUARE) {
            for i0 in (0..rows).step_by(SQUARE) {
                for j in j0..cols.min(j0 + SQUARE) {
                    (i0..rows.min(i0 + SQUARE)).for_each(|i| visit(host(i, j), staged(i, j), size));
                }
            }
        }
    }
}

/// Size of the smallest rectangle, in bytes, that is written with non-temporal stores. The caller may still find a smaller result in the caches.
const MIN_NON_TEMPORAL: usize = 32 << 20;
/// Size of the shortest column, in bytes, that is written with non-temporal stores.
const MIN_COLUMN: usize = 4096;

/// Copies bytes with non-temporal stores on x86-64. An ordinary store first reads its cache line from memory, so that a large copy takes more of the
/// memory's bandwidth (docs/decisions/0031-pageable-memory-is-copied.md). Before anything else accesses the bytes, the thread calls
/// [`fence_non_temporal`].
///
/// # Safety
/// As for `std::ptr::copy_nonoverlapping`.
unsafe fn copy_non_temporal(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller guarantees access to all bytes. The address of a vector that is written is a multiple of its size.
    unsafe {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        /// Size of a vector in bytes.
        const VECTOR: usize = size_of::<__m128i>();
        let head = to.align_offset(VECTOR).min(bytes);
        let tail = head + (bytes - head) / VECTOR * VECTOR;
        std::ptr::copy_nonoverlapping(from, to, head);
        for at in (head..tail).step_by(VECTOR) {
            _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast()));
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller guarantees access to all bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, bytes);
    }
}

/// Executes a store fence: other threads see the non-temporal stores that this thread has made before they see any later store of this thread, such as
/// the store that reports the end of a copy.
fn fence_non_temporal() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Number of rows and columns of the squares in which a row-major rectangle is copied.
const SQUARE: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::DType;

    #[test]
    fn non_temporal_stores_copy_bytes_from_and_to_any_address() {
        let from: Vec<u8> = (0..200).collect();
        for (start, end) in (0..17).flat_map(|start| (0..17).map(move |end| (start, end))) {
            for length in (0..40).chain([100, 150]) {
                let mut to = vec![255; 200];
                // SAFETY: both vectors have at least 17 + 150 elements.
                unsafe { copy_non_temporal(from.as_ptr().add(start), to.as_mut_ptr().add(end), length) };
                fence_non_temporal();
                assert_eq!(to[end..end + length], from[start..start + length]);
                assert!(to[..end].iter().chain(&to[end + length..]).all(|&byte| byte == 255));
            }
        }
    }

    /// Rectangles with long columns and with short ones, with gaps between the columns.
    #[test]
    fn the_pieces_of_a_large_rectangle_are_unpacked() {
        let elements = MIN_NON_TEMPORAL / 8;
        for rows in [3, elements / 16 + 1] {
            let (cols, ld) = (elements.div_ceil(rows), rows + 3);
            let packed: Vec<f64> = (0..rows * cols).map(|i| i as f64).collect();
            let mut into = vec![-1.0; ld * cols];
            let rect = HostRect { origin: into.as_mut_ptr().cast(), dtype: DType::F64, row_stride: 1, col_stride: ld, rows, cols };
            for piece in Piece::cut(rows, cols, 100_000) {
                // SAFETY: the piece lies in both matrices, which do not overlap.
                unsafe { piece.unpack(packed.as_ptr().add(piece.offset(rows)).cast(), &rect) };
            }
            for (column, expected) in into.chunks(ld).zip(packed.chunks(rows)) {
                assert_eq!((&column[..rows], &column[rows..]), (expected, &[-1.0; 3][..]));
            }
        }
    }

    #[test]
    fn pieces_cover_a_rectangle_in_packed_order() {
        for (rows, cols, most) in [(1, 1, 1), (3, 5, 7), (10, 2, 4), (7, 7, 49), (5, 9, 5), (0, 3, 2)] {
            let mut next = 0;
            for piece in Piece::cut(rows, cols, most) {
                assert_eq!(piece.offset(rows), next);
                assert!(piece.count() <= most && (piece.cols == 1 || piece.rows == rows));
                next += piece.count();
            }
            assert_eq!(next, rows * cols);
        }
    }

    #[test]
    fn a_piece_is_contiguous_on_a_device_if_its_columns_are_as_long_as_the_leading_dimension() {
        let whole = Piece { row: 0, col: 2, rows: 5, cols: 3 };
        assert_eq!(whole.runs_at(7, 5).collect::<Vec<_>>(), [[17, 0, 15]]);
        assert_eq!(whole.runs_at(7, 9).collect::<Vec<_>>(), [[25, 0, 5], [34, 5, 5], [43, 10, 5]]);
        let part_of_column = Piece { row: 2, col: 1, rows: 3, cols: 1 };
        assert_eq!(part_of_column.runs_at(7, 9).collect::<Vec<_>>(), [[18, 0, 3]]);
    }

    /// An element type of sixteen bytes.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Wide(f64, f64);

    impl From<u16> for Wide {
        fn from(number: u16) -> Self {
            Wide(number.into(), -f64::from(number))
        }
    }

    #[test]
    fn what_is_packed_and_unpacked_is_the_same_in_either_layout_whatever_the_size() {
        packed_and_unpacked::<f32>(DType::F32);
        packed_and_unpacked::<f64>(DType::F64);
        packed_and_unpacked::<Wide>(DType::Wide);
    }

    fn packed_and_unpacked<T: Copy + PartialEq + From<u16>>(dtype: DType) {
        let (rows, cols) = (70, 41);
        for (row_stride, col_stride) in [(1, 73), (44, 1)] {
            let mut host: Vec<T> = (0..5000).map(T::from).collect();
            let rect = HostRect { origin: host.as_mut_ptr().cast(), dtype, row_stride, col_stride, rows, cols };
            let mut packed = vec![T::from(0); rows * cols];
            let pieces = Piece::cut(rows, cols, 900);
            for piece in &pieces {
                // SAFETY: the rectangle lies in its vector of 5000 elements, and `packed` has room for all pieces.
                unsafe { piece.pack(&rect, packed.as_mut_ptr().add(piece.offset(rows)).cast()) };
            }
            assert!((0..rows * cols).all(|e| packed[e] == host[(e % rows) * row_stride + (e / rows) * col_stride]));
            let mut back = vec![T::from(u16::MAX); 5000];
            let into = HostRect { origin: back.as_mut_ptr().cast(), ..rect };
            for piece in &pieces {
                // SAFETY: the rectangle lies in its vector of 5000 elements, and `packed` has room for all pieces.
                unsafe { piece.unpack(packed.as_ptr().add(piece.offset(rows)).cast(), &into) };
            }
            let written = back.iter().filter(|&&element| element != T::from(u16::MAX)).count();
            assert!(written == rows * cols && back.iter().zip(&host).all(|(&b, &h)| b == T::from(u16::MAX) || b == h));
        }
    }
}
