//! The integers of a library: 32 bits (LP64) or 64 bits (ILP64).

use lapidary_core::{Error, ErrorKind, Result, Routine};

/// The size of the integers of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Integers have 32 bits.
    Bits32,
    /// Integers have 64 bits.
    Bits64,
}

/// A type of integers that a library may use.
pub(super) trait Integer: Copy + TryFrom<usize> + From<i32> + Into<i64> {}

impl Integer for i32 {}
impl Integer for i64 {}

/// Calls `module::function::<T, I>(interface, arguments)`. `I` is the type of the integers in the file that has the function. If no
/// file has the function, the macro calls the function for `i32`, which returns an error.
macro_rules! by_width {
    ($routine:expr, $module:ident::$function:ident($interface:expr, $args:expr)) => {
        match $interface.width(T::DTYPE, $routine) {
            Some(Width::Bits64) => $module::$function::<T, i64>($interface, $args),
            Some(Width::Bits32) | None => $module::$function::<T, i32>($interface, $args),
        }
    };
}
pub(super) use by_width;

/// Converts an argument to an integer of the library. If the value exceeds this type, the error message names the argument.
pub(super) fn int<I: Integer>(routine: Routine, name: &str, value: usize) -> Result<I> {
    I::try_from(value).map_err(|_| {
        let bits = 8 * size_of::<I>();
        Error::new(ErrorKind::Unsupported, routine.name(), format!("{name} = {value} exceeds the library's {bits}-bit integers"))
    })
}

/// Converts row indices that count from zero to row indices of LAPACK, which count from one.
pub(super) fn from_one<I: Integer>(ipiv: &[i32]) -> Vec<I> {
    // the check of the arguments has shown that each index is a row of a matrix, so that `p + 1` does not overflow
    ipiv.iter().map(|&p| I::from(p + 1)).collect()
}

/// Converts a row index of LAPACK to one that counts from zero. An invalid index becomes −1.
pub(super) fn from_zero<I: Integer>(pivot: I) -> i32 {
    i32::try_from(pivot.into().saturating_sub(1)).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_the_integers_are_named() {
        let size = 1 << 31;
        let error = int::<i32>(Routine::Gemm, "lda", size).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("lda = 2147483648 exceeds the library's 32-bit integers"), "{error}");
        assert_eq!(int::<i32>(Routine::Gemm, "lda", size - 1).unwrap(), i32::MAX);
        assert_eq!(int::<i64>(Routine::Gemm, "lda", size).unwrap(), 1 << 31);
    }

    #[test]
    fn pivots_are_counted_from_one_there_and_from_zero_here() {
        assert_eq!(from_one::<i64>(&[0, 6]), [1, 7]);
        assert_eq!([7, 0, i64::MIN, i64::MAX].map(from_zero), [6, -1, -1, -1]);
    }
}
