//! Simulates a schedule with the dispatcher of a real run. In a simulation, cost models take the place of the devices.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::command::{Command, CommandId, Queue};
use crate::dispatch::{Dispatcher, Issue, Lane, Step};
use crate::instruction::Instruction;
use crate::plan::Plan;
use crate::schedule::Schedule;

/// The times that commands take on one device.
pub trait Cost {
    /// Number of seconds that `command` of `plan` takes, if no other device runs a kernel at the same time.
    fn seconds(&self, plan: &Plan, command: &Command) -> f64;

    /// The slowdown s by other devices: while d other devices run kernels, a kernel of this device takes 1 + s·d times its run time alone.
    /// The value is 0 for a device whose hardware no other device shares, and 1 for devices that share all of their hardware. The slowdown by the
    /// other kernel queue of the device multiplies this time.
    fn slowdown(&self) -> f64 {
        0.0
    }

    /// The slowdown s by the other kernel queue of the same device: while both queues run a kernel, each kernel takes 1 + s times its run
    /// time alone. `is_panel` states whether one of the two kernels factors a panel of LU. With s = 1, two kernels in two queues take as
    /// long as one after the other in one queue.
    fn queue_slowdown(&self, is_panel: bool) -> f64 {
        let _ = is_panel;
        0.0
    }
}

impl<C: Cost + ?Sized> Cost for &C {
    fn seconds(&self, plan: &Plan, command: &Command) -> f64 {
        (**self).seconds(plan, command)
    }

    fn slowdown(&self) -> f64 {
        (**self).slowdown()
    }

    fn queue_slowdown(&self, is_panel: bool) -> f64 {
        (**self).queue_slowdown(is_panel)
    }
}

/// A cost model with three constants: a speed of kernels, a speed of transfers, and a latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Number of floating-point operations that a kernel computes per second.
    pub flops: f64,
    /// Number of bytes that a transfer copies per second, in either direction.
    pub bandwidth: f64,
    /// Seconds that each command takes in addition to the time for its computation or transfer.
    pub latency: f64,
}

impl Cost for CostModel {
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn seconds(&self, plan: &Plan, command: &Command) -> f64 {
        let transfer = |tile| plan.bytes_of(tile) as f64 / self.bandwidth;
        let work = match command {
            Command::Ld(ld) => transfer(ld.tile),
            Command::St(st) => transfer(st.tile),
            Command::Exec(exec) => exec.instruction.flops() / self.flops,
            Command::Mark(_) | Command::Bar(_) => 0.0,
        };
        self.latency + work
    }
}

/// A command with the times at which it starts and ends in a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The lane that executes the command.
    pub lane: Lane,
    /// The index of the command, and the physical registers of its operands.
    pub issue: Issue,
    /// Time at which the command starts, in seconds from the start of the simulated run.
    pub start: f64,
    /// Time at which the command ends, in seconds from the start of the simulated run.
    pub end: f64,
}

/// The commands of a simulated run, with the times at which they start and end.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The commands of the run, in the order in which the dispatcher issued them.
    pub entries: Vec<Entry>,
}

impl Timeline {
    /// Number of seconds that the whole simulated run takes.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.entries.iter().map(|entry| entry.end).fold(0.0, f64::max)
    }

    /// The commands of each of the `devices` devices as timelines of their own.
    #[must_use]
    pub fn by_device(&self, devices: usize) -> Vec<Timeline> {
        let mut timelines = vec![Timeline { entries: Vec::new() }; devices];
        self.entries.iter().for_each(|entry| timelines[entry.lane.device].entries.push(*entry));
        timelines
    }

    /// Number of seconds for which the queues of the kind `queue` of device number `device` are busy, summed over these queues.
    #[must_use]
    pub fn busy(&self, device: usize, queue: Queue) -> f64 {
        let of_queue = self.entries.iter().filter(|entry| (entry.lane.device, entry.lane.queue) == (device, queue));
        of_queue.map(|entry| entry.end - entry.start).fold(0.0, std::ops::Add::add)
    }

    /// Number of seconds in which at least one of the commands runs that `is_counted` selects.
    #[must_use]
    pub fn covered(&self, mut is_counted: impl FnMut(&Entry) -> bool) -> f64 {
        let mut spans: Vec<(f64, f64)> =
            self.entries.iter().filter(|entry| is_counted(entry)).map(|entry| (entry.start, entry.end)).collect();
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut covered, mut until) = (0.0, 0.0_f64);
        for (start, end) in spans {
            covered += (end - start.max(until)).max(0.0);
            until = until.max(end);
        }
        covered
    }
}

