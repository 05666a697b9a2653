//! The dispatcher: which command may run next, on which device, in which memory.
//!
//! This is the whole policy of a run as one state machine without threads or
//! clocks. The engine drives it under a lock, the simulator with a model of
//! time, the tests in every legal order. Its rules:
//!
//! - A device takes the first task, in plan order, whose predecessors are done.
//!   A device that copies may have one task for each of its queues, so that the
//!   ST of one overlaps the EXEC of the next and the LD of the one after.
//! - A device with two queues of kernels alternates between them from task to task. If it works in place, the
//!   kernels of a task may be queued behind those of its predecessors before these are done (`dispatch/follow.rs`).
//! - Registers get memory in plan order, as far as the device's limit allows;
//!   memory is given back after the last use. Since the order of the plan needs
//!   at most [`Schedule::footprint`](crate::Schedule::footprint) bytes, nothing can deadlock.
//!   The dispatcher calls no device: [`Step::Obtain`] and [`Step::Release`] ask the caller to.
//! - A slow device does not take a task if the faster devices would finish all remaining tasks before it had
//!   finished this one.
//! - A device that turns out to have less memory than its limit continues with the memory that it has. If that does
//!   not suffice for its first task, or a command lacks memory, the device is out of the run (`dispatch/shortage.rs`)
//!   and other devices run its tasks. The run fails when all devices are out.
//! - Each queue of kernels runs in order: a kernel is issued when the kernels that it depends on have been issued
//!   and its other dependencies are done. LD and ST start in order. A lane holds a few commands at a time.
//! - A transfer between a register and a window that the device reaches in
//!   place does nothing and is done at once.

mod device;
mod follow;
mod memory;
mod shortage;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::command::{Command, CommandId, Effects, Queue, distinct_registers};
use crate::error::Result;
use crate::graph::Graph;
use crate::instruction::{Access, Reg};
use crate::plan::{Plan, RegisterInfo};
use crate::slots::{Slot, SlotId};

use device::{DeviceState, Taken};
use memory::Memory;

/// How one device sees the matrices of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// Bytes of device memory for copies.
    pub memory: usize,
    /// For each matrix, whether the device works on it without a copy.
    pub in_place: Vec<bool>,
    /// Floating-point operations per second, to compare devices by.
    pub flops: f64,
    /// Queues of kernels of the device; at most [`KERNEL_QUEUES`] are used.
    pub queues: usize,
}

impl Reach {
    /// Whether a register needs no memory, since the device works on the matrix itself.
    pub(crate) fn works_in_place(&self, register: &RegisterInfo) -> bool {
        register.window.is_some_and(|window| self.in_place[window.matrix.0 as usize])
    }
}

/// Most queues of kernels used on a device: one for a panel and one for the update that runs beside it.
pub const KERNEL_QUEUES: usize = 2;

/// One queue of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Index of the device.
    pub device: usize,
    /// The queue.
    pub queue: Queue,
    /// Number of the kernel queue, less than [`KERNEL_QUEUES`]; 0 for transfers.
    pub number: usize,
}

impl Lane {
    /// The first lane of a device for that kind of command.
    #[must_use]
    pub fn new(device: usize, queue: Queue) -> Self {
        Lane { device, queue, number: 0 }
    }

    /// Index among the lanes of its device.
    fn index(self) -> usize {
        match self.queue {
            Queue::Ld => 0,
            Queue::St => 1,
            Queue::Exec => 2 + self.number,
        }
    }
}

/// Memory of the registers that a command touches, in the order of its
/// operands; `None` for a register that is reached in place.
pub type Operands = [Option<Slot>; 3];

/// A command to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The command.
    pub command: CommandId,
    /// Memory of its registers.
    pub operands: Operands,
    /// The kernel of the device's other queue that must end before this command starts; `None` if there is none or it has ended.
    pub after: Option<CommandId>,
}

