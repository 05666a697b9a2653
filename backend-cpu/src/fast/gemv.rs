//! y ← α·op(A)·x + β·y: a product with one column. A product with one column takes as long as reading A once.
//!
//! The micro-kernel would read A in strips of a few rows, and each column of a strip would lie on another page of memory. The
//! kernel `Gemv` reads A along its columns, or along its rows if A is row-major.

use lapidary_core::Scalar;

use super::micro::Strided;
use super::simd::{Kernel, Simd};

/// Number of columns (or rows) of A that are read together.
const TOGETHER: usize = 8;
/// Number of rows whose part of y stays in the first-level cache.
const ROWS: usize = 2048;

/// y ← α·A·x + β·y, where A is m × k and y is contiguous.
pub(super) struct Gemv<'a, T> {
    pub m: usize,
    pub alpha: T,
    pub a: Strided<T>,
    /// The `k` elements of x, which are contiguous.
    pub x: &'a [T],
    pub beta: T,
    pub y: *mut T,
}

impl<T: Scalar> Kernel<T> for Gemv<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        // SAFETY: the loops access only elements of A, x and y, for which the caller guarantees the contract of tiles.
        unsafe {
            if self.a.rs == 1 {
                for i in (0..self.m).step_by(ROWS) {
                    self.columns::<V>(i, ROWS.min(self.m - i));
                }
            } else {
                self.rows::<V>();
            }
        }
    }
}

impl<T: Scalar> Gemv<'_, T> {
    /// s ← Σ x_c·A_c, several columns c at a time; then y ← α·s + β·y.
    #[inline(always)]
    unsafe fn columns<V: Simd<Elem = T>>(&self, row: usize, m: usize) {
        let mut sums = [T::ZERO; ROWS];
        // SAFETY: the caller guarantees the contract of tiles for A and y. The rows `row..row + m` lie in A and y, because the
        // caller passes a part of `0..self.m`, and `add` masks the last, partial vector of a column.
        unsafe {
            let mut c = 0;
            while c < self.x.len() {
                if self.x.len() - c >= TOGETHER {
                    self.add::<V, TOGETHER>(row, m, c, &mut sums);
                    c += TOGETHER;
                } else {
                    self.add::<V, 1>(row, m, c, &mut sums);
                    c += 1;
                }
            }
            for (i, sum) in sums[..m].iter().enumerate() {
                self.put(row + i, *sum);
            }
        }
    }

    /// y_i ← α·s + β·y_i.
    #[inline(always)]
    unsafe fn put(&self, i: usize, sum: T) {
        // SAFETY: element `i` lies in y, which no other code accesses during the product.
        unsafe {
            let y = self.y.add(i);
            let product = self.alpha * sum;
            *y = if self.beta == T::ZERO { product } else { product + self.beta * *y };
        }
    }

    /// s ← s + Σ x_c·A_c over `N` columns.
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>, const N: usize>(&self, row: usize, m: usize, c: usize, sums: &mut [T; ROWS]) {
        let columns: [*const T; N] = std::array::from_fn(|t| self.a.at(row, c + t).ptr);
        let y = sums.as_mut_ptr();
        // SAFETY: the caller guarantees the contract of tiles for A. The rows `row..row + m` of the `N` columns lie in A, `sums` has
        // room for `m` elements, and the last, partial vector of a column is masked.
        unsafe {
            let factors: [V; N] = std::array::from_fn(|t| V::splat(self.x[c + t]));
            let whole = m / V::LANES * V::LANES;
            for i in (0..whole).step_by(V::LANES) {
                let mut sum = V::load(y.add(i));
                for (column, factor) in columns.iter().zip(factors) {
                    sum = V::load(column.add(i)).mul_add(factor, sum);
                }
                sum.store(y.add(i));
            }
            if whole < m {
                let mask = V::mask(m - whole);
                let mut sum = V::load_masked(y.add(whole), mask);
                for (column, factor) in columns.iter().zip(factors) {
                    sum = V::load_masked(column.add(whole), mask).mul_add(factor, sum);
                }
                sum.store_masked(y.add(whole), mask);
            }
        }
    }

    /// y_i ← α·(A_i·x) + β·y_i for several rows i at a time, whose elements are contiguous.
    #[inline(always)]
    unsafe fn rows<V: Simd<Elem = T>>(&self) {
        let mut i = 0;
        // SAFETY: the caller guarantees the contract of tiles for A and y. The loop passes only rows below `self.m` to `dot`.
        unsafe {
            while i < self.m {
                if self.m - i >= TOGETHER {
                    self.dot::<V, TOGETHER>(i);
                    i += TOGETHER;
                } else {
                    self.dot::<V, 1>(i);
                    i += 1;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn dot<V: Simd<Elem = T>, const N: usize>(&self, i: usize) {
        let rows: [*const T; N] = std::array::from_fn(|t| self.a.at(i + t, 0).ptr);
        let (k, x) = (self.x.len(), self.x.as_ptr());
        // SAFETY: the caller guarantees the contract of tiles for A and y. The rows `i..i + N` lie in A, and the last, partial vector
        // of each row is masked.
        unsafe {
            let mut sums = [V::splat(T::ZERO); N];
            let whole = k / V::LANES * V::LANES;
            for p in (0..whole).step_by(V::LANES) {
                let factor = V::load(x.add(p));
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = V::load(row.add(p)).mul_add(factor, *sum);
                }
            }
            if whole < k {
                let mask = V::mask(k - whole);
                let factor = V::load_masked(x.add(whole), mask);
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = V::load_masked(row.add(whole), mask).mul_add(factor, *sum);
                }
            }
            for (t, sum) in sums.into_iter().enumerate() {
                self.put(i + t, total(sum));
            }
        }
    }
}

/// The sum of all lanes of a vector.
#[inline(always)]
unsafe fn total<V: Simd>(x: V) -> V::Elem {
    let mut lanes = [V::Elem::ZERO; 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe { x.store(lanes.as_mut_ptr()) };
    lanes[..V::LANES].iter().copied().sum()
}
