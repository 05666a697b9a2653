//! `lapidary bench startup`: measures the stages of the first call on a device.
//!
//! Each measurement runs in a new process of this program, because later calls in the same process would use the loaded drivers and
//! the compiled kernels.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lapidary::{ProgramCache, Select, Settings};
use serde_json::{Value, json};

use super::plot::check_picture;
use super::timeline::{self, Timeline};
use crate::failure::{Failure, Result};
use crate::io::temporary::TemporaryFolder;
use crate::io::{self, atomic};
use crate::options::advise_gpu;
use crate::report::{fixed, out, save_json};
use crate::trace::Event;

/// Options of `lapidary bench startup`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// OpenCL or wgpu device to measure [default: $LAPIDARY_DEVICE, else opencl:0]
    #[arg(long, value_name = "SEL")]
    device: Option<String>,
    /// Write all figures as JSON to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the stages as bars into FILE.svg
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Measure in this process, and print the stages as JSON
    #[arg(long, hide = true)]
    here: bool,
}

impl Args {
    /// Whether this process is a first call that another process of this program times.
    pub fn is_worker(&self) -> bool {
        self.here
    }
}

/// The stages that a backend measures, each with its name and its seconds.
type Measured = Vec<(&'static str, f64)>;

/// The stages of a start, each with its name and its seconds.
type Stages = Vec<(String, f64)>;

/// Measures a start with empty caches and a start with filled caches, prints a table, and writes the requested files.
pub fn run(args: &Args) -> Result<()> {
    args.json.iter().chain(&args.plot).try_for_each(|path| atomic::check_folder(path))?;
    args.plot.iter().try_for_each(|path| check_picture(path))?;
    io::check_distinct(&[("--json", args.json.as_ref()), ("--plot", args.plot.as_ref())])?;
    let device = &device(args)?;
    let startup = startup(device, if args.device.is_some() { "--device " } else { "LAPIDARY_DEVICE=" })?;
    if args.here {
        let cache = Arc::new(Settings::from_env()?.program_cache());
        out(&json!(startup(cache)?).to_string());
        return Ok(());
    }
    let folder = TemporaryFolder::new().map_err(|error| Failure::check(format!("no folder for the caches: {error}")))?;
    // The first process starts with empty caches. The second process finds the programs that the first process has stored.
    let cold = measure(device, folder.path())?;
    let warm = measure(device, folder.path())?;
    out(&format!("first product on {device}"));
    table(&cold, &warm);
    let figures = json!({ "device": device, "unit": "seconds", "cold": object(&cold), "warm": object(&warm) });
    args.json.iter().try_for_each(|path| save_json(path, &figures))?;
    args.plot.iter().try_for_each(|path| draw(path, device, [("cold", &cold), ("warm", &warm)]))
}

/// The device from `--device`, else from `LAPIDARY_DEVICE`, else `opencl:0`. If the user gives only the name of a backend, and the
/// backend has one device, this device is measured.
fn device(args: &Args) -> Result<String> {
    let device = match &args.device {
        Some(device) => device.parse::<Select>()?.to_string(),
        None => {
            Some(Select::from_env()?).filter(|select| *select != Select::all()).map_or("opencl:0".to_owned(), |s| s.to_string())
        }
    };
    let there = match device.as_str() {
        "opencl" => lapidary::opencl::list().devices.len(),
        "wgpu" => lapidary::wgpu::list().devices.len(),
        _ => return Ok(device),
    };
    Ok(if there == 1 { format!("{device}:0") } else { device })
}

/// Returns the function that measures the start of a device. `by` is the option or the variable that names the device, for error
/// messages.
fn startup(device: &str, by: &str) -> Result<impl Fn(Arc<ProgramCache>) -> lapidary::Result<Measured>> {
    let measured = device.split_once(':').and_then(|(kind, number)| match (kind, number.parse()) {
        ("opencl", Ok(index)) => Some((lapidary::opencl::startup as fn(_, _) -> _, index)),
        ("wgpu", Ok(index)) => Some((lapidary::wgpu::startup as fn(_, _) -> _, index)),
        _ => None,
    });
    let refusal = || Failure::usage(format!("{by}{device}: startup is measured on one OpenCL or wgpu device: {}", advise_gpu()));
    let (startup, index): (_, usize) = measured.ok_or_else(refusal)?;
    Ok(move |cache| startup(index, cache))
}

/// Measures the stages in a new process. Lapidary and the drivers store their compiled programs in `folder`.
fn measure(device: &str, folder: &Path) -> Result<Stages> {
    let program = std::env::current_exe().map_err(|error| Failure::check(format!("this program is not found: {error}")))?;
    let mut command = Command::new(program);
    command.args(["bench", "startup", "--here", "--device", device]).env("LAPIDARY_CACHE_DIR", folder.join("programs"));
    // These variables set the folder in which known drivers store compiled kernels.
    let drivers = folder.join("drivers");
    std::fs::create_dir_all(&drivers).map_err(|error| Failure::check(format!("no folder for the caches: {error}")))?;
    for name in ["POCL_CACHE_DIR", "CUDA_CACHE_PATH", "__GL_SHADER_DISK_CACHE_PATH", "MESA_SHADER_CACHE_DIR", "NEO_CACHE_DIR"] {
        command.env(name, &drivers);
    }
    let output = command.output().map_err(|error| Failure::check(format!("cannot start a process: {error}")))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let text = text.strip_prefix("lapidary: ").unwrap_or(&text).to_owned();
        return Err(Failure::with_status(output.status.code(), text));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::check(format!("the measurement is not understood: {error}")))
}

fn total(stages: &Stages) -> f64 {
    stages.iter().map(|(_, seconds)| seconds).sum()
}

fn table(cold: &Stages, warm: &Stages) {
    out(&format!("{:<50}{:>10}{:>10}", "milliseconds", "cold", "warm"));
    let row =
        |name: &str, cold: f64, warm: f64| out(&format!("{name:<50}{:>10}{:>10}", fixed(cold * 1e3, 3), fixed(warm * 1e3, 3)));
    cold.iter().zip(warm).for_each(|((name, cold), (_, warm))| row(name, *cold, *warm));
    row("all", total(cold), total(warm));
}

fn object(stages: &Stages) -> Value {
    let all = ("all".to_owned(), total(stages));
    stages.iter().chain([&all]).map(|(name, seconds)| (name.clone(), json!(seconds))).collect::<serde_json::Map<_, _>>().into()
}

/// Draws one row for each stage of each start. A stage has the same colour in both starts.
fn draw(path: &Path, device: &str, runs: [(&str, &Stages); 2]) -> Result<()> {
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for (name, stages) in runs {
        let mut at = 0.0;
        for (stage, seconds) in stages {
            let (label, kind) = (stage.clone(), stage.clone());
            let event = Event { device: 0, queue: name.to_owned(), label, kind, start: at, end: at + seconds };
            bars.push((rows.len(), event));
            rows.push(format!("{name}: {stage}"));
            at += seconds;
        }
    }
    let kinds: Vec<&str> = runs[0].1.iter().map(|(stage, _)| stage.as_str()).collect();
    let title = format!("first product on {device}");
    let text = timeline::svg(&Timeline { title: &title, rows: &rows, kinds: &kinds, has_legend: false }, &bars)?;
    atomic::write_text(path, &text)
}
