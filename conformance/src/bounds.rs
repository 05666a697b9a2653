//! All thresholds of the suite. Each threshold is a function that names its source.
//!
//! `docs/numerics.md` contains the text of the bounds, the symbols and the literature. The bounds have the numbers of
//! `docs/numerics.md`. `u` is the unit roundoff, `ε = 2u`, and `η` is the smallest subnormal number.

use std::fmt;

use lapidary_core::Scalar;

/// A limit for a ratio that a check computes, with the number and the name of the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Number of the bound in `docs/numerics.md`.
    pub number: u32,
    /// Name of the bound.
    pub name: &'static str,
    /// The largest ratio with which a check passes.
    pub limit: f64,
}

impl Bound {
    /// Twice this bound. If two results both satisfy this bound, they differ by at most twice the bound times the mean of their
    /// scales.
    #[must_use]
    pub fn twice(self) -> Self {
        Bound { limit: 2.0 * self.limit, ..self }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3e} by docs/numerics.md, bound {} ({})", self.limit, self.number, self.name)
    }
}

/// Converts the size of a matrix to `f64`. The conversion is exact, since sizes are far below 2^53.
#[allow(clippy::cast_precision_loss, reason = "sizes stay far below 2^53")]
pub(crate) fn real(size: usize) -> f64 {
    size as f64
}

/// The distance between one and the next larger number of the type, `ε = 2u`.
#[must_use]
pub fn epsilon<T: Scalar>() -> f64 {
    2.0 * T::UNIT_ROUNDOFF
}

/// The smallest positive number of the type, which is subnormal: `η`.
#[must_use]
pub fn eta<T: Scalar>() -> f64 {
    T::MIN_POSITIVE * epsilon::<T>()
}

/// `|Ĉ − C| ≤ 2·(k+3)·u·(|α||A||B| + |β||C₀|)`, element by element.
#[must_use]
pub fn gemm_componentwise<T: Scalar>(k: usize) -> Bound {
    Bound { number: 1, name: "componentwise", limit: 2.0 * real(k + 3) * T::UNIT_ROUNDOFF }
}

/// `k·u·((k/16 + 42)·a·b + (a + b)/2)`, where a is the largest magnitude in a row of A, and b that in a column of B. Bound 15 for |α| = 1 is the
/// sum of this number and bound 1.
#[must_use]
pub fn gemm_in_norm<T: Scalar>(k: usize, [a, b]: [f64; 2]) -> f64 {
    real(k) * T::UNIT_ROUNDOFF * ((real(k) / 16.0 + 42.0) * a * b + f64::midpoint(a, b))
}

/// `|Ĉ − C| / limit ≤ 1` for the limit that bound 15 states for an element.
#[must_use]
pub fn accurate_in_norm() -> Bound {
    Bound { number: 15, name: "accurate in norm", limit: 1.0 }
}

/// Limit of the exponent with which the worst ratio of bound 1 may grow with k.
#[must_use]
pub fn gemm_growth() -> Bound {
    Bound { number: 1, name: "growth with k", limit: 1.0 }
}

/// The additional error that bound 1 allows if results are subnormal: `2·(k+3)·max(1, |α|)·smallest`.
/// [`smallest`](crate::Subject::smallest) is `η` unless the device flushes subnormal numbers to zero.
#[must_use]
pub fn underflow(k: usize, alpha: f64, smallest: f64) -> f64 {
    2.0 * real(k + 3) * alpha.abs().max(1.0) * smallest
}

/// `‖Ĉ − C‖_F ≤ 3u·(√(k+2)·|α|·‖A‖_F·‖B‖_F + 2·|β|·‖C₀‖_F)`. The ratio is the norm of the error divided by
/// [`gemm_normwise_scale`].
#[must_use]
pub fn gemm_normwise<T: Scalar>() -> Bound {
    Bound { number: 2, name: "norm-wise", limit: 3.0 * T::UNIT_ROUNDOFF }
}

/// The denominator of bound 2, computed from `product = |α|·‖A‖_F·‖B‖_F` and `old = |β|·‖C₀‖_F`.
#[must_use]
pub fn gemm_normwise_scale(k: usize, product: f64, old: f64) -> f64 {
    real(k + 2).sqrt() * product + 2.0 * old
}

/// The largest multiple of `|α||A||B| + |β||C₀|` with which Netlib's test programs pass a product.
#[must_use]
pub fn netlib_gemm<T: Scalar>() -> Bound {
    Bound { number: 3, name: "Netlib dblat3", limit: 16.0 * epsilon::<T>() }
}

/// Bound 4: the limit of the relative error of a product that tests the precision. The limit is `1e-10`, or bound 1 if bound 1 is
/// larger.
#[must_use]
pub fn precision<T: Scalar>(k: usize) -> Bound {
    let limit = gemm_componentwise::<T>(k).limit.max(1e-10);
    Bound { number: 4, name: "precision oracle", limit }
}

/// Bound 5: cases with exact integers have no rounding errors, so that the limit is zero.
#[must_use]
pub fn exact() -> Bound {
    Bound { number: 5, name: "exact integers", limit: 0.0 }
}

/// Bound 6 for the checksum of a product, element by element. The limit is that of bound 1 with one more rounding, since the result
/// C is multiplied by a vector.
#[must_use]
pub fn checksum<T: Scalar>(k: usize) -> Bound {
    Bound { number: 6, name: "checksum", limit: 2.0 * real(k + 4) * T::UNIT_ROUNDOFF }
}

/// `|op(A)·X̂ − α·B| ≤ 2·(n+3)·u·(|op(A)||X̂| + |α||B|)`, element by element.
#[must_use]
pub fn trsm_substitution<T: Scalar>(n: usize) -> Bound {
    Bound { number: 7, name: "substitution", limit: 2.0 * real(n + 3) * T::UNIT_ROUNDOFF }
}

/// `‖op(A)·X̂ − α·B‖ ≤ 10·n·u·‖A‖·‖X̂‖` for well-scaled triangular matrices.
#[must_use]
pub fn trsm_inverted<T: Scalar>(n: usize) -> Bound {
    Bound { number: 7, name: "inverted blocks", limit: 10.0 * real(n) * T::UNIT_ROUNDOFF }
}

/// `‖P·L·U − A‖₁ / (n·‖A‖₁·ε) < 30`.
#[must_use]
pub fn getrf_residual() -> Bound {
    Bound { number: 8, name: "dget01", limit: 30.0 }
}

/// `|l_ij| − 1 ≤ 4u`, which holds if each pivot is the largest candidate of its column.
#[must_use]
pub fn multiplier<T: Scalar>() -> Bound {
    Bound { number: 8, name: "multipliers", limit: 4.0 * T::UNIT_ROUNDOFF }
}

/// `‖B − A·X‖₁ / (‖A‖₁·‖X‖₁·ε) < 30`.
#[must_use]
pub fn solve_residual() -> Bound {
    Bound { number: 8, name: "dget02", limit: 30.0 }
}

/// `‖b − A·x‖_∞ ≤ √n·u·‖A‖_∞·‖x‖_∞ + γ_{n+1}·(‖A‖_∞·‖x‖_∞ + ‖b‖_∞)`. The ratio is the left side divided by the right side.
#[must_use]
pub fn refined() -> Bound {
    Bound { number: 14, name: "refined", limit: 1.0 }
}

/// `‖A·x − b‖_∞ / (ε·(‖A‖_∞·‖x‖_∞ + ‖b‖_∞)·n) < 16`.
#[must_use]
pub fn hpl() -> Bound {
    Bound { number: 9, name: "HPL", limit: 16.0 }
}
