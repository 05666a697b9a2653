//! OpenCL drivers: two that run on the CPU, and an interpreter that detects memory errors.

use std::path::Path;

use crate::Result;
use crate::packages;
use crate::runner::Invocation;
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

/// Runs every kernel in oclgrind, an interpreter that logs data races and reads of memory that was never written.
pub fn watch(ws: &Workspace) -> Result<String> {
    if !Path::new(INTERPRETER).exists() {
        return Ok("oclgrind is not installed: not run".into());
    }
    let log = ws.metadata.target_directory.join("oclgrind.log");
    let _ = std::fs::remove_file(&log);
    // The tests run one after the other, since oclgrind supports only one program at a time.
    // One test has matrices too large for an interpreter, and another one needs more local memory than the interpreter has.
    let skipped = ["--skip", "with_operands_copied_to_vectors", "--skip", "with_large_slices_of_matrix_units"];
    let one_by_one = [&["--test", "opencl_kernels", "--", "--test-threads", "1"][..], &skipped].concat();
    let cargo = ws.cargo(&[&["test"][..], TESTED, &one_by_one[..]].concat());
    let cargo = cargo.env("OCL_ICD_VENDORS", INTERPRETER).env("OCLGRIND_DATA_RACES", "1").env("OCLGRIND_UNINITIALIZED", "1");
    // The kernels are compiled without optimisation, since the memory checks of oclgrind do not support one of the instructions
    // that the optimiser generates.
    let cargo = cargo.env("OCLGRIND_BUILD_OPTIONS", "-cl-opt-disable").env("LAPIDARY_REQUIRE_OPENCL", "1");
    cargo.env("OCLGRIND_LOG", &log).run()?;
    let text = std::fs::read_to_string(&log).map_err(|error| format!("{log}: {error}"))?;
    if text.trim().is_empty() { Ok("an empty log".into()) } else { Err(format!("oclgrind found:\n{text}")) }
}
