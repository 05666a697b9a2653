//! Tests of `Machine::prepare_gesv`.
//!
//! On a computer without an OpenCL driver, the tests print a message and pass. If the environment variable `LAPIDARY_REQUIRE_OPENCL` is set, they
//! fail instead. `cargo xtask test` sets the variable.
#![cfg(feature = "opencl")]

use lapidary::{Backend, Machine, MatMut, Select, Settings};

/// Opens the first OpenCL device with an empty cache of programs in `folder`.
fn open(folder: &std::path::Path) -> Option<Machine> {
    match Machine::with_settings(&Select::of(Backend::OpenCl, 0), &Settings::default().cache_dir(folder.to_path_buf())) {
        Ok(machine) => Some(machine),
        Err(error) => {
            assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "{error}");
            eprintln!("not run: {error}");
            None
        }
    }
}

/// After the kernels have been prepared, neither the factorisation nor the solve requests another program.
#[test]
fn a_prepared_solve_compiles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(machine) = open(folder.path()) else { return };
    let n = 300;
    machine.prepare_gesv::<f64>(n).unwrap();
    let prepared = machine.cache_counts();
    assert!(prepared.misses > 0, "{prepared:?}");
    // column j has the maximum of its elements in row n−1−j, so that rows are exchanged
    let mut a: Vec<f64> = (0..n * n).map(|at| if at / n + at % n == n - 1 { 9.0 } else { (at % 7) as f64 }).collect();
    let mut x = vec![1.0; n];
    let lu = machine.gesv(MatMut::col_major(&mut a, n, n).unwrap(), MatMut::col_major(&mut x, n, 1).unwrap()).unwrap();
    drop(lu);
    assert_eq!(machine.cache_counts(), prepared);
}

/// A matrix without elements and a machine whose devices compile nothing need no preparation.
#[test]
fn nothing_to_prepare_is_no_error() {
    let machine = Machine::open(&Select::of(Backend::Cpu, 0)).unwrap();
    machine.prepare_gesv::<f64>(0).unwrap();
    machine.prepare_gesv::<f32>(2000).unwrap();
}
