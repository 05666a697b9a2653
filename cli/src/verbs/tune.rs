//! `lapidary tune`: searches for the fastest kernels of a device.

use std::path::{Path, PathBuf};

use clap::builder::ArgPredicate;
use lapidary::kernels::space::Task;
use lapidary::kernels::{Database, Dialect, refusals};
use lapidary::{DType, DeviceFacts, Machine, Settings};
use lapidary_tune::Method;

use crate::bench::plot::check_picture;
use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::options::{DTypeFlag, DeviceOptions, advise_gpu, parse_seed};
use crate::report::{counted, note, out};
use crate::tune::goal::Device;
use crate::tune::message::{Call, Message};
use crate::tune::replay::Replay;
use crate::tune::sizes::SizeOptions;
use crate::tune::values::Values;
use crate::tune::worker;
use crate::worker::{Inbox, send};
use session::Session;

mod session;

/// Options of `lapidary tune`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true)]
pub struct Args {
    /// What is tuned: the kernels of a routine, of batches (gemm_batched, getrf_batched), of triangular solves with inverted diagonal
    /// blocks (trtri), or of a product of a matrix and a number (scale)
    #[arg(default_value = "gemm", value_parser = Task::ALL.map(Task::name))]
    task: String,
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
    /// Try these values of parameters of the kernel in place of those worth trying, such as 'kwg=8,16 mr=4'
    #[arg(long, value_name = "VALUES", default_value = "", hide_default_value = true, requires = "kernel")]
    values: Values,
    /// Time for all searches together, in seconds. With --replay: simulated time of each search, 60 by default
    #[arg(long, default_value_t = 300.0, default_value_if("replay", ArgPredicate::IsPresent, "60"), value_name = "SECONDS")]
    budget: f64,
    /// How candidates are chosen: exhaustive, random, nested, descent or halving
    #[arg(long, default_value = "descent", value_name = "S")]
    strategy: Method,
    /// Stop a candidate that takes longer than SECONDS to compile and run
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Check each candidate with odd sizes and all transpositions before it is timed, and not only the fastest one
    #[arg(long)]
    paranoid: bool,
    /// Seed of the strategy and of the random operands
    #[arg(long, default_value_t = 1, value_parser = parse_seed)]
    seed: u64,
    /// Folder of the results [default: $LAPIDARY_KERNELS_DIR, else a part of the user's data folder]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Write the times of all candidates of the last search to FILE, to be replayed
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Draw the speeds of the candidates of the last search into FILE.svg. With --replay: the progress of the strategies
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Open no device, and compare all strategies on the times in FILE.tsv, which --record has written
    #[arg(
        long,
        value_name = "FILE.tsv",
        conflicts_with_all = ["task", "device", "memory_limit", "explain", "dtype", "m", "n", "k", "kernel", "values", "strategy", "timeout", "db", "record"]
    )]
    replay: Option<PathBuf>,
    /// Write the results of --replay to FILE as JSON; - is standard output
    #[arg(long, value_name = "FILE", requires = "replay")]
    json: Option<PathBuf>,
    /// Search nothing, and write all tuned kernels of the folder to FILE, to be shared; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "plot", "kernel", "values", "replay"])]
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
  lapidary tune gemm --device opencl:0 --kernel gemm_tile --values 'mwg=16,32 nwg=16,32 vwm=1'
  lapidary tune gemm_batched --device opencl:0 --n 16 --count 4096
  lapidary tune --device cpu
  lapidary tune --device opencl:0 --budget 0 --explain
  lapidary tune --replay tile.tsv --plot strategies.svg
  lapidary tune --export tuned.txt";

impl Args {
    /// Whether this command opens devices.
    pub fn opens_devices(&self) -> bool {
        self.export.is_none() && self.replay.is_none()
    }

    /// Whether this process runs candidates for another process of this program.
    pub fn is_worker(&self) -> bool {
        self.here
    }

    /// The settings of the devices, with the folder of the results.
    pub fn settings(&self) -> Result<Settings> {
        Ok(self.device.settings()?.kernels_dir(self.folder()?))
    }

    fn folder(&self) -> Result<PathBuf> {
        let mut settings = Settings::default();
        settings.kernels_dir = self.db.clone().or(Settings::from_env()?.kernels_dir);
        let folder = settings.kernels_folder();
        let folder = folder.ok_or_else(|| Failure::usage("there is no folder for tuned kernels: name one with --db"))?;
        match folder.exists() && !folder.is_dir() {
            true => Err(Failure::file(&folder, "is not a folder")),
            false => Ok(folder),
        }
    }

    fn call(&self, dtype: DType, n: usize) -> Call {
        let is_f64 = dtype == DType::F64;
        Call { task: self.task.clone(), is_f64, sizes: [n; 3], transposed: [false; 2], is_padded: false, seed: self.seed }
    }

    fn task(&self) -> Task {
        Task::named(&self.task).expect("the command line accepts only names of tasks")
    }

    /// The kernels of the task that the device has: the one that the options name, or all.
    fn kernels(&self, device: &Device) -> Result<Vec<&'static str>> {
        let (task, name, what) = (self.task(), &device.facts.name, &self.task);
        let (all, others) = match device.language {
            Some(_) => (task.kernels(), task.of_cpu()),
            None => (task.of_cpu(), task.kernels()),
        };
        let advice = || if device.language.is_some() { "name the CPU backend with --device cpu".to_owned() } else { advise_gpu() };
        match &self.kernel {
            None if all.is_empty() => Err(Failure::usage(format!("{name} has nothing to tune for {what}: {}", advice()))),
            None => Ok(all.to_vec()),
            Some(kernel) => match all.iter().find(|known| *known == kernel) {
                Some(kernel) => Ok(vec![*kernel]),
                None if others.contains(&kernel.as_str()) => {
                    Err(Failure::usage(format!("--kernel {kernel}: {name} has no such kernel: {}", advice())))
                }
                None => Err(Failure::usage(format!("--kernel {kernel}: the kernels of {what} on {name} are {}", all.join(", ")))),
            },
        }
    }
}

