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

impl<T> Strided<T> {
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
    /// Where the next product's part of B starts: `k` elements are fetched meanwhile.
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
        // SAFETY: the caller's tiles hold what the loops address.
        unsafe {
            let mut sum = [[V::splat(T::ZERO); MV]; N];
            let (mut a, mut b, mut ahead) = (self.a, self.b.ptr, self.ahead);
            for _ in 0..self.k {
                V::prefetch_l2(ahead);
                ahead = ahead.wrapping_add(1);
                let mut column = [V::splat(T::ZERO); MV];
                for (i, x) in column.iter_mut().enumerate() {
                    let from = a.add(i * V::LANES);
                    *x = if TAIL && i == MV - 1 { V::load_masked(from, mask) } else { V::load(from) };
                }
                for (j, sum) in sum.iter_mut().enumerate() {
                    let y = V::splat(*b.add(j * self.b.cs));
                    for (sum, x) in sum.iter_mut().zip(column) {
                        *sum = x.mul_add(y, *sum);
                    }
                }
                a = a.wrapping_add(self.lda);
                b = b.wrapping_add(self.b.rs);
            }
            sum
        }
    }
}
