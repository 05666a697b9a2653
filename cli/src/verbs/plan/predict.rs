//! Predictions of `lapidary plan --profile`: plans simulated with the measured times of a device.

use std::path::Path;

use lapidary::planning::{DeviceProfile, Schedule, Timeline};
use lapidary::{DType, Queue};
use serde_json::{Value, json};

use super::{Args, EACH_DEVICE, MAX_COMMANDS, events, problem};
use crate::bench::table::words;
use crate::failure::{Failure, Result};
use crate::io::atomic;
use crate::profile;
use crate::report::{counted, note, number, out, save_json, seconds};
use crate::shape::Shape;
use crate::trace;

/// The columns of a table after the sizes.
const COLUMNS: [&str; 10] =
    ["devices", "seconds", "GFLOP/s", "efficiency", "LD %", "EXEC %", "ST %", "idle %", "host GB/s", "limit"];

/// A simulated call on devices that are alike.
struct Prediction {
    shape: Shape,
    devices: usize,
    schedule: Schedule,
    timeline: Timeline,
    seconds: f64,
    shares: Vec<Shares>,
    /// Share of the time in which the panel chain of LU runs: tasks that update or factor a panel.
    panels: f64,
    /// Bytes that all devices together load from host memory and store there.
    transferred: usize,
}

/// Shares of the time in which the queues of one device are busy, and in which none of them is.
struct Shares {
    /// The shares of LD, EXEC and ST.
    busy: [f64; 3],
    idle: f64,
}

/// Why a call was not simulated.
struct Refusal {
    shape: Shape,
    devices: usize,
    failure: Failure,
}

/// Predicts the calls that the options describe, prints them, and writes the requested files.
pub fn run(args: &Args, path: &Path, shapes: &[Shape], dtype: DType) -> Result<()> {
    let profile = profile::read(path)?;
    if !profile.types.contains_key(&dtype) {
        return Err(Failure::file(path, format!("{dtype} is missing: the profile has no times for --dtype {dtype}")));
    }
    // the command ends with a usage error if the routine has no plan; otherwise, it would print a table without times
    shapes.iter().try_for_each(|shape| problem(shape, args.shape.nb()?, dtype).map(drop))?;
    if let ([shape], [devices]) = (shapes, &args.devices[..]) {
        let prediction = predict(args, &profile, shape, *devices, dtype)?;
        prediction.print(&profile, dtype);
        prediction.save(args)?;
        return save(args, &profile, dtype, &[prediction.json()]);
    }
    if args.trace.is_some() || args.dot.is_some() {
        return Err(Failure::usage("--trace and --dot show one plan: give one size with each flag, and one number of devices"));
    }
    out(&header(shapes));
    let mut rows = Vec::new();
    for shape in shapes {
        let mut alone = None;
        for &devices in &args.devices {
            let done =
                predict(args, &profile, shape, devices, dtype).map_err(|failure| Refusal { shape: *shape, devices, failure });
            match done {
                Ok(prediction) => {
                    alone = if devices == 1 { Some(prediction.seconds) } else { alone };
                    out(&prediction.row(alone));
                    rows.push(prediction.json());
                }
                Err(refusal) => {
                    note(&format!("{} is not simulated: {}", refusal.name(), refusal.failure));
                    out(&refusal.row());
                    rows.push(refusal.json());
                }
            }
        }
    }
    save(args, &profile, dtype, &rows)
}

/// Plans and simulates one call.
fn predict(args: &Args, profile: &DeviceProfile, shape: &Shape, devices: usize, dtype: DType) -> Result<Prediction> {
    let missing = || Failure::usage(format!("the profile has no times for {dtype}"));
    let (resources, costs) = (profile.resources(dtype, devices).ok_or_else(missing)?, profile.costs(dtype).ok_or_else(missing)?);
    let problem = problem(shape, args.shape.nb()?, dtype)?;
    problem.check(&resources).map_err(|small| small.of(EACH_DEVICE))?;
    let commands = problem.commands(&resources);
    if commands > MAX_COMMANDS {
        return Err(Failure::usage(format!("the plan takes {commands} commands, of which {MAX_COMMANDS} are allowed")));
    }
    let plan = problem.plan(&resources).map_err(|small| small.of(EACH_DEVICE))?;
    let reach = profile.reach(&plan);
    let schedule = Schedule::new(plan, vec![reach; devices]).map_err(|short| short.of(EACH_DEVICE))?;
    let timeline = schedule.simulate(&vec![costs; devices]);
    Ok(Prediction::new(*shape, devices, schedule, timeline))
}

impl Prediction {
    fn new(shape: Shape, devices: usize, schedule: Schedule, timeline: Timeline) -> Self {
        let seconds = timeline.seconds();
        let share = |covered: f64| covered / seconds.max(f64::MIN_POSITIVE);
        let of_device = |own: &Timeline| {
            let busy = Queue::ALL.map(|queue| share(own.covered(|entry| entry.lane.queue == queue)));
            // rounding errors of a device that is never idle must not print as -0
            Shares { busy, idle: (1.0 - share(own.covered(|_| true))).max(0.0) }
        };
        let shares = timeline.by_device(devices).iter().map(of_device).collect();
        let plan = schedule.plan();
        let mut is_panel = vec![false; plan.commands().len()];
        let panels = plan.tasks().iter().filter(|task| task.label.what == "panel");
        panels.for_each(|task| is_panel[task.commands.start as usize..task.commands.end as usize].fill(true));
        let panels = share(timeline.covered(|entry| is_panel[entry.issue.command as usize]));
        let bytes = timeline.entries.iter().map(|entry| match &plan.commands()[entry.issue.command as usize] {
            lapidary::planning::Command::Ld(ld) => plan.bytes_of(ld.tile),
            lapidary::planning::Command::St(st) => plan.bytes_of(st.tile),
            _ => 0,
        });
        let transferred = bytes.sum();
        Prediction { shape, devices, seconds, shares, panels, transferred, timeline, schedule }
    }

