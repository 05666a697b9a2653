//! A schedule: a plan with its dependencies and the devices that will run the plan.
//!
//! [`Schedule::new`] refuses a plan whose working set does not fit in the memory of a device. The run of an accepted schedule
//! stays within the memory that the devices report. During the run the [`Dispatcher`] decides which device takes which task, so
//! that a slow device takes fewer tasks. [`Schedule::simulate`](crate::simulate) simulates the run of a schedule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use crate::command::CommandId;
use crate::dispatch::{Dispatcher, Reach};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::instruction::Reg;
use crate::plan::{Plan, Task};

/// A plan that is ready to run on certain devices.
#[derive(Clone, Debug)]
pub struct Schedule {
    plan: Plan,
    graph: Graph,
    reach: Vec<Reach>,
}

/// The error that the memory of a device is too small for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShortfall {
    /// Name of the operation that was planned.
    pub operation: &'static str,
    /// Index of the device whose memory is too small.
    pub device: usize,
    /// Number of bytes of memory that the device has.
    pub limit: usize,
    /// The smallest number of bytes with which the device can run the plan.
    pub needed: usize,
}

impl fmt::Display for MemoryShortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of(&format!("device {}", self.device)).fmt(f)
    }
}

impl std::error::Error for MemoryShortfall {}

impl MemoryShortfall {
    /// Converts the shortfall into an [`Error`] that names the device by `device`, the name that users know.
    #[must_use]
    pub fn of(self, device: &str) -> Error {
        let MemoryShortfall { operation, limit, needed, .. } = self;
        let message = format!(
            "the memory limit of {device} is {limit} B, and the smallest working set needs a limit of {needed} B: raise the limit, or \
             use another device"
        );
        Error::new(ErrorKind::OutOfMemory, operation, message)
    }
}

impl Schedule {
    /// Finds the dependencies of a plan, and checks that each device has enough memory for the plan.
    ///
    /// # Errors
    /// A device has too little memory for the plan.
    pub fn new(plan: Plan, reach: Vec<Reach>) -> Result<Self, MemoryShortfall> {
        debug_assert_eq!(plan.stale_read(), None, "devices that copy would read old elements:\n{plan}");
        let schedule = Schedule { graph: Graph::new(&plan), plan, reach };
        let operation = schedule.plan.operation();
        let lacks = |(device, reach): (usize, &Reach)| {
            let (limit, needed) = (reach.memory, schedule.footprint(device));
            (needed > limit).then_some(MemoryShortfall { operation, device, limit, needed })
        };
        schedule.reach.iter().enumerate().find_map(lacks).map_or(Ok(()), Err)?;
        Ok(schedule)
    }

    /// The plan whose commands the devices will run.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The dependencies between the commands and between the tasks of the plan.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// For each device, the properties that the dispatcher needs, such as the memory limit of the device.
    #[must_use]
    pub fn reach(&self) -> &[Reach] {
        &self.reach
    }

    /// Creates a dispatcher that has not issued any command.
    #[must_use]
    pub fn dispatcher(&self) -> Dispatcher<'_> {
        Dispatcher::new(&self.plan, &self.graph, &self.reach)
    }

    /// Number of bytes of device memory that suffice for the held registers and for each task alone, with its commands in plan order.
    #[must_use]
    pub fn footprint(&self, device: usize) -> usize {
        let footprint = |task| task_footprint(&self.plan, &self.graph, &self.reach[device], task);
        let tasks = self.plan.tasks().iter().filter(|task| task.device.is_none_or(|holder| holder == device));
        let task = tasks.map(footprint).max().unwrap_or(0);
        held_bytes(&self.plan, &self.graph, &self.reach[device], device).saturating_add(task)
    }

    /// Total number of bytes of all registers that need memory on a device. The registers of a run never use more memory of the
    /// device than this total.
    #[must_use]
    pub fn register_bytes(&self, device: usize) -> usize {
        let registers = self.plan.registers();
        let reach = &self.reach[device];
        let is_copied = |&reg: &Reg| {
            let info = &registers[reg];
            info.holder.is_none_or(|holder| holder == device) && !reach.works_in_place(info)
        };
        let copied = (0..).map(Reg).take(registers.len()).filter(is_copied);
        copied.map(|reg| registers.footprint(reg)).fold(0, usize::saturating_add)
    }
}

/// Number of bytes of device memory that suffice for the held registers of a device, if its tasks run in plan order.
fn held_bytes(plan: &Plan, graph: &Graph, reach: &Reach, device: usize) -> usize {
    let mut held: Vec<Reg> = plan.registers().held().filter(|&reg| reach.holds(device, &plan.registers()[reg])).collect();
    held.sort_by_key(|reg| graph.live_ranges[reg.0 as usize].first);
    // a register has memory until the end of the last task that uses it
    let end = |command| {
        let task = plan.tasks().partition_point(|task| task.commands.end <= command);
        plan.tasks()[task].commands.end - 1
    };
    most_bytes(plan, graph, held.into_iter(), end)
}

/// Number of bytes of device memory that suffice to run one task alone, with its commands in plan order.
pub(crate) fn task_footprint(plan: &Plan, graph: &Graph, reach: &Reach, task: &Task) -> usize {
    let own = &graph.registers_by_first_use[task.registers.start as usize..task.registers.end as usize];
    most_bytes(plan, graph, own.iter().copied().filter(|&reg| !reach.works_in_place(&plan.registers()[reg])), |last| last)
}

/// The largest number of bytes that registers occupy at the same time, if commands run in plan order. The registers are sorted by their first
/// commands. A register whose last command is `last` occupies memory until the command `end(last)` has run.
fn most_bytes(plan: &Plan, graph: &Graph, registers: impl Iterator<Item = Reg>, end: impl Fn(CommandId) -> CommandId) -> usize {
    let (mut held, mut most, mut deaths) = (0, 0, BinaryHeap::new());
    for reg in registers {
        let life = graph.live_ranges[reg.0 as usize];
        if life.uses == 0 {
            continue;
        }
        while deaths.peek().is_some_and(|&Reverse((last, _))| last < life.first) {
            held -= deaths.pop().map_or(0, |Reverse((_, bytes))| bytes);
        }
        let bytes = plan.registers().footprint(reg);
        deaths.push(Reverse((end(life.last), bytes)));
        held += bytes;
        most = most.max(held);
    }
    most
}

#[cfg(test)]
mod tests;
