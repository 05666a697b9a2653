//! `lapidary hpl`: the Linpack benchmark on the devices of one machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use lapidary::backend::{DeviceFacts, DeviceKind};
use lapidary::{DType, Getrf, Machine, Precision, Scalar};
use serde_json::Value;

use crate::dense::Dense;
use crate::failure::{Failure, Result};
use crate::hpl::check::residual;
use crate::hpl::speed;
use crate::hpl::system::{SEED, System};
use crate::hpl::table::Row;
use crate::io::{self, atomic};
use crate::memory;
use crate::options::{DeviceOptions, check_dtype, computing, describe, names, panels, parse_positive, parse_seed, threads};
use crate::progress::Progress;
use crate::report::{Report, fixed, out, seconds};
use crate::residual::HPL_THRESHOLD;
use crate::trace;

/// Options of `lapidary hpl`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true)]
pub struct Args {
    /// Order of the matrix
    #[arg(long, default_value_t = 4096, value_name = "N", value_parser = parse_order)]
    n: u32,
    /// Number of columns of a panel [default: $LAPIDARY_NB, else chosen by the library]
    #[arg(long, value_name = "NB", value_parser = parse_positive)]
    nb: Option<usize>,
    /// Seed of the random matrix
    #[arg(long, default_value_t = SEED, value_parser = parse_seed)]
    seed: u64,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// Memory in which the matrix lies when the timed part begins
    #[arg(long, value_enum, default_value = "host")]
    memory: Placement,
    /// Solve with factors in f32 and refinement in f64 (gesv_mixed), as HPL-MxP does, but with the matrix of HPL
    #[arg(long)]
    mxp: bool,
    /// Write all results as JSON to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a timeline of the factorisation and the solve to FILE, as a picture (.svg) or for Perfetto (.json)
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// The memory in which the matrix lies when the timed part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Placement {
    /// Host memory: the time includes all transfers
    Host,
    /// Memory of the device: the matrix is copied there before the timed part, and the factors and the solution stay there
    Device,
}

/// Parses the order of the matrix.
fn parse_order(text: &str) -> std::result::Result<u32, String> {
    text.parse().ok().filter(|&order| order > 0).ok_or_else(|| format!("one whole number from 1 to {} is needed", u32::MAX))
}

/// Order of the system, divided by the order of the system that warms the devices up.
const WARM_UP_PART: u32 = 8;
/// Maximum order of the system that warms the devices up.
const LONGEST_WARM_UP: u32 = 8192;
/// Number of columns of the tall matrices that are factored in the warm-up.
const TALL_COLUMNS: usize = 256;

const HELP: &str = "\
The system is that of HPL 2.3, from the same generator, with elements in [-0.5, 0.5] in double
precision; the default seed is HPL's. The lines between the double rules have the format of HPL.
The variant in the column T/V is always WR10R2R1, P is 1, and Q is the number of devices among which
the factorisation is divided. The line `unused` names the other selected devices with double precision.
The residual,
‖A·x − b‖∞ / (eps·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n) with eps = 2⁻⁵³, must be below 16; otherwise the exit
status is 1. The speed counts 2/3·n³ + 3/2·n² operations, also with --mxp. The matrix of HPL-MxP is
diagonally dominant. The matrix of --mxp is HPL's, which needs row exchanges and more refinement
steps. If the refinement does not converge, the factors are in f64 and the exit status is 1.

Before the timed part, OpenCL devices compile the kernels. The devices then solve a system of an
eighth of the order, at most 8192, and factor matrices as tall as the large one. The first run on a
device is still slower, because it measures speeds, which later runs reuse. Run twice, and take the
second result.

Examples:
  lapidary hpl --n 8000 --json hpl.json
  lapidary hpl --n 20000 --device opencl:0 --memory device
  lapidary hpl --n 20000 --mxp
  lapidary hpl --n 20000 --device all --memory-limit 4G";

/// The times of a run in seconds, and the solution.
struct Solved {
    x: Dense<f64>,
    /// Time of the factorisation, or of the whole solve with `--mxp`.
    factor: f64,
    /// Time of the solve with the factors. 0 with `--mxp`.
    solve: f64,
    /// With `--mxp`: whether factors in `f32` or in `f64` solved the system, and how many refinement steps were made. `None` without `--mxp`.
    precision: Option<Precision>,
}