    fn gflops(&self) -> Option<f64> {
        self.shape.flops().map(|flops| flops / self.seconds / 1e9)
    }

    /// Bytes per second that all devices together move to and from host memory.
    fn host_traffic(&self) -> f64 {
        self.transferred as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Mean over the devices of a share of the time.
    fn mean(&self, share: impl Fn(&Shares) -> f64) -> f64 {
        self.shares.iter().map(share).sum::<f64>() / self.devices as f64
    }

    /// The resource that is busy for the largest share of the time.
    fn limit(&self) -> (&'static str, f64) {
        let queues = [("LD", 0), ("EXEC", 1), ("ST", 2)].map(|(name, queue)| (name, self.mean(|shares| shares.busy[queue])));
        // on one device, the tasks of panels are a part of the busy time of its queues
        let panels = ("panels", if self.devices > 1 { self.panels } else { 0.0 });
        queues.into_iter().chain([panels]).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(panels)
    }

    fn print(&self, profile: &DeviceProfile, dtype: DType) {
        let Prediction { shape, devices, .. } = self;
        let (routine, sizes) = (shape.routine.name(), words(&shape.sizes()));
        out(&format!(
            "{routine} {dtype} {sizes} on {} like {} ({})",
            counted(*devices, "device"),
            profile.name,
            profile.description
        ));
        let speed = self.gflops().map(|gflops| format!(", {gflops:.1} GFLOP/s")).unwrap_or_default();
        out(&format!("predicted time {}{speed}", seconds(self.seconds)));
        for (device, Shares { busy, idle }) in self.shares.iter().enumerate() {
            let [ld, exec, st, idle] = [busy[0], busy[1], busy[2], *idle].map(|share| 100.0 * share);
            out(&format!("device {device}: busy LD {ld:.0} %, EXEC {exec:.0} %, ST {st:.0} %; idle {idle:.0} %"));
        }
        let (limit, share) = self.limit();
        out(&format!(
            "limit: {limit} ({:.0} % of the time); transfers move {:.1} GB/s of host memory",
            100.0 * share,
            self.host_traffic() / 1e9
        ));
    }

    /// The row of a table. `alone` is the predicted time on one device.
    fn row(&self, alone: Option<f64>) -> String {
        let efficiency = alone.map_or("–".to_owned(), |alone| format!("{:.2}", alone / (self.seconds * self.devices as f64)));
        let gflops = self.gflops().map_or("–".to_owned(), |gflops| format!("{gflops:.0}"));
        let percent = |queue: usize| format!("{:.0}", 100.0 * self.mean(|shares| shares.busy[queue]));
        let [ld, exec, st] = [0, 1, 2].map(percent);
        let (idle, traffic) = (100.0 * self.mean(|shares| shares.idle), self.host_traffic() / 1e9);
        let (limit, share) = self.limit();
        format!(
            "| {} | {} | {:.4} | {gflops} | {efficiency} | {ld} | {exec} | {st} | {idle:.0} | {traffic:.0} | {limit} {:.0} % |",
            words(&self.shape.sizes()),
            self.devices,
            self.seconds,
            100.0 * share
        )
    }

    fn json(&self) -> Value {
        let device = |Shares { busy: [ld, exec, st], idle }: &Shares| json!({ "LD": ld, "EXEC": exec, "ST": st, "idle": idle });
        let (limit, share) = self.limit();
        json!({
            "sizes": self.shape.sizes().into_iter().collect::<std::collections::BTreeMap<_, _>>(), "devices": self.devices,
            "seconds": number(self.seconds), "gflops": self.gflops().map(number), "commands": self.schedule.plan().commands().len(),
            "shares": self.shares.iter().map(device).collect::<Vec<_>>(), "panel_share": number(self.panels),
            "limit": limit, "limit_share": number(share), "host_bytes_per_second": number(self.host_traffic()),
        })
    }

    /// Writes the timeline and the graph, if they are requested.
    fn save(&self, args: &Args) -> Result<()> {
        if let Some(path) = &args.trace {
            save_json(path, &trace::chrome(&events(&self.schedule, &self.timeline)))?;
        }
        args.dot.iter().try_for_each(|path| atomic::write(path, |file| write!(file, "{}", self.schedule.dot())))
    }
}

impl Refusal {
    fn name(&self) -> String {
        format!("{} {} on {}", self.shape.routine.name(), words(&self.shape.sizes()), counted(self.devices, "device"))
    }

    fn row(&self) -> String {
        format!("| {} | {} |{} not simulated |", words(&self.shape.sizes()), self.devices, " – |".repeat(COLUMNS.len() - 2))
    }

    fn json(&self) -> Value {
        let sizes: std::collections::BTreeMap<_, _> = self.shape.sizes().into_iter().collect();
        json!({ "sizes": sizes, "devices": self.devices, "not_simulated": self.failure.to_string() })
    }
}

/// The first two lines of a table.
fn header(shapes: &[Shape]) -> String {
    let routine = shapes.first().map_or("", |shape| shape.routine.name());
    format!("| {routine} | {} |\n|{}", COLUMNS.join(" | "), "---|".repeat(1 + COLUMNS.len()))
}

fn save(args: &Args, profile: &DeviceProfile, dtype: DType, predictions: &[Value]) -> Result<()> {
    let document = json!({
        "routine": args.shape.routine().name(), "dtype": dtype.to_string(), "profile": profile.name,
        "description": profile.description, "predictions": predictions,
    });
    args.json.iter().try_for_each(|path| save_json(path, &document))
}
