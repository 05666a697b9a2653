//! `lapidary plan`: shows how a routine would run according to a cost model, without running it.

mod predict;

use std::collections::BTreeMap;
use std::path::PathBuf;

use lapidary::backend::Value as Factor;
use lapidary::planning::algorithms::{Problem, gemm, getrf, getrs, laswp, trsm};
use lapidary::planning::{CostModel, Reach, Resources, Schedule, Timeline};
use lapidary::{DType, Layout, Machine, Op, Queue, Routine, Side};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::options::{DTypeFlag, parse_bytes, parse_positive};
use crate::report::{number, out, save_json};
use crate::shape::{Shape, ShapeOptions};
use crate::trace::{self, Event};

/// Options of `lapidary plan`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true)]
pub struct Args {
    #[command(flatten)]
    shape: ShapeOptions,
    /// Element type of the matrices
    #[arg(long, value_enum, default_value = "f64")]
    dtype: DTypeFlag,
    /// Number of devices, which are all alike, or a list of such numbers, which needs --profile
    #[arg(long, default_value = "1", value_delimiter = ',', value_name = "D", value_parser = parse_positive)]
    devices: Vec<usize>,
    /// Predict the call with the measured times in FILE, which `bench profile` wrote, in place of a cost model. Prints no commands.
    /// With several sizes or several numbers of devices, prints a table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gflops", "bandwidth", "latency", "memory_limit", "queues"])]
    profile: Option<PathBuf>,
    /// Number of kernel queues of the only device, on which the matrices lie
    /// [default: one queue; the matrices lie in host memory]
    #[arg(long, value_name = "Q", value_parser = parse_positive)]
    queues: Option<usize>,
    /// Memory of each device for copies, for example 512M or 2G [default: the devices work in host memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory_limit: Option<usize>,
    /// Speed of a device in GFLOP/s [default: estimated for this CPU]
    #[arg(long, value_name = "GFLOPS")]
    gflops: Option<f64>,
    /// Speed of a transfer in GB/s; needs --memory-limit [default: estimated for this CPU]
    #[arg(long, value_name = "GB/S")]
    bandwidth: Option<f64>,
    /// Latency of a command in microseconds
    #[arg(long, default_value_t = 5.0, value_name = "US")]
    latency: f64,
    /// Write the figures of the plan as JSON to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the timeline to FILE.json, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// Write the commands and their dependencies to FILE, for Graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
}

const HELP: &str = "\
The cost model counts floating-point operations and transfers, so that row exchanges (laswp) take
only the latency. Plan getrf and getrs in place of gesv, and one size at a time.

Examples:
  lapidary plan gemm --n 4096 --devices 2 --memory-limit 256M
  lapidary plan getrf --n 2000 --memory-limit 16M --trace lu.json
  lapidary plan getrf --n 4096 --nb 512 --queues 2
  lapidary plan getrf --n 10000,30000 --devices 1,2,4 --profile gpu.json
  lapidary plan trsm --n 3000 --dot trsm.dot && dot -Tsvg trsm.dot > trsm.svg";

/// Builds the plan, schedules and simulates it, and prints the result.
pub fn run(args: &Args) -> Result<()> {
    args.json.iter().chain(&args.trace).chain(&args.dot).try_for_each(|path| atomic::check_folder(path))?;
    if let Some(path) = args.trace.as_ref().filter(|path| path.extension().is_none_or(|extension| extension != "json")) {
        return Err(Failure::file(path, "--trace writes JSON for a viewer, name a file that ends in .json"));
    }
    io::check_distinct(&[("--json", args.json.as_ref()), ("--trace", args.trace.as_ref()), ("--dot", args.dot.as_ref())])?;
    if let Some(devices) = args.devices.iter().find(|&&devices| devices > MAX_DEVICES) {
        return Err(Failure::usage(format!("--devices {devices}: at most {MAX_DEVICES} can be planned")));
    }
    if let Some(path) = &args.profile {
        return predict::run(args, path, &args.shape.shapes()?, args.dtype.into());
    }
    let [devices] = args.devices[..] else {
        let listed: Vec<String> = args.devices.iter().map(ToString::to_string).collect();
        let message = "a list of numbers needs a profile: add --profile FILE (see `lapidary bench profile`), or give one number";
        return Err(Failure::usage(format!("--devices {}: {message}", listed.join(","))));
    };
    if args.bandwidth.is_some() && args.memory_limit.is_none() {
        return Err(Failure::usage("--bandwidth means nothing without --memory-limit: devices in host memory transfer nothing"));
    }
    if args.queues.is_some() && (devices > 1 || args.memory_limit.is_some()) {
        return Err(Failure::usage("--queues plans matrices that lie on one device: it takes no --memory-limit and one device"));
    }
    let shapes = args.shape.shapes()?;
    let [shape] = shapes[..] else {
        return Err(Failure::usage(format!("{} sizes cannot be planned at once: give one size with each flag", shapes.len())));
    };
    show(args, &shape, args.dtype.into(), devices)
}

