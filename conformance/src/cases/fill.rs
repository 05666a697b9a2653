//! What stands in the operands.

use std::fmt;

use lapidary_core::Scalar;

use super::Rng;
use crate::bounds::eta;
use crate::oracle::Dense;

/// The kind of numbers in an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Uniform in [−1, 1).
    Uniform,
    /// Uniform in [0, 1): sums grow, and their rounding errors with them.
    Positive,
    /// Integers up to 8 in magnitude: products and sums are exact.
    Integers,
    /// Magnitudes from 2^-20 to 2^20.
    Graded,
    /// Magnitudes over four fifths of the range of exponents (2^±400 for `f64`);
    /// the other factor is uniform.
    Wide,
    /// Around the smallest normal number, many subnormal.
    Tiny,
    /// From the smallest number to 2^72 times as much, a third subnormal: the larger ones
    /// must be right also where the others are zero.
    Rising,
    /// Near the square root of the largest number: products near overflow.
    Huge,
    /// Uniform with many zeros and a few NaN and ∞.
    NonFinite,
    /// Zeros of either sign; the other factor is infinite.
    Zeros,
    /// Infinities of either sign; the other factor is zero.
    Infinities,
    /// NaN alone.
    Poison,
    /// NaN of either sign with random payloads.
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
    /// Every kind.
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

    /// A matrix whose elements are numbers of type `T`.
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

    /// Whether results are subnormal too: norms mean nothing there.
    #[must_use]
    pub fn is_tiny(self) -> bool {
        matches!(self, Fill::Tiny | Fill::Rising)
    }

    /// The kind of numbers beside it in the second factor and in C, so that the
    /// product stays in the same range.
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

/// A power of two whose square times 2^14 is still finite.
fn huge<T: Scalar>() -> f64 {
    (1.0 / T::MIN_POSITIVE).sqrt() / 256.0
}

/// A quiet NaN whose sign and payload are random, in the bits that survive the conversion to f32.
fn payload(rng: &mut Rng) -> f64 {
    const KEPT: u64 = 0x8007_ffff_e000_0000;
    f64::from_bits(f64::NAN.to_bits() | (rng.bits() & KEPT))
}

/// A NaN with a payload: reading it shows in the result, and overwriting it in
/// its bits.
#[must_use]
pub fn canary<T: Scalar>() -> T {
    // the payload lies in the bits that survive the conversion to f32
    T::from_f64(f64::from_bits(0x7ffc_abcd_e000_0000))
}
