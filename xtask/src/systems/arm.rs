//! Linux on 64-bit Arm, in an emulator of processors.
//!
//! The emulator comes from a Debian 13 in a folder: that of Debian 12 hangs at a program's first thread.

use super::{Emulator, SUITE};
use crate::Result;
use crate::cross;
use crate::debian13;
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// Debian's names: linker and C library of that system.
const PACKAGES: &[&str] = &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

/// What the folder holds: the emulator, and the libraries that programs load.
const EMULATOR: &str = "--include=qemu-user-static,libc6-arm64-cross,libgcc-s1-arm64-cross";

/// The emulator in the folder. It is linked statically: it needs nothing of the folder to run.
const PROGRAM: &str = "usr/bin/qemu-aarch64-static";

/// The routines with NEON's vectors, and with portable ones, beside the reference.
const VECTORS: &[&str] = &["--package", "lapidary-backend-cpu", "--lib", "--", "fast::tests", "device::tests"];

/// Builds the suite and the tests of vectors and runs them.
pub fn check(ws: &Workspace) -> Result<String> {
    if let Err(missing) = cross::install(PACKAGES) {
        return Ok(format!("not run: {missing}"));
    }
    let root = ws.target("debian13");
    if !debian13::fill(&root, EMULATOR, PROGRAM) {
        return Ok(format!("not run: `debootstrap` could not fill {} as root", root.display()));
    }
    // where the emulator finds the libraries
    let env = [("QEMU_LD_PREFIX", root.join("usr/aarch64-linux-gnu"))];
    let emulator = Emulator { target: TARGET, linker: LINKER, program: &root.join(PROGRAM), env: &env };
    Ok(format!("{}; vectors {}", emulator.test(ws, SUITE)?, emulator.test(ws, VECTORS)?))
}
