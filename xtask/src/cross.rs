//! Compilers for other systems: that of the toolchain in use where rustup gives it their standard
//! libraries, else Debian's, which makes them from source.

use std::process::{Command, Stdio};

use crate::packages;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Debian's names: the compiler, the standard library's source, and cargo.
const COMPILER: &[&str] = &["rustc-web", "rust-web-src", "cargo-web"];

/// A command of cargo for other systems, and in words whose compiler it is.
///
/// # Errors
/// What could not be installed, and why.
pub fn cargo(ws: &Workspace, command: &str, targets: &[&str], args: &[&str]) -> Result<(Invocation, &'static str), String> {
    let named = targets.iter().flat_map(|target| ["--target", target]).collect();
    let args = [vec![command, "--locked"], named, args.to_vec()].concat();
    if rustup_gives(targets) {
        return Ok((ws.cargo(&args), "by the toolchain in use"));
    }
    install(COMPILER).map_err(|missing| format!("no `rustup target add {}`; {missing}", targets.join(" ")))?;
    let cargo = ws.cargo(&[&["-Zbuild-std=std,panic_abort"][..], &args].concat());
    // another compiler, so a target folder of its own
    let cargo = cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", ws.target("debian"));
    Ok((cargo, "by Debian's compiler"))
}

/// Installs packages.
///
/// # Errors
/// Which are missing, and why.
pub fn install(wanted: &[&str]) -> Result<(), String> {
    let said = packages::install(wanted);
    if packages::are_installed(wanted) { Ok(()) } else { Err(said) }
}

fn rustup_gives(targets: &[&str]) -> bool {
    let add = Command::new("rustup").args(["target", "add"]).args(targets).stderr(Stdio::null()).status();
    add.is_ok_and(|status| status.success())
}