/// Converts seconds to nanoseconds, because integers order the events of a simulation exactly.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 2^64")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// A command that has been issued and is not complete.
struct Running {
    /// Index of the command's entry.
    entry: usize,
    device: usize,
    is_kernel: bool,
    /// Whether the command factors a panel of LU.
    is_panel: bool,
    /// A kernel of another queue of the same device, which must complete before the command starts.
    after: Option<CommandId>,
    /// Nanoseconds that the command would still take if it ran alone.
    left: u64,
}

/// The kernels that one device runs at the same time.
#[derive(Clone, Copy, Default)]
struct Kernels {
    count: usize,
    has_panel: bool,
}

impl Kernels {
    /// The time of each of these kernels of a device as a multiple of its time alone, while `busy_devices` devices run kernels. The kernels of a
    /// device divide that part of the hardware among themselves which the other devices leave to it, so that the two slowdowns multiply.
    fn factor(self, busy_devices: usize, cost: &impl Cost) -> f64 {
        let by_devices = 1.0 + cost.slowdown() * busy_devices.saturating_sub(1) as f64;
        by_devices * (1.0 + cost.queue_slowdown(self.has_panel) * self.count.saturating_sub(1) as f64)
    }
}

impl Running {
    /// Nanoseconds from now to the end of the command. `None` if the command waits for another kernel. For each device, `factors` holds the
    /// time of its kernels as a multiple of their times alone.
    fn nanoseconds(&self, factors: &[f64]) -> Option<u64> {
        self.after.is_none().then(|| stretched(self.left, self.factor(factors)))
    }

    /// The time of the command as a multiple of its time alone.
    fn factor(&self, factors: &[f64]) -> f64 {
        if self.is_kernel { factors[self.device] } else { 1.0 }
    }

    /// Lets the command run for some nanoseconds.
    fn advance(&mut self, nanoseconds: u64, factors: &[f64]) {
        if self.after.is_none() {
            self.left = self.left.saturating_sub(stretched(nanoseconds, 1.0 / self.factor(factors)));
        }
    }
}

/// Multiplies a number of nanoseconds, exactly if the factor is 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "positive and below 2^53")]
fn stretched(nanoseconds: u64, factor: f64) -> u64 {
    if factor == 1.0 { nanoseconds } else { (nanoseconds as f64 * factor).round() as u64 }
}

/// The next step of a lane, on the assumption that every allocation of device memory succeeds.
fn next(dispatcher: &mut Dispatcher<'_>, lane: Lane) -> Step {
    loop {
        match dispatcher.next(lane).expect("no memory is refused") {
            Step::Obtain(slot) => dispatcher.obtained(lane.device, slot, Ok(())).expect("it was obtained"),
            Step::Release(_) => {}
            step => return step,
        }
    }
}

