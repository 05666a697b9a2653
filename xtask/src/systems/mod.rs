//! Checks on other systems: types for three systems, the conformance suite on 64-bit Arm in an emulator, and the conformance suite
//! on Windows by Wine.
//!
//! If a compiler or an emulator cannot be installed, the step reports the checks that did not run.

mod arm;
mod windows;

use std::path::{Path, PathBuf};

use crate::Result;
use crate::cross;
use crate::types;
use crate::workspace::Workspace;

/// Runs the checks of all systems, one after the other. Returns a text that states for each check whether it ran.
pub fn check(ws: &Workspace) -> Result<String> {
    let types = types::systems(ws)?;
    let arm = arm::check(ws)?;
    Ok(format!("types {types}; 64-bit Arm: {arm}; Windows: {}", windows::check(ws)?))
}

/// Arguments of `cargo test` for the suite on one CPU thread. The suite runs in one process, since an emulated program cannot start
/// other programs.
const SUITE: &[&str] = &["--package", "lapidary", "--no-default-features", "--test", "suite", "--", "cpu:0::"];

/// An emulator that runs programs for another system.
struct Emulator<'a> {
    target: &'a str,
    linker: &'a str,
    program: &'a Path,
    env: &'a [(&'a str, PathBuf)],
}

impl Emulator<'_> {
    /// Builds tests for the other system and runs them in the emulator. Returns the name of the compiler and the summary line of
    /// the tests.
    fn test(&self, ws: &Workspace, tests: &[&str]) -> Result<String> {
        let (cargo, compiler) = match cross::cargo(ws, "test", &[self.target], &[&["--release"], tests].concat()) {
            Ok(found) => found,
            Err(missing) => return Ok(format!("not run: {missing}")),
        };
        let cargo = cargo.env(&self.variable("LINKER"), self.linker).env(&self.variable("RUNNER"), self.program);
        let output = self.env.iter().fold(cargo, |cargo, (name, value)| cargo.env(name, value)).tee()?;
        let closing = output.lines().rfind(|line| line.starts_with("test result: ")).ok_or("the tests have not ended")?;
        // The summary must contain a passed test, since a filter that selects no test succeeds too.
        if closing.contains(" 0 passed") { Err("no test has run".into()) } else { Ok(format!("{compiler}: {closing}")) }
    }

    /// Name of the environment variable by which cargo takes a setting of the target, for example the linker if `what` is `LINKER`.
    fn variable(&self, what: &str) -> String {
        format!("CARGO_TARGET_{}_{what}", self.target.to_uppercase().replace('-', "_"))
    }
}
