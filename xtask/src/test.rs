//! `cargo xtask test`: the checks that must pass before a commit, and further checks on request.
//!
//! Fast steps run before slow steps. The step [`prepare`] installs the drivers on which the backends are tested.

use crate::Result;
use crate::api;
use crate::browser;
use crate::debian13;
use crate::drivers;
use crate::runner::toolchain;
use crate::sanitize;
use crate::steps::Steps;
use crate::systems;
use crate::tidy;
use crate::types;
use crate::window;
use crate::workspace::Workspace;

/// The packages whose tests run, with all features. All steps use these arguments, since cargo would build the shared crates a
/// second time for other packages with other features.
pub const TESTED: &[&str] = &["--workspace", "--exclude", "lapidary-bench", "--all-features"];

/// Manifest of the example backend, which is a crate outside the workspace.
const FOREIGN: &str = "examples/foreign-backend/Cargo.toml";

/// Names of the steps in their order.
const STEPS: [&str; 11] = ["prepare", "fmt", "tidy", "clippy", "api", "msrv", "types", "loom", "tests", "foreign", "browser"];

/// Names of the steps that run only on request, since they take long, and some install many packages.
const ON_REQUEST: [&str; 5] = ["sanitize", "window", "oclgrind", "debian13", "systems"];

/// Runs the steps of `STEPS`, or the named steps. The chore ends at the first step that fails.
pub fn run(ws: &Workspace, wanted: &[&str]) -> Result<()> {
    if let Some(unknown) = wanted.iter().find(|name| !STEPS.contains(name) && !ON_REQUEST.contains(name)) {
        return Err(format!("there is no step `{unknown}`: {}, {}", STEPS.join(", "), ON_REQUEST.join(", ")));
    }
    let mut steps = Steps::new(wanted);
    let mut results = Vec::new();
    steps.step("prepare", || prepare(ws))?;
    steps.step("fmt", || ws.cargo(&["fmt", "--all", "--check"]).run().map(|()| String::new()))?;
    steps.step("tidy", || tidy::run(ws).map(|()| String::new()))?;
    steps.step("clippy", || clippy(ws))?;
    steps.step("api", || api::check(ws))?;
    steps.step("msrv", || msrv(ws))?;
    steps.step("types", || types::arm(ws))?;
    steps.step("loom", || loom(ws))?;
    steps.step("tests", || {
        let cargo = ws.cargo(&[&["test"][..], TESTED].concat());
        results = closing_lines(&drivers::with_drivers_enabled(ws, cargo)?.tee()?);
        Ok(total(&results))
    })?;
    steps.step("foreign", || foreign(ws))?;
    steps.step("browser", || browser::test(ws))?;
    if !wanted.is_empty() {
        steps.step("sanitize", || sanitize::run(ws))?;
        steps.step("window", || window::test(ws))?;
        steps.step("oclgrind", || drivers::watch(ws))?;
        steps.step("debian13", || debian13::check(ws))?;
        steps.step("systems", || systems::check(ws))?;
    }
    steps.summary();
    results.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Downloads the crates and the drivers, so that later steps do not wait for the network.
fn prepare(ws: &Workspace) -> Result<String> {
    ws.cargo(&["fetch", "--locked"]).run()?;
    ws.cargo(&["fetch", "--locked", "--manifest-path", FOREIGN]).run()?;
    drivers::install(ws)
}

fn clippy(ws: &Workspace) -> Result<String> {
    let deny = ["-D", "warnings", "-D", "clippy::incompatible_msrv"];
    let args = [&["clippy", "--workspace", "--all-targets", "--all-features", "--"][..], &deny].concat();
    ws.cargo(&args).run()?;
    // links of doc comments to items that do not exist
    ws.cargo(&["doc", "--workspace", "--all-features", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()
        .map(|()| String::new())
}

/// Builds the workspace with the oldest supported compiler, if this compiler is installed.
fn msrv(ws: &Workspace) -> Result<String> {
    let version = ws.rust_version().ok_or("no crate states a rust-version")?;
    let Some(toolchain) = toolchain(&version) else {
        return Ok(format!(
            "Rust {version} is not installed: not built with it; clippy::incompatible_msrv checked library calls only"
        ));
    };
    ws.cargo(&[&format!("+{toolchain}"), "check", "--workspace", "--all-features"]).run()?;
    Ok(format!("built with {toolchain}"))
}

/// Tests the engine under the model checker loom. The step `loom` has a target folder of its own, since loom needs other compiler
/// flags.
fn loom(ws: &Workspace) -> Result<String> {
    if !ws.has("core/tests/loom.rs") {
        return Ok("no core/tests/loom.rs".into());
    }
    let target = ws.metadata.target_directory.join("loom");
    let args = ["test", "--package", "lapidary-core", "--test", "loom", "--release"];
    ws.cargo(&args).env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target).run()?;
    Ok(String::new())
}

/// Tests the example backend outside the workspace. The example must compile although it can use only public items, and its device
/// must pass the conformance suite.
fn foreign(ws: &Workspace) -> Result<String> {
    let target = ws.metadata.target_directory.join("foreign");
    ws.cargo(&["test", "--locked", "--manifest-path", FOREIGN]).env("CARGO_TARGET_DIR", target).run().map(|()| String::new())
}

/// The last line of each test binary's output.
fn closing_lines(output: &str) -> Vec<String> {
    output.lines().filter(|line| line.starts_with("test result: ")).map(str::to_owned).collect()
}

/// The sums of passed, failed and ignored tests over all test binaries.
fn total(lines: &[String]) -> String {
    let sum = |what: &str| lines.iter().filter_map(|line| count(line, what)).sum::<usize>();
    format!("{} passed, {} failed, {} ignored in {} binaries", sum("passed"), sum("failed"), sum("ignored"), lines.len())
}

/// The number before a word such as `passed` in the last line of a test binary's output.
fn count(line: &str, what: &str) -> Option<usize> {
    let part = line.split([';', '.']).find(|part| part.trim().ends_with(what))?;
    part.split_whitespace().find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_summed() {
        let output = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: ok. 11 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s\n";
        assert_eq!(total(&closing_lines(output)), "13 passed, 0 failed, 1 ignored in 2 binaries");
    }
}
