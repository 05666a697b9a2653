//! The element types that the routines compute with.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use crate::value::Value;

/// An element type, as a value that exists at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// 32-bit signed integer, the type of the row indices in a pivot vector.
    I32,
    /// A type of sixteen bytes, the size of a complex number in double precision. Tests use this type for code that moves
    /// elements and does not compute with them.
    #[cfg(test)]
    Wide,
}

impl DType {
    /// Upper bound of the size in bytes of an element of any type.
    pub const LARGEST: usize = 16;

    /// Size of one element in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            DType::F32 | DType::I32 => 4,
            DType::F64 => 8,
            #[cfg(test)]
            DType::Wide => 16,
        }
    }

    /// Alignment of one element in bytes.
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

/// Seals the traits `Element` and `Scalar`, because kernels support only the types that `DType` lists.
mod sealed {
    pub trait Sealed {}
}

/// A type whose values can be elements of a matrix or a register. Every bit pattern is a valid value of the type.
///
/// The trait is sealed, because kernels support only the element types that [`DType`] lists.
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
/// The type must have the size and the alignment that `DTYPE` states, and every bit pattern must be a valid value of the type.
/// The constructors of matrix views check the size and the alignment at compile time.
pub unsafe trait Element: sealed::Sealed + Copy + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The element type, as a value.
    const DTYPE: DType;
}

impl sealed::Sealed for i32 {}

// SAFETY: `i32` has the size and the alignment of `DType::I32`, and every bit pattern is a valid integer.
unsafe impl Element for i32 {
    const DTYPE: DType = DType::I32;
}

/// A type of numbers that the routines compute with.
///
/// Algorithms use numbers only through the trait `Scalar`, so that a complex type can be added without a change of the
/// algorithms. Magnitudes have a type of their own, [`Scalar::Real`], and [`Scalar::conj`] is the identity only for real types.
/// The trait `Scalar` is sealed, as [`Element`] is.
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
    /// The real type in which magnitudes and norms are computed.
    type Real: Scalar<Real = Self::Real> + PartialOrd;

    /// The additive identity.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;
    /// Unit roundoff `u`: half the distance from 1 to the next larger number.
    const UNIT_ROUNDOFF: f64;
    /// The smallest positive normal number.
    const MIN_POSITIVE: f64;

    /// The complex conjugate of the number.
    #[must_use]
    fn conj(self) -> Self;
    /// The magnitude of the number. The magnitude of NaN is NaN.
    fn abs(self) -> Self::Real;
    /// The real part in double precision. The conversion is exact for `f32` and `f64`.
    fn to_f64(self) -> f64;
    /// The number of the type `Self` that is nearest to `value`.
    fn from_f64(value: f64) -> Self;
    /// Computes `self · a + b` with a single rounding.
    #[must_use]
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Whether the number is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// The number that `value` holds, or `None` if that number has another type than `Self`.
    fn from_value(value: Value) -> Option<Self>;
}

macro_rules! real {
    ($($t:ty = $dtype:ident),+) => {$(
        impl sealed::Sealed for $t {}

        // SAFETY: the type has the size and the alignment of its `DType`, and every bit pattern is a valid float.
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
        // `[u8; 8]` has the size of an `f64` but the alignment of a byte, like a packed `f64`
        assert!(!DType::F64.describes::<[u8; 8]>() && !DType::F64.describes::<f32>());
    }
}
