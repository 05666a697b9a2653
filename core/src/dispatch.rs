//! The dispatcher decides which command runs next, on which device, and in which memory.
//!
//! The dispatcher contains all scheduling rules of a run. The dispatcher is a state machine without threads or clocks. The engine
//! calls the dispatcher under a lock, the simulator calls it with a model of time, and the tests call it in random legal orders.
//! The dispatcher follows these rules:
//!
//! - A device takes the first task, in plan order, whose predecessors are done. A device that copies matrices may hold one task
//!   for each kind of queue, so that the ST of one task, the EXEC of the next task and the LD of a third task run at the same
//!   time.
//! - A task that uses held registers runs on the device that holds these registers. If such a task consists of transfers, a lane of the
//!   device takes the task when the lane has no other command to issue, however many tasks the device already holds. A transfer that comes
//!   early in the plan therefore overtakes transfers that have been ready for longer.
//! - A device with two kernel queues alternates between the two queues from task to task.
//! - On some devices, the dispatcher queues the kernels of a task behind the kernels of the task's predecessors, before the predecessors
//!   are done (`dispatch/follow.rs`). It does so on a device that works in place and has two kernel queues, and for tasks that use held
//!   registers.
//! - The dispatcher assigns memory to registers in plan order, as far as the memory limit of the device allows. A held register has memory
//!   when its device takes the first task that uses the register. The memory of a register is free again after the last command that uses
//!   the register. The held registers of a device get memory in the order in which the plan first uses them, so that a register of a later
//!   task never takes the memory that an earlier task waits for. A task whose commands run in plan order needs at most
//!   [`Schedule::footprint`](crate::Schedule::footprint) bytes, so a run cannot deadlock for lack of memory.
//! - The dispatcher calls no device: by [`Step::Obtain`] and [`Step::Release`] it asks its caller to allocate or free device
//!   memory.
//! - A task may have an owner, which is the device that should run the task. An idle device takes a task from its owner if both devices
//!   together then finish the owner's tasks earlier than the owner would alone.
//! - A slow device does not take a task that any device may take if the faster devices would finish all remaining tasks before the slow
//!   device finished this task.
//! - If a device turns out to have less memory than its memory limit, the run continues with the memory that the device has. If
//!   the memory of a device does not suffice for the device's first task, if a command lacks memory, or if the device is lost, the
//!   device leaves the run (`dispatch/shortage.rs`) and other devices run its tasks. The run fails when all devices have left it.
//! - A lane holds only a few commands at a time (`DeviceState::depth`).
//! - Each kernel queue runs in order: the dispatcher issues a kernel when the kernels on which it depends have been issued and
//!   its other dependencies are done. The LD commands of a device start in the order in which the device has
//!   taken their tasks, and so do its ST commands.
//! - A transfer between a register and a window on which the device works in place does nothing and is done at once.

mod device;
mod follow;
mod memory;
mod shortage;
mod take;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::command::{Command, CommandId, Effects, Queue, distinct_registers};
use crate::error::Result;
use crate::graph::Graph;
use crate::instruction::{Access, Reg};
use crate::plan::{Plan, RegisterInfo};
use crate::slots::{Slot, SlotId};

use device::{DeviceState, Taken};
use memory::Memory;

/// The properties of one device that the dispatcher needs for its decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// Maximum number of bytes of device memory for registers.
    pub memory: usize,
    /// For each matrix of the plan, whether the device works on the matrix in place, without a copy.
    pub in_place: Vec<bool>,
    /// Floating-point operations per second, by which the dispatcher compares devices.
    pub flops: f64,
    /// Number of kernel queues of the device. The dispatcher uses at most [`KERNEL_QUEUES`] kernel queues of a device.
    pub queues: usize,
}

impl Reach {
    /// Whether a register needs no memory, because the device works in place on the matrix of the register's window.
    pub(crate) fn works_in_place(&self, register: &RegisterInfo) -> bool {
        register.window.is_some_and(|window| self.in_place[window.matrix.0 as usize])
    }

    /// Whether the device with the index `device`, which this value describes, needs memory for a held register.
    pub(crate) fn holds(&self, device: usize, register: &RegisterInfo) -> bool {
        register.holder == Some(device) && !self.works_in_place(register)
    }
}

