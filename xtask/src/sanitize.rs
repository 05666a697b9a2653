//! Memory errors: tests of the parts that own raw memory, under the compiler's address sanitizer. Miri, which sees more, is
//! no part of a stable toolchain.

use std::process::Command;

use crate::Result;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Tests of the engine, of views, of copies between the caller's memory and buffers, and all of the processor's kernels.
const TESTS: &[&str] = &["engine::", "matrix::", "staging::", "background::", "fast::", "device::", "reference::"];

/// Runs them. The sanitizer's library comes with the toolchain for x86-64 Linux; the option is not stable.
pub fn run(ws: &Workspace) -> Result<String> {
    let target = "x86_64-unknown-linux-gnu";
    if !has_sanitizer(target) {
        return Ok(format!("not run: the toolchain has no address sanitizer for {target}"));
    }
    let args =
        ["test", "--locked", "--package", "lapidary-core", "--package", "lapidary-backend-cpu", "--lib", "--target", target, "--"];
    let cargo: Invocation = ws.cargo(&[&args[..], TESTS].concat());
    // other flags, so a target folder of its own
    let cargo =
        cargo.env("RUSTFLAGS", "-Zsanitizer=address").env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", ws.target("sanitize"));
    cargo.run().map(|()| String::new())
}

fn has_sanitizer(target: &str) -> bool {
    let sysroot = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let folder = sysroot.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let libraries = std::fs::read_dir(folder.trim()).into_iter().flatten().flatten();
    libraries.into_iter().any(|library| library.file_name().to_string_lossy().contains("asan"))
}
