//! Plain loops, which define the result of every instruction.
//!
//! All functions are `unsafe`: their callers guarantee the [contract of tiles](crate::tile).

use lapidary_core::{Diag, Op, Scalar, Side, Swaps, Uplo};

use crate::tile::Tile;

/// Element (i, j) of op(A).
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
unsafe fn op_get<T: Scalar>(op: Op, a: Tile<T>, i: usize, j: usize) -> T {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        match op {
            Op::NoTrans => a.get(i, j),
            Op::Trans => a.get(j, i),
            Op::ConjTrans => a.get(j, i).conj(),
            Op::Conj => a.get(i, j).conj(),
        }
    }
}

/// C ← α·op(A)·op(B) + β·C.
///
/// With β = 0, C is never read. With α = 0 or k = 0, A and B are never read.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn gemm<T: Scalar>(op_a: Op, op_b: Op, alpha: T, a: Tile<T>, b: Tile<T>, beta: T, c: Tile<T>) {
    let (m, k) = op_a.shape(a.shape());
    debug_assert_eq!((c.rows(), k, c.cols()), (m, op_b.shape(b.shape()).0, op_b.shape(b.shape()).1));
    // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
    unsafe {
        scale(beta, c);
        if alpha == T::ZERO || k == 0 {
            return;
        }
        for j in 0..c.cols() {
            for i in 0..m {
                let mut sum = T::ZERO;
                for p in 0..k {
                    sum += op_get(op_a, a, i, p) * op_get(op_b, b, p, j);
                }
                c.set(i, j, c.get(i, j) + alpha * sum);
            }
        }
    }
}

/// Whether substitution computes the unknowns from first to last. The result is true for
/// a lower triangle on the left, and for an upper triangle on the right.
pub(crate) fn is_forward(side: Side, uplo: Uplo, op: Op) -> bool {
    (side == Side::Left) == (uplo.under(op) == Uplo::Lower)
}

/// B ← α·op(A)⁻¹·B or B ← α·B·op(A)⁻¹ by substitution.
///
/// The triangle of A opposite to `uplo` is never read, and neither is a unit diagonal. With α = 0, B is set to zero and A is not
/// read. A division by a diagonal element of A follows IEEE arithmetic.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn trsm<T: Scalar>(side: Side, uplo: Uplo, op: Op, diag: Diag, alpha: T, a: Tile<T>, b: Tile<T>) {
    let n = a.rows();
    debug_assert!(a.cols() == n && n == if side == Side::Left { b.rows() } else { b.cols() });
    // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
    unsafe {
        scale(alpha, b);
        if alpha == T::ZERO {
            return;
        }
        let others = if side == Side::Left { b.cols() } else { b.rows() };
        // `place` is the address of unknown `i` of right-hand side `r`; `coefficient` is the coefficient of unknown `k` in equation
        // `i`
        let place = |i: usize, r: usize| if side == Side::Left { b.at(i, r) } else { b.at(r, i) };
        let coefficient = |i: usize, k: usize| if side == Side::Left { op_get(op, a, i, k) } else { op_get(op, a, k, i) };
        let forward = is_forward(side, uplo, op);
        for r in 0..others {
            for step in 0..n {
                let (i, solved) = if forward { (step, 0..step) } else { (n - 1 - step, n - step..n) };
                let mut x = *place(i, r);
                for k in solved {
                    x -= coefficient(i, k) * *place(k, r);
                }
                *place(i, r) = if diag == Diag::Unit { x } else { x / coefficient(i, i) };
            }
        }
    }
}

