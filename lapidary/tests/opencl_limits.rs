//! Tests of the memory limit, with the first OpenCL device in double precision.
//!
//! On a computer without such a device, each test prints a message and passes. Each test fails instead if the environment variable
//! `LAPIDARY_REQUIRE_OPENCL` is set.
#![cfg(feature = "opencl")]

use std::path::PathBuf;

use lapidary::opencl::list;
use lapidary::{DType, ErrorKind, Gemm, Machine, MatMut, MatRef, Result, Select, Settings};

/// Order of the matrices.
const N: usize = 200;

/// A call of a routine on a machine.
type Call = fn(&Machine) -> Result<()>;

fn multiply(machine: &Machine) -> Result<()> {
    let (a, mut c) = (vec![1.0; N * N], vec![0.0; N * N]);
    let view = || MatRef::col_major(&a, N, N).unwrap();
    machine.gemm(Gemm::new(view(), view(), MatMut::col_major(&mut c, N, N)?))
}

fn factor(machine: &Machine) -> Result<()> {
    let mut a = vec![0.0; N * N];
    a.iter_mut().step_by(N + 1).for_each(|element| *element = 1.0);
    machine.getrf(MatMut::col_major(&mut a, N, N)?).map(drop)
}

/// A device reserves a part of its memory limit for scratch memory. The limit that an error names includes this part.
#[test]
fn the_limit_that_a_refusal_names_suffices() {
    let listing = list();
    let Some(first) = listing.devices.iter().position(|found| found.facts.computes(DType::F64)) else {
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no OpenCL device: {:?}", listing.notes);
        eprintln!("not run: {:?}", listing.notes);
        return;
    };
    let machine = |limit: usize| {
        let settings = Settings::default().cache_dir(PathBuf::new()).memory_limit(limit);
        Machine::with_settings(&Select::opencl(first), &settings).unwrap()
    };
    for call in [multiply as Call, factor] {
        let error = call(&machine(1000)).unwrap_err();
        let text = error.to_string();
        assert!(error.kind() == ErrorKind::OutOfMemory && text.contains(" is 1000 B,"), "{text}");
        let named = text.split("needs a limit of ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        call(&machine(named.parse().unwrap())).unwrap();
    }
}
