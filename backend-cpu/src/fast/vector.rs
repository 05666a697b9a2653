//! A macro that implements the trait `Simd` for the vector types of processors.

/// Defines one vector type. The caller of the macro writes the functions for masks and shuffles. In all other functions, vector
/// types differ only in the names of intrinsics and the order of operands. The calling module also defines `prefetch` and
/// `prefetch_l2`.
macro_rules! vector {
    ($name:ident = $reg:ident of $lanes:literal $t:ty, $nr:literal columns, $features:literal, mask $mask:ident,
     $load:ident $store:ident $splat:ident $mul:ident $div:ident,
     |$x:ident, $a:ident, $b:ident| add $fmadd:expr, subtract $fnmadd:expr, |$y:ident, $other:ident| $max:expr,
     $($own:item)+) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name($reg);

        // Each function body below calls one or two intrinsics, whose safety conditions are those of the trait `Simd`.
        #[allow(clippy::undocumented_unsafe_blocks, reason = "one reason for all, above")]
        impl Simd for $name {
            type Elem = $t;
            type Mask = $mask;
            const LANES: usize = $lanes;
            const NR: usize = $nr;

            #[inline]
            unsafe fn call<K: Kernel<$t>>(kernel: K) -> K::Output {
                #[target_feature(enable = $features)]
                #[inline(never)]
                unsafe fn enter<K: Kernel<$t>>(kernel: K) -> K::Output {
                    unsafe { kernel.run::<$name>() }
                }
                unsafe { enter(kernel) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                $name(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn prefetch(at: *const $t) {
                unsafe { prefetch(at) }
            }
            #[inline(always)]
            unsafe fn prefetch_l2(at: *const $t) {
                unsafe { prefetch_l2(at) }
            }
            #[inline(always)]
            unsafe fn splat(value: $t) -> Self {
                $name(unsafe { $splat(value) })
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                $name(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                $name(unsafe { $div(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                let ($x, $a, $b) = (self.0, a.0, b.0);
                $name(unsafe { $fmadd })
            }
            #[inline(always)]
            unsafe fn neg_mul_add(self, a: Self, b: Self) -> Self {
                let ($x, $a, $b) = (self.0, a.0, b.0);
                $name(unsafe { $fnmadd })
            }
            #[inline(always)]
            unsafe fn max_abs(self, other: Self) -> Self {
                let ($y, $other) = (self.0, other.0);
                $name(unsafe { $max })
            }
            $(#[inline(always)] $own)+
        }
    };
}

pub(super) use vector;
