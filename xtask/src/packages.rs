//! Installs and unpacks Debian's packages with apt and dpkg.

use std::path::Path;
use std::process::{Command, Stdio};

/// Installs those of `packages` that are missing. Returns a text that states what was installed, or why the installation failed.
pub fn install(packages: &[&str]) -> String {
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return "packages are installed".into();
    }
    let names = missing.join(" ");
    if !has_apt() {
        return format!("no apt-get: not installed: {names}");
    }
    println!("installing {names}");
    if update() && as_root("apt-get", &[&["install", "-y", "--no-install-recommends"][..], &missing].concat()) {
        format!("installed {names}")
    } else {
        format!("could not install (run as root: apt-get install {names})")
    }
}

pub fn are_installed(packages: &[&str]) -> bool {
    packages.iter().all(|package| is_installed(package))
}

/// Downloads a package into a folder and unpacks it there, without installing it.
pub fn unpack(package: &str, folder: &Path) -> bool {
    let download = || succeeds(Command::new("apt-get").args(["download", package]).current_dir(folder));
    // The first download may fail because the package lists of apt are missing or outdated.
    if !has_apt() || !(download() || update() && download()) {
        return false;
    }
    let archives = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let archive = archives.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    archive.is_some_and(|archive| succeeds(Command::new("dpkg-deb").arg("-x").args([&archive, folder])))
}

fn is_installed(package: &str) -> bool {
    let query = Command::new("dpkg-query").args(["-W", "-f=${Status}", package]).stderr(Stdio::null()).output();
    query.is_ok_and(|output| output.stdout.ends_with(b"ok installed"))
}

fn has_apt() -> bool {
    quiet("apt-get", &["--version"])
}

fn update() -> bool {
    as_root("apt-get", &["update"])
}

/// Runs a program as root, if this process is root or can become root by `sudo`. Returns whether the program succeeded.
pub fn as_root(program: &str, args: &[&str]) -> bool {
    let is_root = std::env::var("USER").is_ok_and(|user| user == "root") || quiet("test", &["-w", "/var/lib/dpkg"]);
    let mut command = Command::new(if is_root { program } else { "sudo" });
    if !is_root {
        command.args(["-n", program]);
    }
    succeeds(command.args(args))
}

fn quiet(program: &str, args: &[&str]) -> bool {
    succeeds(Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()))
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
