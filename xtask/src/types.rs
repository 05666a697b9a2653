//! Types checked for systems other than the one in use.

use crate::Result;
use crate::cross;
use crate::workspace::Workspace;

/// A browser, for the crates that open no device.
const BROWSER: &[&str] = &["wasm32-unknown-unknown"];

/// Systems on which everything compiles: `char` of C has no sign on the first, the second has DX12, the third Metal.
const SYSTEMS: &[&str] = &["aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "aarch64-apple-darwin"];

/// Checks the crates that open no device for a browser.
pub fn browser(ws: &Workspace) -> Result<String> {
    check(ws, BROWSER, &["--package", "lapidary-core", "--package", "lapidary-kernels"])
}

/// Checks the program and all that it is made of for the first of the other systems, whose C differs from ours.
pub fn arm(ws: &Workspace) -> Result<String> {
    check(ws, &SYSTEMS[..1], &["--package", "lapidary-cli", "--all-features"])
}

/// Checks every library and program for other systems.
pub fn systems(ws: &Workspace) -> Result<String> {
    check(ws, SYSTEMS, &["--workspace", "--exclude", "lapidary-xtask", "--all-features"])
}

fn check(ws: &Workspace, targets: &[&str], what: &[&str]) -> Result<String> {
    match cross::cargo(ws, "check", targets, what) {
        Ok((cargo, compiler)) => cargo.run().map(|()| compiler.into()),
        Err(missing) => Ok(format!("not run: {missing}")),
    }
}
