//! Types checked for systems other than the one in use.

use std::process::{Command, Stdio};

use crate::Result;
use crate::debian;
use crate::workspace::Workspace;

/// A browser, for the crates that open no device.
const BROWSER: &[&str] = &["wasm32-unknown-unknown"];

/// Systems on which everything compiles: `char` of C has no sign on the first, the second has DX12, the third Metal.
const SYSTEMS: &[&str] = &["aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "aarch64-apple-darwin"];

/// Checks the crates that open no device for a browser.
pub fn browser(ws: &Workspace) -> Result<String> {
    check(ws, BROWSER, &["--package", "lapidary-core", "--package", "lapidary-kernels"])
}

/// Checks every library and program for other systems.
pub fn systems(ws: &Workspace) -> Result<String> {
    check(ws, SYSTEMS, &["--workspace", "--exclude", "lapidary-xtask", "--all-features"])
}

/// By the toolchain in use if rustup gives it the targets, else by Debian's compiler.
fn check(ws: &Workspace, targets: &[&str], what: &[&str]) -> Result<String> {
    let named = targets.iter().flat_map(|target| ["--target", target]).collect();
    let args = [vec!["check", "--locked"], what.to_vec(), named].concat();
    if rustup_gives(targets) {
        return ws.cargo(&args).run().map(|()| "by the toolchain in use".into());
    }
    match debian::install(&[]) {
        Ok(()) => debian::cargo(ws, &args).run().map(|()| "by Debian's compiler".into()),
        Err(missing) => Ok(format!("not run: no `rustup target add {}`; {missing}", targets.join(" "))),
    }
}

fn rustup_gives(targets: &[&str]) -> bool {
    let add = Command::new("rustup").args(["target", "add"]).args(targets).stderr(Stdio::null()).status();
    add.is_ok_and(|status| status.success())
}
