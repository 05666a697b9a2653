//! `lapidary bench`: times a routine and checks its result.

use std::path::{Path, PathBuf};

use lapidary::{DType, Machine, Routine, Scalar};
use serde_json::{Value, json};

use crate::bench::measure::Measured;
use crate::bench::peer::{Peer, Rival};
use crate::bench::placement::Placement;
use crate::bench::plot::{Style, check_picture, curves, svg};
use crate::bench::table::{tsv, words};
use crate::bench::timing::Timing;
use crate::bench::{fit, kernels, profile, startup, sweep};
use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::options::{DTypeFlag, DeviceOptions, check_dtype, computing, describe, names, parse_seed, threads};
use crate::report::{counted, save_json};
use crate::shape::{Shape, ShapeOptions};
use crate::trace;

/// Options of `lapidary bench`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    shape: ShapeOptions,
    /// Element type of the matrices
    #[arg(long, value_enum, default_value = "f64")]
    dtype: DTypeFlag,
    #[command(flatten)]
    device: DeviceOptions,
    /// Keep the matrices in device memory, so that the time includes no transfers
    #[arg(long, conflicts_with = "host")]
    resident: bool,
    /// Keep the matrices in host memory, so that the time includes all transfers (the default)
    #[arg(long)]
    host: bool,
    /// Number of timed repetitions for each size
    #[arg(long, default_value_t = 5, value_name = "R", value_parser = clap::value_parser!(u32).range(1..))]
    reps: u32,
    /// Seed of the random operands
    #[arg(long, default_value_t = 1, value_parser = parse_seed)]
    seed: u64,
    /// Time this BLAS or LAPACK shared library (LP64) too, in turn with Lapidary
    #[arg(long, value_name = "LIB")]
    peer: Option<PathBuf>,
    /// Solve by gesv_mixed (factors in f32, refined in f64) in turn with gesv
    #[arg(long, conflicts_with_all = ["peer", "resident", "sweep", "plot"])]
    mixed: bool,
    /// Write all results as JSON to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run each size once more while the device records the time of each kernel, and print a table of the kernels, and for LU of the
    /// tasks. Needs one OpenCL or wgpu device. The timed repetitions record no times of kernels, because the records slow short kernels
    #[arg(long, conflicts_with_all = ["sweep", "mixed"])]
    kernels: bool,
    /// Write a timeline of the last repetition to FILE, as a picture (.svg) or for Perfetto (.json). With --kernels, the timeline
    /// shows the kernels of the recorded run
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Plot GFLOP/s against size into FILE.svg. With --kernels, the picture shows which parts of the time kernels, or for LU tasks, take
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Time each size with and without transfers, and write PREFIX.tsv, PREFIX.json and a plot PREFIX.svg. Without --n, the sizes
    /// rise from 64 until a call takes longer than a second
    #[arg(long, value_name = "PREFIX", conflicts_with_all = ["resident", "host", "json", "plot", "trace"])]
    sweep: Option<PathBuf>,
}

impl Args {
    /// Whether a first call is timed instead of a routine.
    pub fn is_startup(&self) -> bool {
        matches!(self.other, Some(Other::Startup(_)))
    }

    /// The options that select devices.
    pub fn devices(&self) -> &DeviceOptions {
        match &self.other {
            Some(Other::Profile(args)) => &args.device,
            Some(Other::Startup(_)) | None => &self.device,
        }
    }

    /// Whether this process is a first call that another process of this program times.
    pub fn is_worker(&self) -> bool {
        matches!(&self.other, Some(Other::Startup(args)) if args.is_worker())
    }
}

/// What is measured instead of a routine.
#[derive(clap::Subcommand, Debug)]
enum Other {
    /// Show how long each stage of the first call takes, without and with caches
    Startup(startup::Args),
    /// Measure the times of kernels and transfers of a device, with which `plan --profile` predicts calls
    Profile(profile::Args),
}

const HELP: &str = "\
Each size runs once to warm up, then R times; the result is the median time. The results of the
first and the last run are checked (docs/numerics.md). With --peer, Lapidary and the peer library
run in turn. Each call waits until all threads are idle. The ratio is the peer's median time
divided by Lapidary's: above 1, Lapidary is faster. With --mixed, gesv_mixed and gesv run in turn,
and the ratio is the median time of gesv divided by that of gesv_mixed. A line states the precision
of the factors, the number of refinement steps and the backward error.

Examples:
  lapidary bench gemm --n 512,1024,2048 --reps 9 --plot gemm.svg --json gemm.json
  lapidary bench gemm --device opencl:0 --sweep gemm
  lapidary bench trsm --m 2000 --n 500 --side r --uplo u --transa t
  lapidary bench gemm --n 4096 --device opencl:0 --trace gemm.svg
  lapidary bench getrf --n 4096 --device opencl:0 --resident --kernels --trace lu.svg
  lapidary bench gesv --n 4096,8192 --mixed --device opencl:0
  lapidary bench startup --device opencl:0 --plot startup.svg
  lapidary bench profile --device opencl:0 --json gpu.json
  lapidary bench getrf --n 2000 --dtype f32 --peer libopenblas.so.0";

