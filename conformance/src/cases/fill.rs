//! The kinds of numbers in operands.

use std::fmt;

use lapidary_core::Scalar;

use super::Rng;
use crate::bounds::eta;
use crate::oracle::Dense;

/// The kind of numbers that fill an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Uniform numbers in [−1, 1).
    Uniform,
    /// Uniform numbers in [0, 1). The sum of such numbers grows with each term, and so does its rounding error.
    Positive,
    /// Integers from −8 to 8. Products and sums of such integers are exact.
    Integers,
    /// Numbers with magnitudes from 2^-20 to 2^20.
    Graded,
    /// Numbers with magnitudes from 2^-400 to 2^400 (`f64`) or 2^-49 to 2^49 (`f32`): two fifths of the range of exponents. In a
    /// product, the second matrix has uniform numbers in [−1, 1).
    Wide,
    /// Numbers with magnitudes up to four times the smallest normal number. Many of these numbers are subnormal.
    Tiny,
    /// Numbers from η to 2^72·η, of which about a third (`f32`) or 70 % (`f64`) are subnormal. The larger results of a product must
    /// be right even if a device treats subnormal numbers as zero.
    Rising,
    /// Numbers near the square root of the largest number of the type, so that a product of two such numbers is near overflow.
    Huge,
    /// Uniform numbers with many zeros and a few NaN and ∞.
    NonFinite,
    /// Zeros of either sign, for one matrix of a product whose other matrix is infinite.
    Zeros,
    /// Infinities of either sign, for one matrix of a product whose other matrix is zero.
    Infinities,
    /// All elements are NaN.
    Poison,
    /// NaN of either sign, with random payloads.
    Payloads,
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fill::Uniform => "uniform",
            Fill::Positive => "positive",
            Fill::Integers => "integers",
            Fill::Graded => "graded",
            Fill::Wide => "wide",
            Fill::Tiny => "tiny",
            Fill::Rising => "rising",
            Fill::Huge => "huge",
            Fill::NonFinite => "non-finite",
            Fill::Zeros => "zeros",
            Fill::Infinities => "infinities",
            Fill::Poison => "poison",
            Fill::Payloads => "payloads",
        })
    }
}

impl Fill {
    /// All kinds of numbers.
    pub const ALL: [Fill; 13] = [
        Fill::Uniform,
        Fill::Positive,
        Fill::Integers,
        Fill::Graded,
        Fill::Wide,
        Fill::Tiny,
        Fill::Rising,
        Fill::Huge,
        Fill::NonFinite,
        Fill::Zeros,
        Fill::Infinities,
        Fill::Poison,
        Fill::Payloads,
    ];

    /// Draws a matrix of numbers of this kind, each rounded to the type `T`.
    #[must_use]
    pub fn matrix<T: Scalar>(self, rows: usize, cols: usize, rng: &mut Rng) -> Dense {
        let rare = 2 * rows.max(cols);
        Dense::from_fn(rows, cols, |_, _| T::from_f64(self.element::<T>(rng, rare)).to_f64())
    }

    fn element<T: Scalar>(self, rng: &mut Rng, rare: usize) -> f64 {
        match self {
            Fill::Uniform => rng.uniform(),
            Fill::Positive => rng.uniform().abs(),
            Fill::Integers => rng.integer(8),
            Fill::Graded => rng.uniform() * (20.0 * rng.uniform()).exp2(),
            Fill::Wide => rng.uniform() * (-0.39 * T::MIN_POSITIVE.log2() * rng.uniform()).exp2(),
            Fill::Tiny => rng.uniform() * T::MIN_POSITIVE * 4.0,
            Fill::Rising => rng.sign() * eta::<T>() * (36.0 + 36.0 * rng.uniform()).exp2(),
            Fill::Huge => rng.uniform() * huge::<T>(),
            Fill::NonFinite if rng.once_in(rare) => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][rng.below(3)],
            Fill::NonFinite if rng.once_in(4) => 0.0,
            Fill::NonFinite => rng.uniform(),
            Fill::Zeros => 0.0 * rng.sign(),
            Fill::Infinities => f64::INFINITY * rng.sign(),
            Fill::Poison => f64::NAN,
            Fill::Payloads => payload(rng),
        }
    }

    /// Whether products of such numbers may be subnormal, so that the bounds on norms do not apply.
    #[must_use]
    pub fn is_tiny(self) -> bool {
        matches!(self, Fill::Tiny | Fill::Rising)
    }

    /// The kind of numbers for the second matrix of a product whose first matrix has numbers of this kind. The product then stays
    /// in the range of the type.
    #[must_use]
    pub fn partner(self) -> Fill {
        match self {
            Fill::Wide | Fill::Tiny | Fill::Rising => Fill::Uniform,
            Fill::Zeros => Fill::Infinities,
            Fill::Uniform | Fill::Positive | Fill::Integers | Fill::Graded | Fill::Huge => self,
            Fill::Infinities => Fill::Zeros,
            Fill::NonFinite | Fill::Poison | Fill::Payloads => self,
        }
    }
}

/// A power of two near the square root of the largest number of the type. The square of this power, times 2^14, is finite.
fn huge<T: Scalar>() -> f64 {
    (1.0 / T::MIN_POSITIVE).sqrt() / 256.0
}

/// A quiet NaN with a random sign and payload. The payload lies in the bits that a conversion from `f64` to `f32` keeps.
fn payload(rng: &mut Rng) -> f64 {
    const KEPT: u64 = 0x8007_ffff_e000_0000;
    f64::from_bits(f64::NAN.to_bits() | (rng.bits() & KEPT))
}

/// The canary: a NaN with a payload, which fills the elements that no routine may use. If a routine reads a canary, NaN appears in
/// the result. If a routine overwrites a canary, the bits of the element change.
#[must_use]
pub fn canary<T: Scalar>() -> T {
    // the payload lies in the bits that a conversion from `f64` to `f32` keeps
    T::from_f64(f64::from_bits(0x7ffc_abcd_e000_0000))
}