/// What a lane should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run this command, then report it by [`Dispatcher::complete`].
    Run(Issue),
    /// Free the device memory of this physical register, then ask again.
    Release(SlotId),
    /// Allocate device memory for this physical register, then report the result by [`Dispatcher::obtained`].
    Obtain(Slot),
    /// Nothing now; ask again after something completed.
    Wait,
    /// Nothing any more: all is done, the run was stopped, or the device is out.
    Finished,
}

/// Commands that a lane holds at most, by [`Queue`]: one at work and one to follow; of kernels, which
/// may be short, some more.
const DEPTH: [u32; 3] = [2, 4, 2];

/// The state of a run.
#[derive(Debug)]
pub struct Dispatcher<'p> {
    plan: &'p Plan,
    graph: &'p Graph,
    reach: &'p [Reach],
    devices: Vec<DeviceState>,
    /// For each command, how many commands of its task it waits for.
    waits: Vec<u32>,
    /// For each task, how many tasks it waits for.
    task_waits: Vec<u32>,
    /// Tasks whose predecessors are done. A task that a device has taken since is skipped.
    ready: BinaryHeap<Reverse<u32>>,
    /// For each task, whether a device has taken it.
    begun: Vec<bool>,
    /// For each register its memory.
    memory: Vec<Option<SlotId>>,
    /// For each register how many commands still touch it.
    uses: Vec<u32>,
    /// Tasks that are not done.
    unfinished: usize,
    /// Tasks that no device has taken.
    untaken: usize,
    /// Whether a command that writes a matrix of the caller was given out.
    touched: bool,
    halted: bool,
    /// Whether other lanes may have work since they were last told to wait.
    changed: bool,
}

impl<'p> Dispatcher<'p> {
    /// The state before the first command.
    #[must_use]
    pub fn new(plan: &'p Plan, graph: &'p Graph, reach: &'p [Reach]) -> Self {
        let (task_waits, tasks) = (graph.tasks.waits().to_vec(), plan.tasks().len());
        let ready = (0..).take(tasks).filter(|&task: &u32| task_waits[task as usize] == 0).map(Reverse).collect();
        Dispatcher {
            plan,
            graph,
            reach,
            devices: reach.iter().map(|reach| DeviceState::new(plan, reach)).collect(),
            waits: graph.commands.waits().to_vec(),
            task_waits,
            ready,
            begun: vec![false; tasks],
            memory: vec![None; plan.registers().len()],
            uses: graph.live_ranges.iter().map(|life| life.uses).collect(),
            unfinished: tasks,
            untaken: tasks,
            touched: false,
            halted: false,
            changed: false,
        }
    }

    /// The lanes of a device that have work at all: without copies there are no transfers.
    pub fn lanes_of(&self, device: usize) -> impl DoubleEndedIterator<Item = Lane> + use<> {
        let DeviceState { copies, queues, .. } = self.devices[device];
        let transfers = |queue| copies.then_some(Lane::new(device, queue)).into_iter();
        let kernels = (0..queues).map(move |number| Lane { device, queue: Queue::Exec, number });
        transfers(Queue::Ld).chain(kernels).chain(transfers(Queue::St))
    }

