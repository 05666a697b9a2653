//! `lapidary tune`: searches for the fastest kernels of a device.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use lapidary::core::Routine;
use lapidary::kernels::database::Kernel;
use lapidary::kernels::space::kernels_of;
use lapidary::kernels::{Database, Dialect, Tuning};
use lapidary::{DType, Machine, Settings};
use lapidary_tune::Method;

use crate::bench::plot::check_picture;
use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::options::{DTypeFlag, DeviceOptions};
use crate::progress::Progress;
use crate::report::{note, out};
use crate::tune::goal::{Device, Goal};
use crate::tune::message::{Call, Job, Message};
use crate::tune::meter::Meter;
use crate::tune::results::{Winner, save, slug};
use crate::tune::search::{Candidate, Plan, Shown, outcomes};
use crate::tune::sizes::{self, SizeOptions};
use crate::tune::{pictures, worker};
use crate::worker::{Inbox, send};

/// Options of `lapidary tune`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    /// Routine whose kernels are tuned: gemm, trsm, getrf or laswp
    #[arg(default_value = "gemm", value_parser = ["gemm", "trsm", "getrf", "laswp"])]
    routine: String,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// Element type of the matrices [default: all that the device has]
    #[arg(long, value_enum)]
    dtype: Option<DTypeFlag>,
    #[command(flatten)]
    sizes: SizeOptions,
    /// Search only the parameters of this kernel, such as gemm_tile
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,
    /// Time for all searches together, in seconds
    #[arg(long, default_value_t = 300.0, value_name = "SECONDS")]
    budget: f64,
    /// How candidates are chosen: exhaustive, random, nested, descent or halving
    #[arg(long, default_value = "descent", value_name = "S")]
    strategy: Method,
    /// Stop a candidate that takes longer than SECONDS to compile and run
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Seed of the strategy and of the random operands
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of the results [default: $LAPIDARY_KERNELS_DIR, else a part of the user's data folder]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Write the times of all candidates of the last search to FILE, to be replayed
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Draw the speeds of the candidates of the last search into FILE.svg
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Search nothing, and write all tuned kernels of the folder to FILE, to be shared; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "plot", "kernel"])]
    export: Option<PathBuf>,
    /// Run the candidates in this process, and report to the process that has started it
    #[arg(long, hide = true)]
    here: bool,
}

const HELP: &str = "\
Each candidate is a kernel with its parameters. It runs in another process, and its result is checked
before it is timed. The fastest kernels are written to a folder that every later call of Lapidary
reads. A run that is interrupted keeps its journal, and the next run continues it. With --explain,
the combinations of values that were left out are counted by reason; with --budget 0, nothing runs.

Examples:
  lapidary tune --device opencl:0
  lapidary tune gemm --device wgpu:0 --dtype f32 --n 1024 --budget 60 --plot gemm.svg
  lapidary tune gemm --device opencl:0 --m 2000,64 --n 1,64 --k 2000,16384 --kernel gemm_block
  lapidary tune gemm --device opencl:0 --kernel gemm_tile --strategy exhaustive --record tile.tsv
  lapidary tune --device opencl:0 --budget 0 --explain
  lapidary tune --export tuned.txt";

impl Args {
    /// Whether this command opens devices.
    pub fn opens_devices(&self) -> bool {
        self.export.is_none()
    }

    fn folder(&self) -> Result<PathBuf> {
        let settings = Settings { kernels_dir: self.db.clone().or(Settings::from_env()?.kernels_dir), ..Settings::default() };
        settings.kernels_folder().ok_or_else(|| Failure::usage("there is no folder for tuned kernels: name one with --db"))
    }

    fn call(&self, dtype: DType, n: usize) -> Call {
        let is_f64 = dtype == DType::F64;
        Call { routine: self.routine.clone(), is_f64, sizes: [n; 3], transposed: [false; 2], seed: self.seed }
    }

    fn routine(&self) -> Routine {
        Routine::named(&self.routine).expect("the command line accepts only names of routines")
    }

