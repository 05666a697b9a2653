//! Vectors of the machine behind one trait, chosen once per kernel call.
//!
//! A kernel is written once over [`Simd`] and run by [`Lanes::dispatch`] with
//! the widest vectors that the processor has. Everything below
//! [`Kernel::run`] is `#[inline(always)]`, so that it is compiled with the
//! target features of the function that [`Simd::call`] enters.

use lapidary_core::Scalar;

/// A vector of `LANES` elements.
///
/// # Safety
/// The functions are `unsafe`: the processor must have the vector's features
/// (the caller was entered through [`Simd::call`]), and addresses must be
/// readable or writable for the lanes that are moved.
pub(crate) trait Simd: Copy {
    /// The type of a lane.
    type Elem: Scalar;
    /// Which lanes a partial access moves.
    type Mask: Copy;
    /// The number of lanes.
    const LANES: usize;
    /// Columns of a micro-tile of three vectors: what the registers hold.
    const NR: usize;

    /// Runs a kernel in a function compiled for this vector.
    unsafe fn call<K: Kernel<Self::Elem>>(kernel: K) -> K::Output;
    /// The first `count` ≤ `LANES` lanes.
    unsafe fn mask(count: usize) -> Self::Mask;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn store(self, to: *mut Self::Elem);
    /// Lanes outside the mask are zero and not read.
    unsafe fn load_masked(from: *const Self::Elem, mask: Self::Mask) -> Self;
    unsafe fn store_masked(self, to: *mut Self::Elem, mask: Self::Mask);
    /// Asks for the cache line at an address, of which nothing is required.
    unsafe fn prefetch(at: *const Self::Elem);
    /// The same, no nearer than the second-level cache.
    unsafe fn prefetch_l2(at: *const Self::Elem);
    unsafe fn splat(value: Self::Elem) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self · a + b`.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// `b − self · a`.
    unsafe fn neg_mul_add(self, a: Self, b: Self) -> Self;
    /// The larger of |self| and `other`, and `other` where self is NaN.
    unsafe fn max_abs(self, other: Self) -> Self;
    /// Transposes the 2×2 blocks of `D` lanes in two rows of a matrix:
    /// `lo[l] = other[l − D]` where `l & D`, `hi[l] = self[l + D]` elsewhere.
    unsafe fn exchange<const D: usize>(self, other: Self) -> (Self, Self);
}

/// A computation written over any vector type.
pub(crate) trait Kernel<T> {
    /// What it returns.
    type Output;
    /// Computes with vectors `V`; must be `#[inline(always)]`.
    ///
    /// # Safety
    /// Called from [`Simd::call`], with the kernel's own conditions met.
    unsafe fn run<V: Simd<Elem = T>>(self) -> Self::Output;
}

/// A scalar for which the fast path exists: `f32` and `f64`.
pub trait Lanes: Scalar + sealed::Sealed {
    /// Runs a kernel with the widest vectors of this processor.
    ///
    /// # Safety
    /// The kernel's own conditions.
    #[doc(hidden)]
    #[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
    unsafe fn dispatch<K: Kernel<Self>>(kernel: K) -> K::Output;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// The most bits of a vector: whatever the processor has, but for tests.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(test)))]
#[inline(always)]
fn widest() -> usize {
    usize::MAX
}

#[cfg(test)]
thread_local! {
    /// Lowered by tests, so that every vector type runs on one processor.
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
                        // SAFETY: the processor has the features of the vector.
                        return unsafe { super::x86::$v512::call(kernel) };
                    }
                    if most >= 256 && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        // SAFETY: the processor has the features of the vector.
                        return unsafe { super::x86::$v256::call(kernel) };
                    }
                }
                #[cfg(target_arch = "aarch64")]
                if widest() >= 128 {
                    // SAFETY: every processor of 64-bit Arm has NEON.
                    return unsafe { super::neon::$v128::call(kernel) };
                }
                // SAFETY: arrays need no features.
                unsafe { super::portable::Array::<$t>::call(kernel) }
            }
        }
    };
}

lanes!(f32, F32x16, F32x8, F32x4);
lanes!(f64, F64x8, F64x4, F64x2);