/// Unblocked LU factorisation P·A = L·U, with partial pivoting or without pivoting.
///
/// `ipiv[i]` is `first_row` plus the row of the tile that step i exchanges with row i. If several elements of a column have the
/// largest magnitude, the first of them is the pivot. A NaN is the pivot only if it lies on the diagonal before the exchange. A
/// zero pivot leaves its column unscaled, and the factorisation continues. If `info` is still 0 at a zero pivot in step i, `info`
/// becomes `first_row + i + 1`.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn getrf<T: Scalar>(pivoting: bool, first_row: usize, a: Tile<T>, ipiv: Tile<i32>, info: &mut i32) {
    debug_assert!(ipiv.rows() >= a.rows().min(a.cols()));
    // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
    unsafe {
        for i in 0..a.rows().min(a.cols()) {
            let p = if pivoting { find_pivot(a, i) } else { i };
            ipiv.set(i, 0, row_index(first_row + p));
            swap_rows(a, i, p);
            let pivot = a.get(i, i);
            if pivot == T::ZERO {
                note_zero_pivot(info, first_row + i);
            } else {
                divide(pivot, a.sub(i + 1, i, a.rows() - i - 1, 1));
            }
            for j in i + 1..a.cols() {
                for r in i + 1..a.rows() {
                    a.set(r, j, a.get(r, j) - a.get(r, i) * a.get(i, j));
                }
            }
        }
    }
}

/// Converts a row index into an entry of a pivot vector.
pub(crate) fn row_index(row: usize) -> i32 {
    i32::try_from(row).expect("a matrix of more than 2^31 rows has no 32-bit pivots")
}

/// Sets `info` to the row of an exactly zero pivot, counted from 1, unless `info` is set already.
pub(crate) fn note_zero_pivot(info: &mut i32, row: usize) {
    if *info == 0 {
        *info = row_index(row + 1);
    }
}

/// The row of the element with the largest magnitude in column `i`, on or below the diagonal.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub(crate) unsafe fn find_pivot<T: Scalar>(a: Tile<T>, i: usize) -> usize {
    // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
    unsafe { (i + 1..a.rows()).fold(i, |best, r| if a.get(r, i).abs() > a.get(best, i).abs() { r } else { best }) }
}

/// The reciprocal of `pivot`, or `None` if the reciprocal could overflow. A column is multiplied by the reciprocal instead of being
/// divided by the pivot.
pub(crate) fn safe_reciprocal<T: Scalar>(pivot: T) -> Option<T> {
    (pivot.abs().to_f64() >= T::MIN_POSITIVE).then(|| T::ONE / pivot)
}

/// x ← x / pivot.
unsafe fn divide<T: Scalar>(pivot: T, x: Tile<T>) {
    let reciprocal = safe_reciprocal(pivot);
    for i in 0..x.rows() {
        // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
        unsafe { x.set(i, 0, reciprocal.map_or_else(|| x.get(i, 0) / pivot, |r| x.get(i, 0) * r)) }
    }
}

unsafe fn swap_rows<T: Scalar>(a: Tile<T>, i: usize, p: usize) {
    for j in 0..a.cols() {
        // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
        unsafe { a.swap((i, j), (p, j)) }
    }
}

/// Exchanges rows (or columns) `i` and `ipiv[i] − first_row` for all `i`.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds, and all pivots lie in the tile.
pub unsafe fn laswp<T: Scalar>(swaps: Swaps, a: Tile<T>, ipiv: Tile<i32>) {
    for step in 0..ipiv.rows() {
        let i = if swaps.forward { step } else { ipiv.rows() - 1 - step };
        // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
        unsafe {
            let p = ipiv.get(i, 0) as usize - swaps.first_row;
            match swaps.side {
                Side::Left => swap_rows(a, i, p),
                Side::Right => (0..a.rows()).for_each(|r| a.swap((r, i), (r, p))),
            }
        }
    }
}

/// C ← β·C. With β = 0, zeros are written to C, and C is not read.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn scale<T: Scalar>(beta: T, c: Tile<T>) {
    for j in 0..c.cols() {
        for i in 0..c.rows() {
            // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
            unsafe { c.set(i, j, if beta == T::ZERO { T::ZERO } else { beta * c.get(i, j) }) }
        }
    }
}

/// B ← α·A, rounded to `f32`.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn narrow(alpha: f64, a: Tile<f64>, b: Tile<f32>) {
    debug_assert_eq!(a.shape(), b.shape());
    for j in 0..b.cols() {
        for i in 0..b.rows() {
            // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
            unsafe { b.set(i, j, f32::from_f64(alpha * a.get(i, j))) }
        }
    }
}