    fn kernels(&self) -> Result<Vec<&'static str>> {
        let all = kernels_of(self.routine());
        match &self.kernel {
            None => Ok(all.to_vec()),
            Some(name) => match all.iter().find(|known| *known == name) {
                Some(kernel) => Ok(vec![*kernel]),
                None => Err(Failure::usage(format!("--kernel {name}: the kernels of {} are {}", self.routine, all.join(", ")))),
            },
        }
    }
}

/// Tunes the kernels of a device, or exports tuned kernels.
pub fn run(args: &Args) -> Result<()> {
    if args.here {
        return work(args);
    }
    args.export.iter().chain(&args.record).chain(&args.plot).try_for_each(|path| atomic::check_folder(path))?;
    args.plot.iter().try_for_each(|path| check_picture(path))?;
    io::check_distinct(&[("--record", args.record.as_ref()), ("--plot", args.plot.as_ref())])?;
    if let Some(path) = &args.export {
        return export(&args.folder()?, path);
    }
    if !args.budget.is_finite() || args.budget < 0.0 {
        return Err(Failure::usage(format!("--budget {}: must be a number of seconds, at least 0", args.budget)));
    }
    let (device, database) = open(args)?;
    let dtypes: Vec<DType> = match args.dtype {
        Some(flag) => vec![flag.into()],
        None => device.facts.dtypes.iter().copied().filter(|&dtype| dtype != DType::I32).collect(),
    };
    if let Some(lacking) = dtypes.iter().find(|&&dtype| !device.facts.computes(dtype)) {
        return Err(Failure::usage(format!("{} does not compute in {lacking}", device.facts.name)));
    }
    let tuning = Tuning::lookup(&database, &device.facts, device.dialect);
    Session { args, device, tuning, meter: Meter::new(Duration::from_secs(args.timeout)) }.tune(&dtypes)
}

/// Opens the device, to learn its facts and the kernels that it uses now.
fn open(args: &Args) -> Result<(Device, Database)> {
    let machine = args.device.open()?;
    let mut tunable = machine.devices().filter_map(|facts| Some((facts, dialect(&facts.name)?)));
    let first = tunable.next().ok_or_else(|| {
        Failure::usage("the kernels of the CPU backend have no parameters: name an OpenCL or wgpu device with --device")
    })?;
    if let Some((other, _)) = tunable.next() {
        let names = format!("{} and {}", first.0.name, other.name);
        return Err(Failure::usage(format!("one device is tuned at a time: name {names} alone with --device")));
    }
    let device = Device { facts: first.0.clone(), dialect: first.1 };
    let settings = Settings { kernels_dir: Some(args.folder()?), ..args.device.settings()? };
    let (database, problems) = settings.kernel_database();
    problems.iter().for_each(|problem| note(&format!("note: {problem}")));
    Ok((device, database))
}

/// The language of the kernels of a device with this name. `None` if its kernels are not generated.
pub fn dialect(name: &str) -> Option<Dialect> {
    match name.split(':').next() {
        Some("opencl") => Some(Dialect::OpenClC),
        Some("wgpu") => Some(Dialect::Wgsl),
        _ => None,
    }
}

/// One run of the command.
struct Session<'a> {
    args: &'a Args,
    device: Device,
    /// The kernels that the device uses before the run.
    tuning: Tuning,
    meter: Meter,
}

