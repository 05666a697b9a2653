//! Tests the window of `examples/window`, without a display and on one that exists in memory only.

use std::fs;

use crate::Result;
use crate::cross;
use crate::drivers;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Manifest of the example, which is a crate outside the workspace.
const MANIFEST: &str = "examples/window/Cargo.toml";
/// Debian's packages of a display in memory, and of the libraries that a program loads to open a window.
const DISPLAY: &[&str] = &["libx11-xcb1", "libxcursor1", "libxi6", "libxkbcommon-x11-0", "libxrandr2", "xauth", "xvfb"];
/// Seconds in which the example must write its picture. The GPU is a CPU here.
const PATIENCE: &str = "300";
/// A picture of an empty window has fewer bytes.
const LEAST_BYTES: u64 = 8192;

/// Checks the formatting of the example, compiles it by clippy, runs its tests, and runs the example itself on a display in memory. A warning of
/// clippy is an error. On the display, the example solves systems, writes a picture of its window to a file, and closes the window.
pub fn test(ws: &Workspace) -> Result<String> {
    let target = ws.target("window");
    let cargo = |args: &[&str]| ws.cargo(args).env("CARGO_TARGET_DIR", &target);
    ws.cargo(&["fmt", "--manifest-path", MANIFEST, "--check"]).run()?;
    // clippy takes the place of the compiler, so that the example is compiled once
    let linted = |args: &[&str]| {
        let tests = cargo(&[&["test", "--locked", "--manifest-path", MANIFEST], args].concat());
        tests.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("RUSTFLAGS", "-D warnings")
    };
    linted(&["--no-run", "--all-targets"]).run()?;
    drivers::with_drivers_enabled(ws, linted(&[]))?.run()?;
    if let Err(missing) = cross::install(DISPLAY) {
        return Ok(format!("tested without a display only: {missing}"));
    }
    let picture = ws.target("window.png");
    // a picture of an earlier run must not pass for one of this run
    if picture.exists() {
        fs::remove_file(&picture).map_err(|error| format!("{}: {error}", picture.display()))?;
    }
    let program = target.join("debug/lapidary-window");
    let display = ["--auto-servernum", "--server-args=-screen 0 1024x600x24"];
    let window = Invocation::new("timeout", &ws.root, &[&[PATIENCE, "xvfb-run"][..], &display].concat()).arg(&program);
    let window = window.arg("--devices").arg("wgpu:0").arg("--unknowns").arg("256").arg("--picture").arg(&picture);
    // a browser's SwiftShader crashes when a program opens a window on this display, so that only Mesa's driver is offered
    drivers::with_drivers_enabled(ws, window)?.env("VK_ADD_DRIVER_FILES", "").run()?;
    let bytes = fs::metadata(&picture).map_err(|error| format!("{}: {error}", picture.display()))?.len();
    if bytes < LEAST_BYTES {
        return Err(format!("{}: {bytes} bytes, of at least {LEAST_BYTES}: the window shows nothing", picture.display()));
    }
    Ok(format!("picture in {}", picture.display()))
}