/// Times every size, prints a table, and writes the requested files.
pub fn run(args: &Args) -> Result<()> {
    match &args.other {
        Some(Other::Startup(args)) => return startup::run(args),
        Some(Other::Profile(args)) => return profile::run(args),
        None => {}
    }
    if args.mixed && (args.shape.routine(), args.dtype) != (Routine::Gesv, DTypeFlag::F64) {
        let (routine, dtype) = (args.shape.routine().name(), DType::from(args.dtype));
        return Err(Failure::usage(format!("--mixed solves by gesv in f64, not by {routine} in {dtype}")));
    }
    let outputs = Outputs::new(args)?;
    let is_ladder = args.sweep.is_some() && !args.shape.names_sizes();
    let shapes = if is_ladder { args.shape.shapes_over(&sweep::ladder())? } else { args.shape.shapes()? };
    if outputs.plot.is_some() && !args.kernels && shapes[0].flops().is_none() {
        let (option, routine) = (if args.sweep.is_some() { "--sweep" } else { "--plot" }, shapes[0].routine.name());
        return Err(Failure::usage(format!(
            "{option} draws GFLOP/s, and {routine} does no floating-point operations: take --json"
        )));
    }
    let machine = args.device.open_with(args.shape.nb()?)?;
    check_dtype(&machine, args.dtype.into(), "use --dtype f32, or add a device that has it, such as cpu")?;
    let placements = placements(args, &machine)?;
    let timed = if args.kernels { Some(timed(args, &machine)?) } else { None };
    let machine = if args.trace.is_some() && timed.is_none() { machine.traced() } else { machine };
    let machines = Machines { machine, timed };
    let cases = Cases { shapes, placements, is_ladder };
    match args.dtype {
        DTypeFlag::F32 => run_as::<f32>(args, &machines, cases, &outputs),
        DTypeFlag::F64 => run_as::<f64>(args, &machines, cases, &outputs),
    }
}

/// The machines that run the calls.
struct Machines {
    machine: Machine,
    /// A machine of the same device, which records the times of kernels, if `--kernels` is given.
    timed: Option<Machine>,
}

/// Opens the device of `machine` again, so that it records the times of kernels. Fails if there are several devices, or if the device
/// records no times.
fn timed(args: &Args, machine: &Machine) -> Result<Machine> {
    let devices = names(machine.devices());
    if machine.devices().count() > 1 {
        return Err(Failure::usage(format!(
            "--kernels times the kernels of one OpenCL or wgpu device; choose it with --device among {devices}"
        )));
    }
    let timed = args.device.open_timed(args.shape.nb()?)?;
    if timed.take_kernel_times().is_err() {
        let message =
            format!("--kernels: {devices} records no times of kernels; choose an OpenCL or wgpu device, such as --device opencl:0");
        return Err(Failure::usage(message));
    }
    Ok(timed)
}

/// The files that the command writes.
struct Outputs {
    tsv: Option<PathBuf>,
    json: Option<PathBuf>,
    plot: Option<PathBuf>,
    trace: Option<PathBuf>,
}

impl Outputs {
    /// The files that the options name. Fails if one of the files cannot be written.
    fn new(args: &Args) -> Result<Self> {
        let outputs = match &args.sweep {
            Some(prefix) => {
                let [tsv, json, plot] = sweep::files(prefix)?.map(Some);
                Outputs { tsv, json, plot, trace: None }
            }
            None => Outputs { tsv: None, json: args.json.clone(), plot: args.plot.clone(), trace: args.trace.clone() },
        };
        let Outputs { tsv, json, plot, trace } = &outputs;
        [tsv, json, plot, trace].into_iter().flatten().try_for_each(|path| atomic::check_folder(path))?;
        trace.iter().try_for_each(|path| trace::check_path(path))?;
        plot.iter().try_for_each(|path| check_picture(path))?;
        io::check_distinct(&[("--json", json.as_ref()), ("--plot", plot.as_ref()), ("--trace", trace.as_ref())])?;
        Ok(outputs)
    }
}

/// The calls to time: each shape in each placement.
struct Cases {
    shapes: Vec<Shape>,
    placements: Vec<Placement>,
    /// Whether the program has chosen the sizes, so that it may leave out the largest ones.
    is_ladder: bool,
}

/// The placements of the matrices. The function refuses `--resident` with several devices: resident matrices lie on one device, so
/// that all other devices would not take part in the measured calls.
fn placements(args: &Args, machine: &Machine) -> Result<Vec<Placement>> {
    if args.sweep.is_some() {
        return Ok(sweep::placements(machine));
    }
    let apart = machine.devices().any(|device| !device.host_memory);
    if args.resident && apart && machine.devices().count() > 1 {
        let names = names(machine.devices());
        return Err(Failure::usage(format!("--resident keeps matrices on one device; choose it with --device among {names}")));
    }
    Ok(vec![if args.resident { Placement::Resident } else { Placement::Host }])
}

