//! `lapidary devices`: what works here.

use serde_json::json;

use crate::failure::Result;
use crate::options::{DeviceOptions, describe};

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
    let machine = args.device.open_all()?;
    if args.json {
        println!("{:#}", json!({ "devices": describe(&machine) }));
        return Ok(());
    }
    for device in machine.devices() {
        let gib = device.memory as f64 / f64::from(1 << 30);
        println!("{:10}  {gib:7.1} GiB  {}", device.name, device.description);
    }
    Ok(())
}
