//! The micro-kernel, which holds a micro-tile of C in registers while it loops over k.

use lapidary_core::Scalar;

use super::simd::{Kernel, Simd};

/// Minimum k for which the micro-tile of C is prefetched. With a smaller k, the product would end before the prefetch.
const PREFETCH: usize = 24;

/// A matrix whose elements are addressed by a row stride and a column stride.
#[derive(Clone, Copy)]
pub(super) struct Strided<T> {
    pub ptr: *const T,
    pub rs: usize,
    pub cs: usize,
}

// SAFETY: only unsafe functions read the elements of the matrix, and their callers rule out data races.
unsafe impl<T: Sync> Sync for Strided<T> {}

impl<T> Strided<T> {
    /// The transpose of this matrix, over the same memory.
    #[inline(always)]
    pub fn transposed(self) -> Self {
        Strided { ptr: self.ptr, rs: self.cs, cs: self.rs }
    }

    /// The part of the matrix that starts at element (i, j).
    #[inline(always)]
    pub fn at(self, i: usize, j: usize) -> Self {
        Strided { ptr: self.ptr.wrapping_add(i * self.rs + j * self.cs), ..self }
    }
}

/// C ← α·A·B + β·C for a micro-tile of `MV` vectors of rows and `N` columns.
///
/// The elements of each column of A are contiguous. With `TAIL`, only the first `tail` rows of the last vector exist: the other
/// rows of this vector are not read in A and not accessed in C.
pub(super) struct Micro<T, const MV: usize, const N: usize, const TAIL: bool> {
    pub k: usize,
    pub a: *const T,
    /// Distance between neighbouring columns of A, in elements.
    pub lda: usize,
    pub b: Strided<T>,
    pub c: *mut T,
    pub ldc: usize,
    pub alpha: T,
    pub beta: T,
    pub tail: usize,
    /// Address of a part of B that a later product uses. `k` elements from this address on are prefetched during this product.
    pub ahead: *const T,
}

impl<T: Scalar, const MV: usize, const N: usize, const TAIL: bool> Kernel<T> for Micro<T, MV, N, TAIL> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        // SAFETY: the loops access only elements of the caller's tiles, for which the caller guarantees the contract of tiles.
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
                    // with β = 0, C is not read
                    let new = if self.beta == T::ZERO { alpha.mul(sum) } else { alpha.mul_add(sum, old().mul(beta)) };
                    if masked { new.store_masked(c, mask) } else { new.store(c) }
                }
            }
        }
    }
}

impl<T: Scalar, const MV: usize, const N: usize, const TAIL: bool> Micro<T, MV, N, TAIL> {
    /// Prefetches the micro-tile of C, so that it is in the cache when the product is computed.
    #[inline(always)]
    unsafe fn prefetch<V: Simd<Elem = T>>(&self) {
        let (line, rows) = (64 / size_of::<T>(), MV * V::LANES);
        for j in 0..N {
            // a column that does not start at the beginning of a cache line extends into one more cache line, that of its last row
            for i in (0..rows).step_by(line).chain([rows - 1]) {
                // SAFETY: a prefetch is a hint that accesses no memory.
                unsafe { V::prefetch(self.c.wrapping_add(i + j * self.ldc)) }
            }
        }
    }

    /// Computes A·B, where A has the rows of the micro-tile and B has its columns.
    #[inline(always)]
    unsafe fn product<V: Simd<Elem = T>>(&self, mask: V::Mask) -> [[V; MV]; N] {
        let packed = Strides { a: MV * V::LANES, b_row: N, b_col: 1 };
        let given = Strides { a: self.lda, b_row: self.b.rs, b_col: self.b.cs };
        let mut at = Position { a: self.a, b: self.b.ptr, ahead: self.ahead };
        let mut left = self.k;
        // SAFETY: the loops access only elements of the caller's tiles, for which the caller guarantees the contract of tiles.
        unsafe {
            let mut sum = [[V::splat(T::ZERO); MV]; N];
            if !TAIL && N == V::NR && given == packed {
                // with constant strides, the loop contains little besides arithmetic
                let unroll = const { unroll(V::NR) };
                while left >= unroll {
                    V::prefetch_l2(at.ahead);
                    for _ in 0..unroll {
                        at.step::<V, MV, N, TAIL>(mask, packed, &mut sum);
                    }
                    left -= unroll;
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

/// Number of steps along k in one iteration of the loop with constant strides, for vectors of which a micro-tile has `nr` columns.
///
/// A micro-tile of 4 columns leaves 4 of 16 vector registers free. With several steps in an iteration, the compiler loads vectors of later
/// steps early and keeps parts of the micro-tile in memory instead, which halves the speed.
const fn unroll(nr: usize) -> usize {
    if nr == 8 { 4 } else { 1 }
}

/// Distances between neighbouring columns of A, rows of B and columns of B, in elements.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Strides {
    a: usize,
    b_row: usize,
    b_col: usize,
}

/// The addresses in A and B, and the address to prefetch, that a product has reached along k.
struct Position<T> {
    a: *const T,
    b: *const T,
    ahead: *const T,
}

impl<T: Scalar> Position<T> {
    /// Adds the product of one column of A and one row of B to `sum`, then advances the addresses.
    #[inline(always)]
    unsafe fn step<V: Simd<Elem = T>, const MV: usize, const N: usize, const TAIL: bool>(
        &mut self,
        mask: V::Mask,
        strides: Strides,
        sum: &mut [[V; MV]; N],
    ) {
        // SAFETY: the column of A and the row of B lie in tiles for which the caller guarantees the contract of tiles.
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
