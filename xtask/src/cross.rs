//! Chooses a compiler for other systems. If rustup has installed the standard libraries of these systems, the compiler is that of
//! the toolchain in use. Otherwise Debian's compiler is used, and builds the standard libraries from source.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::packages;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Debian's packages of the compiler, the source of the standard library, and cargo.
const COMPILER: &[&str] = &["rustc-web", "rust-web-src", "cargo-web"];

/// A cargo command that compiles for other systems, and a text that states the compiler.
///
/// # Errors
/// A package of the compiler cannot be installed. The message names the package and the reason.
pub fn cargo(ws: &Workspace, command: &str, targets: &[&str], args: &[&str]) -> Result<(Invocation, &'static str), String> {
    let named = targets.iter().flat_map(|target| ["--target", target]).collect();
    let args = [vec![command, "--locked"], named, args.to_vec()].concat();
    if rustup_gives(targets) {
        return Ok((ws.cargo(&args), "by the toolchain in use"));
    }
    install(COMPILER).map_err(|missing| format!("no `rustup target add {}`; {missing}", targets.join(" ")))?;
    let cargo = ws.cargo(&[&["-Zbuild-std=std,panic_abort"][..], &args].concat());
    // Debian's compiler has a target folder of its own, since the two compilers cannot share build outputs.
    let cargo = cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", ws.target("debian"));
    let cargo = match toolchain_linker() {
        Some(linker) => cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker),
        None => cargo,
    };
    Ok((cargo, "by Debian's compiler"))
}

/// The linker of the toolchain in use. Debian's compiler has no linker for a browser.
fn toolchain_linker() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output().ok()?;
    let libraries = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Some(libraries.with_file_name("bin").join("rust-lld")).filter(|linker| linker.exists())
}

/// Installs Debian's packages that are missing.
///
/// # Errors
/// A package cannot be installed. The message names the package and the reason.
pub fn install(wanted: &[&str]) -> Result<(), String> {
    let said = packages::install(wanted);
    if packages::are_installed(wanted) { Ok(()) } else { Err(said) }
}

fn rustup_gives(targets: &[&str]) -> bool {
    let add = Command::new("rustup").args(["target", "add"]).args(targets).stderr(Stdio::null()).status();
    add.is_ok_and(|status| status.success())
}
