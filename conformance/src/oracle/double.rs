//! Numbers with twice the precision of `f64`, as unevaluated sums of two numbers.
//!
//! The error-free transformations are Knuth's `TwoSum`, and `TwoProduct` with a fused multiply-add. Sums of products are computed
//! by algorithm 5.3 (`Dot2`) of Ogita, Rump and Oishi, *Accurate Sum and Dot Product* (SIAM Journal on Scientific Computing 26,
//! 2005). If no product underflows, the error of a sum by `Dot2` is at most `u²·|x|ᵀ|y|` times a multiple of n², as in arithmetic
//! with 106 bits.

/// The number `hi + lo`, where the magnitude of `lo` is at most the rounding error of `hi`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Double {
    /// The leading part of the number.
    pub hi: f64,
    /// The rest of the number: the exact value minus `hi`.
    pub lo: f64,
}

/// Returns `a + b` as the rounded sum and its exact rounding error (Knuth).
#[must_use]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Returns `a · b` as the rounded product and its exact rounding error.
#[must_use]
pub fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

impl Double {
    /// Returns `self + a·b`, by one step of `Dot2`.
    #[must_use]
    pub fn add_product(self, a: f64, b: f64) -> Double {
        let (product, lost) = two_product(a, b);
        let (hi, carry) = two_sum(self.hi, product);
        Double { hi, lo: self.lo + (lost + carry) }
    }

    /// Returns `factor · self`.
    #[must_use]
    pub fn scale(self, factor: f64) -> Double {
        let (hi, lost) = two_product(factor, self.hi);
        Double { hi, lo: factor.mul_add(self.lo, lost) }
    }

    /// Returns `xᵀ·y`.
    #[must_use]
    pub fn dot(x: &[f64], y: &[f64]) -> Double {
        x.iter().zip(y).fold(Double::default(), |sum, (&x, &y)| sum.add_product(x, y))
    }

    /// The nearest `f64` to this number.
    #[must_use]
    pub fn value(self) -> f64 {
        self.hi + self.lo
    }

    /// Returns `|x − self|`. The function subtracts `hi` from `x` first, because these two numbers nearly cancel.
    #[must_use]
    pub fn distance(self, x: f64) -> f64 {
        ((x - self.hi) - self.lo).abs()
    }
}
