//! One run of `lapidary tune`: the searches of all calls, one after the other.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapidary::backend::Conditions;
use lapidary::kernels::database::{Database, Kernel};
use lapidary::kernels::space::Task;
use lapidary::kernels::{Launch, Threshold, Tuning, launches};
use lapidary::{Accuracy, DType, Settings};

use super::super::kernel::{instruction, product_used};
use lapidary_tune::RUNS;

use super::Args;
use crate::bench::fit::check_device;
use crate::failure::{Failure, Result};
use crate::memory;
use crate::progress::Progress;
use crate::report::note;
use crate::tune::goal::{Device, Goal, preferred};
use crate::tune::message::{Call, Job};
use crate::tune::meter::Meter;
use crate::tune::pictures;
use crate::tune::results::{Winner, readable, save, slug};
use crate::tune::search::{Candidate, Lock, Plan, Shown};
use crate::tune::sizes;

/// One run of the command.
pub(super) struct Session<'a> {
    args: &'a Args,
    device: Device,
    /// The database that the device uses before the run.
    database: Database,
    /// The kernels of this database for the device.
    tuning: Tuning,
    /// Whether the user has interrupted the program.
    interrupted: &'static AtomicBool,
    meter: Meter,
}

impl<'a> Session<'a> {
    pub(super) fn new(args: &'a Args, device: Device, database: Database, interrupted: &'static AtomicBool) -> Self {
        let tuning = Tuning::lookup(&database, &device.facts, device.dialect());
        Session { args, device, database, tuning, interrupted, meter: Meter::new(Duration::from_secs(args.timeout)) }
    }

    /// Tunes all calls whose elements have one of the types `dtypes`.
    pub(super) fn tune(mut self, dtypes: &[DType]) -> Result<()> {
        let kernels = self.args.kernels(&self.device)?;
        let calls = self.calls(dtypes)?;
        let mut searches: Vec<Vec<Goal>> = calls.iter().map(|call| self.goals(call, &kernels)).collect::<Result<_>>()?;
        if self.args.device.explain {
            searches.iter().flatten().for_each(|goal| note(&goal.explain()));
        }
        let combinations: usize = searches.iter().flatten().map(|goal| goal.space.total()).sum();
        searches.iter_mut().for_each(|goals| goals.retain(|goal| !goal.space.is_empty()));
        let count = searches.iter().flatten().count();
        if count == 0 {
            return Err(self.nothing_to_search(&kernels, combinations));
        }
        if self.args.budget == 0.0 {
            return Ok(());
        }
        calls.iter().try_for_each(|call| self.check_memory(call))?;
        let folder = self.args.folder()?;
        // a damaged file of results is reported before the searches, and not after them
        searches.iter().flatten().try_for_each(|goal| readable(&folder, &self.device, goal.kernel_at(0).family()))?;
        let plan = Plan {
            method: self.args.strategy,
            seed: self.args.seed,
            budget: self.args.budget / count as f64,
            journals: folder.join("journals").join(slug(&self.device, &self.args.task)),
            is_paranoid: self.args.paranoid,
            interrupted: self.interrupted,
        };
        let _lock = Lock::take(&plan.journals)?;
        let progress = Progress::new(self.args.budget.ceil() as usize).ticking();
        progress.println(&format!("{} on {} ({})", self.args.task, self.device.facts.name, self.device.facts.description));
        for (number, goals) in searches.iter().enumerate() {
            if !plan.interrupted.load(Ordering::Relaxed) {
                let before = self.args.budget * number as f64 / searches.len() as f64;
                self.tune_call(&plan, goals, &folder, (&progress, before))?;
            }
        }
        drop(progress);
        self.document(&plan, &searches.iter().flatten().collect::<Vec<_>>())?;
        match plan.interrupted.load(Ordering::Relaxed) {
            true => Err(Failure::interrupted("interrupted; the same command continues")),
            false => Ok(()),
        }
    }