/// Generates the system, solves it and verifies the solution.
pub fn run(args: &Args) -> Result<()> {
    [&args.json, &args.trace].into_iter().flatten().try_for_each(|path| atomic::check_folder(path))?;
    args.trace.iter().try_for_each(|path| trace::check_path(path))?;
    io::check_distinct(&[("--json", args.json.as_ref()), ("--trace", args.trace.as_ref())])?;
    if args.mxp && args.memory == Placement::Device {
        return Err(Failure::usage("--mxp solves a system in host memory; leave out --memory device"));
    }
    let nb = panels(args.nb)?;
    let machine = args.device.open_with(nb)?;
    check_dtype(&machine, DType::F64, "add a device that has it, such as cpu")?;
    check_placement(args, &machine)?;
    check_memory(args, &machine)?;
    check_device_memory(args, &machine)?;
    let system = System::new(args.seed, args.n as usize);
    let progress = Arc::new(Progress::new(if args.mxp { 5 } else { 6 }).ticking());
    warm_up(args, &machine, &progress)?;
    let machine = if args.trace.is_some() { machine.traced() } else { machine };
    let machine = speed::shown(machine, &progress, operations(f64::from(args.n)));
    let (mut matrices, generate) = phase(&progress, "generate", || system.generate())?;
    let taking_part = machine.explain(Getrf::new(matrices[0].view_mut(), &mut vec![0; args.n as usize]))?.devices;
    let devices = || machine.devices().filter(|device| taking_part.contains(&device.name));
    let solved = solve(args, &machine, &progress, matrices)?;
    let (residual, verify) = phase(&progress, "verify", || Ok(residual(&system, solved.x.data())))?;
    drop(progress);
    if let Some(path) = &args.trace {
        let name = format!("hpl n={}", args.n);
        trace::save(path, &name, &machine.take_trace(), machine.cache_counts())?;
    }
    let mut report = Report::default();
    report.figure("n", system.order()).figure("nb", nb).figure("seed", args.seed).figure("dtype", "f64");
    report.figure("reproducible", args.device.settings()?.reproducible);
    report.figure("memory", args.memory.name()).figure("mxp", args.mxp);
    report.figure("devices", describe(devices())).figure("threads", threads());
    report.figure("generate_seconds", generate).figure("verify_seconds", verify);
    let memory = args.memory.name();
    report
        .line("matrix", format!("{0} × {0}, f64, seed {1}, in {memory} memory", args.n, args.seed))
        .line("device", names(devices()));
    let is_unused = |device: &&DeviceFacts| !taking_part.contains(&device.name);
    let unused: Vec<&str> = computing(&machine, DType::F64).filter(is_unused).map(|device| device.name.as_str()).collect();
    report.figure("unused", Value::from(unused.clone()));
    if !unused.is_empty() {
        report.line("unused", unused.join(", "));
    }
    finish(args, report, &solved, (residual, nb, devices().count()))
}

impl Placement {
    /// Name of the placement on the command line and in files.
    fn name(self) -> &'static str {
        match self {
            Placement::Host => "host",
            Placement::Device => "device",
        }
    }
}

/// Refuses `--memory device` with several devices: a matrix lies on one device, so that the others would not take part.
fn check_placement(args: &Args, machine: &Machine) -> Result<()> {
    if args.memory == Placement::Device && machine.devices().count() > 1 {
        let names = names(machine.devices());
        return Err(Failure::usage(format!(
            "--memory device keeps the matrix on one device, and several are selected; choose one of them with --device: {names}"
        )));
    }
    Ok(())
}

/// Fails if the host has too little memory for the system, and for the copy of A in f32 (`--mxp`) or on a device in host memory.
fn check_memory(args: &Args, machine: &Machine) -> Result<()> {
    let n = args.n as usize;
    let what = format!("the system of order {n}");
    if args.mxp {
        let bytes = n.saturating_mul(n).saturating_mul(size_of::<f64>() + size_of::<f32>());
        return memory::check(&format!("{what} with a copy of A in f32"), bytes);
    }
    // the driver of a processor keeps the copies of its devices in host memory
    let is_copied = |device: &DeviceFacts| match device.host_memory {
        true => args.memory == Placement::Device,
        false => device.identity.kind == DeviceKind::Cpu,
    };
    let has_copy = machine.devices().any(is_copied);
    let shapes = [(n, n), (n, 1)].repeat(if has_copy { 2 } else { 1 });
    memory::check_matrices::<f64>(&what, &shapes)
}

/// With `--memory device`, fails before the warm-up if the only device has no memory for A.
fn check_device_memory(args: &Args, machine: &Machine) -> Result<()> {
    if args.memory == Placement::Device {
        drop(machine.zeros_on::<f64>(0, args.n as usize, args.n as usize)?);
    }
    Ok(())
}

/// Runs `work` as a named step of the progress display. Returns the result of `work` and the seconds that it took.
fn phase<R>(progress: &Progress, name: &str, work: impl FnOnce() -> Result<R>) -> Result<(R, f64)> {
    progress.begin(name);
    let start = Instant::now();
    let result = work()?;
    let seconds = start.elapsed().as_secs_f64();
    progress.done();
    Ok((result, seconds))
}

/// Compiles the kernels of the large system, solves a small system as the large one is solved, and factors tall matrices with few columns. The
/// first run of a kernel in a process takes milliseconds, in which the other queues of the device may stand still. A wgpu device compiles a kernel
/// when the kernel first runs. The tall matrices are there because the number of rows decides which kernels factor a panel.
fn warm_up(args: &Args, machine: &Machine, progress: &Progress) -> Result<()> {
    let order = args.n as usize;
    let prepare = || {
        // if no plan fits, the factorisation may still succeed on other devices; otherwise, it returns the error
        let _ = if args.mxp { machine.prepare_gesv::<f32>(order) } else { machine.prepare_gesv::<f64>(order) };
        Ok(())
    };
    phase(progress, "compile", prepare)?;
    let load = || {
        let order = args.n.div_ceil(WARM_UP_PART).min(LONGEST_WARM_UP);
        let matrices = System::new(args.seed, order as usize).generate()?;
        solve(args, machine, &Progress::silent(), matrices)?;
        let heights = [1, 2, 4].map(|part| args.n as usize / part);
        let tall = heights.into_iter().filter(|&rows| rows > order as usize);
        if args.mxp { factor_tall::<f32>(machine, tall) } else { factor_tall::<f64>(machine, tall) }
    };
    phase(progress, "warm up", load).map(drop)
}

