//! The element types that the routines compute with.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use crate::value::Value;

/// The type of a stored element, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// 32-bit signed integer: row indices of a pivot vector.
    I32,
    /// Sixteen bytes, as a complex number has, for tests of code that moves elements and does not compute.
    #[cfg(test)]
    Wide,
}

impl DType {
    /// Bytes of the largest element that there may be.
    pub const LARGEST: usize = 16;

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            DType::F32 | DType::I32 => 4,
            DType::F64 => 8,
            #[cfg(test)]
            DType::Wide => 16,
        }
    }

    /// Bytes of which the address of an element is a multiple.
    #[must_use]
    pub const fn align(self) -> usize {
        match self {
            DType::F32 => align_of::<f32>(),
            DType::F64 => align_of::<f64>(),
            DType::I32 => align_of::<i32>(),
            #[cfg(test)]
            DType::Wide => align_of::<f64>(),
        }
    }

    /// Whether `T` has the size and the alignment of an element of this type.
    pub(crate) const fn describes<T>(self) -> bool {
        size_of::<T>() == self.size() && align_of::<T>() == self.align()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I32 => "i32",
            #[cfg(test)]
            DType::Wide => "wide",
        })
    }
}

/// Kernels know these types alone.
mod sealed {
    pub trait Sealed {}
}

/// A plain value that can lie in a matrix or a register: any bit pattern is valid.
///
/// The trait is sealed: the elements are those of [`DType`], since kernels compute with nothing else.
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Mine(f64);
/// unsafe impl lapidary_core::Element for Mine {
///     const DTYPE: lapidary_core::DType = lapidary_core::DType::F64;
/// }
/// ```
///
/// # Safety
/// `DTYPE` must describe the type: same size, same alignment, and every bit pattern a value.
/// Views check size and alignment at compile time.
pub unsafe trait Element: sealed::Sealed + Copy + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The type as data.
    const DTYPE: DType;
}

impl sealed::Sealed for i32 {}

// SAFETY: sizes and alignments agree, and integers take every bit pattern.
unsafe impl Element for i32 {
    const DTYPE: DType = DType::I32;
}

/// A number that the routines compute with.
///
/// Algorithms use nothing but this trait, so that a complex type can join them:
/// magnitudes are of type [`Scalar::Real`], and [`Scalar::conj`] is the identity
/// only for real types. The trait is sealed, as [`Element`] is.
pub trait Scalar:
    Element
    + fmt::Display
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + std::iter::Sum
    + Into<Value>
{
    /// The type of magnitudes and norms.
    type Real: Scalar<Real = Self::Real> + PartialOrd;

    /// The additive identity.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;
    /// Unit roundoff `u`: half the distance from one to the next number.
    const UNIT_ROUNDOFF: f64;
    /// The smallest positive normal magnitude.
    const MIN_POSITIVE: f64;

    /// Complex conjugate.
    #[must_use]
    fn conj(self) -> Self;
    /// Magnitude; NaN for NaN.
    fn abs(self) -> Self::Real;
    /// Real part in double precision, exact for `f32` and `f64`.
    fn to_f64(self) -> f64;
    /// The nearest value to a double precision number.
    fn from_f64(value: f64) -> Self;
    /// `self · a + b` with one rounding.
    #[must_use]
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Whether the value is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// The number, if it is of this type.
    fn from_value(value: Value) -> Option<Self>;
}

macro_rules! real {
    ($($t:ty = $dtype:ident),+) => {$(
        impl sealed::Sealed for $t {}

        // SAFETY: sizes and alignments agree, and every bit pattern is a float.
        unsafe impl Element for $t {
            const DTYPE: DType = DType::$dtype;
        }

        impl Scalar for $t {
            type Real = $t;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const UNIT_ROUNDOFF: f64 = <$t>::EPSILON as f64 / 2.0;
            const MIN_POSITIVE: f64 = <$t>::MIN_POSITIVE as f64;

            #[inline]
            fn conj(self) -> Self {
                self
            }
            #[inline]
            fn abs(self) -> Self {
                <$t>::abs(self)
            }
            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "rounding to the nearest is meant")]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline]
            fn mul_add(self, a: Self, b: Self) -> Self {
                <$t>::mul_add(self, a, b)
            }
            #[inline]
            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
            #[inline]
            fn from_value(value: Value) -> Option<Self> {
                if let Value::$dtype(number) = value { Some(number) } else { None }
            }
        }
    )+};
}

real!(f32 = F32, f64 = F64);

#[cfg(test)]
mod tests {
    use super::DType;

    #[test]
    fn a_type_is_described_by_size_and_alignment() {
        assert!(DType::F64.describes::<f64>() && DType::F32.describes::<f32>() && DType::I32.describes::<i32>());
        // `[u8; 8]` has the size of an f64 and the alignment of a byte, as a packed f64 has
        assert!(!DType::F64.describes::<[u8; 8]>() && !DType::F64.describes::<f32>());
    }
}
