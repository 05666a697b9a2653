//! Vulkan drivers that run on the CPU: Mesa's lavapipe and SwiftShader. Mesa's driver has double precision. SwiftShader has the
//! limits of a browser and no double precision, and it flushes subnormal numbers to zero.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::packages;
use crate::runner::Invocation;
use crate::workspace::Workspace;

/// Debian's packages of the Vulkan loader and of Mesa's drivers.
pub const PACKAGES: &[&str] = &["libvulkan1", "mesa-vulkan-drivers"];

/// Debian's package of a browser that contains SwiftShader.
const BROWSER: &str = "chromium-common";

/// The files of the browser's package that are kept: the driver, and the manifest by which the Vulkan loader finds the driver.
const DRIVER: [&str; 2] = ["libvk_swiftshader.so", "vk_swiftshader_icd.json"];

/// Downloads SwiftShader into the target folder, unless the target folder contains it already. Returns a text that states whether
/// it was downloaded.
pub fn swiftshader(ws: &Workspace) -> Result<String> {
    if driver(ws).exists() {
        return Ok("SwiftShader is there".into());
    }
    let kept = folder(ws);
    let scratch = kept.with_extension("unpacked");
    let failed = |error: io::Error| format!("{}: {error}", scratch.display());
    // If the last download was interrupted, the folder is incomplete.
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

/// Adds environment variables to a command so that the Vulkan drivers are found.
pub fn with_drivers_enabled(ws: &Workspace, cargo: Invocation) -> Result<Invocation> {
    let cargo = with_runtime_folder(ws, cargo)?;
    let driver = driver(ws);
    if !driver.exists() {
        return Ok(cargo);
    }
    let cargo = cargo.env("VK_ADD_DRIVER_FILES", driver);
    Ok(if packages::are_installed(PACKAGES) { cargo.env("LAPIDARY_REQUIRE_WGPU", "1") } else { cargo })
}

/// Sets `XDG_RUNTIME_DIR` for a command if the variable is unset. Without this variable Mesa's driver prints a warning for each
/// Vulkan instance.
fn with_runtime_folder(ws: &Workspace, cargo: Invocation) -> Result<Invocation> {
    if std::env::var_os("XDG_RUNTIME_DIR").is_some() {
        return Ok(cargo);
    }
    let folder = ws.metadata.target_directory.join("runtime");
    fs::create_dir_all(&folder).map_err(|error| format!("{folder}: {error}"))?;
    Ok(cargo.env("XDG_RUNTIME_DIR", folder))
}

/// Moves the files of the driver from one folder to another. The manifest is moved last, since its presence shows that the driver
/// is complete.
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
