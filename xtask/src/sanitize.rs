//! Runs the tests of code that handles raw memory under the address sanitizer. The interpreter Miri finds more errors, but needs a
//! nightly toolchain.

use std::process::Command;

use crate::Result;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Filters that select the tests of the engine, of views, of copies between host memory and buffers, and of the CPU backend.
const TESTS: &[&str] = &["engine::", "matrix::", "staging::", "background::", "fast::", "device::", "reference::"];

/// Runs the tests. The compiler option for the sanitizer is unstable, and only the toolchain for x86-64 Linux contains the library
/// of the sanitizer.
pub fn run(ws: &Workspace) -> Result<String> {
    let target = "x86_64-unknown-linux-gnu";
    if !has_sanitizer(target) {
        return Ok(format!("not run: the toolchain has no address sanitizer for {target}"));
    }
    let args =
        ["test", "--locked", "--package", "lapidary-core", "--package", "lapidary-backend-cpu", "--lib", "--target", target, "--"];
    let cargo: Invocation = ws.cargo(&[&args[..], TESTS].concat());
    // The step has a target folder of its own, since the sanitizer needs other compiler flags. It compiles
    // at level 3, at which the instrumented tests run faster.
    let cargo =
        cargo.env("RUSTFLAGS", "-Zsanitizer=address").env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", ws.target("sanitize"));
    cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "3").run().map(|()| String::new())
}

fn has_sanitizer(target: &str) -> bool {
    let sysroot = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let folder = sysroot.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let libraries = std::fs::read_dir(folder.trim()).into_iter().flatten().flatten();
    libraries.into_iter().any(|library| library.file_name().to_string_lossy().contains("asan"))
}
