//! Installs OpenCL and Vulkan drivers that run on the CPU, and BLAS libraries that the conformance suite grades.

mod opencl;
mod vulkan;

pub use opencl::watch;

use crate::Result;
use crate::packages;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Debian's packages of the BLAS libraries that the conformance suite grades: OpenBLAS, and Netlib's BLAS and LAPACK.
const LIBRARIES: &[&str] = &["libopenblas0-pthread", "libblas3", "liblapack3"];

/// Installs the packages that are missing, if the system has apt. Returns a text that states what was installed.
pub fn install(ws: &Workspace) -> Result<String> {
    let packages = packages::install(&[opencl::PACKAGES, vulkan::PACKAGES, LIBRARIES].concat());
    Ok(format!("{packages}; {}", vulkan::swiftshader(ws)?))
}

/// Adds environment variables to a command so that all drivers are found. If all packages are installed, the variables also make
/// the tests fail if a driver is missing.
pub fn with_drivers_enabled(ws: &Workspace, cargo: Invocation) -> Result<Invocation> {
    // With a cache folder of their own, the tests neither use nor change the user's cache.
    let cache = ws.metadata.target_directory.join("program-cache");
    // No file is ever written to this folder, so that the tests use no kernels that the user has tuned.
    let kernels = ws.metadata.target_directory.join("no-tuned-kernels");
    let cargo = cargo.env("LAPIDARY_CACHE_DIR", cache).env("LAPIDARY_KERNELS_DIR", kernels);
    vulkan::with_drivers_enabled(ws, opencl::with_drivers_enabled(cargo))
}