impl Session<'_> {
    fn tune(mut self, dtypes: &[DType]) -> Result<()> {
        let kernels = self.args.kernels()?;
        let calls = self.calls(dtypes)?;
        let searches: Vec<Vec<Goal>> = calls.iter().map(|call| self.goals(call, &kernels)).collect::<Result<_>>()?;
        let count = searches.iter().flatten().count();
        if self.args.device.explain {
            searches.iter().flatten().for_each(|goal| note(&goal.explain()));
        }
        if self.args.budget == 0.0 {
            return Ok(());
        }
        let folder = self.args.folder()?;
        let plan = Plan {
            method: self.args.strategy,
            seed: self.args.seed,
            budget: self.args.budget / count.max(1) as f64,
            journals: folder.join("journals").join(slug(&self.device, &self.args.routine)),
            interrupted: io::temporary::finish_on_interrupt(),
        };
        let progress = Progress::new(self.args.budget.ceil() as usize);
        progress.println(&format!("{} on {} ({})", self.args.routine, self.device.facts.name, self.device.facts.description));
        for (number, goals) in searches.iter().enumerate() {
            if !plan.interrupted.load(Ordering::Relaxed) {
                let before = self.args.budget * number as f64 / searches.len() as f64;
                self.tune_call(&plan, goals, &folder, (&progress, before))?;
            }
        }
        drop(progress);
        if plan.interrupted.load(Ordering::Relaxed) {
            note("interrupted; the same command continues");
        }
        self.document(&plan, searches.iter().flatten().last())
    }

    /// Tunes one call and writes its fastest kernel, unless the kernel in use is as fast.
    fn tune_call(&mut self, plan: &Plan<'_>, goals: &[Goal], folder: &Path, (progress, before): (&Progress, f64)) -> Result<()> {
        let Some(goal) = goals.first() else { return Ok(()) };
        let words = goal.call.words()?;
        let flops = goal.call.shape()?.flops();
        let used = self.used(&goal.call);
        let mut candidates = Vec::new();
        for (number, goal) in goals.iter().enumerate() {
            progress.begin(&format!("{words}: {}, {} points", goal.kernel, goal.space.len()));
            let shown = Shown { progress, before: before + plan.budget * number as f64, flops };
            candidates.extend(plan.search(goal, &self.device, used.unwrap_or(Kernel::Stop(None)), &mut self.meter, &shown)?);
        }
        let shown = Shown { progress, before, flops };
        candidates.extend(used.map(|kernel| Candidate { kernel, seconds: 0.0 }));
        candidates.sort_by_key(|candidate| candidate.kernel.to_string());
        candidates.dedup_by_key(|candidate| candidate.kernel);
        let ranked = plan.compare(goal, candidates, &mut self.meter)?;
        let incumbent = ranked.iter().find(|candidate| Some(candidate.kernel) == used);
        let before = incumbent.map_or_else(|| "nothing".to_owned(), |candidate| shown.speed(candidate.seconds));
        for best in &ranked {
            if incumbent.is_some_and(|incumbent| incumbent.seconds < best.seconds * LEAST_GAIN) {
                break;
            }
            if let Err(reason) = self.meter.check_edges(&goal.call, &format!("{} {}", best.kernel, goal.call.dtype()))? {
                progress.note(&format!("note: {} is left out: {reason}", best.kernel));
                continue;
            }
            let measurement = self.measurement(goal, best, flops);
            let path = save(folder, &self.device, &Winner { call: goal.call.clone(), kernel: best.kernel, measurement })?;
            progress.println(&format!(
                "{words}: {} → {}  {}  ({})",
                before,
                shown.speed(best.seconds),
                best.kernel,
                path.display()
            ));
            return Ok(());
        }
        let kernel = incumbent.map_or_else(|| "no kernel runs".to_owned(), |candidate| candidate.kernel.to_string());
        progress.println(&format!("{words}: {before}, the kernel in use is the fastest: {kernel}"));
        Ok(())
    }

    /// The kernel that a call uses before it is tuned. `None` if the call uses several kernels.
    fn used(&self, call: &Call) -> Option<Kernel> {
        match call.routine.as_str() {
            "gemm" => self.tuning.products(call.dtype(), call.sizes).next().map(Kernel::Product),
            _ => None,
        }
    }

    fn measurement(&self, goal: &Goal, best: &Candidate, flops: Option<f64>) -> String {
        let [m, n, k] = goal.call.sizes;
        let speed = flops.map_or_else(String::new, |flops| format!("gflops={:.1} ", flops / best.seconds / 1e9));
        let driver = &self.device.facts.identity.driver;
        format!("{speed}seconds={:.3e} m={m} n={n} k={k} kernels={} driver={driver}", best.seconds, lapidary::kernels::GENERATOR)
    }

    /// The calls to tune: those of the command line, or three orders, of which the largest takes about a fifth of a second, and a narrow
    /// product.
    fn calls(&mut self, dtypes: &[DType]) -> Result<Vec<Call>> {
        let (mut calls, routine) = (Vec::new(), self.args.routine());
        let named = self.args.sizes.calls(routine)?;
        for &dtype in dtypes {
            let sizes = if named.is_empty() { sizes::defaults(routine, &self.orders(dtype)?) } else { named.clone() };
            calls.extend(sizes.into_iter().map(|sizes| Call { sizes, ..self.args.call(dtype, sizes[1]) }));
        }
        Ok(calls)
    }

    fn orders(&mut self, dtype: DType) -> Result<Vec<usize>> {
        if self.args.budget == 0.0 {
            return Ok(vec![ORDERS[ORDERS.len() - 1]]);
        }
        let call = self.args.call(dtype, PROBE);
        let timed = self.meter.run(&Job { call, entries: String::new(), runs: 3 })?;
        let timing = timed.map_err(|reason| Failure::check(format!("the kernel in use does not run: {reason}")))?;
        let takes = |n: usize| timing.seconds * (n as f64 / PROBE as f64).powi(3);
        let largest = ORDERS.into_iter().find(|&n| takes(n) <= LONGEST_SECONDS).unwrap_or(PROBE);
        Ok(vec![largest, largest / 4, largest / 16])
    }

    fn goals(&self, call: &Call, kernels: &[&'static str]) -> Result<Vec<Goal>> {
        let goals = kernels.iter().map(|kernel| Goal::new(call.clone(), kernel, &self.device));
        let goals: Vec<Goal> = goals.collect::<Result<_>>()?;
        // kernels with barriers take minutes to compile for a CPU, and are slower there
        let suits = |goal: &Goal| !self.device.facts.is_cpu() || goal.kernel == "gemm_panel" || self.args.kernel.is_some();
        Ok(goals.into_iter().filter(|goal| !goal.space.is_empty() && suits(goal)).collect())
    }

    /// Writes the recording and the picture of a search.
    fn document(&self, plan: &Plan<'_>, goal: Option<&Goal>) -> Result<()> {
        let Some(goal) = goal else { return Ok(()) };
        let known = outcomes(&plan.journals, goal, &self.device)?;
        self.args.record.iter().try_for_each(|path| pictures::record(path, goal, &known))?;
        let Some(path) = &self.args.plot else { return Ok(()) };
        match goal.call.shape()?.flops() {
            Some(flops) => pictures::draw(path, goal, &known, flops),
            None => Err(Failure::usage(format!("--plot draws GFLOP/s, and {} does none", self.args.routine))),
        }
    }
}

