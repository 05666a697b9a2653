//! `lapidary devices`: what works here.

use lapidary::DeviceInfo;
use serde_json::json;

use crate::failure::Result;
use crate::options::{DeviceOptions, describe};
use crate::report::out;

/// Flags of the verb.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: lapidary devices --json | jq '.devices[].name'")]
pub struct Args {
    #[command(flatten)]
    device: DeviceOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists the devices.
pub fn run(args: &Args) -> Result<()> {
    let machine = args.device.open()?;
    let mut notes = [lapidary::opencl::list().notes, lapidary::wgpu::list().notes].concat();
    notes.extend_from_slice(machine.notes());
    if args.json {
        out(&format!("{:#}", json!({ "devices": describe(machine.devices()), "notes": notes })));
        return Ok(());
    }
    for device in machine.devices() {
        let precision = if device.f64 { "" } else { ", no double precision" };
        let features: String = device.features.iter().map(|feature| format!(", {feature}")).collect();
        out(&format!("{:10}  {:>11}  {}{precision}{features}", device.name, memory(device), device.description));
    }
    notes.iter().for_each(|note| out(&format!("note: {note}")));
    Ok(())
}

/// The memory of a device, in words.
fn memory(device: &DeviceInfo) -> String {
    let gib = |bytes: usize| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let untold = if device.host_memory { "host memory" } else { "not told" };
    device.memory.map_or_else(|| untold.to_owned(), gib)
}