/// Maximum number of kernel queues used on a device: one for a panel, and one for the update that runs at the same time.
pub const KERNEL_QUEUES: usize = 2;

/// One queue of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Lane {
    /// Index of the device in the run.
    pub device: usize,
    /// Kind of the queue: loads, kernels or stores.
    pub queue: Queue,
    /// Number of the kernel queue, less than [`KERNEL_QUEUES`]; 0 for a queue of transfers.
    pub number: usize,
}

impl Lane {
    /// The first lane of a device for commands of the kind `queue`.
    #[must_use]
    pub fn new(device: usize, queue: Queue) -> Self {
        Lane { device, queue, number: 0 }
    }

    /// Index of this lane among the lanes of its device.
    fn index(self) -> usize {
        match self.queue {
            Queue::Ld => 0,
            Queue::St => 1,
            Queue::Exec => 2 + self.number,
        }
    }
}

/// The physical registers that a command uses, in the order of its operands. An entry is `None` if the device works on the
/// operand in place.
pub type Operands = [Option<Slot>; 3];

/// A command that the dispatcher has issued to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Index of the command in the plan.
    pub command: CommandId,
    /// The physical registers of the command's operands.
    pub operands: Operands,
    /// The last kernel in the device's other queue that must complete before this command starts; `None` if there is no such
    /// kernel.
    pub after: Option<CommandId>,
}

/// What the caller of [`Dispatcher::next`] must do next for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run this command, then report its completion by [`Dispatcher::complete`].
    Run(Issue),
    /// Free the device memory of this physical register, then call [`Dispatcher::next`] again.
    Release(SlotId),
    /// Allocate device memory for this physical register, then report the result by [`Dispatcher::obtained`].
    Obtain(Slot),
    /// Do nothing for this lane now. Call [`Dispatcher::next`] again after another command has completed.
    Wait,
    /// No command will follow for this lane: all tasks are done, the run was stopped, or the device has left the run.
    Finished,
}

/// The state of a run: which tasks are ready, taken or done, and which registers have memory.
#[derive(Debug)]
pub struct Dispatcher<'p> {
    plan: &'p Plan,
    graph: &'p Graph,
    reach: &'p [Reach],
    devices: Vec<DeviceState>,
    /// For each command, the number of unfinished commands of the same task on which it depends.
    unmet: Vec<u32>,
    /// For each task, the number of unfinished tasks on which it depends.
    task_unmet: Vec<u32>,
    /// The tasks whose predecessors are done. The dispatcher skips those tasks of `ready` that a device has already taken.
    ready: BinaryHeap<Reverse<u32>>,
    /// For each task, whether a device has taken the task.
    begun: Vec<bool>,
    /// For each register, the physical register that holds it now; `None` if the register has no memory now.
    memory: Vec<Option<SlotId>>,
    /// For each register, the number of unfinished commands that use the register.
    uses: Vec<u32>,
    /// Whether any task of the plan has an owner.
    has_owners: bool,
    /// Number of tasks that are not done.
    unfinished: usize,
    /// Number of tasks that no device has taken.
    untaken: usize,
    /// Whether a command that writes a matrix of the caller has been issued.
    touched: bool,
    halted: bool,
    /// The devices of which lanes that received [`Step::Wait`] may have a command now.
    changed: BTreeSet<usize>,
}

impl<'p> Dispatcher<'p> {
    /// Creates the state of a run before its first command.
    #[must_use]
    pub fn new(plan: &'p Plan, graph: &'p Graph, reach: &'p [Reach]) -> Self {
        let (task_unmet, tasks) = (graph.tasks.predecessor_counts().to_vec(), plan.tasks().len());
        let mut dispatcher = Dispatcher {
            plan,
            graph,
            reach,
            devices: reach.iter().enumerate().map(|(device, reach)| DeviceState::new(plan, graph, device, reach)).collect(),
            unmet: graph.commands.predecessor_counts().to_vec(),
            task_unmet,
            ready: BinaryHeap::new(),
            begun: vec![false; tasks],
            memory: vec![None; plan.registers().len()],
            uses: graph.live_ranges.iter().map(|life| life.uses).collect(),
            has_owners: plan.tasks().iter().any(|task| task.owner.is_some()),
            unfinished: tasks,
            untaken: tasks,
            touched: false,
            halted: false,
            changed: BTreeSet::new(),
        };
        let is_ready = |&task: &u32| graph.tasks.predecessor_counts()[task as usize] == 0;
        (0..).take(tasks).filter(is_ready).for_each(|task| dispatcher.make_ready(task));
        dispatcher
    }