fn show(args: &Args, shape: &Shape, dtype: DType, devices: usize) -> Result<()> {
    let resident = args.queues.is_some();
    let resources = Resources { resident, ..Resources::alike(devices, args.memory_limit, dtype.size()) };
    let nb = args.shape.nb()?;
    let problem = problem(shape, nb, dtype)?;
    problem.check(&resources).map_err(|small| small.of(LIMITED_DEVICE))?;
    check_length(&problem, &resources)?;
    let plan = problem.plan(&resources).map_err(|small| small.of(LIMITED_DEVICE))?;
    let reach = Reach {
        memory: args.memory_limit.unwrap_or(usize::MAX),
        in_place: vec![args.memory_limit.is_none(); plan.matrices().len()],
        flops: costs(args)?.flops,
        queues: args.queues.unwrap_or(1),
    };
    let schedule = Schedule::new(plan, vec![reach; devices]).map_err(|short| short.of(LIMITED_DEVICE))?;
    let timeline = schedule.simulate(&vec![costs(args)?; devices]);
    out(schedule.print(&timeline).to_string().trim_end());
    if let Some(path) = &args.json {
        save_json(path, &figures(args, shape, &schedule, &timeline))?;
    }
    if let Some(path) = &args.trace {
        save_json(path, &trace::chrome(&events(&schedule, &timeline)))?;
    }
    if let Some(path) = &args.dot {
        atomic::write(path, |file| write!(file, "{}", schedule.dot()))?;
    }
    Ok(())
}

/// Refuses a plan with too many commands, which would take hours to print.
fn check_length(problem: &Problem, resources: &Resources) -> Result<()> {
    let commands = problem.commands(resources);
    if commands > MAX_COMMANDS {
        let message = format!("the plan takes {commands} commands; plan a smaller size, or larger panels (--nb, for LU)");
        return Err(Failure::usage(message));
    }
    Ok(())
}

/// Name in messages of the devices of a plan, whose memory an option limits. One name is enough, since all devices of a plan are alike.
const LIMITED_DEVICE: &str = "each device (--memory-limit)";
/// Name in messages of the devices of a plan, whose memory a profile states.
const EACH_DEVICE: &str = "each device";
/// Maximum number of commands in a plan. Users do not read longer plans.
const MAX_COMMANDS: usize = 1_000_000;
/// Maximum number of devices in a plan, which is more than any machine has.
const MAX_DEVICES: usize = 1024;

/// The problem for which the library would make a plan if this call were run.
fn problem(shape: &Shape, nb: Option<usize>, dtype: DType) -> Result<Problem> {
    let Shape { m, n, k, nrhs, op_b, a, mode, .. } = *shape;
    let [alpha, beta] = [1.0, 0.0].map(|number| Factor::new(dtype, number));
    Ok(match shape.routine {
        Routine::Gemm => Problem::Gemm(gemm::Problem { m, n, k, alpha, op_a: a.op, op_b, beta }),
        Routine::Trsm => Problem::Trsm(trsm::Problem { m, n, side: a.side, uplo: a.uplo, op: a.op, diag: a.diag, alpha, mode }),
        Routine::Getrf => Problem::Getrf { problem: getrf::Problem::pivoted((m, n), Layout::ColMajor, dtype), nb },
        Routine::Getrs => Problem::Getrs(getrs::Problem::new(n, nrhs, Op::NoTrans, dtype)),
        Routine::Laswp => Problem::Laswp(laswp::Problem { m, n, pivots: m.min(n), side: Side::Left, forward: true, dtype }),
        Routine::Gesv => return Err(Failure::usage("gesv is getrf followed by getrs: plan getrf and getrs")),
    })
}

/// The cost model of one device: the values of the options, and for missing options the estimates for `cpu:0`.
fn costs(args: &Args) -> Result<CostModel> {
    let positive = 1e-9..=f64::INFINITY;
    let gflops = args.gflops.map(|gflops| ("gflops", gflops, positive.clone()));
    let bandwidth = args.bandwidth.map(|bandwidth| ("bandwidth", bandwidth, positive));
    let latency = Some(("latency", args.latency, 0.0..=1e6));
    if let Some((option, value, range)) =
        [gflops, bandwidth, latency].into_iter().flatten().find(|(_, value, range)| !range.contains(value))
    {
        return Err(Failure::usage(format!("--{option} {value:?}: must be from {:?} to {:?}", range.start(), range.end())));
    }
    let machine = Machine::open(&"cpu:0".parse()?)?;
    let rates = machine.devices().next().ok_or_else(|| Failure::check("cpu:0 did not open"))?.rates;
    Ok(CostModel {
        flops: args.gflops.map_or(rates.flops, |gflops| gflops * 1e9),
        bandwidth: args.bandwidth.map_or(rates.bandwidth, |bandwidth| bandwidth * 1e9),
        latency: args.latency * 1e-6,
    })
}

/// The plan and its simulated times as JSON.
fn figures(args: &Args, shape: &Shape, schedule: &Schedule, timeline: &Timeline) -> Value {
    let (plan, seconds, devices) = (schedule.plan(), timeline.seconds(), schedule.reach().len());
    let busy = |device| -> Map<String, Value> {
        [Queue::Ld, Queue::Exec, Queue::St]
            .map(|queue| (queue.to_string(), timeline.busy(device, queue).into()))
            .into_iter()
            .collect()
    };
    json!({
        "routine": shape.routine.name(), "dtype": plan.dtype().to_string(),
        "sizes": shape.sizes().into_iter().collect::<BTreeMap<_, _>>(), "flags": shape.flags().into_iter().collect::<BTreeMap<_, _>>(),
        "devices": devices, "memory_limit": args.memory_limit, "tasks": plan.tasks().len(), "commands": plan.commands().len(),
        "seconds": seconds, "gflops": shape.flops().map(|flops| number(flops / seconds / 1e9)),
        "busy_seconds": (0..devices).map(busy).collect::<Vec<_>>(),
    })
}

fn events(schedule: &Schedule, timeline: &Timeline) -> Vec<Event> {
    let entries = timeline.entries.iter();
    let events = entries.map(|entry| Event {
        device: entry.lane.device,
        queue: entry.lane.queue.to_string(),
        label: schedule.plan().describe(entry.issue.command),
        kind: entry.lane.queue.to_string(),
        start: entry.start,
        end: entry.end,
    });
    events.collect()
}
