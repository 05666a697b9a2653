//! Runs the conformance suite as tests, one test for each property, such as `cpu:0::f64::gemm::nan_propagates`.
//!
//! On the CPU, the suite runs in place (on one thread, on all threads, on several devices), within a memory limit, and on the plain
//! loops that define every instruction. The suite also runs on the first device of every OpenCL platform and on each wgpu adapter.
//! If there is no OpenCL device or no wgpu adapter, a test prints a message and passes, unless `LAPIDARY_REQUIRE_OPENCL` or
//! `LAPIDARY_REQUIRE_WGPU` is set. `cargo xtask test` sets both `LAPIDARY_REQUIRE_…` variables.

#[path = "support/graded.rs"]
mod graded;
#[path = "support/settings.rs"]
mod settings;
#[path = "support/streamed.rs"]
mod streamed;

use std::process::ExitCode;

use graded::Graded;
use lapidary::{Machine, Settings};
use lapidary_conformance::{Scope, harness};
use libtest_mimic::Trial;
use settings::{limited, settings};
use streamed::Streamed;

/// A scope with many small calls. The block sizes are those of the panels and kernels of the CPU.
fn small() -> Scope {
    Scope { blocks: vec![8, 16, 32, 64], min: 0, max: 150, cases: 30, large: vec![257, 400], elements: 1 << 16, seed: 1 }
}

/// A scope with fewer small calls, for slower machines.
fn fewer() -> Scope {
    Scope { max: 110, cases: 12, large: vec![257], ..small() }
}

/// A scope with calls that are too large to be small calls, so that several devices share each call by a plan.
fn planned() -> Scope {
    Scope { blocks: vec![232, 256], min: 225, max: 270, cases: 6, large: vec![257, 400], elements: 1 << 16, seed: 2 }
}

/// A scope with few calls, which an OpenCL or wgpu device that is the CPU completes in a minute.
#[cfg(any(feature = "opencl", feature = "wgpu"))]
fn few(seed: u64) -> Scope {
    Scope { max: 110, cases: 12, large: vec![257], ..Scope::quick(seed) }
}

/// A machine that runs the plain loops of the CPU backend.
fn by_definition(settings: &Settings) -> Graded {
    Graded(format!("by definition {settings:?}"), Machine::by_definition(settings).unwrap())
}

fn selected(select: &'static str, scope: Scope) -> Vec<Trial> {
    harness::tests(select, move || Graded::open(select, &settings()), scope)
}

/// Tests of the routines of the first selected device in a stream.
fn in_stream(select: String, scope: Scope) -> Vec<Trial> {
    harness::tests(&format!("{select}/stream"), move || Streamed::new(Graded::open(&select, &settings())), scope)
}

/// Tests of a subject within a memory limit of 48 KiB in single precision and 96 KiB in double precision.
fn out_of_core(name: &str, open: fn(&Settings) -> Graded) -> impl Iterator<Item = Trial> {
    let within = |kib: usize, dtype: &'static str| {
        let tests = harness::tests(name, move || open(&limited(kib << 10)), fewer());
        tests.into_iter().filter(move |test| test.name().contains(dtype))
    };
    within(48, "::f32::").chain(within(96, "::f64::"))
}

fn on_the_cpu() -> impl Iterator<Item = Trial> {
    let one = selected("cpu:0", small());
    let whole = selected("cpu", planned());
    let several = selected("cpu:0,1,2", planned());
    let defined = harness::tests("definition", || by_definition(&settings()), fewer());
    let one_out_of_core = out_of_core("cpu:0/out-of-core", |settings| Graded::open("cpu:0", settings));
    let several_out_of_core = out_of_core("cpu:0,1,2/out-of-core", |settings| Graded::open("cpu:0,1,2", settings));
    let defined_out_of_core = out_of_core("definition/out-of-core", by_definition);
    one.into_iter()
        .chain(whole)
        .chain(in_stream("cpu".to_owned(), fewer()))
        .chain(several)
        .chain(defined)
        .chain(one_out_of_core)
        .chain(several_out_of_core)
        .chain(defined_out_of_core)
}

/// A test that fails if no device of a backend exists although the environment variable requires one.
#[cfg(any(feature = "opencl", feature = "wgpu"))]
fn presence(kind: &'static str, required: &'static str, found: usize, notes: Vec<String>) -> Trial {
    Trial::test(format!("{kind}::is_there"), move || match found {
        0 if std::env::var_os(required).is_some() => Err(format!("no device: {notes:?}").into()),
        0 => {
            eprintln!("not run: {notes:?}");
            Ok(())
        }
        _ => Ok(()),
    })
}

/// Tests of the first device of every platform, since each driver has its own compiler and rounding.
#[cfg(feature = "opencl")]
fn on_opencl() -> Vec<Trial> {
    let listing = lapidary::opencl::list();
    let platform = |index: usize| &listing.devices[index].platform_name;
    let is_first = |&index: &usize| (0..index).all(|before| platform(before) != platform(index));
    let tests = |index: usize| {
        let select = format!("opencl:{index}");
        let blocking = harness::tests(&select.clone(), move || Graded::open(&select, &settings()), few(11));
        blocking.into_iter().chain(in_stream(format!("opencl:{index}"), few(12)))
    };
    let mut all: Vec<Trial> = (0..listing.devices.len()).filter(is_first).flat_map(tests).collect();
    all.push(presence("opencl", "LAPIDARY_REQUIRE_OPENCL", listing.devices.len(), listing.notes));
    all
}

#[cfg(feature = "wgpu")]
fn on_wgpu() -> Vec<Trial> {
    let listing = lapidary::wgpu::list();
    let tests = |index: usize| {
        let select = format!("wgpu:{index}");
        let blocking = harness::tests(&select.clone(), move || Graded::open(&select, &settings()), few(21));
        blocking.into_iter().chain(in_stream(format!("wgpu:{index}"), few(22)))
    };
    let mut all: Vec<Trial> = (0..listing.devices.len()).flat_map(tests).collect();
    all.push(presence("wgpu", "LAPIDARY_REQUIRE_WGPU", listing.devices.len(), listing.notes));
    all
}

fn main() -> ExitCode {
    #[cfg_attr(not(any(feature = "opencl", feature = "wgpu")), allow(unused_mut, reason = "more kinds, more tests"))]
    let mut tests: Vec<Trial> = on_the_cpu().collect();
    #[cfg(feature = "opencl")]
    tests.extend(on_opencl());
    #[cfg(feature = "wgpu")]
    tests.extend(on_wgpu());
    harness::conclude(tests)
}
