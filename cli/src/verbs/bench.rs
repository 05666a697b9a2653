//! `lapidary bench`: times a routine and checks its result.

use std::path::{Path, PathBuf};

use lapidary::{DType, Machine, Scalar};
use serde_json::{Map, Value, json};

use crate::bench::measure::{Measured, Samples, measure};
use crate::bench::peer::Peer;
use crate::bench::plot::{Curve, check_picture, svg};
use crate::bench::problem::{Problem, held};
use crate::bench::startup;
use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::memory;
use crate::options::{DTypeFlag, DeviceOptions, check_dtype, computing, describe, names, threads};
use crate::progress::Progress;
use crate::report::{counted, fixed, save_json};
use crate::shape::{Shape, ShapeOptions};
use crate::trace;

/// Options of `lapidary bench`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    startup: Option<Startup>,
    #[command(flatten)]
    shape: ShapeOptions,
    /// Element type of the matrices
    #[arg(long, value_enum, default_value = "f64")]
    dtype: DTypeFlag,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
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
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time this BLAS or LAPACK shared library (LP64) too, in turn with Lapidary
    #[arg(long, value_name = "LIB")]
    peer: Option<PathBuf>,
    /// Write all results as JSON to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a timeline of the last repetition to FILE, as a picture (.svg) or for Perfetto (.json)
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Plot GFLOP/s against size into FILE.svg
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// The part of a first call that is timed instead of a routine.
#[derive(clap::Subcommand, Debug)]
enum Startup {
    /// Show how long each stage of the first call takes, without and with caches
    Startup(startup::Args),
}

const HELP: &str = "\
Each size runs once to warm up, then R times; the result is the median time. The results of the
first and the last run are checked (docs/numerics.md). With --peer, Lapidary and the peer library
run in turn. Each call waits until all threads are idle. The ratio is the peer's median time
divided by Lapidary's: above 1, Lapidary is faster.

Examples:
  lapidary bench gemm --n 512,1024,2048 --reps 9 --plot gemm.svg --json gemm.json
  lapidary bench trsm --m 2000 --n 500 --side r --uplo u --transa t
  lapidary bench gemm --n 4096 --device opencl:0 --trace gemm.svg
  lapidary bench startup --device opencl:0 --plot startup.svg
  lapidary bench getrf --n 2000 --dtype f32 --peer libopenblas.so.0";

/// Times every size, prints a table, and writes the requested files.
pub fn run(args: &Args) -> Result<()> {
    if let Some(Startup::Startup(args)) = &args.startup {
        return startup::run(args);
    }
    args.json.iter().chain(&args.plot).chain(&args.trace).try_for_each(|path| atomic::check_folder(path))?;
    args.trace.iter().try_for_each(|path| trace::check_path(path))?;
    args.plot.iter().try_for_each(|path| check_picture(path))?;
    let outputs = [("--json", args.json.as_ref()), ("--plot", args.plot.as_ref()), ("--trace", args.trace.as_ref())];
    io::check_distinct(&outputs)?;
    let shapes = args.shape.shapes()?;
    if args.plot.is_some() && shapes[0].flops().is_none() {
        let routine = shapes[0].routine.name();
        return Err(Failure::usage(format!("--plot draws GFLOP/s, and {routine} does no floating-point operations: take --json")));
    }
    let machine = args.device.open_with(args.shape.nb()?)?;
    check_dtype(&machine, args.dtype.into(), "use --dtype f32, or add a device that has it, such as cpu")?;
    check_resident(args, &machine)?;
    let machine = if args.trace.is_some() { machine.traced() } else { machine };
    match args.dtype {
        DTypeFlag::F32 => run_as::<f32>(args, &machine, &shapes),
        DTypeFlag::F64 => run_as::<f64>(args, &machine, &shapes),
    }
}

/// Refuses `--resident` with several devices. Resident matrices lie on one device, so all other devices would not take part in the
/// measured calls.
fn check_resident(args: &Args, machine: &Machine) -> Result<()> {
    let apart = machine.devices().any(|device| !device.host_memory);
    if args.resident && apart && machine.devices().count() > 1 {
        let names = names(machine.devices());
        return Err(Failure::usage(format!("--resident keeps matrices on one device; choose it with --device among {names}")));
    }
    Ok(())
}

fn run_as<T: Scalar>(args: &Args, machine: &Machine, shapes: &[Shape]) -> Result<()> {
    let resident = args.resident && machine.devices().all(|device| device.host_memory);
    for shape in shapes {
        let what = format!("{} {}", args.shape.routine().name(), words(&shape.sizes()));
        memory::check_matrices::<T>(&what, &held(shape, resident))?;
    }
    let peer = args.peer.as_deref().map(Peer::<T>::open).transpose()?;
    let peer_name = peer.as_ref().map(|peer| peer.describe().unwrap_or_else(|| "of unknown make".to_owned()));
    let results = time_all(args, machine, shapes, peer.as_ref(), peer_name.as_deref())?;
    if let Some(path) = &args.json {
        let mut document = document(args, machine, shapes, &results);
        document["nb"] = args.shape.nb()?.into();
        document["program_cache"] = trace::cache_counts(machine.cache_counts());
        document["peer"] = json!({ "library": args.peer.as_deref().map(Path::to_string_lossy), "description": peer_name });
        save_json(path, &document)?;
    }
    if let Some(path) = &args.plot {
        let text = plot(args, shapes, &results)?;
        atomic::write(path, |out| out.write_all(text.as_bytes()))?;
    }
    if let (Some(path), Some(last)) = (&args.trace, results.last()) {
        let name = format!("{} {}", title(args, &shapes[0]), words(&shapes[shapes.len() - 1].sizes()));
        trace::save(path, &name, &last.events, machine.cache_counts())?;
    }
    match results.iter().filter(|result| !result.passed()).count() {
        0 => Ok(()),
        failed => Err(Failure::check(format!("{failed} of {} results are wrong", results.len()))),
    }
}