/// Tunes the kernels of a device, or exports tuned kernels.
pub fn run(args: &Args) -> Result<()> {
    if args.here {
        return work(args);
    }
    args.export.iter().chain(&args.record).chain(&args.plot).chain(&args.json).try_for_each(|path| atomic::check_folder(path))?;
    args.plot.iter().try_for_each(|path| check_picture(path))?;
    io::check_distinct(&[
        ("--record", args.record.as_ref()),
        ("--plot", args.plot.as_ref()),
        ("--json", args.json.as_ref()),
        ("--replay", args.replay.as_ref()),
    ])?;
    if args.json.is_some() && args.replay.is_none() {
        return Err(Failure::usage("--json writes the results of --replay: name a recording with --replay"));
    }
    if let Some(path) = &args.export {
        if std::path::absolute(atomic::folder(path)).ok() == std::path::absolute(args.folder()?).ok() {
            return Err(Failure::file(
                path,
                "lies in the folder of the tuned kernels, where it would take precedence; name another folder",
            ));
        }
        return export(&args.folder()?, path);
    }
    if !args.budget.is_finite() || args.budget < 0.0 {
        return Err(Failure::usage(format!("--budget {}: must be a number of seconds, at least 0", args.budget)));
    }
    if let Some(path) = &args.replay {
        return Replay { seed: args.seed, budget_seconds: args.budget }.run(path, args.plot.as_deref(), args.json.as_deref());
    }
    if args.budget == 0.0 && (args.record.is_some() || args.plot.is_some()) {
        return Err(Failure::usage("--budget 0 measures nothing: there are no times for --record and --plot"));
    }
    if args.plot.is_some() && args.call(DType::F64, 1).flops()?.is_none() {
        return Err(Failure::usage(format!("--plot draws GFLOP/s, and {} does no floating-point operations", args.task)));
    }
    // Drivers with LLVM end the process at an interrupt, unless the process handles interrupts before it loads them.
    let interrupted = io::temporary::finish_on_interrupt();
    let (device, database) = open(args)?;
    let dtypes: Vec<DType> = match args.dtype {
        Some(flag) => vec![flag.into()],
        None => device.facts.dtypes.iter().copied().filter(|&dtype| dtype != DType::I32).collect(),
    };
    if let Some(lacking) = dtypes.iter().find(|&&dtype| !device.facts.computes(dtype)) {
        return Err(Failure::usage(format!("{} does not compute in {lacking}", device.facts.name)));
    }
    Session::new(args, device, database, interrupted).tune(&dtypes)
}

/// Opens the device, to learn its facts and the kernels that it uses now.
fn open(args: &Args) -> Result<(Device, Database)> {
    let machine = args.device.open()?;
    // beside other devices, the CPU is tuned only if it is named alone
    let generated: Vec<&DeviceFacts> = machine.devices().filter(|facts| dialect(&facts.name).is_some()).collect();
    let tunable = if generated.is_empty() { machine.devices().collect() } else { generated };
    if let [first, other, ..] = tunable[..] {
        let names = format!("{} or {}", first.name, other.name);
        return Err(Failure::usage(format!("one device is tuned at a time: name {names} with --device")));
    }
    let facts = tunable.first().ok_or_else(|| Failure::usage("there is no device"))?;
    let device = Device { facts: (*facts).clone(), language: dialect(&facts.name) };
    let (mine, _) = args.settings()?.user_kernels();
    let refused = refusals(&mine, &device.facts, device.dialect());
    refused.iter().for_each(|problem| note(&format!("note: {problem}")));
    Ok((device, mine.then(Database::shipped())))
}

/// The language of the kernels of a device with this name. `None` if its kernels are not generated.
pub fn dialect(name: &str) -> Option<Dialect> {
    match name.split(':').next() {
        Some("opencl") => Some(Dialect::OpenClC),
        Some("wgpu") => Some(Dialect::Wgsl),
        _ => None,
    }
}

/// Writes all tuned kernels of a folder to one file. Writes nothing if a file cannot be read, or if a line is no entry.
fn export(folder: &Path, path: &Path) -> Result<()> {
    let settings = Settings::default().kernels_dir(folder);
    let text = settings.tuned_kernels().map_err(|problems| {
        problems.iter().for_each(|problem| note(&format!("note: {problem}")));
        Failure::usage(format!("{}: nothing is exported; mend or remove the lines and files above", folder.display()))
    })?;
    let words = text.lines().filter_map(|line| line.split('#').next()).map(str::trim);
    let entries = words.filter(|words| !words.is_empty() && !words.starts_with('[')).count();
    if entries == 0 {
        return Err(Failure::usage(format!("{}: there are no tuned kernels; `lapidary tune` makes them", folder.display())));
    }
    atomic::write_text(path, &text)?;
    out(&counted(entries, "entry"));
    Ok(())
}

/// Opens the device and runs candidates for the process that has started this process.
fn work(args: &Args) -> Result<()> {
    io::temporary::ignore_interrupts();
    let inbox = Inbox::listen();
    let opened = Machine::with_settings(&args.device.selection()?, &args.settings()?).map_err(Failure::from);
    let done = opened.and_then(|machine: Machine| {
        machine.program_cache().listen(|program| send(&Message::Program(program.to_owned())));
        worker::work(&machine, &inbox)
    });
    done.unwrap_or_else(|failure| send(&Message::Refused { status: failure.code(), message: failure.to_string() }));
    Ok(())
}
