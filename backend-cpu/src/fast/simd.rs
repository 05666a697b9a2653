//! One trait for the vector types of all processors. The vector type is chosen once per kernel call.
//!
//! A kernel is written once, generic over [`Simd`]. [`Lanes::dispatch`] runs the kernel with the widest vectors of the processor.
//! [`Kernel::run`] and all functions that it calls are `#[inline(always)]`, so that they are compiled with the target features of
//! the function [`Simd::call`].

use lapidary_core::Scalar;

/// A vector of `LANES` elements.
///
/// # Safety
/// The processor must have the target features of the vector type. The processor has these target features if the calling code runs
/// inside [`Simd::call`]. Addresses must be readable or writable for the lanes that are accessed.
pub(crate) trait Simd: Copy {
    /// The type of an element.
    type Elem: Scalar;
    /// Selects the lanes that a partial load or store accesses.
    type Mask: Copy;
    /// Number of lanes.
    const LANES: usize;
    /// Number of columns of a micro-tile that is three vectors high. A micro-tile with `NR` columns fits into the vector registers.
    const NR: usize;

    /// Runs a kernel in a function that is compiled with the target features of this vector type.
    unsafe fn call<K: Kernel<Self::Elem>>(kernel: K) -> K::Output;
    /// Selects the first `count` lanes; `count` is at most `LANES`.
    unsafe fn mask(count: usize) -> Self::Mask;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn store(self, to: *mut Self::Elem);
    /// Loads the lanes that `mask` selects. The lanes outside the mask become zero, and their memory is not read.
    unsafe fn load_masked(from: *const Self::Elem, mask: Self::Mask) -> Self;
    unsafe fn store_masked(self, to: *mut Self::Elem, mask: Self::Mask);
    /// Prefetches the cache line at an address. Any address is permitted.
    unsafe fn prefetch(at: *const Self::Elem);
    /// Prefetches a cache line into the second-level cache. Any address is permitted.
    unsafe fn prefetch_l2(at: *const Self::Elem);
    unsafe fn splat(value: Self::Elem) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self · a + b`.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// `b − self · a`.
    unsafe fn neg_mul_add(self, a: Self, b: Self) -> Self;
    /// The larger of |self| and `other` in each lane, or `other` in lanes where `self` is NaN.
    unsafe fn max_abs(self, other: Self) -> Self;
    /// Treats `self` and `other` as two rows of a matrix, and transposes the 2×2 blocks of this matrix. Each element of a block
    /// consists of `D` lanes. In the result `(lo, hi)`, `lo[l]` is `other[l − D]` if `l & D` is not 0, else `self[l]`; `hi[l]` is
    /// `self[l + D]` if `l & D` is 0, else `other[l]`.
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self);
}

/// A computation that is generic over the vector type.
pub(crate) trait Kernel<T> {
    /// The type of the result of the computation.
    type Output;
    /// Computes with vectors of type `V`. Implementations must be `#[inline(always)]`.
    ///
    /// # Safety
    /// The function is called from [`Simd::call`], and the kernel's own conditions hold.
    unsafe fn run<V: Simd<Elem = T>>(self) -> Self::Output;
}

/// A scalar type with a fast path: `f32` or `f64`.
pub trait Lanes: Scalar + sealed::Sealed {
    /// Runs a kernel with the widest vectors of the processor.
    ///
    /// # Safety
    /// The kernel's own conditions hold.
    #[doc(hidden)]
    #[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
    unsafe fn dispatch<K: Kernel<Self>>(kernel: K) -> K::Output;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Maximum width of a vector in bits. There is no limit except in tests.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(test)))]
#[inline(always)]
fn widest() -> usize {
    usize::MAX
}

#[cfg(test)]
thread_local! {
    /// Maximum width of a vector in bits. Tests lower the maximum width to run the narrower vector types on a processor with wide
    /// vectors.
    pub(super) static WIDEST: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) };
}

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), test))]
fn widest() -> usize {
    WIDEST.get()
}

macro_rules! lanes {
    ($t:ident, $v512:ident, $v256:ident, $v128:ident) => {
        impl Lanes for $t {
            #[inline]
            #[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
            unsafe fn dispatch<K: Kernel<$t>>(kernel: K) -> K::Output {
                #[cfg(target_arch = "x86_64")]
                {
                    let most = widest();
                    if most >= 512 && is_x86_feature_detected!("avx512f") {
                        // SAFETY: the processor has the target features of the vector type.
                        return unsafe { super::x86::$v512::call(kernel) };
                    }
                    if most >= 256 && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        // SAFETY: the processor has the target features of the vector type.
                        return unsafe { super::x86::$v256::call(kernel) };
                    }
                }
                #[cfg(target_arch = "aarch64")]
                if widest() >= 128 {
                    // SAFETY: every 64-bit Arm processor has NEON.
                    return unsafe { super::neon::$v128::call(kernel) };
                }
                // SAFETY: arrays need no features of the processor.
                unsafe { super::portable::Array::<$t>::call(kernel) }
            }
        }
    };
}

lanes!(f32, F32x16, F32x8, F32x4);
lanes!(f64, F64x8, F64x4, F64x2);
