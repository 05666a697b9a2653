//! The routines that are timed and planned: names, sizes, flags and operation counts.

/// A routine of BLAS or LAPACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// A product.
    Gemm,
    /// A triangular solve.
    Trsm,
    /// An LU factorisation.
    Getrf,
    /// A solve with the factors.
    Getrs,
    /// A factorisation and a solve.
    Gesv,
}

/// What a routine computes, and its arguments besides the matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name in the BLAS or LAPACK, without the letter of the type.
    pub name: &'static str,
    /// What it computes.
    pub formula: &'static str,
    /// The names of its sizes: m×n is the shape of C, B or A, k the inner size of a product, and nrhs the number of right-hand sides
    /// of a system of order n.
    pub sizes: &'static [&'static str],
    /// The names of its flags.
    pub flags: &'static [&'static str],
    /// Whether it factors a matrix in panels, whose width may be chosen.
    pub has_panels: bool,
}

impl Routine {
    /// All of them.
    pub const ALL: [Routine; 5] = [Routine::Gemm, Routine::Trsm, Routine::Getrf, Routine::Getrs, Routine::Gesv];

    /// What it computes, and its arguments.
    #[must_use]
    pub fn description(self) -> Description {
        let described = |name, formula, sizes, flags, has_panels| Description { name, formula, sizes, flags, has_panels };
        match self {
            Routine::Gemm => described("gemm", "C = op(A)·op(B)", &["m", "n", "k"], &["transa", "transb"], false),
            Routine::Trsm => described(
                "trsm",
                "op(A)·X = B or X·op(A) = B, A triangular",
                &["m", "n"],
                &["side", "uplo", "transa", "diag"],
                false,
            ),
            Routine::Getrf => described("getrf", "A = P·L·U", &["m", "n"], &[], true),
            Routine::Getrs => described("getrs", "A·X = B from the factors of A", &["n", "nrhs"], &[], false),
            Routine::Gesv => described("gesv", "A·X = B", &["n", "nrhs"], &[], true),
        }
    }

    /// The routine of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|routine| routine.description().name == name)
    }
}

/// Floating-point operations, as LAPACK counts them: a multiplication and an addition are two.
pub mod flops {
    /// A product of m×k by k×n.
    #[must_use]
    pub fn gemm(m: usize, n: usize, k: usize) -> f64 {
        2.0 * m as f64 * n as f64 * k as f64
    }

    /// A triangular solve of that order.
    #[must_use]
    pub fn trsm(order: usize, nrhs: usize) -> f64 {
        order as f64 * order as f64 * nrhs as f64
    }

    /// The LU factors of an m×n matrix.
    #[must_use]
    pub fn getrf(m: usize, n: usize) -> f64 {
        let (m, n) = (m as f64, n as f64);
        let r = m.min(n);
        2.0 * m * n * r - (m + n) * r * r + 2.0 / 3.0 * r * r * r
    }

    /// A solve with LU factors of order n.
    #[must_use]
    pub fn getrs(n: usize, nrhs: usize) -> f64 {
        2.0 * trsm(n, nrhs)
    }
}

#[cfg(test)]
mod tests {
    use super::{Routine, flops};

    #[test]
    fn names_are_told_apart() {
        assert!(Routine::ALL.iter().all(|routine| Routine::named(routine.description().name) == Some(*routine)));
        assert_eq!(Routine::named("laswp"), None);
    }

    #[test]
    fn operations_are_those_of_lapack() {
        assert_eq!(flops::gemm(2, 3, 4), 48.0);
        assert_eq!(flops::getrs(10, 3), 600.0);
        // r²·(max(m, n) − r/3)
        assert_eq!([flops::getrf(6, 3), flops::getrf(3, 6), flops::getrf(3, 3)], [45.0, 45.0, 18.0]);
    }
}