/// B ← op(A).
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn copy<T: Scalar>(op: Op, a: Tile<T>, b: Tile<T>) {
    debug_assert_eq!(op.shape(a.shape()), b.shape());
    for j in 0..b.cols() {
        for i in 0..b.rows() {
            // SAFETY: the caller guarantees the contract of tiles; all indices lie inside the tiles.
            unsafe { b.set(i, j, op_get(op, a, i, j)) }
        }
    }
}

/// Matrix `i` of `count` matrices that lie side by side.
pub(crate) fn matrix<T: Copy>(side_by_side: Tile<T>, count: usize, i: usize) -> Tile<T> {
    let cols = side_by_side.cols() / count;
    side_by_side.sub(0, i * cols, side_by_side.rows(), cols)
}

/// Part `i` of a column that consists of `count` parts of equal length.
pub(crate) fn piece(column: Tile<i32>, count: usize, i: usize) -> Tile<i32> {
    let rows = column.rows() / count;
    column.sub(i * rows, 0, rows, 1)
}

/// Computes [`gemm`] for each of `count` matrices.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
#[expect(clippy::too_many_arguments, reason = "the arguments of the routine, and their number")]
pub unsafe fn gemm_batched<T: Scalar>(count: usize, op_a: Op, op_b: Op, alpha: T, a: Tile<T>, b: Tile<T>, beta: T, c: Tile<T>) {
    for i in 0..count {
        // SAFETY: the caller guarantees the contract of tiles for each matrix.
        unsafe { gemm(op_a, op_b, alpha, matrix(a, count, i), matrix(b, count, i), beta, matrix(c, count, i)) }
    }
}

/// Computes [`getrf`] for each of `count` matrices. The old value of `info` is not read.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn getrf_batched<T: Scalar>(count: usize, pivoting: bool, a: Tile<T>, ipiv: Tile<i32>, info: Tile<i32>) {
    for i in 0..count {
        // SAFETY: the caller guarantees the contract of tiles for each matrix.
        unsafe {
            info.set(i, 0, 0);
            getrf(pivoting, 0, matrix(a, count, i), piece(ipiv, count, i), &mut *info.at(i, 0));
        }
    }
}

/// B ← op(A)⁻¹·B for each of `count` matrices A, which are given by their LU factors.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds, and all pivots lie in their matrix.
pub unsafe fn getrs_batched<T: Scalar>(count: usize, op: Op, lu: Tile<T>, ipiv: Tile<i32>, b: Tile<T>) {
    let exchanges = Swaps { side: Side::Left, forward: !op.is_trans(), first_row: 0 };
    for i in 0..count {
        let (lu, ipiv, b) = (matrix(lu, count, i), piece(ipiv, count, i), matrix(b, count, i));
        // SAFETY: the caller guarantees the contract of tiles for each matrix.
        unsafe {
            if op.is_trans() {
                trsm(Side::Left, Uplo::Upper, op, Diag::NonUnit, T::ONE, lu, b);
                trsm(Side::Left, Uplo::Lower, op, Diag::Unit, T::ONE, lu, b);
                laswp(exchanges, b, ipiv);
            } else {
                laswp(exchanges, b, ipiv);
                trsm(Side::Left, Uplo::Lower, op, Diag::Unit, T::ONE, lu, b);
                trsm(Side::Left, Uplo::Upper, op, Diag::NonUnit, T::ONE, lu, b);
            }
        }
    }
}

/// Finds the first zero on the diagonal of each of `count` square matrices. `info` becomes the row of this zero, counted from 1,
/// or 0 if the diagonal has no zero.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn zero_pivots<T: Scalar>(count: usize, lu: Tile<T>, info: Tile<i32>) {
    for i in 0..count {
        let lu = matrix(lu, count, i);
        // SAFETY: the caller guarantees the contract of tiles for each matrix.
        unsafe {
            let first = (0..lu.rows()).find(|&r| lu.get(r, r) == T::ZERO);
            info.set(i, 0, first.map_or(0, |first| row_index(first + 1)));
        }
    }
}
