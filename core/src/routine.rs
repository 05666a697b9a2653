//! Descriptions of BLAS and LAPACK routines: names, sizes, flags and operation counts.

/// A routine of BLAS or LAPACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// A matrix product.
    Gemm,
    /// A solve with a triangular matrix.
    Trsm,
    /// An LU factorisation.
    Getrf,
    /// A solve with LU factors.
    Getrs,
    /// An LU factorisation, followed by a solve with its factors.
    Gesv,
}

/// The name and the formula of a routine, and its arguments other than matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name of the routine in BLAS or LAPACK, without the letter of the element type.
    pub name: &'static str,
    /// The formula that the routine computes.
    pub formula: &'static str,
    /// Names of the routine's sizes. C of a product, B of a triangular solve and A of a factorisation are m×n; k is the inner
    /// size of a product; n is the order of a system and nrhs its number of right-hand sides.
    pub sizes: &'static [&'static str],
    /// Names of the routine's flags.
    pub flags: &'static [&'static str],
    /// Whether the routine factors a matrix in panels, so that the caller may choose the width of a panel.
    pub has_panels: bool,
}

impl Routine {
    /// All routines.
    pub const ALL: [Routine; 5] = [Routine::Gemm, Routine::Trsm, Routine::Getrf, Routine::Getrs, Routine::Gesv];

    /// The name and the formula of this routine, and its arguments other than matrices.
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

    /// The routine with the name `name`; `None` if there is no such routine.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|routine| routine.description().name == name)
    }
}

/// Numbers of floating-point operations. LAPACK's convention is used: a multiplication and an addition are two operations.
pub mod flops {
    /// Operations of the product of an m×k matrix and a k×n matrix.
    #[must_use]
    pub fn gemm(m: usize, n: usize, k: usize) -> f64 {
        2.0 * m as f64 * n as f64 * k as f64
    }

    /// Operations of a triangular solve with a triangle of order `order` and `nrhs` right-hand sides.
    #[must_use]
    pub fn trsm(order: usize, nrhs: usize) -> f64 {
        order as f64 * order as f64 * nrhs as f64
    }

    /// Operations of the LU factorisation of an m×n matrix.
    #[must_use]
    pub fn getrf(m: usize, n: usize) -> f64 {
        let (m, n) = (m as f64, n as f64);
        let r = m.min(n);
        2.0 * m * n * r - (m + n) * r * r + 2.0 / 3.0 * r * r * r
    }

    /// Operations of a solve with LU factors of order n and `nrhs` right-hand sides.
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
        // the operation count of an LU factorisation is r²·(max(m, n) − r/3) with r = min(m, n)
        assert_eq!([flops::getrf(6, 3), flops::getrf(3, 6), flops::getrf(3, 3)], [45.0, 45.0, 18.0]);
    }
}
