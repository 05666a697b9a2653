//! The vector types of AVX-512 and AVX2.

use std::arch::x86_64::*;

use super::simd::{Kernel, Simd};
use super::vector::vector;

#[inline(always)]
unsafe fn prefetch<T>(at: *const T) {
    // SAFETY: a prefetch is a hint that accesses no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

#[inline(always)]
unsafe fn prefetch_l2<T>(at: *const T) {
    // SAFETY: a prefetch is a hint that accesses no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
}

/// Defines a function that returns the lane numbers for `permutex2var`. Lane l of the first register has the number l. Lane l
/// of the second register has the number LANES + l. The numbers are `i64` or `i32`, as wide as the lanes.
macro_rules! exchange_index {
    ($name:ident, $lane:ty, $lanes:literal) => {
        const fn $name(d: usize, hi: bool) -> [$lane; $lanes] {
            let mut index = [0; $lanes];
            let mut l = 0;
            while l < $lanes {
                index[l] = match (l & d == 0, hi) {
                    (true, false) => l,
                    (false, false) => $lanes + l - d,
                    (true, true) => l + d,
                    (false, true) => $lanes + l,
                } as $lane;
                l += 1;
            }
            index
        }
    };
}

exchange_index!(exchange_index_64, i64, 8);
exchange_index!(exchange_index_32, i32, 16);

vector! {
    F64x8 = __m512d of 8 f64, 8 columns, "avx512f,avx2,fma", mask __mmask8,
    _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_mul_pd _mm512_div_pd,
    |x, a, b| add _mm512_fmadd_pd(x, a, b), subtract _mm512_fnmadd_pd(x, a, b),
    // the `max` intrinsic returns its second operand if one operand is NaN
    |x, other| _mm512_max_pd(_mm512_abs_pd(x), other),
    unsafe fn mask(count: usize) -> __mmask8 {
        ((1u32 << count) - 1) as __mmask8
    }
    unsafe fn load_masked(from: *const f64, mask: __mmask8) -> Self {
        F64x8(unsafe { _mm512_maskz_loadu_pd(mask, from) })
    }
    unsafe fn store_masked(self, to: *mut f64, mask: __mmask8) {
        unsafe { _mm512_mask_storeu_pd(to, mask, self.0) }
    }
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self) {
        let (lo, hi) = const { (exchange_index_64(D, false), exchange_index_64(D, true)) };
        unsafe {
            let (lo, hi) = (_mm512_loadu_epi64(lo.as_ptr()), _mm512_loadu_epi64(hi.as_ptr()));
            let pick = |index| F64x8(_mm512_permutex2var_pd(self.0, index, other.0));
            (pick(lo), pick(hi))
        }
    }
}

vector! {
    F32x16 = __m512 of 16 f32, 8 columns, "avx512f,avx2,fma", mask __mmask16,
    _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_mul_ps _mm512_div_ps,
    |x, a, b| add _mm512_fmadd_ps(x, a, b), subtract _mm512_fnmadd_ps(x, a, b),
    // the `max` intrinsic returns its second operand if one operand is NaN
    |x, other| _mm512_max_ps(_mm512_abs_ps(x), other),
    unsafe fn mask(count: usize) -> __mmask16 {
        ((1u32 << count) - 1) as __mmask16
    }
    unsafe fn load_masked(from: *const f32, mask: __mmask16) -> Self {
        F32x16(unsafe { _mm512_maskz_loadu_ps(mask, from) })
    }
    unsafe fn store_masked(self, to: *mut f32, mask: __mmask16) {
        unsafe { _mm512_mask_storeu_ps(to, mask, self.0) }
    }
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self) {
        let (lo, hi) = const { (exchange_index_32(D, false), exchange_index_32(D, true)) };
        unsafe {
            let (lo, hi) = (_mm512_loadu_epi32(lo.as_ptr()), _mm512_loadu_epi32(hi.as_ptr()));
            let pick = |index| F32x16(_mm512_permutex2var_ps(self.0, index, other.0));
            (pick(lo), pick(hi))
        }
    }
}

/// An AVX2 mask consists of consecutive elements of this table: −1 for each lane that is accessed, then 0 for all other lanes.
static WINDOW: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

vector! {
    F64x4 = __m256d of 4 f64, 4 columns, "avx2,fma", mask __m256i,
    _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_mul_pd _mm256_div_pd,
    |x, a, b| add _mm256_fmadd_pd(x, a, b), subtract _mm256_fnmadd_pd(x, a, b),
    // the `max` intrinsic returns its second operand if one operand is NaN
    |x, other| _mm256_max_pd(_mm256_andnot_pd(_mm256_set1_pd(-0.0), x), other),
    unsafe fn mask(count: usize) -> __m256i {
        unsafe { _mm256_loadu_si256(WINDOW.as_ptr().add(8 - 2 * count).cast()) }
    }
    unsafe fn load_masked(from: *const f64, mask: __m256i) -> Self {
        F64x4(unsafe { _mm256_maskload_pd(from, mask) })
    }
    unsafe fn store_masked(self, to: *mut f64, mask: __m256i) {
        unsafe { _mm256_maskstore_pd(to, mask, self.0) }
    }
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self) {
        let (a, b) = (self.0, other.0);
        let (lo, hi) = match D {
            1 => unsafe { (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)) },
            _ => unsafe { (_mm256_permute2f128_pd(a, b, 0x20), _mm256_permute2f128_pd(a, b, 0x31)) },
        };
        (F64x4(lo), F64x4(hi))
    }
}

vector! {
    F32x8 = __m256 of 8 f32, 4 columns, "avx2,fma", mask __m256i,
    _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_mul_ps _mm256_div_ps,
    |x, a, b| add _mm256_fmadd_ps(x, a, b), subtract _mm256_fnmadd_ps(x, a, b),
    // the `max` intrinsic returns its second operand if one operand is NaN
    |x, other| _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0), x), other),
    unsafe fn mask(count: usize) -> __m256i {
        unsafe { _mm256_loadu_si256(WINDOW.as_ptr().add(8 - count).cast()) }
    }
    unsafe fn load_masked(from: *const f32, mask: __m256i) -> Self {
        F32x8(unsafe { _mm256_maskload_ps(from, mask) })
    }
    unsafe fn store_masked(self, to: *mut f32, mask: __m256i) {
        unsafe { _mm256_maskstore_ps(to, mask, self.0) }
    }
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self) {
        let (a, b) = (self.0, other.0);
        let (lo, hi) = match D {
            1 => unsafe {
                (_mm256_blend_ps(a, _mm256_moveldup_ps(b), 0xAA), _mm256_blend_ps(_mm256_movehdup_ps(a), b, 0xAA))
            },
            2 => unsafe { (_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE)) },
            _ => unsafe { (_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31)) },
        };
        (F32x8(lo), F32x8(hi))
    }
}