fn time_all<T: Scalar>(
    args: &Args,
    machine: &Machine,
    shapes: &[Shape],
    peer: Option<&Peer<T>>,
    peer_name: Option<&str>,
) -> Result<Vec<Measured>> {
    let reps = args.reps as usize;
    // Each size takes one untimed round and `reps` timed rounds.
    let progress = Progress::new(shapes.len().saturating_mul(reps.saturating_add(1)));
    let repetitions = counted(reps, "repetition");
    progress.println(&format!("{} on {}, {repetitions}", title(args, &shapes[0]), names(computing(machine, T::DTYPE))));
    if let (Some(path), Some(name)) = (&args.peer, peer_name) {
        progress.println(&format!("peer {}: {name}", path.display()));
    }
    progress.println(&header(&shapes[0], peer.is_some()));
    let mut results = Vec::new();
    for shape in shapes {
        progress.begin(&format!("{} {}", args.shape.routine().name(), words(&shape.sizes())));
        let mut problem = Problem::<T>::new(*shape, args.seed, machine, args.resident)?;
        let measured = measure(&mut problem, peer, machine, reps, &progress)?;
        progress.println(&row(shape, &measured));
        if measured.unrested > 0 {
            progress.note(&format!(
                "note: before {} of the timed calls threads of this process did not come to rest; the figures may be too low",
                measured.unrested
            ));
        }
        results.push(measured);
    }
    Ok(results)
}

fn words<V: std::fmt::Display>(pairs: &[(&'static str, V)]) -> String {
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn title(args: &Args, shape: &Shape) -> String {
    let dtype = DType::from(args.dtype);
    format!("{} {dtype} {}", args.shape.routine().name(), words(&shape.flags())).trim_end().to_owned()
}

fn header(shape: &Shape, peer: bool) -> String {
    let sizes: String = shape.sizes().iter().map(|(name, _)| format!("{name:>8} ")).collect();
    let peer = if peer { format!("{:>12}{:>13}{:>10}", "peer ms", "peer GFLOP/s", "ratio") } else { String::new() };
    format!("{sizes}{:>11}{:>12}{:>12}{:>10}{:>16}{peer}", "median ms", "min ms", "max ms", "GFLOP/s", "check")
}

fn row(shape: &Shape, measured: &Measured) -> String {
    let sizes: String = shape.sizes().iter().map(|(_, size)| format!("{size:>8} ")).collect();
    let (ours, check) = &measured.ours;
    let [median, min, max] = [ours.median(), ours.min(), ours.max()].map(|seconds| seconds * 1e3);
    let verdict = format!("{} {}", fixed(check.ratio, 3), if check.passed() { "ok" } else { "WRONG" });
    let [median, min, max] = [median, min, max].map(|ms| fixed(ms, 4));
    let mut row = format!("{sizes}{median:>11}{min:>12}{max:>12}{:>10}{verdict:>16}", speed(ours));
    if let (Some((peer, check)), Some(ratio)) = (&measured.peer, measured.speed_ratio()) {
        let (ms, gflops, ratio) = (fixed(peer.median() * 1e3, 4), speed(peer), fixed(ratio, 3));
        row += &format!("{ms:>12}{gflops:>13}{ratio:>10}");
        row += if check.passed() { "" } else { "  peer WRONG" };
    }
    row
}

/// The GFLOP/s of the samples as text, or a dash for a routine without floating-point operations.
fn speed(samples: &Samples) -> String {
    samples.gflops().map_or_else(|| "-".to_owned(), |gflops| fixed(gflops, 3))
}

fn document(args: &Args, machine: &Machine, shapes: &[Shape], results: &[Measured]) -> Value {
    let entries: Vec<Value> = shapes.iter().zip(results).map(|(shape, measured)| entry(shape, measured)).collect();
    json!({
        "routine": args.shape.routine().name(), "dtype": DType::from(args.dtype).to_string(),
        "flags": shapes[0].flags().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "memory": if args.resident { "resident" } else { "host" }, "repetitions": args.reps, "seed": args.seed,
        "devices": describe(computing(machine, args.dtype.into())), "threads": threads(), "results": entries,
    })
}

fn entry(shape: &Shape, measured: &Measured) -> Value {
    let sizes: Map<String, Value> = shape.sizes().into_iter().map(|(name, size)| (name.to_owned(), json!(size))).collect();
    let (ours, check) = &measured.ours;
    json!({
        "sizes": sizes, "flops": shape.flops(), "ours": ours.to_json(check),
        "peer": measured.peer.as_ref().map(|(peer, check)| peer.to_json(check)),
        "speed_ratio_of_medians": measured.speed_ratio(),
    })
}

/// Plots the speed over the size n, which every routine has.
fn plot(args: &Args, shapes: &[Shape], results: &[Measured]) -> Result<String> {
    let points = |speed: &dyn Fn(&Measured) -> Option<f64>| -> Vec<(f64, f64)> {
        shapes.iter().zip(results).filter_map(|(s, r)| speed(r).map(|speed| (s.n as f64, speed))).collect()
    };
    let mut curves = vec![Curve { name: "lapidary".to_owned(), points: points(&|r| r.ours.0.gflops()) }];
    if let Some(path) = &args.peer {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        curves.push(Curve { name, points: points(&|r| r.peer.as_ref().and_then(|(peer, _)| peer.gflops())) });
    }
    svg(&title(args, &shapes[0]), "n", &curves)
}
