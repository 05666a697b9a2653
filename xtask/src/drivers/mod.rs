//! Drivers that run the backends on a machine without a GPU, and libraries to compare with.

mod opencl;
mod vulkan;

pub use opencl::watch;

use crate::Result;
use crate::packages;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Libraries of others that the conformance suite grades: OpenBLAS and netlib's.
const LIBRARIES: &[&str] = &["libopenblas0-pthread", "libblas3", "liblapack3"];

/// Installs what is missing, where the system has a package manager that we know.
pub fn install(ws: &Workspace) -> Result<String> {
    let packages = packages::install(&[opencl::PACKAGES, vulkan::PACKAGES, LIBRARIES].concat());
    Ok(format!("{packages}; {}", vulkan::swiftshader(ws)?))
}

/// A command with every driver switched on, and none missing if all are installed.
pub fn switched_on(ws: &Workspace, cargo: Invocation) -> Result<Invocation> {
    // no entry of the user's cache is used or left behind
    let cache = ws.metadata.target_directory.join("program-cache");
    vulkan::switched_on(ws, opencl::switched_on(cargo.env("LAPIDARY_CACHE_DIR", cache)))
}
