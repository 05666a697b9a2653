//! `lapidary conformance`: proves a device right, or shows where it is not, and grades it.

use std::path::PathBuf;
use std::time::Duration;

use lapidary_conformance::foreign::Library;
use lapidary_conformance::report::{Mode, Settings};
use lapidary_conformance::suite::{Property, properties, selects};
use lapidary_conformance::{Guarded, Scope};

use crate::conformance::message::{Message, Orders};
use crate::conformance::run::Run;
use crate::conformance::{Graded, files, verdicts, worker};
use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::options::DeviceOptions;
use crate::report::out;

/// Flags of the verb.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true)]
pub struct Args {
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// A shared library of BLAS and LAPACK to try in place of devices:
    /// blas:PATH[,PATH…][#fortran][#lp64|#ilp64][#prefix=P,suffix=S]
    #[arg(long, value_name = "blas:PATH", conflicts_with_all = ["device", "memory_limit"])]
    subject: Option<String>,
    /// Every property, in about a minute on a device that a processor stands in for (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// More cases, and sizes beyond the tiles of a graphics card
    #[arg(long)]
    full: bool,
    /// Only trials that have this in their name, or with * and ? are called so
    #[arg(long, value_name = "QUERY")]
    filter: Option<String>,
    /// Seed of the random cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the trials and their worst figures here, after each trial; - is standard output, at the end
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with plots here
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Go on where the run that wrote the --json file was cut off
    #[arg(long, requires = "json")]
    resume: bool,
    /// End a trial that takes longer, as failed [default: for devices 1200, with --full 7200; for --subject 300 and 1800]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Run nothing, and put reports that runs have written by --json side by side on the page
    #[arg(long, value_name = "FILE.json", num_args = 1.., requires = "report", conflicts_with_all = RUNS)]
    compare: Vec<PathBuf>,
    /// List the trials, those of --filter or all, without running them
    #[arg(long, conflicts_with_all = LISTS_NOTHING)]
    list: bool,
    /// Try in this process, and tell the one that has started it
    #[arg(long, hide = true)]
    here: bool,
}

/// Flags that say what to run.
const RUNS: &[&str] =
    &["device", "memory_limit", "subject", "quick", "full", "filter", "seed", "json", "resume", "timeout", "list"];

/// Flags that change nothing in the list of the trials.
const LISTS_NOTHING: &[&str] =
    &["device", "memory_limit", "subject", "quick", "full", "seed", "json", "report", "resume", "timeout"];

const HELP: &str = "\
Each trial is one property in one precision: f64::gemm::nan_propagates. A run depends on nothing but
the seed. The exit status is 1 if a trial fails that is not known to, and 2 if none applies
(docs/conformance.md).

Examples:
  lapidary conformance --device opencl:0 --json opencl.json --report opencl.html
  lapidary conformance --device wgpu:0 --full --json wgpu.json --resume
  lapidary conformance --device cpu:0 --filter 'f64::gemm::*'
  lapidary conformance --subject blas:libopenblas.so.0 --json openblas.json
  lapidary conformance --compare opencl.json openblas.json --report both.html";

/// A trial, used here by name only; the type of its subject does not matter.
type Trial = Property<Guarded<Graded>>;

impl Args {
    /// Whether devices are opened.
    pub fn opens_devices(&self) -> bool {
        self.subject.is_none() && self.compare.is_empty() && !self.list
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

    /// How long a trial may take. A driver may compile for minutes what it runs for the first time.
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

/// Tries what is asked for.
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

/// What is asked for.
fn asked(args: &Args) -> Result<Run<Guarded<Graded>>> {
    let (subject, settings) = match &args.subject {
        Some(name) => (name.clone(), Settings::default()),
        None => {
            let settings = args.device.settings()?;
            let told = Settings { memory_limit: settings.memory_limit, nb: settings.nb };
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

/// Opens the subject and runs its trials, as the process that has started this one asks.
fn work(args: &Args) -> Result<()> {
    let orders = Orders::listen();
    let tried = match &args.subject {
        Some(name) => {
            Library::open(name).map_err(Failure::from).map(|library| worker::work(&Guarded(library), args.scope(), &orders))
        }
        None => opened(args).map(|graded| worker::work(&Guarded(graded), args.scope(), &orders)),
    };
    tried.unwrap_or_else(|failure| {
        Message::Refused { status: failure.code(), message: failure.to_string() }.send();
        Ok(())
    })
}

fn opened(args: &Args) -> Result<Graded> {
    let settings = args.device.settings()?;
    Ok(Graded::open(args.device.selection()?, &settings).map_err(|error| args.device.told(error))?)
}
