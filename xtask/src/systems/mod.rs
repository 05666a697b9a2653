//! Other systems: types checked for three, the suite run on 64-bit Arm in an emulator and on Windows by Wine.
//!
//! Where a compiler or an emulator cannot be installed, the step says what it left out.

mod arm;
mod windows;

use std::path::{Path, PathBuf};

use crate::Result;
use crate::cross;
use crate::types;
use crate::workspace::Workspace;

/// All systems, one after the other; the value says what ran and what did not.
pub fn check(ws: &Workspace) -> Result<String> {
    let types = types::systems(ws)?;
    let arm = arm::check(ws)?;
    Ok(format!("types {types}; 64-bit Arm: {arm}; Windows: {}", windows::check(ws)?))
}

/// Runs the suite on one processor, in one process: an emulator starts no other programs. The value is its closing line.
fn suite(ws: &Workspace, target: &str, linker: &str, emulator: &Path, env: &[(&str, PathBuf)]) -> Result<String> {
    let args = ["--release", "--package", "lapidary", "--no-default-features", "--test", "suite", "--", "cpu:0::"];
    let (cargo, compiler) = match cross::cargo(ws, "test", &[target], &args) {
        Ok(found) => found,
        Err(missing) => return Ok(format!("not run: {missing}")),
    };
    let cargo = cargo.env(&variable(target, "LINKER"), linker).env(&variable(target, "RUNNER"), emulator);
    let output = env.iter().fold(cargo, |cargo, (name, value)| cargo.env(name, value)).tee()?;
    let closing = output.lines().rfind(|line| line.starts_with("test result: ")).ok_or("the suite has not ended")?;
    Ok(format!("{compiler}: {closing}"))
}

/// The variable by which cargo is told something of a target.
fn variable(target: &str, what: &str) -> String {
    format!("CARGO_TARGET_{}_{what}", target.to_uppercase().replace('-', "_"))
}
