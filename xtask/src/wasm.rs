//! The crates that open no device, checked for a browser.

use std::process::{Command, Stdio};

use crate::Result;
use crate::packages;
use crate::workspace::Workspace;

const TARGET: &str = "wasm32-unknown-unknown";

const CRATES: [&str; 2] = ["lapidary-core", "lapidary-kernels"];

/// Debian's names: a compiler that knows the target, and the standard library's source.
const PACKAGES: &[&str] = &["rustc-web", "rust-web-src", "cargo-web"];

/// Checks the types of these crates, by the toolchain in use if rustup gives it the
/// target, else by Debian's compiler and a standard library made for the occasion.
pub fn check(ws: &Workspace) -> Result<String> {
    let args = [&["check", "--locked", "--target", TARGET][..], &CRATES.map(|name| ["--package", name]).concat()].concat();
    if rustup_gives_target() {
        return ws.cargo(&args).run().map(|()| "by the toolchain in use".into());
    }
    let packages = packages::install(PACKAGES);
    if !packages::are_installed(PACKAGES) {
        return Ok(format!("not run: no `rustup target add {TARGET}`; {packages}"));
    }
    let cargo = ws.cargo(&[&args[..], &["-Zbuild-std=std,panic_abort"]].concat());
    // another compiler, so a target folder of its own
    let target = ws.metadata.target_directory.join("wasm");
    cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", target).run()?;
    Ok("by Debian's compiler".into())
}

fn rustup_gives_target() -> bool {
    let add = Command::new("rustup").args(["target", "add", TARGET]).stderr(Stdio::null()).status();
    add.is_ok_and(|status| status.success())
}
