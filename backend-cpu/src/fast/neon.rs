//! The vector types of NEON, which every 64-bit Arm processor has.

use std::arch::aarch64::*;
use std::arch::asm;

use super::simd::{Kernel, Simd};
use super::vector::vector;

#[inline(always)]
unsafe fn prefetch<T>(at: *const T) {
    // SAFETY: a prefetch is a hint that accesses no memory.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) }
}

#[inline(always)]
unsafe fn prefetch_l2<T>(at: *const T) {
    // SAFETY: a prefetch is a hint that accesses no memory.
    unsafe { asm!("prfm pldl2keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) }
}

/// Reads the first `count` elements at an address, and sets the other lanes to zero. NEON has no masked loads.
#[inline(always)]
unsafe fn load_first<T: Copy + Default, const LANES: usize>(from: *const T, count: usize) -> [T; LANES] {
    // SAFETY: the caller guarantees that `count` elements may be read from `from`.
    std::array::from_fn(|lane| if lane < count { unsafe { *from.add(lane) } } else { T::default() })
}

/// Writes the first `count` lanes to an address.
#[inline(always)]
unsafe fn store_first<T: Copy, const LANES: usize>(lanes: [T; LANES], to: *mut T, count: usize) {
    // SAFETY: the caller guarantees that `count` elements may be written to `to`.
    (0..count).for_each(|lane| unsafe { *to.add(lane) = lanes[lane] });
}

// 24 of the 32 registers hold a micro-tile of C, three hold a column of A, and the others hold elements of B
vector! {
    F64x2 = float64x2_t of 2 f64, 8 columns, "neon", mask usize,
    vld1q_f64 vst1q_f64 vdupq_n_f64 vmulq_f64 vdivq_f64,
    |x, a, b| add vfmaq_f64(b, x, a), subtract vfmsq_f64(b, x, a),
    // a comparison with NaN is false, so `other` is chosen where `x` is NaN
    |x, other| vbslq_f64(vcgtq_f64(vabsq_f64(x), other), vabsq_f64(x), other),
    unsafe fn mask(count: usize) -> usize {
        count
    }
    unsafe fn load_masked(from: *const f64, mask: usize) -> Self {
        unsafe { Self::load(load_first::<f64, 2>(from, mask).as_ptr()) }
    }
    unsafe fn store_masked(self, to: *mut f64, mask: usize) {
        let mut lanes = [0.0; 2];
        unsafe {
            self.store(lanes.as_mut_ptr());
            store_first(lanes, to, mask);
        }
    }
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self) {
        unsafe { (F64x2(vtrn1q_f64(self.0, other.0)), F64x2(vtrn2q_f64(self.0, other.0))) }
    }
}

vector! {
    F32x4 = float32x4_t of 4 f32, 8 columns, "neon", mask usize,
    vld1q_f32 vst1q_f32 vdupq_n_f32 vmulq_f32 vdivq_f32,
    |x, a, b| add vfmaq_f32(b, x, a), subtract vfmsq_f32(b, x, a),
    // a comparison with NaN is false, so `other` is chosen where `x` is NaN
    |x, other| vbslq_f32(vcgtq_f32(vabsq_f32(x), other), vabsq_f32(x), other),
    unsafe fn mask(count: usize) -> usize {
        count
    }
    unsafe fn load_masked(from: *const f32, mask: usize) -> Self {
        unsafe { Self::load(load_first::<f32, 4>(from, mask).as_ptr()) }
    }
    unsafe fn store_masked(self, to: *mut f32, mask: usize) {
        let mut lanes = [0.0; 4];
        unsafe {
            self.store(lanes.as_mut_ptr());
            store_first(lanes, to, mask);
        }
    }
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self) {
        unsafe {
            if D == 1 {
                return (F32x4(vtrn1q_f32(self.0, other.0)), F32x4(vtrn2q_f32(self.0, other.0)));
            }
            let (a, b) = (vreinterpretq_f64_f32(self.0), vreinterpretq_f64_f32(other.0));
            (F32x4(vreinterpretq_f32_f64(vtrn1q_f64(a, b))), F32x4(vreinterpretq_f32_f64(vtrn2q_f64(a, b))))
        }
    }
}
