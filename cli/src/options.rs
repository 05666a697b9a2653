//! Options that several commands share.

use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clap::{Args, ValueEnum};
use lapidary::{DType, DeviceFacts, ErrorKind, Machine, ProgramCache, Select, Settings};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::report::note;

/// Options that select devices and limit their memory.
#[derive(Args, Debug)]
pub struct DeviceOptions {
    /// Devices to use: all, cpu, cpu:0,1, opencl:0, wgpu, wgpu:0 or cpu+opencl:0 [default: $LAPIDARY_DEVICE, else all]
    #[arg(long, value_name = "SEL")]
    device: Option<String>,
    /// Maximum memory to use on each device, for example 512M or 1.5G [default: $LAPIDARY_MEMORY_LIMIT, else all]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory_limit: Option<usize>,
    /// Compute the same bits on any number of devices of one model, up to eight. Calls take longer [default: $LAPIDARY_REPRODUCIBLE, else off]
    #[arg(long)]
    reproducible: bool,
    /// Print to standard error which devices run a call on host matrices, and why. For a product or a solve, all named devices are printed, also
    /// a device that is too slow to get work. Each combination of routine, type, size and devices is printed once. Small calls, which the CPU runs, are not printed
    #[arg(long)]
    pub explain: bool,
}

impl DeviceOptions {
    /// Opens the selected devices as a machine. Command-line options take precedence over environment variables.
    pub fn open(&self) -> Result<Machine> {
        self.open_with(panels(None)?)
    }

    /// Opens the selected devices as a machine with panels of `nb` columns. If `nb` is `None`, the library chooses the width of the
    /// panels.
    pub fn open_with(&self, nb: Option<usize>) -> Result<Machine> {
        let machine = self.open_as(&self.settings()?.nb(nb))?;
        Ok(if self.explain { explained(machine) } else { machine })
    }

    /// Opens the selected devices as [`open_with`](Self::open_with) does. OpenCL devices record the times of their kernels.
    pub fn open_timed(&self, nb: Option<usize>) -> Result<Machine> {
        self.open_as(&self.settings()?.nb(nb).kernel_times(true))
    }

    fn open_as(&self, settings: &Settings) -> Result<Machine> {
        let machine = Machine::with_settings(&self.selection()?, settings).map_err(|error| self.attribute_selection(error))?;
        remember_programs(&machine);
        Ok(machine)
    }

    /// Adds to an error about the selection the option with its value, or the name of the environment variable, that selected the devices.
    pub fn attribute_selection(&self, error: lapidary::Error) -> lapidary::Error {
        match &self.device {
            Some(value) if matches!(error.kind(), ErrorKind::NoSuchDevice | ErrorKind::InvalidArgument) => {
                error.with("option", format!("--device {value}"))
            }
            Some(_) => error,
            None => Select::attribute_to_env(error),
        }
    }

    /// The settings from the environment variables. Options on the command line take precedence.
    pub fn settings(&self) -> Result<Settings> {
        let environment = Settings::from_env()?;
        let memory_limit = self.memory_limit.or(environment.memory_limit);
        let reproducible = self.reproducible || environment.reproducible;
        Ok(environment.memory_limit(memory_limit).reproducible(reproducible))
    }

    /// The option or the environment variable that limits the memory of devices, if one of them does.
    pub fn memory_limit_source(&self) -> Option<&'static str> {
        match self.memory_limit {
            Some(_) => Some("--memory-limit"),
            None => Settings::from_env().ok()?.memory_limit.map(|_| "LAPIDARY_MEMORY_LIMIT"),
        }
    }

    /// The selection of devices from `--device`, else from `LAPIDARY_DEVICE`.
    pub fn selection(&self) -> Result<Select> {
        let parse = |value: &str| value.parse().map_err(|error| self.attribute_selection(error));
        Ok(self.device.as_deref().map_or_else(Select::from_env, parse)?)
    }
}

/// Makes a machine print which devices run a call. The explanation is printed once for each combination of routine, type, size and
/// devices.
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

/// The program cache of the first machine that the program opened. All machines store their programs in the same folder.
static PROGRAMS: OnceLock<Arc<ProgramCache>> = OnceLock::new();

/// Stores the machine's program cache for [`note_programs`].
pub fn remember_programs(machine: &Machine) {
    let _ = PROGRAMS.set(Arc::clone(machine.program_cache()));
}

/// Prints the reason if compiled programs could not be stored on disk.
pub fn note_programs() {
    if let Some(trouble) = PROGRAMS.get().and_then(|programs| programs.trouble()) {
        note(&format!("note: compiled programs are not kept: {trouble}; set LAPIDARY_CACHE_DIR to another folder"));
    }
}

/// Names the OpenCL and wgpu devices of this computer, and the option that selects one, for the message of a command that needs such a
/// device. Another process of this program opens the devices, because a driver may crash or hang.
pub fn advise_gpu() -> String {
    let found: Vec<String> = ["opencl", "wgpu"].into_iter().flat_map(device_names).collect();
    match found.first() {
        Some(first) => format!("name one of {} with --device, such as --device {first} (see `lapidary devices`)", found.join(", ")),
        None => "this computer has no OpenCL or wgpu device (see `lapidary devices`)".to_owned(),
    }
}

/// The names of the devices of a backend. Empty if none opens.
fn device_names(backend: &str) -> Vec<String> {
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let output = Command::new(program).args(["devices", "--json", "--device", backend]).stdin(Stdio::null()).output();
    let list: Value = output.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or_default();
    let devices = list["devices"].as_array().into_iter().flatten();
    devices.filter_map(|device| Some(device["name"].as_str()?.to_owned())).collect()
}

/// The element type as a command-line option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DTypeFlag {
    /// Single precision
    F32,
    /// Double precision
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

/// Parses a number of bytes such as `1000`, `512M` or `2G`.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    Settings::parse_bytes(text).map_err(str::to_owned)
}

/// Parses the seed of random numbers.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {} is needed", u64::MAX))
}

/// Parses a whole number, which may be zero.
pub fn parse_whole(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {} is needed", usize::MAX))
}

/// Parses a whole number, which must be at least 1.
pub fn parse_positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "a whole positive number is needed".to_owned())
}

/// Number of columns of a panel: the value of the option, else that of `LAPIDARY_NB`. With `None` the library chooses the number of
/// columns.
pub fn panels(flag: Option<usize>) -> Result<Option<usize>> {
    Ok(flag.or(Settings::from_env()?.nb))
}

/// The devices of the machine that compute in `dtype`.
pub fn computing(machine: &Machine, dtype: DType) -> impl Iterator<Item = &DeviceFacts> {
    machine.devices().filter(move |device| device.computes(dtype))
}

/// Fails if no device of the machine computes in `dtype`. `advice` tells the user what to do.
pub fn check_dtype(machine: &Machine, dtype: DType, advice: &str) -> Result<()> {
    if computing(machine, dtype).next().is_some() {
        return Ok(());
    }
    let names: Vec<&str> = machine.devices().map(|device| device.name.as_str()).collect();
    Err(Failure::usage(format!("{} has no double precision; {advice}", names.join(", "))))
}

/// The names and descriptions of devices, joined to one text.
pub fn names<'a>(devices: impl Iterator<Item = &'a DeviceFacts>) -> String {
    let name = |d: &DeviceFacts| format!("{} ({})", d.name, d.description);
    devices.map(name).collect::<Vec<_>>().join(" + ")
}

/// Converts each value to text.
fn texts<V: ToString>(values: &[V]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// The properties of devices as JSON.
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

/// The number of hardware threads, and the environment variables that limit the number of threads of other libraries, as JSON.
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
