//! `lapidary conformance`: tests whether a device or a library computes correctly, and grades its accuracy.

use std::path::PathBuf;
use std::time::Duration;

use lapidary_conformance::foreign::Library;
use lapidary_conformance::report::{Mode, Settings};
use lapidary_conformance::suite::{Property, properties, selects};
use lapidary_conformance::{Guarded, Scope};

use crate::conformance::message::Message;
use crate::conformance::run::Run;
use crate::conformance::{Graded, files, verdicts, worker};
use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::options::{DeviceOptions, parse_seed};
use crate::report::out;
use crate::worker::{Inbox, send};

/// Options of `lapidary conformance`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true)]
pub struct Args {
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// Test this shared BLAS and LAPACK library instead of devices:
    /// blas:PATH[,PATH…][#fortran][#lp64|#ilp64][#prefix=P,suffix=S]
    #[arg(long, value_name = "blas:PATH", conflicts_with_all = ["device", "memory_limit", "reproducible"])]
    subject: Option<String>,
    /// Test every property with few cases (the default). It takes some seconds to a minute on an OpenCL or wgpu driver for the CPU
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Test more cases, and sizes larger than the tiles of a graphics card
    #[arg(long)]
    full: bool,
    /// Run only trials whose name contains QUERY; a QUERY with * or ? must match the whole name
    #[arg(long, value_name = "QUERY")]
    filter: Option<String>,
    /// Seed of the random cases
    #[arg(long, default_value_t = 1, value_parser = parse_seed)]
    seed: u64,
    /// Write the trials and their largest errors as JSON to FILE, after each trial; - is standard output, written at the end
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write an HTML page with plots to FILE.html
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Continue the run that wrote the --json file and was cut off
    #[arg(long, requires = "json")]
    resume: bool,
    /// Stop a trial that takes longer than SECONDS and count it as failed [default: for devices 1200, with --full 7200; for
    /// --subject 300 and 1800]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Run no trials, and show the given reports, which --json has written, side by side on the page
    #[arg(long, value_name = "FILE.json", num_args = 1.., requires = "report", conflicts_with_all = RUNS)]
    compare: Vec<PathBuf>,
    /// List the trials that --filter selects, or all trials, without running them
    #[arg(long, conflicts_with_all = LISTS_NOTHING)]
    list: bool,
    /// Run the trials in this process, and report to the process that has started it
    #[arg(long, hide = true)]
    here: bool,
}

/// Options that choose what to run, and that therefore conflict with `--compare`.
const RUNS: &[&str] =
    &["device", "memory_limit", "reproducible", "subject", "quick", "full", "filter", "seed", "json", "resume", "timeout", "list"];

/// Options that do not change the list of trials, and that therefore conflict with `--list`.
const LISTS_NOTHING: &[&str] =
    &["device", "memory_limit", "reproducible", "subject", "quick", "full", "seed", "json", "report", "resume", "timeout"];

const HELP: &str = "\
Each trial tests one property in one precision, such as f64::gemm::nan_propagates. The seed alone
determines the cases of a run. The exit status is 1 if a trial fails that is not known to fail,
and 2 if no trial applies (docs/conformance.md).

Examples:
  lapidary conformance --device opencl:0 --json opencl.json --report opencl.html
  lapidary conformance --device wgpu:0 --full --json wgpu.json --resume
  lapidary conformance --device cpu:0 --filter 'f64::gemm::*'
  lapidary conformance --subject blas:libopenblas.so.0 --json openblas.json
  lapidary conformance --compare opencl.json openblas.json --report both.html";

/// A property of the suite. The command uses only the name of a property, so the type of the subject does not matter.
type Trial = Property<Guarded<Graded>>;

impl Args {
    /// Whether this command opens devices.
    pub fn opens_devices(&self) -> bool {
        self.subject.is_none() && self.compare.is_empty() && !self.list
    }

    /// Whether this process runs trials for another process of this program.
    pub fn is_worker(&self) -> bool {
        self.here
    }

    fn mode(&self) -> Mode {
        if self.full { Mode::Full } else { Mode::Quick }
    }

    fn scope(&self) -> Scope {
        match self.mode() {
            Mode::Quick => Scope::quick(self.seed),
            Mode::Full => Scope::full(self.seed),
        }
    }

    /// Time limit of a trial. The limits are long because a driver may take minutes to compile a kernel.
    fn limit(&self) -> Duration {
        let usual = match (self.mode(), &self.subject) {
            (Mode::Quick, Some(_)) => 300,
            (Mode::Quick, None) => 1200,
            (Mode::Full, Some(_)) => 1800,
            (Mode::Full, None) => 7200,
        };
        Duration::from_secs(self.timeout.unwrap_or(usual))
    }

    fn selected(&self) -> Result<Vec<Trial>> {
        let query = self.filter.as_deref().unwrap_or_default();
        let selected: Vec<_> = properties().into_iter().filter(|property| selects(query, &property.full_name())).collect();
        let nothing = || Failure::usage(format!("no trial is called `{query}`; --list shows all"));
        if selected.is_empty() { Err(nothing()) } else { Ok(selected) }
    }
}

/// Runs the trials, lists them or compares reports, as the options request.
pub fn run(args: &Args) -> Result<()> {
    if args.here {
        return work(args);
    }
    args.json.iter().chain(&args.report).try_for_each(|path| atomic::check_folder(path))?;
    io::check_distinct(&[("--json", args.json.as_ref()), ("--report", args.report.as_ref())])?;
    if args.resume && args.json.as_deref().is_some_and(atomic::is_stdout) {
        return Err(Failure::usage("--resume goes on with a file; --json names standard output"));
    }
    if args.list {
        args.selected()?.iter().for_each(|property| out(&format!("{:44}  {}", property.full_name(), property.about)));
        return Ok(());
    }
    if !args.compare.is_empty() {
        return files::compare(&args.compare, args.report.as_deref());
    }
    args.report.iter().try_for_each(|path| files::check_page(path))?;
    let report = asked(args)?.tried()?;
    args.json.iter().try_for_each(|path| files::write(path, &report))?;
    verdicts::conclude(args.report.as_deref(), &report)
}

/// Creates the run that the options request.
fn asked(args: &Args) -> Result<Run<Guarded<Graded>>> {
    let (subject, settings) = match &args.subject {
        Some(name) => (name.clone(), Settings::default()),
        None => {
            let settings = args.device.settings()?;
            let told = Settings { memory_limit: settings.memory_limit, nb: settings.nb, reproducible: settings.reproducible };
            (args.device.selection()?.to_string(), told)
        }
    };
    Ok(Run {
        subject,
        settings,
        mode: args.mode(),
        seed: args.seed,
        filter: args.filter.clone(),
        selected: args.selected()?,
        json: args.json.clone(),
        resume: args.resume,
        limit: args.limit(),
    })
}

/// Opens the subject and runs its trials. The process that has started this process receives the reports.
fn work(args: &Args) -> Result<()> {
    let orders = Inbox::listen();
    let tried = match &args.subject {
        Some(name) => {
            Library::open(name).map_err(Failure::from).map(|library| worker::work(&Guarded(library), args.scope(), &orders))
        }
        None => opened(args).map(|graded| worker::work(&Guarded(graded), args.scope(), &orders)),
    };
    tried.unwrap_or_else(|failure| {
        send(&Message::Refused { status: failure.code(), message: failure.to_string() });
        Ok(())
    })
}

fn opened(args: &Args) -> Result<Graded> {
    let settings = args.device.settings()?;
    Ok(Graded::open(args.device.selection()?, &settings).map_err(|error| args.device.attribute_selection(error))?)
}
