//! OpenCL drivers: two that run on the CPU, and an interpreter that detects memory errors.

use std::path::Path;

use crate::Result;
use crate::packages;
use crate::runner::{Invocation, on_all_processors};
use crate::test::TESTED;
use crate::workspace::Workspace;

/// Debian's packages of the OpenCL loader, of two drivers, and of the interpreter oclgrind. One of the two drivers has no double
/// precision.
pub const PACKAGES: &[&str] = &["ocl-icd-libopencl1", "pocl-opencl-icd", "mesa-opencl-icd", "oclgrind"];

/// The library of the interpreter oclgrind, which is loaded as an OpenCL driver.
const INTERPRETER: &str = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";

/// Adds environment variables to a command so that the OpenCL drivers are found.
pub fn with_drivers_enabled(cargo: Invocation) -> Invocation {
    let cargo = cargo.env("POCL_DEVICES", "pthread pthread").env("RUSTICL_ENABLE", "llvmpipe");
    if packages::are_installed(PACKAGES) { cargo.env("LAPIDARY_REQUIRE_OPENCL", "1") } else { cargo }
}

/// Runs the tests of all kernels in oclgrind, an interpreter that logs data races and reads of memory that was never written. Each test
/// runs in a process of its own with a log of its own, because oclgrind empties its log when a process opens another device.
pub fn watch(ws: &Workspace) -> Result<String> {
    if !Path::new(INTERPRETER).exists() {
        return Ok("oclgrind is not installed: not run".into());
    }
    // Three tests have matrices too large for an interpreter, and two others need more local memory than the interpreter has.
    let skipped = [
        "with_operands_copied_to_vectors",
        "with_large_inverted_blocks",
        "with_large_triangles_that_wait",
        "with_large_slices_of_matrix_units",
        "with_factors_in_two_parts",
    ];
    let skipped = skipped.map(|name| ["--skip", name]).concat();
    let tests = |options: &[&str]| ws.cargo(&[&["test"][..], TESTED, &["--test", "opencl_kernels", "--"], options].concat());
    let list = tests(&[&["--list", "--format", "terse"][..], &skipped].concat()).output()?;
    let names: Vec<&str> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    if names.is_empty() {
        return Err(format!("the list of tests is empty:\n{list}"));
    }
    let logs = on_all_processors(&names, |name| {
        let log = ws.target(&format!("oclgrind-{name}.log"));
        let _ = std::fs::remove_file(&log);
        let cargo = tests(&["--exact", name]).env("OCL_ICD_VENDORS", INTERPRETER).env("OCLGRIND_LOG", &log);
        let cargo = cargo.env("OCLGRIND_DATA_RACES", "1").env("OCLGRIND_UNINITIALIZED", "1");
        // The kernels are compiled without optimisation, since the memory checks of oclgrind do not support one of the instructions
        // that the optimiser generates.
        cargo.env("OCLGRIND_BUILD_OPTIONS", "-cl-opt-disable").env("LAPIDARY_REQUIRE_OPENCL", "1").run()?;
        std::fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))
    })?;
    let reported = |(name, log): (&&str, &String)| (!log.trim().is_empty()).then(|| format!("{name}:\n{log}"));
    let reports: Vec<String> = names.iter().zip(&logs).filter_map(reported).collect();
    if reports.is_empty() {
        Ok(format!("{} empty logs", logs.len()))
    } else {
        Err(format!("oclgrind found:\n{}", reports.join("\n")))
    }
}
