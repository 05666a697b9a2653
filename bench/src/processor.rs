//! The machine of the benchmark groups that time the processor alone.

use std::error::Error;

use lapidary::{Machine, Select, Settings};

/// Opens the processor alone, or those CPU devices that `LAPIDARY_DEVICE` names. If the variable names a GPU, the function returns
/// an error, since the work of the GPU would count as that of the processor.
pub fn open(settings: &Settings) -> Result<Machine, Box<dyn Error>> {
    let named = Select::from_env()?;
    let select = if named == Select::all() { "cpu".parse()? } else { named };
    let machine = Machine::with_settings(&select, settings).map_err(Select::attribute_to_env)?;
    let other = machine.devices().find(|device| !device.name.starts_with("cpu")).map(|device| device.name.clone());
    let refusal = |name| format!("LAPIDARY_DEVICE={select} names {name}: this group measures the processor, name cpu");
    other.map_or(Ok(machine), |name| Err(refusal(name).into()))
}
