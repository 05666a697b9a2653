//! Numbers whose type is known only at run time: the scalars α and β in plans and instructions.

use std::fmt;

use crate::scalar::{DType, Scalar};

/// A number of a type that is known only at run time: α or β of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number in single precision.
    F32(f32),
    /// A number in double precision.
    F64(f64),
    /// A scalar (α or β) for matrices of type [`DType::Wide`], used in tests.
    #[cfg(test)]
    Wide(f64),
}

impl Value {
    /// The number `number`, rounded to the nearest number of type `dtype`.
    ///
    /// # Panics
    /// Panics if `dtype` is [`DType::I32`], because α and β are never integers.
    #[must_use]
    pub fn new(dtype: DType, number: f64) -> Self {
        match dtype {
            DType::F32 => f32::from_f64(number).into(),
            DType::F64 => number.into(),
            DType::I32 => panic!("no factor is an integer"),
            #[cfg(test)]
            DType::Wide => Value::Wide(number),
        }
    }

    /// The type of the number.
    #[inline]
    #[must_use]
    pub fn dtype(self) -> DType {
        match self {
            Value::F32(_) => DType::F32,
            Value::F64(_) => DType::F64,
            #[cfg(test)]
            Value::Wide(_) => DType::Wide,
        }
    }

    /// Whether the number is +0 or −0.
    #[inline]
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.equals(0.0)
    }

    /// Whether the number is 1.
    #[inline]
    #[must_use]
    pub fn is_one(self) -> bool {
        self.equals(1.0)
    }

    /// Whether the number equals `number` exactly.
    #[inline]
    #[must_use]
    pub fn equals(self, number: f64) -> bool {
        match self {
            Value::F32(x) => f64::from(x) == number,
            Value::F64(x) => x == number,
            #[cfg(test)]
            Value::Wide(x) => x == number,
        }
    }

    /// Returns the number as a value of type `T`.
    ///
    /// # Panics
    /// Panics if the number has another type than `T`.
    #[inline]
    #[must_use]
    pub fn get<T: Scalar>(self) -> T {
        T::from_value(self).unwrap_or_else(|| panic!("{self} is of type {}, not {}", self.dtype(), T::DTYPE))
    }
}

impl From<f32> for Value {
    #[inline]
    fn from(number: f32) -> Self {
        Value::F32(number)
    }
}

impl From<f64> for Value {
    #[inline]
    fn from(number: f64) -> Self {
        Value::F64(number)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::F32(x) => x.fmt(f),
            Value::F64(x) => x.fmt(f),
            #[cfg(test)]
            Value::Wide(x) => x.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_number_and_its_type() {
        for (value, dtype) in [(Value::from(0.1_f32), DType::F32), (Value::from(0.1_f64), DType::F64)] {
            assert_eq!((value.dtype(), Value::new(dtype, 0.1), value.to_string()), (dtype, value, "0.1".to_owned()));
            assert!(!value.is_zero() && !value.is_one());
            assert!(Value::new(dtype, -0.0).is_zero() && Value::new(dtype, 1.0).is_one() && !Value::new(dtype, f64::NAN).is_zero());
        }
        assert_eq!(Value::from(0.1_f32).get::<f32>(), 0.1);
        assert!(!Value::from(0.1_f32).equals(0.1), "rounded to single precision it is another number");
    }

    #[test]
    #[should_panic(expected = "0.5 is of type f32, not f64")]
    fn a_value_of_another_type_is_not_taken() {
        let _ = Value::from(0.5_f32).get::<f64>();
    }
}