    /// Tunes one call and writes its fastest kernel, which may be the kernel in use.
    fn tune_call(&mut self, plan: &Plan<'_>, goals: &[Goal], folder: &Path, (progress, before): (&Progress, f64)) -> Result<()> {
        let Some(goal) = goals.first() else { return Ok(()) };
        let words = goal.call.words()?;
        let flops = goal.call.flops()?;
        let used = self.used(&goal.call)?;
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
        progress.advance(before + plan.budget * goals.len() as f64, &format!("{words}: the fastest candidates are compared"));
        let ranked = plan.compare(goal, &self.device, candidates, &mut self.meter)?;
        let incumbent = ranked.iter().find(|candidate| Some(candidate.kernel) == used);
        if let Some(Candidate { kernel: Kernel::Threshold(threshold, value), seconds }) = ranked.first()
            && self.tuning.threshold(*threshold, goal.call.dtype()) == *value
        {
            progress.println(&format!("{words}: {}, the value in use is the fastest: {}", shown.speed(*seconds), ranked[0].kernel));
            return Ok(());
        }
        if let (None, Some(best)) = (used, ranked.first())
            && let Some(seconds) = self.seconds_in_use(goal)?
            && seconds < best.seconds * LEAST_GAIN
        {
            progress.println(&format!("{words}: {}, no candidate tried is faster than the kernels in use", shown.speed(seconds)));
            return Ok(());
        }
        for best in &ranked {
            let stays = incumbent.filter(|incumbent| incumbent.seconds < best.seconds * LEAST_GAIN);
            let Candidate { kernel, seconds } = *stays.unwrap_or(best);
            if stays.is_none()
                && let Err(reason) = self.meter.check_edges(&goal.call, &preferred(kernel, goal.call.dtype()))?
            {
                progress.note(&format!("note: {kernel} is left out: {reason}"));
                continue;
            }
            // without an entry for this call, an entry for another size would apply to it
            let winner = Winner { call: goal.call.clone(), kernel, measurement: self.measurement(goal, seconds, flops) };
            let (speed, path) = (shown.speed(seconds), save(folder, &self.device, &winner)?);
            let change = if stays.is_some() { ", the kernel in use is the fastest:" } else { " " };
            let before = incumbent.filter(|_| stays.is_none()).map(|old| format!("{} → ", shown.speed(old.seconds)));
            progress.println(&format!("{words}: {}{speed}{change} {kernel}  ({})", before.unwrap_or_default(), path.display()));
            self.note_precedence(&goal.call, kernel, folder, progress);
            return Ok(());
        }
        progress.println(&format!("{words}: no candidate has computed a right result"));
        Ok(())
    }

    /// The median time of a call with the kernels in use. `None` if the call fails.
    fn seconds_in_use(&mut self, goal: &Goal) -> Result<Option<f64>> {
        let job = Job { call: goal.call.clone(), entries: String::new(), runs: RUNS };
        Ok(self.meter.run(&job)?.ok().map(|timing| timing.seconds))
    }

    /// Prints a note if an entry of another file takes precedence over the entry that was written.
    fn note_precedence(&self, call: &Call, kernel: Kernel, folder: &Path, progress: &Progress) {
        let Kernel::Product(written) = kernel else { return };
        let settings = Settings::default().kernels_dir(folder);
        let tuning = Tuning::lookup(&settings.kernel_database().0, &self.device.facts, self.device.dialect());
        let first = tuning.products(call.dtype(), call.sizes).next().filter(|&first| first != written);
        if let Some(origin) = first.and_then(|first| tuning.origin(call.dtype(), call.sizes, first)) {
            progress.note(&format!("note: {origin} takes precedence over the new entry; remove that line to use the new one"));
        }
    }

    /// The kernel that a product uses before it is tuned, or the blocks of the CPU backend. `None` for other tasks, whose calls use several
    /// kernels. For a product with too many launches to be listed, this is the first kernel that the database names.
    fn used(&self, call: &Call) -> Result<Option<Kernel>> {
        let dtype = call.dtype();
        if call.task()? != Task::Gemm {
            return Ok(None);
        }
        if self.device.language.is_none() {
            return Ok(self.database.cpu_blocks(&self.device.facts, dtype).map(Kernel::Cpu));
        }
        let used = match self.launches(call)? {
            Some(launches) => product_used(&launches, &self.tuning, (dtype, Accuracy::default()), call.sizes),
            None => self.tuning.products(dtype, call.sizes).next(),
        };
        Ok(used.map(Kernel::Product))
    }

