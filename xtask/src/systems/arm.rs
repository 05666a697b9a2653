//! Linux on 64-bit Arm, in an emulator of processors.
//!
//! The emulator comes from a Debian 13 in a folder: that of Debian 12 hangs at a program's first thread.

use std::path::{Path, PathBuf};

use super::{Emulator, SUITE};
use crate::Result;
use crate::cross;
use crate::packages;
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// Debian's names: linker and C library of that system, and what fills a folder with a Debian.
const PACKAGES: &[&str] = &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "debootstrap"];

/// What the folder holds: the emulator, and the libraries that programs load.
const EMULATOR: &str = "--include=qemu-user-static,libc6-arm64-cross,libgcc-s1-arm64-cross";

/// The routines with NEON's vectors, and with portable ones, beside the reference.
const VECTORS: &[&str] = &["--package", "lapidary-backend-cpu", "--lib", "--", "fast::tests"];

/// Builds the suite and the tests of vectors and runs them.
pub fn check(ws: &Workspace) -> Result<String> {
    if let Err(missing) = cross::install(PACKAGES) {
        return Ok(format!("not run: {missing}"));
    }
    let root = ws.target("debian13");
    let Some(emulator) = emulator(&root) else {
        return Ok(format!("not run: `debootstrap` could not fill {} as root", root.display()));
    };
    // where the emulator finds the libraries
    let env = [("QEMU_LD_PREFIX", root.join("usr/aarch64-linux-gnu"))];
    let emulator = Emulator { target: TARGET, linker: LINKER, program: &emulator, env: &env };
    Ok(format!("{}; vectors {}", emulator.test(ws, SUITE)?, emulator.test(ws, VECTORS)?))
}

/// The emulator, from a folder that is filled once. It is linked statically: it needs nothing of the folder to run.
fn emulator(root: &Path) -> Option<PathBuf> {
    let emulator = root.join("usr/bin/qemu-aarch64-static");
    if !emulator.exists() {
        // what a run that was cut short has left
        let folder = root.to_str()?;
        packages::as_root("rm", &["-rf", "--one-file-system", folder]);
        println!("filling {folder}");
        packages::as_root("debootstrap", &["--variant=minbase", EMULATOR, "trixie", folder]);
    }
    emulator.exists().then_some(emulator)
}
