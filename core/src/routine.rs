//! The routines of the library: names, sizes, flags and operation counts. The command line, the benchmarks and the conformance
//! suite take the names, sizes, flags and operation counts of routines from this module.

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
    /// An LU factorisation, followed by a solve with the LU factors.
    Gesv,
    /// Exchanges of rows of a matrix.
    Laswp,
}

/// The library that defines a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The BLAS, which has a Fortran interface and a C interface (CBLAS).
    Blas,
    /// LAPACK, which has a Fortran interface.
    Lapack,
}

/// The name and the formula of a routine, with the names of its sizes and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The library that defines the routine.
    pub origin: Origin,
    /// Name of the routine in BLAS or LAPACK, without the letter of the element type.
    pub name: &'static str,
    /// The formula that the routine computes.
    pub formula: &'static str,
    /// Names of the routine's sizes. C of a product, B of a triangular solve, and A of a factorisation or of row exchanges are m×n
    /// matrices. The inner size of a product is k. A system of equations has the order n and nrhs right-hand sides.
    pub sizes: &'static [&'static str],
    /// Names of the routine's flags.
    pub flags: &'static [&'static str],
    /// Whether the routine factors a matrix in panels. The caller may then choose the width of a panel.
    pub has_panels: bool,
}

impl Routine {
    /// All routines.
    pub const ALL: [Routine; 6] = [Routine::Gemm, Routine::Trsm, Routine::Getrf, Routine::Getrs, Routine::Gesv, Routine::Laswp];

    /// The name and the formula of this routine, with the names of its sizes and flags.
    #[must_use]
    pub const fn description(self) -> Description {
        use Origin::{Blas, Lapack};
        let (origin, name, formula) = match self {
            Routine::Gemm => (Blas, "gemm", "C = op(A)·op(B)"),
            Routine::Trsm => (Blas, "trsm", "op(A)·X = B or X·op(A) = B, A triangular"),
            Routine::Getrf => (Lapack, "getrf", "A = P·L·U"),
            Routine::Getrs => (Lapack, "getrs", "A·X = B from the factors of A"),
            Routine::Gesv => (Lapack, "gesv", "A·X = B"),
            Routine::Laswp => (Lapack, "laswp", "A = P⁻¹·A, rows exchanged as getrf does"),
        };
        let (sizes, flags, has_panels): (&[&str], &[&str], bool) = match self {
            Routine::Gemm => (&["m", "n", "k"], &["transa", "transb"], false),
            Routine::Trsm => (&["m", "n"], &["side", "uplo", "transa", "diag", "mode"], false),
            Routine::Getrf => (&["m", "n"], &[], true),
            Routine::Getrs => (&["n", "nrhs"], &[], false),
            Routine::Gesv => (&["n", "nrhs"], &[], true),
            Routine::Laswp => (&["m", "n"], &[], false),
        };
        Description { origin, name, formula, sizes, flags, has_panels }
    }

    /// Name of the routine in BLAS or LAPACK, without the letter of the element type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// The routine with the name `name`; `None` if there is no such routine.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|routine| routine.name() == name)
    }
}

/// Numbers of floating-point operations of the routines. As in LAPACK, a multiplication and an addition count as two operations.
pub mod flops {
    /// Number of floating-point operations of the product of an m×k matrix and a k×n matrix.
    #[must_use]
    pub fn gemm(m: usize, n: usize, k: usize) -> f64 {
        2.0 * m as f64 * n as f64 * k as f64
    }

    /// Number of floating-point operations of a triangular solve with a triangle of order `order` and `nrhs` right-hand sides.
    #[must_use]
    pub fn trsm(order: usize, nrhs: usize) -> f64 {
        order as f64 * order as f64 * nrhs as f64
    }

    /// Number of floating-point operations of the LU factorisation of an m×n matrix.
    #[must_use]
    pub fn getrf(m: usize, n: usize) -> f64 {
        let (m, n) = (m as f64, n as f64);
        let r = m.min(n);
        2.0 * m * n * r - (m + n) * r * r + 2.0 / 3.0 * r * r * r
    }

    /// Number of floating-point operations of a solve with LU factors of order n and `nrhs` right-hand sides.
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
        assert!(Routine::ALL.iter().all(|routine| Routine::named(routine.name()) == Some(*routine)));
        assert_eq!(Routine::named("potrf"), None);
    }

    #[test]
    fn operations_are_those_of_lapack() {
        assert_eq!(flops::gemm(2, 3, 4), 48.0);
        assert_eq!(flops::getrs(10, 3), 600.0);
        // the operation count of an LU factorisation is r²·(max(m, n) − r/3) with r = min(m, n)
        assert_eq!([flops::getrf(6, 3), flops::getrf(3, 6), flops::getrf(3, 3)], [45.0, 45.0, 18.0]);
    }
}
