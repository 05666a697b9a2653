//! The micro-kernel: a tile of C held in registers while k runs.

use lapidary_core::Scalar;

use super::simd::{Kernel, Simd};

/// The least k whose product takes long enough to fetch C meanwhile.
const PREFETCH: usize = 24;

/// Elements addressed by a row and a column stride.
#[derive(Clone, Copy)]
pub(super) struct Strided<T> {
    pub ptr: *const T,
    pub rs: usize,
    pub cs: usize,
}

// SAFETY: this is an address with strides. Only unsafe functions read the memory; their callers rule out data races.
unsafe impl<T: Sync> Sync for Strided<T> {}

impl<T> Strided<T> {
    /// The transpose.
    #[inline(always)]
    pub fn transposed(self) -> Self {
        Strided { ptr: self.ptr, rs: self.cs, cs: self.rs }
    }

    /// The part that starts at (i, j).
    #[inline(always)]
    pub fn at(self, i: usize, j: usize) -> Self {
        Strided { ptr: self.ptr.wrapping_add(i * self.rs + j * self.cs), ..self }
    }
}

/// C ← α·A·B + β·C for `MV` vectors of rows and `N` columns.
///
/// The columns of A are contiguous. With `TAIL` only `tail` rows of the last
/// vector exist: the others are neither read in A nor touched in C.
pub(super) struct Micro<T, const MV: usize, const N: usize, const TAIL: bool> {
    pub k: usize,
    pub a: *const T,
    /// Distance of two columns of A.
    pub lda: usize,
    pub b: Strided<T>,
    pub c: *mut T,
    pub ldc: usize,
    pub alpha: T,
    pub beta: T,
    pub tail: usize,
    /// Where the part of B for the next product starts: `k` elements of it are prefetched during this product.
    pub ahead: *const T,
}

impl<T: Scalar, const MV: usize, const N: usize, const TAIL: bool> Kernel<T> for Micro<T, MV, N, TAIL> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        // SAFETY: the caller's tiles hold what the loops address.
        unsafe {
            let mask = V::mask(if TAIL { self.tail } else { 0 });
            if self.k >= PREFETCH {
                self.prefetch::<V>();
            }
            let sum = self.product::<V>(mask);
            let alpha = V::splat(self.alpha);
            let beta = V::splat(self.beta);
            for (j, column) in sum.iter().enumerate() {
                for (i, &sum) in column.iter().enumerate() {
                    let c = self.c.add(i * V::LANES + j * self.ldc);
                    let masked = TAIL && i == MV - 1;
                    let old = || if masked { V::load_masked(c, mask) } else { V::load(c) };
                    // β = 0 never reads C.
                    let new = if self.beta == T::ZERO { alpha.mul(sum) } else { alpha.mul_add(sum, old().mul(beta)) };
                    if masked { new.store_masked(c, mask) } else { new.store(c) }
                }
            }
        }
    }
}

impl<T: Scalar, const MV: usize, const N: usize, const TAIL: bool> Micro<T, MV, N, TAIL> {
    /// Fetches the tile of C while the product is computed.
    #[inline(always)]
    unsafe fn prefetch<V: Simd<Elem = T>>(&self) {
        let (line, rows) = (64 / size_of::<T>(), MV * V::LANES);
        for j in 0..N {
            // a column that does not start a cache line ends in one more
            for i in (0..rows).step_by(line).chain([rows - 1]) {
                // SAFETY: a hint touches nothing.
                unsafe { V::prefetch(self.c.wrapping_add(i + j * self.ldc)) }
            }
        }
    }

    /// A·B.
    #[inline(always)]
    unsafe fn product<V: Simd<Elem = T>>(&self, mask: V::Mask) -> [[V; MV]; N] {
        let packed = Strides { a: MV * V::LANES, b_row: N, b_col: 1 };
        let given = Strides { a: self.lda, b_row: self.b.rs, b_col: self.b.cs };
        let mut at = Position { a: self.a, b: self.b.ptr, ahead: self.ahead };
        let mut left = self.k;
        // SAFETY: the caller's tiles hold what the loops address.
        unsafe {
            let mut sum = [[V::splat(T::ZERO); MV]; N];
            if !TAIL && N == V::NR && given == packed {
                // constant strides and several steps at once leave little but the arithmetic
                while left >= UNROLL {
                    V::prefetch_l2(at.ahead);
                    for _ in 0..UNROLL {
                        at.step::<V, MV, N, TAIL>(mask, packed, &mut sum);
                    }
                    left -= UNROLL;
                }
            }
            for _ in 0..left {
                V::prefetch_l2(at.ahead);
                at.step::<V, MV, N, TAIL>(mask, given, &mut sum);
            }
            sum
        }
    }
}

/// Steps along k between two branches.
const UNROLL: usize = 4;

/// Distances of the columns of A, the rows of B and the columns of B.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Strides {
    a: usize,
    b_row: usize,
    b_col: usize,
}

/// Where a product has come to along k.
struct Position<T> {
    a: *const T,
    b: *const T,
    ahead: *const T,
}

impl<T: Scalar> Position<T> {
    /// Adds a column of A times a row of B.
    #[inline(always)]
    unsafe fn step<V: Simd<Elem = T>, const MV: usize, const N: usize, const TAIL: bool>(
        &mut self,
        mask: V::Mask,
        strides: Strides,
        sum: &mut [[V; MV]; N],
    ) {
        // SAFETY: the caller's tiles hold the column and the row.
        unsafe {
            let mut column = [V::splat(T::ZERO); MV];
            for (i, x) in column.iter_mut().enumerate() {
                let from = self.a.add(i * V::LANES);
                *x = if TAIL && i == MV - 1 { V::load_masked(from, mask) } else { V::load(from) };
            }
            for (j, sum) in sum.iter_mut().enumerate() {
                let y = V::splat(*self.b.add(j * strides.b_col));
                for (sum, x) in sum.iter_mut().zip(column) {
                    *sum = x.mul_add(y, *sum);
                }
            }
        }
        self.a = self.a.wrapping_add(strides.a);
        self.b = self.b.wrapping_add(strides.b_row);
        self.ahead = self.ahead.wrapping_add(1);
    }
}
