//! Vulkan: two drivers for the processor. Mesa's has double precision; SwiftShader has
//! the limits of a browser, no double precision, and takes subnormal numbers as zero.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::packages;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Debian's names: the loader, and Mesa's drivers.
pub const PACKAGES: &[&str] = &["libvulkan1", "mesa-vulkan-drivers"];

/// The package that SwiftShader comes in, as a part of a browser.
const BROWSER: &str = "chromium-common";

/// What is kept of it: the driver, and the file by which the loader finds the driver beside it.
const DRIVER: [&str; 2] = ["libvk_swiftshader.so", "vk_swiftshader_icd.json"];

/// Fetches SwiftShader into the target folder, once; the value says what happened.
pub fn swiftshader(ws: &Workspace) -> Result<String> {
    if driver(ws).exists() {
        return Ok("SwiftShader is there".into());
    }
    let kept = folder(ws);
    let scratch = kept.with_extension("unpacked");
    let failed = |error: io::Error| format!("{}: {error}", scratch.display());
    // what a run that was cut short has left
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch).map_err(failed)?;
    println!("fetching SwiftShader from {BROWSER}");
    let unpacked = packages::unpack(BROWSER, &scratch);
    let moved = if unpacked { keep(&scratch.join("usr/lib/chromium"), &kept) } else { Ok(()) };
    fs::remove_dir_all(&scratch).map_err(failed)?;
    Ok(match (unpacked, moved) {
        (true, Ok(())) => "fetched SwiftShader".into(),
        (true, Err(error)) => format!("no SwiftShader: {BROWSER} holds no driver ({error})"),
        (false, _) => format!("no SwiftShader: could not download {BROWSER} (apt-get download {BROWSER})"),
    })
}

/// A command with the drivers switched on.
pub fn switched_on(ws: &Workspace, cargo: Invocation) -> Result<Invocation> {
    let cargo = with_runtime_folder(ws, cargo)?;
    let driver = driver(ws);
    if !driver.exists() {
        return Ok(cargo);
    }
    let cargo = cargo.env("VK_ADD_DRIVER_FILES", driver);
    Ok(if packages::are_installed(PACKAGES) { cargo.env("LAPIDARY_REQUIRE_WGPU", "1") } else { cargo })
}

/// Without such a folder Mesa's driver complains of each instance.
fn with_runtime_folder(ws: &Workspace, cargo: Invocation) -> Result<Invocation> {
    if std::env::var_os("XDG_RUNTIME_DIR").is_some() {
        return Ok(cargo);
    }
    let folder = ws.metadata.target_directory.join("runtime");
    fs::create_dir_all(&folder).map_err(|error| format!("{folder}: {error}"))?;
    Ok(cargo.env("XDG_RUNTIME_DIR", folder))
}

/// Moves the driver; the file that says that it is there comes last.
fn keep(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    DRIVER.into_iter().try_for_each(|name| fs::rename(from.join(name), to.join(name)))
}

fn driver(ws: &Workspace) -> PathBuf {
    folder(ws).join(DRIVER[1])
}

fn folder(ws: &Workspace) -> PathBuf {
    ws.metadata.target_directory.join("swiftshader").into()
}
