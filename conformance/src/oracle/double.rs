//! Numbers of twice the precision of `f64`, as unevaluated sums of two.
//!
//! The error-free transformations are Knuth's `TwoSum` and the fused form of
//! `TwoProduct`; the sum of products is algorithm 5.3 (`Dot2`) of Ogita, Rump
//! and Oishi, *Accurate Sum and Dot Product*, SIAM J. Sci. Comput. 26 (2005).
//! Its error is below `u² ·|x|ᵀ|y|` times a multiple of n², as if computed in
//! 106 bits, provided that no product underflows.

/// `hi + lo`, where `lo` is small against `hi`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Double {
    /// The leading part.
    pub hi: f64,
    /// The correction.
    pub lo: f64,
}

/// `a + b` as its rounded value and the exact rounding error (Knuth).
#[must_use]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// `a · b` as its rounded value and the exact rounding error.
#[must_use]
pub fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

impl Double {
    /// One step of `Dot2`: `self + a·b`.
    #[must_use]
    pub fn add_product(self, a: f64, b: f64) -> Double {
        let (product, lost) = two_product(a, b);
        let (hi, carry) = two_sum(self.hi, product);
        Double { hi, lo: self.lo + (lost + carry) }
    }

    /// `factor · self`.
    #[must_use]
    pub fn scale(self, factor: f64) -> Double {
        let (hi, lost) = two_product(factor, self.hi);
        Double { hi, lo: factor.mul_add(self.lo, lost) }
    }

    /// `xᵀ·y`.
    #[must_use]
    pub fn dot(x: &[f64], y: &[f64]) -> Double {
        x.iter().zip(y).fold(Double::default(), |sum, (&x, &y)| sum.add_product(x, y))
    }

    /// The nearest `f64`.
    #[must_use]
    pub fn value(self) -> f64 {
        self.hi + self.lo
    }

    /// `|x − self|`: the leading parts cancel first.
    #[must_use]
    pub fn distance(self, x: f64) -> f64 {
        ((x - self.hi) - self.lo).abs()
    }
}
