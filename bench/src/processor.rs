//! The machine for the groups that measure the processor alone.

use std::error::Error;

use lapidary::{Machine, Select, Settings};

/// Opens the processor alone, or those CPU devices that `LAPIDARY_DEVICE` names. A GPU in `LAPIDARY_DEVICE` is refused, since
/// its work would be counted as the processor's.
pub fn open(settings: &Settings) -> Result<Machine, Box<dyn Error>> {
    let named = Select::from_env()?;
    let select = if named == Select::all() { "cpu".parse()? } else { named };
    let machine = Machine::with_settings(&select, settings).map_err(Select::attribute_to_env)?;
    let other = machine.devices().find(|device| !device.name.starts_with("cpu")).map(|device| device.name.clone());
    let refusal = |name| format!("LAPIDARY_DEVICE={select} names {name}: this group measures the processor, name cpu");
    other.map_or(Ok(machine), |name| Err(refusal(name).into()))
}
