//! The commands of the program, with one source file for each command.

mod bench;
mod cache;
mod conformance;
mod devices;
mod hpl;
mod kernel;
mod plan;
mod solve;
mod tune;

use clap::{Parser, Subcommand};

use lapidary::Settings;
use lapidary::probe::{LeftOut, leave_out_failing_drivers};

use crate::failure::{Failure, Result};
use crate::io::temporary;
use crate::options::DeviceOptions;
use crate::report::note;

/// Dense linear algebra on any number of CPUs and GPUs
#[derive(Parser, Debug)]
#[command(name = "lapidary", version, about, after_help = STATUS)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const STATUS: &str = "\
Exit status: 0 success, 1 a check failed or a result could not be written, 2 wrong usage or input,
3 no such device, 130 interrupted (Ctrl-C).

Examples:
  lapidary devices
  lapidary solve A.mtx b.csv -o x.npy
  lapidary bench gemm --n 512,1024,2048 --plot gemm.svg
  lapidary hpl --n 4000
  lapidary tune --device opencl:0
  lapidary conformance --device opencl:0 --report opencl.html";

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the devices that can be used
    Devices(devices::Args),
    /// Solve A·X = B for matrices in files
    Solve(solve::Args),
    /// Time a routine and check its result
    Bench(bench::Args),
    /// Run the Linpack benchmark and check its residual
    Hpl(hpl::Args),
    /// Show how a routine would run, without running it
    Plan(plan::Args),
    /// Print the text of the kernels that a call uses
    Kernel(kernel::Args),
    /// Search for the fastest kernels of a device
    Tune(tune::Args),
    /// Test whether a device or a library computes correctly, and grade its accuracy
    Conformance(conformance::Args),
    /// List or remove the compiled programs and the measured speeds on disk
    Cache(cache::Args),
}

impl Verb {
    /// The options that select devices. `None` if the command opens no device.
    fn devices(&self) -> Option<&DeviceOptions> {
        match self {
            Verb::Devices(args) => Some(&args.device),
            Verb::Solve(args) => Some(&args.device),
            Verb::Bench(args) => Some(args.devices()),
            Verb::Hpl(args) => Some(&args.device),
            Verb::Kernel(args) => Some(&args.device),
            Verb::Tune(args) => args.opens_devices().then_some(&args.device),
            Verb::Conformance(args) => args.opens_devices().then_some(&args.device),
            Verb::Plan(_) | Verb::Cache(_) => None,
        }
    }

    /// Whether this process works for another process of this program.
    fn is_worker(&self) -> bool {
        match self {
            Verb::Tune(args) => args.is_worker(),
            Verb::Conformance(args) => args.is_worker(),
            Verb::Bench(args) => args.is_worker(),
            Verb::Devices(_) | Verb::Solve(_) | Verb::Hpl(_) | Verb::Plan(_) | Verb::Kernel(_) | Verb::Cache(_) => false,
        }
    }

    /// The settings with the folder of tuned kernels that the devices of the command use. `None` if the command opens no device with
    /// tuned kernels, or if it runs for another process of this program, which has named the damaged lines.
    fn tuned_kernels(&self) -> Result<Option<Settings>> {
        match self {
            Verb::Tune(args) if args.opens_devices() && !args.is_worker() => args.settings().map(Some),
            Verb::Conformance(args) if args.opens_devices() && !args.is_worker() => args.device.settings().map(Some),
            Verb::Bench(args) if args.is_startup() => Ok(None),
            Verb::Devices(_) | Verb::Solve(_) | Verb::Bench(_) | Verb::Hpl(_) | Verb::Kernel(_) => {
                Settings::from_env().map(Some).map_err(Failure::from)
            }
            Verb::Plan(_) | Verb::Tune(_) | Verb::Conformance(_) | Verb::Cache(_) => Ok(None),
        }
    }
}

/// Runs the command that the command line names.
///
/// # Safety
/// The process must have no other thread.
pub unsafe fn run(cli: &Cli) -> Result<()> {
    let tell = |text: &str| note(&format!("note: {text}"));
    let _left_out = match cli.verb.devices() {
        // SAFETY: the caller guarantees that the process has no other thread.
        Some(devices) => unsafe { leave_out_failing_drivers(&devices.selection()?, &devices.settings()?, tell)? },
        None => LeftOut::default(),
    };
    // the watching process ends a worker process
    if !cli.verb.is_worker() {
        temporary::watch_signals();
    }
    if let Some(settings) = cli.verb.tuned_kernels()? {
        settings.user_kernels().1.iter().for_each(|problem| tell(problem));
    }
    let done = match &cli.verb {
        Verb::Devices(args) => devices::run(args),
        Verb::Solve(args) => solve::run(args),
        Verb::Bench(args) => bench::run(args),
        Verb::Hpl(args) => hpl::run(args),
        Verb::Plan(args) => plan::run(args),
        Verb::Kernel(args) => kernel::run(args),
        Verb::Tune(args) => tune::run(args),
        Verb::Conformance(args) => conformance::run(args),
        Verb::Cache(args) => cache::run(args),
    };
    let source = cli.verb.devices().and_then(DeviceOptions::memory_limit_source);
    done.map_err(|failure| source.into_iter().fold(failure, Failure::attribute_memory_limit))
}
