//! Flags that several verbs share.

use clap::{Args, ValueEnum};
use lapidary::{DType, DeviceInfo, Machine, Select, Settings};
use serde_json::{Value, json};

use crate::failure::Result;

/// Which devices to use, and how much of their memory.
#[derive(Args, Debug)]
pub struct DeviceOptions {
    /// Devices: cpu, opencl, opencl:0,1, wgpu:0, cpu+opencl:0 or all [default: $LAPIDARY_DEVICE, else cpu]
    #[arg(long, value_name = "SEL")]
    device: Option<String>,
    /// Most memory to use on each device, for example 512M or 2G [default: $LAPIDARY_MEMORY_LIMIT, else all]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory_limit: Option<usize>,
}

impl DeviceOptions {
    /// Opens the devices; the flags win over the environment.
    pub fn open(&self) -> Result<Machine> {
        self.open_with(None)
    }

    /// Opens the devices with panels of `nb` columns, where that is given.
    pub fn open_with(&self, nb: Option<usize>) -> Result<Machine> {
        let mut settings = Settings::from_env()?;
        settings.nb = nb.or(settings.nb);
        self.open_in(settings, "cpu")
    }

    /// Opens every device, unless the flag or the environment names some.
    pub fn open_all(&self) -> Result<Machine> {
        self.open_in(Settings::from_env()?, "all")
    }

    fn open_in(&self, mut settings: Settings, otherwise: &str) -> Result<Machine> {
        settings.memory_limit = self.memory_limit.or(settings.memory_limit);
        let select = match (&self.device, settings.device.take()) {
            (Some(flag), _) => flag.parse()?,
            (None, Some(select)) => select,
            (None, None) => otherwise.parse::<Select>()?,
        };
        Ok(Machine::with_settings(&select, &settings)?)
    }
}

/// The element type, as a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DTypeFlag {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl From<DTypeFlag> for DType {
    fn from(flag: DTypeFlag) -> DType {
        match flag {
            DTypeFlag::F32 => DType::F32,
            DTypeFlag::F64 => DType::F64,
        }
    }
}

/// Reads a size such as `1000`, `512M` or `2GiB`; the units are powers of 1024.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: usize = number.parse().map_err(|_| "a size is a number with an optional K, M, G or T".to_owned())?;
    let factor = match unit.trim().to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return Err(format!("unit {unit:?} is unknown (K, M, G or T)")),
    };
    number.checked_mul(factor).ok_or_else(|| "the size is too large".to_owned())
}

/// The devices of a machine, in words.
pub fn names(machine: &Machine) -> String {
    let name = |d: &DeviceInfo| format!("{} ({})", d.name, d.description);
    machine.devices().map(name).collect::<Vec<_>>().join(" + ")
}

/// The devices of a machine, as data.
pub fn describe(machine: &Machine) -> Value {
    machine.devices().map(|d| json!({ "name": d.name, "description": d.description, "memory_bytes": d.memory })).collect()
}

/// What decides how many threads compute, as data.
pub fn threads() -> Value {
    let mut threads = serde_json::Map::new();
    let hardware = std::thread::available_parallelism().map(usize::from).ok();
    threads.insert("hardware_threads".to_owned(), json!(hardware));
    for name in ["LAPIDARY_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        if let Ok(value) = std::env::var(name) {
            threads.insert(name.to_owned(), json!(value));
        }
    }
    Value::Object(threads)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_have_units() {
        let parsed = ["7", "1K", "512M", "2GiB", "1tb"].map(|text| parse_bytes(text).unwrap());
        assert_eq!(parsed, [7, 1 << 10, 512 << 20, 2 << 30, 1 << 40]);
        assert!(["", "G", "1X", "-1", "99999999T"].iter().all(|text| parse_bytes(text).is_err()));
    }
}
