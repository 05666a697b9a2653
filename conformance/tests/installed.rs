//! The libraries of this machine have the properties that they are not known to lack: the
//! suite asks for nothing that a careful library cannot give.
//!
//! A library that is not installed stands in the list as a test that is ignored.

use std::process::ExitCode;

use lapidary_conformance::foreign::Library;
use lapidary_conformance::{Scope, harness};
use libtest_mimic::Trial;

/// Where Debian puts netlib's libraries, beside those that it prefers.
const NETLIB: &str = "blas:/usr/lib/x86_64-linux-gnu/blas/libblas.so.3,/usr/lib/x86_64-linux-gnu/lapack/liblapack.so.3";

fn main() -> ExitCode {
    let names = [
        "blas:libopenblas.so.0".to_owned(),
        "blas:libopenblas.so.0#fortran".to_owned(),
        NETLIB.to_owned(),
        format!("{NETLIB}#fortran"),
    ];
    harness::conclude(names.iter().flat_map(|name| tests(name)).collect())
}

fn tests(name: &str) -> Vec<Trial> {
    let scope = Scope { large: vec![130], ..Scope::quick(7) };
    match Library::open(name) {
        Ok(_) => {
            let name = name.to_owned();
            harness::tests(&name.clone(), move || Library::open(&name).expect("it was opened before"), scope)
        }
        Err(error) => vec![Trial::test(format!("{name} is not installed: {error}"), || Ok(())).with_ignored_flag(true)],
    }
}