    /// The launches of a call with the kernels in use. `None` if there are too many to be listed.
    fn launches(&self, call: &Call) -> Result<Option<Vec<Launch>>> {
        let dtype = call.dtype();
        Ok(launches(&self.device.facts, &self.tuning, dtype, &instruction(&call.shape()?, dtype)?, Conditions::default()).ok())
    }

    fn measurement(&self, goal: &Goal, seconds: f64, flops: Option<f64>) -> String {
        let [m, n, k] = goal.call.sizes;
        let speed = flops.map_or_else(String::new, |flops| format!("gflops={:.1} ", flops / seconds / 1e9));
        let driver = &self.device.facts.identity.driver;
        format!("{speed}seconds={seconds:.3e} m={m} n={n} k={k} kernels={} driver={driver}", lapidary::kernels::GENERATOR)
    }

    /// The calls to tune: those of the command line, or three orders, of which the largest takes about a fifth of a second, and a
    /// narrow product.
    fn calls(&mut self, dtypes: &[DType]) -> Result<Vec<Call>> {
        let (mut calls, task) = (Vec::new(), self.args.task());
        let named = self.args.sizes.calls(task)?;
        for &dtype in dtypes {
            let mut sizes = if named.is_empty() { sizes::defaults(task, &self.orders(dtype)?) } else { named.clone() };
            if named.is_empty() && self.device.language.is_none() {
                // an entry for the CPU backend applies to all sizes
                sizes.truncate(1);
            }
            calls.extend(sizes.into_iter().map(|sizes| Call { sizes, ..self.args.call(dtype, sizes[1]) }));
        }
        Ok(calls)
    }

    fn orders(&mut self, dtype: DType) -> Result<Vec<usize>> {
        if self.args.budget == 0.0 || sizes::are_fixed(self.args.task()) {
            return Ok(vec![ORDERS[ORDERS.len() - 1]]);
        }
        let call = self.args.call(dtype, PROBE);
        let timed = self.meter.run(&Job { call, entries: String::new(), runs: 3 })?;
        let timing = timed.map_err(|reason| Failure::check(format!("the kernel in use does not run: {reason}")))?;
        let takes = |n: usize| timing.seconds * (n as f64 / PROBE as f64).powi(3);
        let largest = ORDERS.into_iter().find(|&n| takes(n) <= LONGEST_SECONDS).unwrap_or(PROBE);
        Ok(vec![largest, largest / 4, largest / 16])
    }

    /// Fails if the matrices of a call do not fit into memory, before a search takes time.
    fn check_memory(&self, call: &Call) -> Result<()> {
        let (what, shapes, facts) = (call.words()?, call.operands()?, &self.device.facts);
        check_device(&what, &shapes, call.dtype(), facts)?;
        // the worker process holds the operands before and after a call, and those on a device that works in host memory
        let copies = if facts.host_memory { 3 } else { 2 };
        let elements = shapes.iter().map(|(rows, cols)| rows.saturating_mul(*cols)).fold(0, usize::saturating_add);
        memory::check(&what, elements.saturating_mul(copies * call.dtype().size()))
    }

