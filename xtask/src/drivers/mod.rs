//! OpenCL and Vulkan drivers that run on the CPU, and BLAS libraries to compare with.

mod opencl;
mod vulkan;

pub use opencl::watch;

use crate::Result;
use crate::packages;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Debian's packages of the BLAS libraries that the conformance suite grades: OpenBLAS, and Netlib's BLAS and LAPACK.
const LIBRARIES: &[&str] = &["libopenblas0-pthread", "libblas3", "liblapack3"];

/// Installs the missing packages if the system has apt. Returns a text that says what happened.
pub fn install(ws: &Workspace) -> Result<String> {
    let packages = packages::install(&[opencl::PACKAGES, vulkan::PACKAGES, LIBRARIES].concat());
    Ok(format!("{packages}; {}", vulkan::swiftshader(ws)?))
}

/// Adds environment variables to a command that enable all drivers. If all packages are installed, a missing driver makes the
/// tests fail.
pub fn with_drivers_enabled(ws: &Workspace, cargo: Invocation) -> Result<Invocation> {
    // The tests neither use nor leave entries in the user's cache.
    let cache = ws.metadata.target_directory.join("program-cache");
    vulkan::with_drivers_enabled(ws, opencl::with_drivers_enabled(cargo.env("LAPIDARY_CACHE_DIR", cache)))
}
