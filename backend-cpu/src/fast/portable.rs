//! Vectors as arrays, for processors for which this crate has no vector type. The compiler translates the loops over arrays into
//! instructions of the target.

use lapidary_core::Scalar;

use super::simd::{Kernel, Simd};

const LANES: usize = 4;

/// A vector of four elements.
#[derive(Clone, Copy)]
pub(super) struct Array<T>([T; LANES]);

impl<T: Scalar> Array<T> {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Array(std::array::from_fn(|l| f(self.0[l], other.0[l])))
    }
}

/// a · b + c, fused if the target has an instruction for the fused operation.
#[inline(always)]
fn mul_add<T: Scalar>(a: T, b: T, c: T) -> T {
    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) { a.mul_add(b, c) } else { a * b + c }
}

// Only the functions that access memory have safety conditions, which are those of the trait `Simd`.
impl<T: Scalar> Simd for Array<T> {
    type Elem = T;
    type Mask = usize;
    const LANES: usize = LANES;
    const NR: usize = 4;

    #[inline(never)]
    unsafe fn call<K: Kernel<T>>(kernel: K) -> K::Output {
        // SAFETY: the caller guarantees the safety conditions of the trait `Simd`.
        unsafe { kernel.run::<Self>() }
    }
    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        count
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller guarantees the safety conditions of the trait `Simd`; an array has the alignment of its elements.
        Array(unsafe { from.cast::<[T; LANES]>().read() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller guarantees the safety conditions of the trait `Simd`; an array has the alignment of its elements.
        unsafe { to.cast::<[T; LANES]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const T, mask: usize) -> Self {
        // SAFETY: the caller guarantees the safety conditions of the trait `Simd`; lanes outside the mask are not read.
        Array(std::array::from_fn(|l| if l < mask { unsafe { *from.add(l) } } else { T::ZERO }))
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut T, mask: usize) {
        // SAFETY: the caller guarantees the safety conditions of the trait `Simd`; lanes outside the mask are not written.
        (0..mask).for_each(|l| unsafe { *to.add(l) = self.0[l] });
    }
    #[inline(always)]
    unsafe fn prefetch(_at: *const T) {}
    #[inline(always)]
    unsafe fn prefetch_l2(_at: *const T) {}
    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        Array([value; LANES])
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.zip(other, |x, y| x / y)
    }
    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        Array(std::array::from_fn(|l| mul_add(self.0[l], a.0[l], b.0[l])))
    }
    #[inline(always)]
    unsafe fn neg_mul_add(self, a: Self, b: Self) -> Self {
        Array(std::array::from_fn(|l| mul_add(-self.0[l], a.0[l], b.0[l])))
    }
    #[inline(always)]
    unsafe fn max_abs(self, other: Self) -> Self {
        self.zip(other, |x, y| {
            let x = if x.to_f64() < 0.0 { -x } else { x };
            if x.to_f64() > y.to_f64() { x } else { y }
        })
    }
    #[inline(always)]
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self) {
        let lo = std::array::from_fn(|l| if l & D == 0 { self.0[l] } else { other.0[l - D] });
        let hi = std::array::from_fn(|l| if l & D == 0 { self.0[l + D] } else { other.0[l] });
        (Array(lo), Array(hi))
    }
}
