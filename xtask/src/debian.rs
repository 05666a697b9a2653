//! Debian's Rust compiler, which makes programs for many systems from the standard library's source.

use crate::packages;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Debian's names: the compiler, the standard library's source, and cargo.
const COMPILER: &[&str] = &["rustc-web", "rust-web-src", "cargo-web"];

/// Installs the compiler and what else is needed beside it.
///
/// # Errors
/// What is missing, and why it could not be installed.
pub fn install(others: &[&str]) -> Result<(), String> {
    let wanted = [COMPILER, others].concat();
    let said = packages::install(&wanted);
    if packages::are_installed(&wanted) { Ok(()) } else { Err(said) }
}

/// A cargo command by that compiler. It is another than the one in use, so it has a target folder of its own.
pub fn cargo(ws: &Workspace, args: &[&str]) -> Invocation {
    let cargo = ws.cargo(&[&["-Zbuild-std=std,panic_abort"], args].concat());
    cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", ws.target("debian"))
}
