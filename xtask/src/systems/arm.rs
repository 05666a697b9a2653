//! Tests on 64-bit Arm Linux in the emulator QEMU.
//!
//! The emulator comes from a Debian 13 that is installed in a folder, since the emulator of Debian 12 hangs when a program starts
//! its first thread.

use super::{Emulator, SUITE};
use crate::Result;
use crate::cross;
use crate::debian13;
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// Debian's packages of the linker and the C library for Arm.
const PACKAGES: &[&str] = &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

/// Debian's packages that the folder contains: the emulator, and the libraries that programs load.
const EMULATOR: &str = "--include=qemu-user-static,libc6-arm64-cross,libgcc-s1-arm64-cross";

/// Path of the emulator in the folder. The emulator is linked statically, so it can run outside the folder too.
const PROGRAM: &str = "usr/bin/qemu-aarch64-static";

/// Arguments of `cargo test` for the CPU routines: with NEON vectors, with portable vectors, and with the plain loops of
/// `crate::reference`.
const VECTORS: &[&str] = &["--package", "lapidary-backend-cpu", "--lib", "--", "fast::tests", "device::tests"];

/// Builds and runs the conformance suite and the tests of vectorised routines.
pub fn check(ws: &Workspace) -> Result<String> {
    if let Err(missing) = cross::install(PACKAGES) {
        return Ok(format!("not run: {missing}"));
    }
    let root = ws.target("debian13");
    if !debian13::fill(&root, EMULATOR, PROGRAM) {
        return Ok(format!("not run: `debootstrap` could not fill {} as root", root.display()));
    }
    // The emulator loads the libraries of programs from the folder that the variable names.
    let env = [("QEMU_LD_PREFIX", root.join("usr/aarch64-linux-gnu"))];
    let emulator = Emulator { target: TARGET, linker: LINKER, program: &root.join(PROGRAM), env: &env };
    Ok(format!("{}; vectors {}", emulator.test(ws, SUITE)?, emulator.test(ws, VECTORS)?))
}
