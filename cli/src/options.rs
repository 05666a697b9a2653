//! Flags that several verbs share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clap::{Args, ValueEnum};
use lapidary::{DType, DeviceFacts, Machine, ProgramCache, Select, Settings};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::report::note;

/// Which devices to use, and how much of their memory.
#[derive(Args, Debug)]
pub struct DeviceOptions {
    /// Devices: all, cpu, cpu:0,1, opencl:0, wgpu, wgpu:0 or cpu+opencl:0 [default: $LAPIDARY_DEVICE, else all]
    #[arg(long, value_name = "SEL")]
    device: Option<String>,
    /// Most memory to use on each device, for example 512M or 1.5G [default: $LAPIDARY_MEMORY_LIMIT, else all]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory_limit: Option<usize>,
    /// Say on standard error which devices run a call on host matrices, and why: once for each routine, type, size and choice. Small
    /// calls, which the processor runs, are left out
    #[arg(long)]
    explain: bool,
}

impl DeviceOptions {
    /// Opens the devices; the flags win over the environment.
    pub fn open(&self) -> Result<Machine> {
        self.open_with(panels(None)?)
    }

    /// Opens the devices with panels of [`panels`] columns.
    pub fn open_with(&self, nb: Option<usize>) -> Result<Machine> {
        let settings = Settings { nb, ..self.settings()? };
        let machine = Machine::with_settings(&self.selection()?, &settings).map_err(|error| self.told(error))?;
        remember_programs(&machine);
        Ok(if self.explain { explained(machine) } else { machine })
    }

    /// An error of what is selected, with who selected it.
    pub fn told(&self, error: lapidary::Error) -> lapidary::Error {
        if self.device.is_some() { error } else { Select::attribute_to_env(error) }
    }

    /// What the environment sets, and the flags.
    pub fn settings(&self) -> Result<Settings> {
        let environment = Settings::from_env()?;
        Ok(Settings { memory_limit: self.memory_limit.or(environment.memory_limit), ..environment })
    }

    /// What is selected.
    pub fn selection(&self) -> Result<Select> {
        Ok(self.device.as_deref().map_or_else(Select::from_env, str::parse)?)
    }
}

/// The machine, which says once for each kind of call which devices run it.
fn explained(machine: Machine) -> Machine {
    let told = Mutex::new(HashSet::new());
    machine.explained(move |explanation| {
        let is_new =
            told.lock().unwrap_or_else(PoisonError::into_inner).insert((explanation.call.clone(), explanation.devices.clone()));
        if is_new {
            note(&explanation.to_string());
        }
    })
}

/// The compiled programs of the first machine; others share the folder.
static PROGRAMS: OnceLock<Arc<ProgramCache>> = OnceLock::new();

/// Remembers what [`note_programs`] is to tell of.
pub fn remember_programs(machine: &Machine) {
    let _ = PROGRAMS.set(Arc::clone(machine.program_cache()));
}

/// Says why compiled programs are not kept, if they are not.
pub fn note_programs() {
    if let Some(trouble) = PROGRAMS.get().and_then(|programs| programs.trouble()) {
        note(&format!("note: compiled programs are not kept: {trouble}; set LAPIDARY_CACHE_DIR to another folder"));
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

/// Reads a size such as `1000`, `512M` or `2G`.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    Settings::parse_bytes(text).map_err(str::to_owned)
}

/// Reads a whole number.
pub fn parse_whole(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {} is needed", usize::MAX))
}

/// Reads a number that is at least one.
pub fn parse_positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "a positive number is needed".to_owned())
}

/// Columns of a panel: the flag, else the environment variable. `None` leaves the choice to the library.
pub fn panels(flag: Option<usize>) -> Result<Option<usize>> {
    Ok(flag.or(Settings::from_env()?.nb))
}

/// The devices that take part in calls in `dtype`.
pub fn computing(machine: &Machine, dtype: DType) -> impl Iterator<Item = &DeviceFacts> {
    machine.devices().filter(move |device| device.computes(dtype))
}

/// Refuses a machine on which nothing computes in `dtype`, before anything is timed; `advice` says
/// what to do about it.
pub fn check_dtype(machine: &Machine, dtype: DType, advice: &str) -> Result<()> {
    if computing(machine, dtype).next().is_some() {
        return Ok(());
    }
    let names: Vec<&str> = machine.devices().map(|device| device.name.as_str()).collect();
    Err(Failure::usage(format!("{} has no double precision; {advice}", names.join(", "))))
}

/// Devices, in words.
pub fn names<'a>(devices: impl Iterator<Item = &'a DeviceFacts>) -> String {
    let name = |d: &DeviceFacts| format!("{} ({})", d.name, d.description);
    devices.map(name).collect::<Vec<_>>().join(" + ")
}

/// Values as they print.
fn texts<V: ToString>(values: &[V]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// Devices, as data.
pub fn describe<'a>(devices: impl Iterator<Item = &'a DeviceFacts>) -> Value {
    let device = |d: &DeviceFacts| {
        json!({
            "name": d.name, "description": d.description, "memory_bytes": d.memory,
            "largest_buffer_bytes": Some(d.limits.buffer).filter(|&bytes| bytes != usize::MAX),
            "f64": d.computes(DType::F64), "features": texts(&d.features), "dtypes": texts(&d.dtypes),
            "vendor": d.identity.vendor, "driver": d.identity.driver, "compute_units": d.compute_units,
        })
    };
    devices.map(device).collect()
}

/// The number of hardware threads, and the environment variables that limit the threads of other libraries, as JSON.
pub fn threads() -> Value {
    let mut threads = serde_json::Map::new();
    let hardware = std::thread::available_parallelism().map(usize::from).ok();
    threads.insert("hardware_threads".to_owned(), json!(hardware));
    for name in ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        if let Ok(value) = std::env::var(name) {
            threads.insert(name.to_owned(), json!(value));
        }
    }
    Value::Object(threads)
}
