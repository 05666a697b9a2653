//! Installs Debian 13 in a folder, for two uses. The conformance suite runs on the drivers of Debian 13, which are newer than those
//! of Debian 12. The emulator of Debian 13 runs programs for Arm.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::packages;
use crate::test::TESTED;
use crate::workspace::Workspace;

/// Debian's packages of PoCL and rusticl (OpenCL) and lavapipe (Vulkan), with the loaders of OpenCL and Vulkan.
const DRIVERS: &str = "--include=pocl-opencl-icd,mesa-opencl-icd,mesa-vulkan-drivers,ocl-icd-libopencl1,libvulkan1,ca-certificates";

/// Shell script that runs a program in the folder `$1`. The mounts disappear when the program ends, since they are in a mount
/// namespace of their own. The drivers need `/proc`, `/sys` and `/dev`: without `/sys`, PoCL 6 aborts the process.
const IN_FOLDER: &str = r#"root=$1; shift
for name in proc sys dev; do mount --rbind /$name "$root/$name" || exit 1; done
exec chroot "$root" /usr/bin/env POCL_DEVICES=pthread RUSTICL_ENABLE=llvmpipe XDG_RUNTIME_DIR=/tmp LAPIDARY_CACHE_DIR=/tmp/cache "$@""#;

/// The backends that are tested, each with its smallest number of devices: PoCL and rusticl for OpenCL, lavapipe for wgpu.
const BACKENDS: [(&str, usize); 2] = [("opencl", 2), ("wgpu", 1)];

/// Starts a quick run of the conformance suite on each device. Returns a text that lists the devices, or the reason why no device
/// was tested.
pub fn check(ws: &Workspace) -> Result<String> {
    let root = ws.target("debian13-drivers");
    if !fill(&root, DRIVERS, "usr/lib/x86_64-linux-gnu/libpocl.so.2") {
        return Ok(format!("not run: `debootstrap` could not fill {} as root", root.display()));
    }
    ws.cargo(&[&["build"][..], TESTED, &["--bin", "lapidary"]].concat()).run()?;
    let program = ws.target("debug/lapidary");
    fs::copy(&program, root.join("usr/local/bin/lapidary")).map_err(|error| format!("{}: {error}", program.display()))?;
    let mut passed = Vec::new();
    for (backend, least) in BACKENDS {
        let devices = devices(&root, backend)?;
        if devices.len() < least {
            return Err(format!("Debian 13 has {devices:?} as devices of {backend}, {least} are expected"));
        }
        for device in devices {
            if !run_in(&root, &["lapidary", "conformance", "--quick", "--device", &device]) {
                return Err(format!("{device} of Debian 13 does not conform"));
            }
            passed.push(device);
        }
    }
    Ok(format!("{} conform", passed.join(", ")))
}

/// Installs Debian 13 in the folder `root`, unless the folder contains `file` already. Returns whether the folder contains `file`
/// afterwards.
pub fn fill(root: &Path, packages: &str, file: &str) -> bool {
    let is_filled = || root.join(file).exists();
    if !is_filled() {
        let Some(folder) = root.to_str() else { return false };
        packages::install(&["debootstrap"]);
        // If the last installation was interrupted, the folder is incomplete.
        packages::as_root("rm", &["-rf", "--one-file-system", folder]);
        println!("filling {folder}");
        packages::as_root("debootstrap", &["--variant=minbase", packages, "trixie", folder]);
    }
    is_filled()
}

fn run_in(root: &Path, program: &[&str]) -> bool {
    let Some(root) = root.to_str() else { return false };
    packages::as_root("unshare", &[&["--mount", "sh", "-c", IN_FOLDER, "sh", root][..], program].concat())
}

/// Names of the devices that a backend finds in Debian 13.
fn devices(root: &Path, backend: &str) -> Result<Vec<String>> {
    let file = format!("tmp/{backend}.json");
    if !run_in(root, &["lapidary", "devices", "--device", backend, "--json", &format!("/{file}")]) {
        return Err(format!("the {backend} devices of Debian 13 are not listed"));
    }
    let path: PathBuf = root.join(file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let list: serde_json::Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let names = list["devices"].as_array().into_iter().flatten().filter_map(|device| device["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}
