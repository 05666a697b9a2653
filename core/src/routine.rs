//! The routines of the library: names, sizes, flags and operation counts. The command line, the benchmarks, the conformance suite
//! and its calls of other libraries take them from here.

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
    /// Exchanges of rows.
    Laswp,
}

/// The library that defines a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The BLAS, which has a Fortran and a C interface (CBLAS).
    Blas,
    /// LAPACK, whose interface is that of Fortran.
    Lapack,
}

/// What a routine computes, and its arguments besides the matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The library that defines the routine.
    pub origin: Origin,
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
    pub const ALL: [Routine; 6] = [Routine::Gemm, Routine::Trsm, Routine::Getrf, Routine::Getrs, Routine::Gesv, Routine::Laswp];

    /// What it computes, and its arguments.
    #[must_use]
    pub const fn description(self) -> Description {
        const NO_FLAGS: &[&str] = &[];
        let (origin, name, formula, sizes, flags): (_, _, _, &[&str], &[&str]) = match self {
            Routine::Gemm => (Origin::Blas, "gemm", "C = op(A)·op(B)", &["m", "n", "k"], &["transa", "transb"]),
            Routine::Trsm => {
                let formula = "op(A)·X = B or X·op(A) = B, A triangular";
                (Origin::Blas, "trsm", formula, &["m", "n"], &["side", "uplo", "transa", "diag"])
            }
            Routine::Getrf => (Origin::Lapack, "getrf", "A = P·L·U", &["m", "n"], NO_FLAGS),
            Routine::Getrs => (Origin::Lapack, "getrs", "A·X = B from the factors of A", &["n", "nrhs"], NO_FLAGS),
            Routine::Gesv => (Origin::Lapack, "gesv", "A·X = B", &["n", "nrhs"], NO_FLAGS),
            Routine::Laswp => (Origin::Lapack, "laswp", "A = P·A, rows exchanged in pairs", &["m", "n"], NO_FLAGS),
        };
        Description { origin, name, formula, sizes, flags, has_panels: matches!(self, Routine::Getrf | Routine::Gesv) }
    }

    /// The name in the BLAS or LAPACK, without the letter of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// The routine of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|routine| routine.name() == name)
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
        assert!(Routine::ALL.iter().all(|routine| Routine::named(routine.name()) == Some(*routine)));
        assert_eq!(Routine::named("potrf"), None);
    }

    #[test]
    fn operations_are_those_of_lapack() {
        assert_eq!(flops::gemm(2, 3, 4), 48.0);
        assert_eq!(flops::getrs(10, 3), 600.0);
        // r²·(max(m, n) − r/3)
        assert_eq!([flops::getrf(6, 3), flops::getrf(3, 6), flops::getrf(3, 3)], [45.0, 45.0, 18.0]);
    }
}
