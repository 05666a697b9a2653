//! Checks that crates compile for other systems, without running programs there.

use crate::Result;
use crate::cross;
use crate::workspace::Workspace;

/// Compiler targets for which everything must compile. On 64-bit Arm Linux C's `char` is unsigned, Windows has DX12, and macOS has
/// Metal.
const SYSTEMS: &[&str] = &["aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "aarch64-apple-darwin"];

/// Checks that the command-line program and its dependencies compile for 64-bit Arm Linux, where C's `char` is unsigned.
pub fn arm(ws: &Workspace) -> Result<String> {
    check(ws, &SYSTEMS[..1], &["--package", "lapidary-cli", "--all-features"])
}

/// Checks that all libraries and programs compile for the three other systems.
pub fn systems(ws: &Workspace) -> Result<String> {
    check(ws, SYSTEMS, &["--workspace", "--exclude", "lapidary-xtask", "--all-features"])
}

fn check(ws: &Workspace, targets: &[&str], what: &[&str]) -> Result<String> {
    match cross::cargo(ws, "check", targets, what) {
        Ok((cargo, compiler)) => cargo.run().map(|()| compiler.into()),
        Err(missing) => Ok(format!("not run: {missing}")),
    }
}