impl Schedule {
    /// Simulates the schedule. `costs` holds the cost model of each device.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    pub fn simulate(&self, costs: &[impl Cost]) -> Timeline {
        let mut dispatcher = self.dispatcher();
        // the idle lanes of each device, and the turn in which each lane became idle
        let mut idle = vec![BTreeMap::new(); costs.len()];
        dispatcher.lanes().enumerate().for_each(|(turn, lane)| _ = idle[lane.device].insert(turn, lane));
        let mut turns = dispatcher.lanes().count();
        let (mut running, mut entries, mut now) = (Vec::<Running>::new(), Vec::new(), 0_u64);
        let mut is_done = vec![false; self.plan().commands().len()];
        // the devices that may have commands for their idle lanes: with many devices, the end of a command concerns few of them
        let mut asked: BTreeSet<usize> = (0..costs.len()).collect();
        loop {
            // a device issues one command before the next device does, as if the threads of all devices ran at the same time
            while !asked.is_empty() {
                let lanes: BTreeMap<usize, Lane> = asked.iter().flat_map(|&device| idle[device].clone()).collect();
                asked.clear();
                for (turn, lane) in lanes {
                    if asked.contains(&lane.device) {
                        continue;
                    }
                    let Step::Run(issue) = next(&mut dispatcher, lane) else { continue };
                    asked.insert(lane.device);
                    idle[lane.device].remove(&turn);
                    let command = &self.plan().commands()[issue.command as usize];
                    let left = nanoseconds(costs[lane.device].seconds(self.plan(), command));
                    // the command may have to wait for a kernel of another queue of the same device
                    let after = issue.after.filter(|&before| !is_done[before as usize]);
                    let (device, is_kernel) = (lane.device, matches!(command, Command::Exec(_)));
                    let is_panel = matches!(command, Command::Exec(exec) if matches!(exec.instruction, Instruction::Getrf { .. }));
                    running.push(Running { entry: entries.len(), device, is_kernel, is_panel, after, left });
                    entries.push(Entry { lane, issue, start: now as f64 * 1e-9, end: f64::INFINITY });
                }
                asked.append(&mut dispatcher.take_changed());
            }
            let mut kernels = vec![Kernels::default(); costs.len()];
            for run in running.iter().filter(|run| run.is_kernel && run.after.is_none()) {
                let of_device = &mut kernels[run.device];
                *of_device = Kernels { count: of_device.count + 1, has_panel: of_device.has_panel || run.is_panel };
            }
            let busy_devices = kernels.iter().filter(|kernels| kernels.count > 0).count();
            let factors: Vec<f64> = kernels.iter().zip(costs).map(|(own, cost)| own.factor(busy_devices, cost)).collect();
            let ends = running.iter().enumerate().filter_map(|(at, run)| Some((run.nanoseconds(&factors)?, run.entry, at)));
            let Some((passed, _, at)) = ends.min() else { break };
            running.iter_mut().for_each(|run| run.advance(passed, &factors));
            now += passed;
            let ended = running.swap_remove(at);
            let Entry { lane, issue, ref mut end, .. } = entries[ended.entry];
            *end = now as f64 * 1e-9;
            is_done[issue.command as usize] = true;
            for run in running.iter_mut().filter(|run| run.after == Some(issue.command)) {
                run.after = None;
                entries[run.entry].start = now as f64 * 1e-9;
            }
            dispatcher.complete(lane, issue.command);
            idle[lane.device].insert(turns, lane);
            turns += 1;
            asked = dispatcher.take_changed();
        }
        assert!(dispatcher.is_done(), "a schedule that fits its devices runs to its end");
        Timeline { entries }
    }

    /// A simulated run of this schedule as text. Each line of the text states the times, the device, the physical registers and
    /// the algebra of one command.
    #[must_use]
    pub fn print<'a>(&'a self, timeline: &'a Timeline) -> impl fmt::Display + 'a {
        PrintedSchedule { schedule: self, timeline }
    }
}

struct PrintedSchedule<'a> {
    schedule: &'a Schedule,
    timeline: &'a Timeline,
}

impl fmt::Display for PrintedSchedule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plan, total) = (self.schedule.plan(), self.timeline.seconds());
        let devices = self.schedule.reach().len();
        let plural = if devices == 1 { "" } else { "s" };
        writeln!(
            f,
            "schedule {} {}: {devices} device{plural}, {:.3} ms by the cost model",
            plan.operation(),
            plan.dtype(),
            total * 1e3
        )?;
        for device in 0..devices {
            let percent = |queue| 100.0 * self.timeline.busy(device, queue) / total.max(f64::MIN_POSITIVE);
            let (ld, exec, st) = (percent(Queue::Ld), percent(Queue::Exec), percent(Queue::St));
            writeln!(f, "device {device}: busy LD {ld:.0} %, EXEC {exec:.0} %, ST {st:.0} %")?;
        }
        // the end of the run is the largest time that is printed, and determines the width of the columns of times
        let time = format!("  {:.3}", total * 1e3).len().max(10);
        let memory = self.timeline.entries.iter().map(|entry| memory(&entry.issue).len()).max().unwrap_or(0).max(13);
        writeln!(f, "{:>time$}{:>time$}  device  {:<memory$}  command", "start ms", "end ms", "physical")?;
        for Entry { lane, issue, start, end } in &self.timeline.entries {
            let (slots, text) = (self::memory(issue), plan.describe(issue.command));
            writeln!(f, "{:>time$.3}{:>time$.3}  {:>6}  {slots:<memory$}  {text}", start * 1e3, end * 1e3, lane.device)?;
        }
        Ok(())
    }
}