    /// The lanes of one device to which the dispatcher issues commands. A device that copies no matrices has kernel lanes only.
    pub fn lanes_of(&self, device: usize) -> impl DoubleEndedIterator<Item = Lane> + use<> {
        let DeviceState { copies, queues, .. } = self.devices[device];
        let transfers = |queue| copies.then_some(Lane::new(device, queue)).into_iter();
        let kernels = (0..queues).map(move |number| Lane { device, queue: Queue::Exec, number });
        transfers(Queue::Ld).chain(kernels).chain(transfers(Queue::St))
    }

    /// All lanes of the run: the lanes that [`Dispatcher::lanes_of`] returns for each device.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> {
        (0..self.devices.len()).flat_map(|device| self.lanes_of(device))
    }

    /// Whether matrices of the caller that the plan writes may have changed since the start of the run.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// Whether all commands of the plan are done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.unfinished == 0
    }

    /// Stops the run: from now on every lane receives [`Step::Finished`].
    pub fn halt(&mut self) {
        self.halted = true;
        self.change_all();
    }

    /// Returns the devices for whose lanes the caller should call [`Dispatcher::next`] again if the lanes received [`Step::Wait`]. Each
    /// device is returned once for each change of its state.
    pub fn take_changed(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.changed)
    }

    /// Records that lanes of every device may have a command now.
    fn change_all(&mut self) {
        self.changed.extend(0..self.devices.len());
    }

    /// Returns the next step of a lane.
    ///
    /// # Errors
    /// The device has too little memory for a task that has already written outputs.
    pub fn next(&mut self, lane: Lane) -> Result<Step> {
        if self.halted {
            return Ok(Step::Finished);
        }
        loop {
            if let Some(step) = self.next_step_while_draining(lane.device) {
                return Ok(step);
            }
            if self.devices[lane.device].under_way[lane.index()] == self.devices[lane.device].depth[lane.queue as usize] {
                return Ok(Step::Wait);
            }
            match self.allocate(lane.device)? {
                Memory::Assigned => {}
                Memory::Ask(step) => return Ok(step),
                Memory::Short => continue,
            }
            if let Some(command) = self.head(lane) {
                if !self.is_elided(lane.device, command) {
                    return Ok(Step::Run(self.issue(lane, command)));
                }
                self.advance_cursor(lane, command);
                self.mark_done(lane.device, command);
            } else if self.unfinished == 0 {
                return Ok(Step::Finished);
            } else if !self.take(lane) {
                return Ok(Step::Wait);
            }
        }
    }

    /// Reports that a command that was issued to this lane has completed.
    pub fn complete(&mut self, lane: Lane, command: CommandId) {
        self.report(lane, command);
        self.mark_done(lane.device, command);
    }

    /// Whether a device works on the rectangle of a register in place, without a copy.
    #[must_use]
    pub fn in_place(&self, device: usize, reg: Reg) -> bool {
        self.reach[device].works_in_place(&self.plan.registers()[reg])
    }

    /// Whether a command does nothing on a device and is therefore not issued.
    fn is_elided(&self, device: usize, command: CommandId) -> bool {
        match &self.plan.commands()[command as usize] {
            Command::Ld(ld) => self.in_place(device, ld.tile.reg),
            Command::St(st) => self.in_place(device, st.tile.reg),
            Command::Mark(_) | Command::Bar(_) => true,
            Command::Exec(_) => false,
        }
    }

    /// The kind of lane that processes a command on a device. On a device that copies no matrices, all commands are processed by
    /// kernel lanes, since the device has no other lanes.
    fn queue_of(&self, device: usize, command: CommandId) -> Queue {
        if self.devices[device].copies { self.plan.commands()[command as usize].queue() } else { Queue::Exec }
    }

    /// Returns the next command of a lane, if the command may start now.
    fn head(&mut self, lane: Lane) -> Option<CommandId> {
        for t in 0..self.devices[lane.device].taken.len() {
            if !self.devices[lane.device].taken[t].uses(lane) {
                continue;
            }
            if let Some(command) = self.seek(lane, t) {
                if self.may_start(lane.device, t, command) {
                    return Some(command);
                }
                // if all kernels of this task were issued, kernels of tasks that the device took later may be issued too
                if !(lane.queue == Queue::Exec && self.devices[lane.device].taken[t].kernels_are_out()) {
                    return None;
                }
            }
        }
        None
    }

    /// Moves the cursor of a lane to the lane's next command in the `t`-th task that the device has taken, and returns this
    /// command.
    fn seek(&mut self, lane: Lane, t: usize) -> Option<CommandId> {
        let taken = &self.devices[lane.device].taken[t];
        let end = self.plan.tasks()[taken.task as usize].commands.end;
        let from = taken.cursors[lane.queue as usize];
        let found = (from..end).find(|&command| self.queue_of(lane.device, command) == lane.queue);
        self.devices[lane.device].taken[t].cursors[lane.queue as usize] = found.unwrap_or(end);
        found
    }

    /// Whether all commands on which a command depends are done and all registers that the command uses have memory.
    fn may_start(&self, device: usize, t: usize, command: CommandId) -> bool {
        let taken = &self.devices[device].taken[t];
        let born = taken.next_register == self.plan.tasks()[taken.task as usize].registers.end
            || self.graph.live_ranges[self.graph.registers_by_first_use[taken.next_register as usize].0 as usize].first > command;
        born && self.unmet[command as usize] == 0
    }

    fn issue(&mut self, lane: Lane, command: CommandId) -> Issue {
        self.advance_cursor(lane, command);
        let writes = self.writes_outputs(lane.device, command);
        self.touched |= writes;
        let taken = self.taken(lane.device, command);
        taken.under_way += 1;
        taken.wrote |= writes;
        let after = if lane.queue == Queue::Exec { taken.after.take() } else { None };
        let (task, is_last) = (taken.task, taken.last_kernel == Some(command));
        if is_last {
            let graph = self.graph;
            graph.tasks.successors(task).iter().for_each(|&later| self.let_follow(lane.device, later));
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

    /// Whether a command writes a matrix of the caller. Every store writes a matrix of the caller. An instruction writes a matrix
    /// of the caller if the device works in place on the result of the instruction.
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

    /// Returns the entry of the taken task to which a command belongs.
    fn taken(&mut self, device: usize, command: CommandId) -> &mut Taken {
        let tasks = self.plan.tasks();
        let mut taken = self.devices[device].taken.iter_mut();
        taken.find(|t| tasks[t.task as usize].commands.contains(&command)).expect("the task is taken")
    }

    /// Moves the cursor of the lane past a command.
    fn advance_cursor(&mut self, lane: Lane, command: CommandId) {
        self.taken(lane.device, command).cursors[lane.queue as usize] = command + 1;
    }

    /// Removes a command from the counts of commands in flight, after it has completed or failed.
    fn report(&mut self, lane: Lane, command: CommandId) {
        self.devices[lane.device].under_way[lane.index()] -= 1;
        self.taken(lane.device, command).under_way -= 1;
    }

    /// Marks a command as done, and updates its successors, its registers and its task.
    fn mark_done(&mut self, device: usize, command: CommandId) {
        self.changed.insert(device);
        let graph = self.graph;
        graph.commands.successors(command).iter().for_each(|&later| self.unmet[later as usize] -= 1);
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

    /// Marks a task as done. Each successor of the task becomes ready when all tasks for which it waits are done.
    fn finish(&mut self, device: usize, task: u32) {
        self.devices[device].taken.retain(|t| t.task != task);
        self.unfinished -= 1;
        if self.unfinished == 0 {
            self.change_all();
        }
        for &later in self.graph.tasks.successors(task) {
            self.task_unmet[later as usize] -= 1;
            if self.begun[later as usize] {
                continue;
            }
            if self.task_unmet[later as usize] == 0 {
                self.make_ready(later);
            } else {
                self.let_follow(self.plan.tasks()[later as usize].device.unwrap_or(device), later);
            }
        }
    }
}

#[cfg(test)]
mod tests;
