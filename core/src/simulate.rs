//! A schedule run on paper: the same dispatcher, with modelled time in place of devices.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use crate::command::{Command, Queue};
use crate::dispatch::{Issue, Lane, Step};
use crate::plan::Plan;
use crate::scalar::Scalar;
use crate::schedule::Schedule;
use crate::slots::Endless;

/// What a command costs on one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Floating-point operations per second of a kernel.
    pub flops: f64,
    /// Bytes per second of a transfer, each way.
    pub bandwidth: f64,
    /// Seconds before any command takes effect.
    pub latency: f64,
}

impl CostModel {
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn seconds<T: Scalar>(&self, plan: &Plan<T>, command: &Command<T>) -> f64 {
        let transfer = |reg| plan.registers()[reg].bytes() as f64 / self.bandwidth;
        let work = match command {
            Command::Ld(ld) => transfer(ld.reg),
            Command::St(st) => transfer(st.reg),
            Command::Exec(exec) => exec.instruction.flops() / self.flops,
            Command::Mark(_) | Command::Bar(_) => 0.0,
        };
        self.latency + work
    }
}

/// One command in modelled time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Where it ran.
    pub lane: Lane,
    /// What ran, in which memory.
    pub issue: Issue,
    /// Seconds from the start of the run.
    pub start: f64,
    /// Seconds from the start of the run.
    pub end: f64,
}

/// A run in modelled time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Commands in the order of their start.
    pub entries: Vec<Entry>,
}

impl Timeline {
    /// Seconds of the whole run.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.entries.iter().map(|entry| entry.end).fold(0.0, f64::max)
    }

    /// Seconds for which a lane is busy.
    #[must_use]
    pub fn busy(&self, lane: Lane) -> f64 {
        self.entries.iter().filter(|entry| entry.lane == lane).map(|entry| entry.end - entry.start).fold(0.0, std::ops::Add::add)
    }
}

/// Nanoseconds order the events exactly.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 2^64")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl<T: Scalar> Schedule<T> {
    /// Runs the schedule on paper: `costs` holds one model for each device.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    pub fn simulate(&self, costs: &[CostModel]) -> Timeline {
        let mut dispatcher = self.dispatcher();
        let mut idle: Vec<Lane> = dispatcher.lanes().collect();
        let (mut events, mut entries, mut now) = (BinaryHeap::new(), Vec::new(), 0_u64);
        loop {
            while {
                idle.retain(|&lane| match dispatcher.next(lane, &mut Endless).expect("memory without end") {
                    Step::Run(issue) => {
                        let command = &self.plan().commands()[issue.command as usize];
                        let end = now.saturating_add(nanoseconds(costs[lane.device].seconds(self.plan(), command)));
                        events.push(Reverse((end, entries.len())));
                        entries.push(Entry { lane, issue, start: now as f64 * 1e-9, end: end as f64 * 1e-9 });
                        false
                    }
                    Step::Wait | Step::Finished => true,
                });
                dispatcher.take_changed()
            } {}
            let Some(Reverse((end, at))) = events.pop() else { break };
            let Entry { lane, issue, .. } = entries[at];
            now = end;
            dispatcher.complete(lane, issue.command);
            idle.push(lane);
        }
        assert!(dispatcher.is_done(), "a schedule that fits its devices runs to its end");
        Timeline { entries }
    }

    /// The run as text: when, where, in which physical registers, and the algebra.
    #[must_use]
    pub fn print<'a>(&'a self, timeline: &'a Timeline) -> impl fmt::Display + 'a {
        PrintedSchedule { schedule: self, timeline }
    }
}

struct PrintedSchedule<'a, T: Scalar> {
    schedule: &'a Schedule<T>,
    timeline: &'a Timeline,
}

impl<T: Scalar> fmt::Display for PrintedSchedule<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plan, total) = (self.schedule.plan(), self.timeline.seconds());
        let devices = self.schedule.reach().len();
        writeln!(f, "schedule {} {}: {devices} devices, {:.3} ms by the cost model", plan.operation(), T::DTYPE, total * 1e3)?;
        for device in 0..devices {
            let percent = |queue| 100.0 * self.timeline.busy(Lane { device, queue }) / total.max(f64::MIN_POSITIVE);
            let (ld, exec, st) = (percent(Queue::Ld), percent(Queue::Exec), percent(Queue::St));
            writeln!(f, "device {device}: busy LD {ld:.0} %, EXEC {exec:.0} %, ST {st:.0} %")?;
        }
        writeln!(f, "  start ms    end ms  device  physical       command")?;
        for Entry { lane, issue, start, end } in &self.timeline.entries {
            let slots: Vec<String> = issue.operands.iter().flatten().map(|slot| format!("p{}", slot.id)).collect();
            let slots = if slots.is_empty() { "in place".to_owned() } else { slots.join(" ") };
            let text = plan.describe(issue.command);
            writeln!(f, "{:>10.3}{:>10.3}  {:>6}  {slots:<13}  {text}", start * 1e3, end * 1e3, lane.device)?;
        }
        Ok(())
    }
}