/// The physical registers of the operands of a command, as text.
fn memory(issue: &Issue) -> String {
    let slots: Vec<String> = issue.operands.iter().flatten().map(|slot| format!("p{}", slot.id)).collect();
    if slots.is_empty() { "in place".to_owned() } else { slots.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Reach;
    use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
    use crate::instruction::Region;
    use crate::scalar::DType;
    use crate::value::Value;

    /// The model of a device on which two kernels at the same time take as long as one after the other.
    struct OneAtATime(CostModel);

    impl Cost for OneAtATime {
        fn seconds(&self, plan: &Plan, command: &Command) -> f64 {
            self.0.seconds(plan, command)
        }
        fn queue_slowdown(&self, is_panel: bool) -> f64 {
            f64::from(u8::from(!is_panel))
        }
    }

    /// Simulates three tasks on a device with two queues of kernels. The first two tasks solve for one tile each, and the third
    /// task solves for both tiles together. The third task runs in the queue of one of its predecessors, and waits explicitly for
    /// the other predecessor.
    #[test]
    fn a_task_that_follows_others_begins_when_they_end() {
        let mut plan = Plan::new("scale", DType::F64);
        let c = plan.output("C", (10, 30), Layout::ColMajor);
        for cols in [0..10, 10..30, 0..30] {
            plan.task("C", Region { row: 0, col: cols.start, rows: 10, cols: cols.len() });
            let tile = plan.ld(c, &(0..10), &cols);
            let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Right, Uplo::Upper, Op::NoTrans, Diag::Unit);
            let a = tile.sub(0, 0, 10, 10);
            plan.exec(Instruction::Trsm { mode, side, uplo, op, diag, alpha: Value::F64(1.0), a, b: tile });
            plan.st(tile);
        }
        let reach = Reach { memory: 0, in_place: vec![true], flops: 1e6, queues: 2 };
        let schedule = Schedule::new(plan, vec![reach]).unwrap();
        let model = CostModel { flops: 1e6, bandwidth: 1.0, latency: 0.0 };
        let entries = schedule.simulate(&[model]).entries;
        let times: Vec<_> = entries.iter().map(|entry| (entry.lane.number, entry.start * 1e3, entry.end * 1e3)).collect();
        // the three tasks take 1000, 2000 and 3000 floating-point operations, and an operation takes 1 µs
        assert_eq!(times, [(0, 0.0, 1.0), (1, 0.0, 2.0), (0, 2.0, 5.0)]);
        // kernels of two queues that share all of the device take as long as one after the other
        let shared = schedule.simulate(&[OneAtATime(model)]).entries;
        let times: Vec<_> = shared.iter().map(|entry| (entry.start * 1e3, (entry.end * 1e6).round())).collect();
        assert_eq!(times, [(0.0, 2000.0), (0.0, 3000.0), (3.0, 6000.0)]);
        // the first two tasks run at the same time
        let timeline = Timeline { entries };
        let busy = [timeline.busy(0, Queue::Exec), timeline.covered(|entry| entry.lane.queue == Queue::Exec)];
        assert_eq!(busy.map(|seconds| (seconds * 1e3).round()), [6.0, 5.0]);
        assert_eq!((timeline.covered(|entry| entry.issue.command == 1) * 1e3).round(), 1.0);
    }

    /// The cost of a device that shares all of its hardware with other devices, and whose kernel queues share it with one another. Alone, a
    /// kernel performs 1000 operations per second.
    struct Shared;

    impl Cost for Shared {
        fn seconds(&self, _: &Plan, command: &Command) -> f64 {
            if let Command::Exec(exec) = command { exec.instruction.flops() * 1e-3 } else { 0.0 }
        }
        fn slowdown(&self) -> f64 {
            1.0
        }
        fn queue_slowdown(&self, _: bool) -> f64 {
            1.0
        }
    }

    /// Two devices share all of their hardware. One computes a product of 100 operations, and the other a product of 300 operations. A
    /// device that computes alone performs 1000 operations per second. While both compute, each performs 500 operations per second.
    #[test]
    fn devices_that_share_hardware_slow_each_other_down() {
        let mut plan = Plan::new("gemm", DType::F64);
        let (a, b) = (plan.input("A", (10, 1), Layout::ColMajor), plan.input("B", (1, 20), Layout::ColMajor));
        let c = plan.output("C", (10, 20), Layout::ColMajor);
        for cols in [0..5, 5..20] {
            plan.task("C", Region { row: 0, col: cols.start, rows: 10, cols: cols.len() });
            let (a, b, c) = (plan.ld(a, &(0..10), &(0..1)), plan.ld(b, &(0..1), &cols), plan.ld(c, &(0..10), &cols));
            let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
            plan.exec(Instruction::Gemm { alpha: Value::F64(1.0), op_a, a, op_b, b, beta: Value::F64(1.0), c });
            plan.st(c);
        }
        let reach = Reach { memory: 0, in_place: vec![true; 3], flops: 1e3, queues: 1 };
        let entries = Schedule::new(plan, vec![reach; 2]).unwrap().simulate(&[Shared, Shared]).entries;
        // alone the products take 0.1 s and 0.3 s; both are half as fast until the first one has completed after 0.2 s
        let ends: Vec<_> = entries.iter().map(|entry| (entry.lane.device, entry.start, (entry.end * 1e3).round())).collect();
        assert_eq!(ends, [(0, 0.0, 200.0), (1, 0.0, 400.0)]);
    }

    /// Two devices share all of their hardware, and each computes two solves at the same time in two queues. The four solves take as
    /// long as one after the other.
    #[test]
    fn kernels_in_two_queues_of_devices_that_share_hardware_take_as_long_as_one_after_the_other() {
        let mut plan = Plan::new("trsm", DType::F64);
        let c = plan.output("C", (10, 40), Layout::ColMajor);
        for part in 0..4 {
            let cols = 10 * part..10 * part + 10;
            plan.task_for(Some(part / 2), "C", Region { row: 0, col: cols.start, rows: 10, cols: 10 });
            let tile = plan.ld(c, &(0..10), &cols);
            let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Right, Uplo::Upper, Op::NoTrans, Diag::Unit);
            plan.exec(Instruction::Trsm { mode, side, uplo, op, diag, alpha: Value::F64(1.0), a: tile, b: tile });
            plan.st(tile);
        }
        let reach = Reach { memory: usize::MAX, in_place: vec![false], flops: 1e3, queues: 2 };
        let timeline = Schedule::new(plan, vec![reach; 2]).unwrap().simulate(&[Shared, Shared]);
        let kernels = timeline.entries.iter().filter(|entry| entry.lane.queue == Queue::Exec);
        let times: Vec<_> = kernels.map(|entry| (entry.start, entry.end.round())).collect();
        // each solve takes 1 s alone
        assert_eq!(times, [(0.0, 4.0); 4]);
    }

    /// Simulates `C ← A·B + C` in two tasks, on one device that works in place and one device that copies.
    #[test]
    fn a_schedule_prints_what_runs_when_where_and_in_which_memory() {
        let mut plan = Plan::new("gemm", DType::F64);
        let (a, b) = (plan.input("A", (10, 20), Layout::ColMajor), plan.input("B", (20, 10), Layout::ColMajor));
        let c = plan.output("C", (10, 10), Layout::ColMajor);
        for cols in [0..5, 5..10] {
            plan.task("C", Region { row: 0, col: cols.start, rows: 10, cols: 5 });
            let (a, b, c) = (plan.ld(a, &(0..10), &(0..20)), plan.ld(b, &(0..20), &cols), plan.ld(c, &(0..10), &cols));
            let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
            plan.exec(Instruction::Gemm { alpha: Value::F64(1.0), op_a, a, op_b, b, beta: Value::F64(1.0), c });
            plan.st(c);
        }
        let reach = |in_place| Reach { memory: 1 << 20, in_place: vec![in_place; 3], flops: 1e6, queues: 1 };
        let schedule = Schedule::new(plan, vec![reach(true), reach(false)]).unwrap();
        // the 2000 floating-point operations of a task take 2 ms, a transfer of 1600 bytes takes 1.6 ms, and each command takes
        // another 0.1 ms
        let timeline = schedule.simulate(&[CostModel { flops: 1e6, bandwidth: 1e6, latency: 1e-4 }; 2]);
        let printed = schedule.print(&timeline).to_string();
        let expected = "\
schedule gemm f64: 2 devices, 5.700 ms by the cost model
device 0: busy LD 0 %, EXEC 37 %, ST 0 %
device 1: busy LD 54 %, EXEC 37 %, ST 9 %
  start ms    end ms  device  physical       command
     0.000     2.100       0  in place       EXEC gemm r0 r1 r2        C[0:10, 0:5] ← A[0:10, 0:20]·B[0:20, 0:5] + C[0:10, 0:5]
     0.000     1.700       1  p0             LD   r3                   r3 ← A[0:10, 0:20]
     1.700     2.600       1  p1             LD   r4                   r4 ← B[0:20, 5:10]
     2.600     3.100       1  p2             LD   r5                   r5 ← C[0:10, 5:10]
     3.100     5.200       1  p0 p1 p2       EXEC gemm r3 r4 r5        C[0:10, 5:10] ← A[0:10, 0:20]·B[0:20, 5:10] + C[0:10, 5:10]
     5.200     5.700       1  p2             ST   r5                   C[0:10, 5:10] ← r5
";
        assert_eq!(printed, expected, "\n{printed}");
    }
}
