//! Drivers that run the OpenCL backend on a machine without a GPU.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Result;
use crate::runner::Cargo;
use crate::workspace::Workspace;

/// Debian's names: the loader, two drivers of which one has no double precision,
/// and an interpreter that watches memory.
const PACKAGES: [&str; 4] = ["ocl-icd-libopencl1", "pocl-opencl-icd", "mesa-opencl-icd", "oclgrind"];

/// The interpreter as a driver.
const INTERPRETER: &str = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";

/// Installs what is missing, where the system has a package manager that we know.
pub fn install() -> Result<String> {
    let missing: Vec<&str> = PACKAGES.into_iter().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok("drivers are installed".into());
    }
    let names = missing.join(" ");
    if !quiet("apt-get", &["--version"]) {
        return Ok(format!("no apt-get: not installed: {names}"));
    }
    println!("installing {names}");
    let update = apt(&["update"]);
    let install = apt(&[&["install", "-y", "--no-install-recommends"][..], &missing].concat());
    if update && install {
        Ok(format!("installed {names}"))
    } else {
        Ok(format!("could not install (run as root: apt-get install {names})"))
    }
}

/// A command with every driver switched on, and none missing if all are installed.
pub fn switched_on(ws: &Workspace, cargo: Cargo) -> Cargo {
    // no entry of the user's cache is used or left behind
    let cache = ws.metadata.target_directory.join("program-cache");
    let cargo = cargo.env("LAPIDARY_CACHE_DIR", cache).env("POCL_DEVICES", "pthread pthread").env("RUSTICL_ENABLE", "llvmpipe");
    if PACKAGES.into_iter().all(is_installed) { cargo.env("LAPIDARY_REQUIRE_OPENCL", "1") } else { cargo }
}

/// Runs every kernel in the interpreter: a race, or a read of what was never
/// written, is a line in its log.
pub fn watch(ws: &Workspace) -> Result<String> {
    if !Path::new(INTERPRETER).exists() {
        return Ok("oclgrind is not installed: not run".into());
    }
    let log = ws.metadata.target_directory.join("oclgrind.log");
    let _ = std::fs::remove_file(&log);
    let cargo = ws.cargo(&["test", "--package", "lapidary-backend-opencl", "--test", "kernels"]);
    let cargo = cargo.env("OCL_ICD_VENDORS", INTERPRETER).env("OCLGRIND_DATA_RACES", "1").env("OCLGRIND_UNINITIALIZED", "1");
    // the watch over memory does not know an instruction that optimised code holds
    let cargo = cargo.env("OCLGRIND_BUILD_OPTIONS", "-cl-opt-disable").env("LAPIDARY_REQUIRE_OPENCL", "1");
    cargo.env("OCLGRIND_LOG", &log).run()?;
    let text = std::fs::read_to_string(&log).map_err(|error| format!("{log}: {error}"))?;
    if text.trim().is_empty() { Ok("an empty log".into()) } else { Err(format!("oclgrind found:\n{text}")) }
}

fn is_installed(package: &str) -> bool {
    let query = Command::new("dpkg-query").args(["-W", "-f=${Status}", package]).stderr(Stdio::null()).output();
    query.is_ok_and(|output| output.stdout.ends_with(b"ok installed"))
}

/// Runs `apt-get`, as root where we may become root.
fn apt(args: &[&str]) -> bool {
    let run = |program: &str, args: &[&str]| Command::new(program).args(args).status().is_ok_and(|status| status.success());
    let is_root = std::env::var("USER").is_ok_and(|user| user == "root") || quiet("test", &["-w", "/var/lib/dpkg"]);
    if is_root { run("apt-get", args) } else { run("sudo", &[&["-n", "apt-get"][..], args].concat()) }
}

fn quiet(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