    /// The lanes of all devices to which the dispatcher may give commands.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> {
        (0..self.devices.len()).flat_map(|device| self.lanes_of(device))
    }

    /// Whether matrices of the caller that the plan writes may differ from what they were.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// Whether every command is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.unfinished == 0
    }

    /// Stops the run: every lane is finished from now on.
    pub fn halt(&mut self) {
        self.halted = true;
        self.changed = true;
    }

    /// Whether lanes that were told to wait should ask again; asked once per change.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// What `lane` should do now.
    ///
    /// # Errors
    /// The device has no memory for a task that has written outputs.
    pub fn next(&mut self, lane: Lane) -> Result<Step> {
        if self.halted {
            return Ok(Step::Finished);
        }
        loop {
            if let Some(step) = self.next_step_while_draining(lane.device) {
                return Ok(step);
            }
            if self.devices[lane.device].under_way[lane.index()] == DEPTH[lane.queue as usize] {
                return Ok(Step::Wait);
            }
            match self.allocate(lane.device)? {
                Memory::Given => {}
                Memory::Ask(step) => return Ok(step),
                Memory::Short => continue,
            }
            if let Some(command) = self.head(lane) {
                if !self.is_elided(lane.device, command) {
                    return Ok(Step::Run(self.issue(lane, command)));
                }
                self.pass(lane, command);
                self.retire(lane.device, command);
            } else if self.unfinished == 0 {
                return Ok(Step::Finished);
            } else if !self.take(lane.device) {
                return Ok(Step::Wait);
            }
        }
    }

    /// `command`, issued to `lane`, is done.
    pub fn complete(&mut self, lane: Lane, command: CommandId) {
        self.report(lane, command);
        self.retire(lane.device, command);
    }

    /// Whether a device reaches a register without a copy.
    #[must_use]
    pub fn in_place(&self, device: usize, reg: Reg) -> bool {
        self.reach[device].works_in_place(&self.plan.registers()[reg])
    }

    /// Whether a command does nothing on a device.
    fn is_elided(&self, device: usize, command: CommandId) -> bool {
        match &self.plan.commands()[command as usize] {
            Command::Ld(ld) => self.in_place(device, ld.reg),
            Command::St(st) => self.in_place(device, st.reg),
            Command::Mark(_) | Command::Bar(_) => true,
            Command::Exec(_) => false,
        }
    }

    /// The lane that deals with a command: EXEC also passes over what is elided
    /// on a device without transfers, since the other lanes do not run there.
    fn queue_of(&self, device: usize, command: CommandId) -> Queue {
        if self.devices[device].copies { self.plan.commands()[command as usize].queue() } else { Queue::Exec }
    }

    /// The command at the head of a lane, if it may start.
    fn head(&mut self, lane: Lane) -> Option<CommandId> {
        for t in 0..self.devices[lane.device].taken.len() {
            if !self.devices[lane.device].taken[t].uses(lane) {
                continue;
            }
            if let Some(command) = self.seek(lane, t) {
                if self.may_start(lane.device, t, command) {
                    return Some(command);
                }
                // a task whose kernels are all issued delays no later kernel
                if !(lane.queue == Queue::Exec && self.devices[lane.device].taken[t].kernels_are_out()) {
                    return None;
                }
            }
        }
        None
    }

    /// Moves the cursor of a lane to its next command in the `t`-th taken task.
    fn seek(&mut self, lane: Lane, t: usize) -> Option<CommandId> {
        let taken = &self.devices[lane.device].taken[t];
        let end = self.plan.tasks()[taken.task as usize].commands.end;
        let from = taken.cursors[lane.queue as usize];
        let found = (from..end).find(|&command| self.queue_of(lane.device, command) == lane.queue);
        self.devices[lane.device].taken[t].cursors[lane.queue as usize] = found.unwrap_or(end);
        found
    }

    /// Whether a command waits neither for others nor for memory.
    fn may_start(&self, device: usize, t: usize, command: CommandId) -> bool {
        let taken = &self.devices[device].taken[t];
        let born = taken.birth == self.plan.tasks()[taken.task as usize].registers.end
            || self.graph.live_ranges[self.graph.registers_by_first_use[taken.birth as usize].0 as usize].first > command;
        born && self.waits[command as usize] == 0
    }

    fn issue(&mut self, lane: Lane, command: CommandId) -> Issue {
        self.pass(lane, command);
        let writes = self.writes_outputs(lane.device, command);
        self.touched |= writes;
        let taken = self.taken(lane.device, command);
        taken.under_way += 1;
        taken.wrote |= writes;
        let after = if lane.queue == Queue::Exec { taken.after.take() } else { None };
        if taken.last_kernel == Some(command) {
            let task = taken.task;
            self.let_follow(lane.device, task);
        }
        let state = &mut self.devices[lane.device];
        state.under_way[lane.index()] += 1;
        let (slots, memory) = (&state.slots, &self.memory);
        let (mut operands, mut at) = ([None; 3], 0);
        self.plan.commands()[command as usize].registers(&mut |reg| {
            operands[at] = memory[reg.0 as usize].map(|slot| slots.get(slot));
            at += 1;
        });
        Issue { command, operands, after }
    }

    /// Whether a command writes a matrix of the caller: a store, or an
    /// instruction whose result is reached in place.
    fn writes_outputs(&self, device: usize, command: CommandId) -> bool {
        match &self.plan.commands()[command as usize] {
            Command::St(_) => true,
            Command::Exec(exec) => {
                let mut writes = false;
                exec.instruction.operands(|tile, access| writes |= access == Access::Write && self.in_place(device, tile.reg));
                writes
            }
            Command::Ld(_) | Command::Mark(_) | Command::Bar(_) => false,
        }
    }

    /// The taken task that a command belongs to.
    fn taken(&mut self, device: usize, command: CommandId) -> &mut Taken {
        let tasks = self.plan.tasks();
        let mut taken = self.devices[device].taken.iter_mut();
        taken.find(|t| tasks[t.task as usize].commands.contains(&command)).expect("the task is taken")
    }

    /// Moves the lane's cursor past a command.
    fn pass(&mut self, lane: Lane, command: CommandId) {
        self.taken(lane.device, command).cursors[lane.queue as usize] = command + 1;
    }

    /// A command that was given out is under way no more.
    fn report(&mut self, lane: Lane, command: CommandId) {
        self.devices[lane.device].under_way[lane.index()] -= 1;
        self.taken(lane.device, command).under_way -= 1;
    }

    /// Takes the next ready task, if the device has room for one.
    fn take(&mut self, device: usize) -> bool {
        let state = &self.devices[device];
        if state.out.is_some() || !state.has_room(self.plan) || self.should_leave_to_faster(device) {
            return false;
        }
        let Some(task) = self.next_task(device) else { return false };
        self.changed = true;
        self.untaken -= 1;
        self.begun[task as usize] = true;
        let number = self.devices[device].next_queue();
        let (last_kernel, after) = (self.last_kernel(task), self.last_kernel_before(device, task, number));
        let info = &self.plan.tasks()[task as usize];
        let start = info.commands.start;
        let unfinished = info.commands.end - start;
        self.devices[device].taken.push_back(Taken {
            task,
            number,
            cursors: [start; 3],
            birth: info.registers.start,
            unfinished,
            under_way: 0,
            wrote: false,
            last_kernel,
            after,
        });
        if unfinished == 0 {
            self.finish(device, task);
        }
        true
    }

    /// Whether faster devices would have done all that is left before this one
    /// had done one task, if all tasks were alike.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn should_leave_to_faster(&self, device: usize) -> bool {
        let own = self.reach[device].flops;
        let is_faster = |other: &usize| self.devices[*other].out.is_none() && self.reach[*other].flops > own;
        let faster: f64 = (0..self.reach.len()).filter(is_faster).map(|other| self.reach[other].flops).sum();
        self.untaken as f64 * own < faster
    }

    /// A command is done.
    fn retire(&mut self, device: usize, command: CommandId) {
        self.changed = true;
        let graph = self.graph;
        graph.commands.successors(command).iter().for_each(|&later| self.waits[later as usize] -= 1);
        let (uses, memory, slots) = (&mut self.uses, &mut self.memory, &mut self.devices[device].slots);
        distinct_registers(&self.plan.commands()[command as usize], |reg| {
            let r = reg.0 as usize;
            uses[r] -= 1;
            if uses[r] == 0 {
                memory[r].take().into_iter().for_each(|slot| slots.give_back(slot));
            }
        });
        let taken = self.taken(device, command);
        taken.unfinished -= 1;
        if taken.unfinished == 0 {
            let task = taken.task;
            self.finish(device, task);
        }
    }

    /// A task is done: tasks that wait for nothing else become ready.
    fn finish(&mut self, device: usize, task: u32) {
        self.devices[device].taken.retain(|t| t.task != task);
        self.unfinished -= 1;
        for &later in self.graph.tasks.successors(task) {
            self.task_waits[later as usize] -= 1;
            if self.task_waits[later as usize] == 0 && !self.begun[later as usize] {
                self.ready.push(Reverse(later));
            }
        }
    }
}

#[cfg(test)]
mod tests;