    /// The searches for a call. Prints the reason for each kernel that is not searched, if the options ask for it.
    fn goals(&self, call: &Call, kernels: &[&'static str]) -> Result<Vec<Goal>> {
        let goals = kernels.iter().map(|kernel| Goal::new(call.clone(), kernel, &self.device, &self.args.values));
        let goals: Vec<Goal> = goals.collect::<Result<_>>()?;
        let (task, launches) = (self.args.task(), self.launches(call)?.unwrap_or_default());
        // kernels with barriers take minutes to compile for a CPU, and are slower there
        let compiles = |goal: &Goal| self.device.language.is_none() || !self.device.facts.is_cpu() || goal.kernel == "gemm_panel";
        // where there is a kernel `solve`, the kernels of `triangle` solve no system
        let is_of_task = |goal: &Goal| task != Task::Trsm || goal.kernel != "triangle";
        let depends = |threshold: Threshold| launches.iter().any(|launch| threshold.concerns(launch.kernel));
        if let Some(threshold) = self.args.kernel.as_deref().and_then(Threshold::named).filter(|&threshold| !depends(threshold)) {
            let message = format!("no kernel of {} depends on {} on {}", call.words()?, threshold.name(), self.device.facts.name);
            return Err(Failure::usage(message));
        }
        if let Some(goal) = goals.iter().find(|goal| self.args.kernel.as_deref() == Some(goal.kernel) && !self.is_launched(goal)) {
            let message = format!("{} does not launch {} on {}", call.words()?, goal.kernel, self.device.facts.name);
            return Err(Failure::usage(format!("{message}: name other sizes (`lapidary kernel` shows the launches of a call)")));
        }
        let reason_against = |goal: &Goal| match Threshold::named(goal.kernel) {
            _ if self.args.kernel.is_some() => None,
            Some(threshold) => (!depends(threshold)).then_some("no kernel of the call depends on it"),
            None if !compiles(goal) => Some("kernels with barriers take minutes to compile for a CPU, and are slower there"),
            None if !is_of_task(goal) => Some("the kernel `solve` takes its place"),
            None if !self.is_launched(goal) => Some("the call does not launch it"),
            None => None,
        };
        let mut suited = Vec::new();
        for goal in goals {
            match reason_against(&goal) {
                None => suited.push(goal),
                Some(reason) if self.args.device.explain => {
                    note(&format!("{} for {}: not searched, because {reason}", goal.kernel, call.words()?));
                }
                Some(_) => {}
            }
        }
        Ok(suited)
    }

    /// Whether a triangular solve launches the kernel with the parameters of a point, if the device uses no other kernel of its family. Other calls
    /// launch the kernels of their tasks, or fail.
    fn is_launched(&self, goal: &Goal) -> bool {
        let (dtype, facts) = (goal.call.dtype(), &self.device.facts);
        let launches_point = |point| {
            let (kernel, entries) = (goal.kernel_at(point), goal.job(point, 1).entries);
            let tuning = self.tuning.clone().preferring(&entries, facts, self.device.dialect());
            let instruction = goal.call.shape().and_then(|shape| instruction(&shape, dtype));
            let (Ok(tuning), Ok(instruction)) = (tuning, instruction) else { return true };
            let launches = launches(facts, &tuning, dtype, &instruction, Conditions::default());
            launches.map_or(true, |launches| launches.iter().any(|launch| launch.is_of(kernel)))
        };
        let points = goal.space.len();
        let is_group = points > 0 && matches!(goal.kernel_at(0), Kernel::Group(..));
        self.args.task() != Task::Trsm || !is_group || (0..points).any(launches_point)
    }

    /// The failure of a run without any candidate. `combinations` is the number of combinations of values that were left out.
    fn nothing_to_search(&self, kernels: &[&str], combinations: usize) -> Failure {
        let (device, kernels) = (&self.device.facts.name, kernels.join(", "));
        Failure::usage(match combinations {
            0 => format!("no kernel of {} is worth trying on {device}; --kernel searches one of {kernels} anyway", self.args.task),
            _ if self.args.device.explain => format!("{device} runs none of the {combinations} combinations above"),
            _ => format!("{device} runs none of the {combinations} combinations of {kernels}; --explain counts the reasons"),
        })
    }

    /// Writes the recording and the picture of the last search that has measured a candidate.
    fn document(&self, plan: &Plan<'_>, goals: &[&Goal]) -> Result<()> {
        if self.args.record.is_none() && self.args.plot.is_none() {
            return Ok(());
        }
        let mut measured = None;
        for goal in goals.iter().rev() {
            let known = plan.outcomes(goal, &self.device)?;
            if !known.is_empty() {
                measured = Some((goal, known));
                break;
            }
        }
        let Some((goal, known)) = measured else { return Ok(()) };
        self.args.record.iter().try_for_each(|path| pictures::record(path, goal, &self.device, &known))?;
        let Some(path) = &self.args.plot else { return Ok(()) };
        goal.call.flops()?.map_or(Ok(()), |flops| pictures::draw(path, goal, &known, flops))
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
