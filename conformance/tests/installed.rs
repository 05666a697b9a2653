//! Grades the BLAS and LAPACK libraries that are installed on this computer. Each library must have every property, except the
//! properties that `expectations.toml` names.
//!
//! If a library is not installed, the list of tests contains one ignored test for it.

use std::process::ExitCode;

use lapidary_conformance::foreign::Library;
use lapidary_conformance::{Scope, harness};
use libtest_mimic::Trial;

/// The path where Debian installs the libraries of Netlib.
const NETLIB: &str = "blas:/usr/lib/x86_64-linux-gnu/blas/libblas.so.3,/usr/lib/x86_64-linux-gnu/lapack/liblapack.so.3";

/// The path of Netlib's BLAS without LAPACK, which has no function for its version.
const NETLIB_BLAS: &str = "blas:/usr/lib/x86_64-linux-gnu/blas/libblas.so.3";

fn main() -> ExitCode {
    let names = ["blas:libopenblas.so.0", NETLIB, NETLIB_BLAS];
    harness::conclude(
        names.into_iter().flat_map(|name| ["", "#fortran"].into_iter().flat_map(move |way| tests(name, way))).collect(),
    )
}

/// The tests of a library through one of its interfaces. With `#fortran`, only the tests of gemm and trsm remain, since all other
/// routines are called through the same interface with and without `#fortran`.
fn tests(name: &str, way: &str) -> Vec<Trial> {
    let name = format!("{name}{way}");
    if let Err(error) = Library::open(&name) {
        return vec![Trial::test(format!("{name} is not installed: {error}"), || Ok(())).with_ignored_flag(true)];
    }
    let scope = Scope { large: vec![130], ..Scope::quick(7) };
    let opened = name.clone();
    let tests = harness::tests(&name, move || Library::open(&opened).expect("it was opened before"), scope);
    let differs = |test: &Trial| way.is_empty() || ["::gemm::", "::trsm::"].iter().any(|routine| test.name().contains(routine));
    tests.into_iter().filter(differs).collect()
}