fn run_as<T: Scalar>(args: &Args, machines: &Machines, mut cases: Cases, outputs: &Outputs) -> Result<()> {
    let Machines { machine, timed } = machines;
    if cases.is_ladder {
        fit::keep_fitting::<T>(&mut cases.shapes, &cases.placements, machine)?;
    } else {
        fit::check_all::<T>(&cases.shapes, &cases.placements, machine)?;
    }
    let peer = args.peer.as_deref().map(Peer::<T>::open).transpose()?;
    let peer_name = peer.as_ref().map(|peer| peer.describe().unwrap_or_else(|| "of unknown make".to_owned()));
    let rival = peer.map(Rival::Library).or(args.mixed.then_some(Rival::Gesv));
    let timing = Timing {
        machine,
        shapes: &cases.shapes,
        placements: &cases.placements,
        max_seconds: cases.is_ladder.then_some(sweep::MAX_SECONDS),
        reps: args.reps as usize,
        seed: args.seed,
        peer: rival.as_ref(),
        timed: timed.as_ref(),
    };
    let save = |results: &[Measured]| save(args, machine, &cases, outputs, peer_name.as_deref(), results);
    // a sweep takes long, so that its files are written after each size
    let keep = |results: &[Measured]| if args.sweep.is_some() { save(results) } else { Ok(()) };
    let results = timing.run(&heading(args, &cases, machine, peer_name.as_deref()), keep)?;
    save(&results)?;
    if let (Some(path), Some(last)) = (&outputs.trace, results.last()) {
        let name = format!("{} {}", title(args, &last.shape), words(&last.shape.sizes()));
        match (&last.kernels, machine.devices().next()) {
            (Some(kernels), Some(device)) => trace::save_kernels(path, &name, &device.name, kernels)?,
            _ => trace::save(path, &name, &last.events, machine.cache_counts())?,
        }
    }
    match results.iter().filter(|result| !result.passed()).count() {
        0 => Ok(()),
        failed => Err(Failure::check(format!("{failed} of {} results are wrong", results.len()))),
    }
}

/// Writes the table, the JSON document and the plot of the results so far, if they are requested.
fn save(
    args: &Args,
    machine: &Machine,
    cases: &Cases,
    outputs: &Outputs,
    peer_name: Option<&str>,
    results: &[Measured],
) -> Result<()> {
    if let Some(path) = &outputs.tsv {
        atomic::write_text(path, &tsv(results))?;
    }
    if let Some(path) = &outputs.json {
        let mut document = document(args, machine, cases, results);
        document["nb"] = args.shape.nb()?.into();
        document["reproducible"] = args.device.settings()?.reproducible.into();
        document["program_cache"] = trace::cache_counts(machine.cache_counts());
        document["peer"] = json!({ "library": args.peer.as_deref().map(Path::to_string_lossy), "description": peer_name });
        save_json(path, &document)?;
    }
    if let Some(path) = &outputs.plot {
        let profiles: Vec<_> = results.iter().filter_map(|result| Some((result.shape.n, result.kernels.as_ref()?))).collect();
        if !profiles.is_empty() {
            return atomic::write_text(path, &kernels::stacked(&title(args, &cases.shapes[0]), &profiles)?);
        }
        let curves = curves(results, &cases.placements, args.peer.as_deref());
        let title = title(args, &cases.shapes[0]);
        let style = Style { title: &title, x: "n", y: "GFLOP/s (median)", marks_points: true };
        atomic::write_text(path, &svg(&style, &curves)?)?;
    }
    Ok(())
}

/// The lines above the table.
fn heading(args: &Args, cases: &Cases, machine: &Machine, peer_name: Option<&str>) -> Vec<String> {
    let repetitions = counted(args.reps as usize, "repetition");
    let ours = format!("{} on {}, {repetitions}", title(args, &cases.shapes[0]), names(computing(machine, args.dtype.into())));
    let peer = args.peer.as_deref().zip(peer_name).map(|(path, name)| format!("peer {}: {name}", path.display()));
    [ours].into_iter().chain(peer).collect()
}

fn title(args: &Args, shape: &Shape) -> String {
    let (dtype, routine) = (DType::from(args.dtype), if args.mixed { "gesv_mixed" } else { args.shape.routine().name() });
    format!("{routine} {dtype} {}", words(&shape.flags())).trim_end().to_owned()
}

fn document(args: &Args, machine: &Machine, cases: &Cases, results: &[Measured]) -> Value {
    let memory: Vec<&str> = cases.placements.iter().map(|placement| placement.name()).collect();
    json!({
        "routine": args.shape.routine().name(), "dtype": DType::from(args.dtype).to_string(),
        "flags": cases.shapes[0].flags().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "memory": memory.join("+"), "mixed": args.mixed, "repetitions": args.reps, "seed": args.seed,
        "devices": describe(computing(machine, args.dtype.into())), "threads": threads(),
        "results": results.iter().map(Measured::to_json).collect::<Vec<_>>(),
    })
}
