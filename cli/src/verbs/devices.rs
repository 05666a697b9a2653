//! `lapidary devices`: lists the devices that can be used.

use std::path::PathBuf;

use lapidary::probe::failures;
use lapidary::{Backend, DType, DeviceFacts};
use serde_json::json;

use crate::failure::Result;
use crate::io::atomic;
use crate::memory::size;
use crate::options::{DeviceOptions, describe};
use crate::report::{out, save_json};

/// Options of `lapidary devices`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: lapidary devices --json | jq '.devices[].name'")]
pub struct Args {
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// Write the list as JSON to FILE, or to standard output if no FILE is given
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// Prints or writes the list of devices.
pub fn run(args: &Args) -> Result<()> {
    args.json.iter().try_for_each(|path| atomic::check_folder(path))?;
    let machine = args.device.open()?;
    let (selection, settings) = (args.device.selection()?, args.device.settings()?);
    let mut notes: Vec<String> = Vec::new();
    for backend in selection.backends().filter(|&backend| failures(backend, &settings).is_empty()) {
        match backend {
            Backend::OpenCl => notes.extend(lapidary::opencl::list().notes),
            Backend::Wgpu => notes.extend(lapidary::wgpu::list().notes),
            _ => {}
        }
    }
    notes.extend_from_slice(machine.notes());
    if let Some(path) = &args.json {
        return save_json(path, &json!({ "devices": describe(machine.devices()), "notes": notes }));
    }
    for device in machine.devices() {
        let precision = if device.computes(DType::F64) { "" } else { ", no double precision" };
        let features: String = device.features.iter().map(|feature| format!(", {feature}")).collect();
        out(&format!("{:10}  {:>11}  {}{precision}{features}", device.name, memory(device), device.description));
    }
    // standard error has named the damaged lines
    let damaged = settings.user_kernels().1;
    notes.iter().filter(|note| !damaged.contains(note)).for_each(|note| out(&format!("note: {note}")));
    Ok(())
}

/// Describes the memory of a device in words.
fn memory(device: &DeviceFacts) -> String {
    let untold = if device.host_memory { "host memory" } else { "not told" };
    device.memory.map_or_else(|| untold.to_owned(), size)
}