/// Orders of which the largest that is fast enough is tuned.
const ORDERS: [usize; 4] = [4096, 2048, 1024, 512];
/// Order of the product that shows how fast a device is.
const PROBE: usize = 256;
/// Longest time of a call that is tuned by default, in seconds.
const LONGEST_SECONDS: f64 = 0.2;
/// A kernel replaces the kernel in use if it is faster by this factor.
const LEAST_GAIN: f64 = 1.02;

/// Writes all tuned kernels of a folder to one file.
fn export(folder: &Path, path: &Path) -> Result<()> {
    let settings = Settings { kernels_dir: Some(folder.to_owned()), ..Settings::default() };
    let text = settings.tuned_kernels().map_err(|error| Failure::file(folder, error))?;
    if text.is_empty() {
        return Err(Failure::usage(format!("{}: there are no tuned kernels; `lapidary tune` makes them", folder.display())));
    }
    atomic::write_text(path, &text)?;
    out(&format!("{} entries", text.lines().filter(|line| line.contains('=')).count()));
    Ok(())
}

/// Opens the device and runs candidates for the process that has started this process.
fn work(args: &Args) -> Result<()> {
    io::temporary::ignore_interrupts();
    let inbox = Inbox::listen();
    let done = args.device.open().and_then(|machine: Machine| {
        machine.program_cache().listen(|program| send(&Message::Program(program.to_owned())));
        worker::work(&machine, &inbox)
    });
    done.unwrap_or_else(|failure| send(&Message::Refused { status: failure.code(), message: failure.to_string() }));
    Ok(())
}