/// Factors random matrices with the given numbers of rows.
fn factor_tall<T: Scalar>(machine: &Machine, heights: impl Iterator<Item = usize>) -> Result<()> {
    for rows in heights {
        let mut a = Dense::<T>::random(rows, TALL_COLUMNS.min(rows), &mut fastrand::Rng::with_seed(1))?;
        let _ = machine.getrf(a.view_mut())?;
    }
    Ok(())
}

/// Factors the matrix and solves the system.
fn solve(args: &Args, machine: &Machine, progress: &Progress, matrices: [Dense<f64>; 2]) -> Result<Solved> {
    match (args.mxp, args.memory) {
        (true, _) => solve_mixed(machine, progress, &matrices),
        (false, Placement::Host) => solve_on_host(machine, progress, matrices),
        (false, Placement::Device) => solve_on_device(machine, progress, matrices),
    }
}

fn solve_on_host(machine: &Machine, progress: &Progress, [mut a, mut x]: [Dense<f64>; 2]) -> Result<Solved> {
    let (lu, factor) = phase(progress, "factor", || Ok(machine.getrf(a.view_mut())?))?;
    let ((), solve) = phase(progress, "solve", || Ok(lu.solve(x.view_mut())?))?;
    Ok(Solved { x, factor, solve, precision: None })
}

/// Solves with the matrices in the memory of the only device. The copies to and from the device are not timed.
fn solve_on_device(machine: &Machine, progress: &Progress, [a, mut x]: [Dense<f64>; 2]) -> Result<Solved> {
    progress.begin("upload");
    let (mut on_device, mut right) = (machine.upload(a.view())?, machine.upload(x.view())?);
    drop(a);
    let (lu, factor) = phase(progress, "factor", || Ok(machine.getrf(on_device.view_mut())?))?;
    let ((), solve) = phase(progress, "solve", || Ok(lu.solve(right.view_mut())?))?;
    right.download(x.view_mut())?;
    Ok(Solved { x, factor, solve, precision: None })
}

fn solve_mixed(machine: &Machine, progress: &Progress, [a, b]: &[Dense<f64>; 2]) -> Result<Solved> {
    let mut x = Dense::zeros(b.rows(), 1)?;
    let solve = || Ok(machine.gesv_mixed(a.view(), b.view(), x.view_mut())?);
    let (precision, factor) = phase(progress, "factor and refine", solve)?;
    Ok(Solved { x, factor, solve: 0.0, precision: Some(precision) })
}

/// Prints and writes the results. Fails if a check of the results has failed.
fn finish(args: &Args, mut report: Report, solved: &Solved, (residual, nb, devices): (f64, Option<usize>, usize)) -> Result<()> {
    let Solved { factor, solve, ref precision, .. } = *solved;
    let (n, time) = (f64::from(args.n), factor + solve);
    let gflops = operations(n) / time / 1e9;
    let is_small = residual < HPL_THRESHOLD; // false if the residual is NaN
    let fallback = matches!(precision, Some(Precision::Full { .. }));
    let times = if args.mxp { seconds(time) } else { format!("factor {}, solve {}", seconds(factor), seconds(solve)) };
    report.line("time", times).line("speed", format!("{} GFLOP/s", fixed(gflops, 3)));
    report.line("residual", format!("{}, below {HPL_THRESHOLD} is required", fixed(residual, 6)));
    if let Some(precision) = precision {
        report.line("precision", precision.to_string()).figure("precision", precision.to_string());
        if let Precision::Mixed { iterations, backward_error, .. } = *precision {
            report.figure("refinement_steps", iterations).figure("backward_error", backward_error);
        }
    } else {
        report.figure("factor_seconds", factor).figure("solve_seconds", solve);
    }
    report.figure("seconds", time).figure("gflops", gflops).figure("residual", residual);
    report.figure("residual_threshold", HPL_THRESHOLD).figure("passed", is_small && !fallback);
    report.print();
    Row { n: args.n as usize, nb, devices, seconds: time, gflops, residual, is_small }.lines().iter().for_each(|line| out(line));
    report.save(args.json.as_deref())?;
    match (is_small, fallback) {
        (true, false) => Ok(()),
        (false, _) => Err(Failure::check("the residual is too large")),
        (true, true) => Err(Failure::check("the refinement did not converge, so that the factors are in f64")),
    }
}

/// Number of floating-point operations that the benchmark counts for a system of order `n`.
fn operations(n: f64) -> f64 {
    2.0 / 3.0 * n.powi(3) + 1.5 * n * n
}
