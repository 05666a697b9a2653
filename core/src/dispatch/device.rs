//! The state that the dispatcher keeps for each device.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use super::{KERNEL_QUEUES, Lane, Reach};
use crate::command::{CommandId, Queue};
use crate::error::Error;
use crate::graph::Graph;
use crate::instruction::Reg;
use crate::plan::Plan;
use crate::slots::Slots;

/// A task that a device has taken, and the progress of the task.
#[derive(Debug)]
pub(super) struct Taken {
    pub task: u32,
    /// Number of the kernel queue that runs the kernels of this task.
    pub number: usize,
    /// The next command to issue, for each kind of [`Queue`].
    pub cursors: [CommandId; 3],
    /// Index of the first entry of the graph's `registers_by_first_use` whose register has no memory yet.
    pub next_register: u32,
    pub unfinished: u32,
    /// Number of commands of the task that were issued and not yet reported as completed or failed.
    pub under_way: u32,
    /// Whether a command of the task that writes a matrix of the caller was issued.
    pub wrote: bool,
    /// The last kernel of this task; `None` if the task has no kernels.
    pub last_kernel: Option<CommandId>,
    /// The kernel of the device's other kernel queue for which the next kernel of this task must wait; `None` if there is no such
    /// kernel.
    pub after: Option<CommandId>,
}

impl Taken {
    /// Whether this lane runs commands of the task.
    pub fn uses(&self, lane: Lane) -> bool {
        lane.queue != Queue::Exec || lane.number == self.number
    }

    /// Whether all kernels of the task have been issued; false if the task has no kernels.
    pub fn kernels_are_out(&self) -> bool {
        self.last_kernel.is_some_and(|last| self.cursors[Queue::Exec as usize] > last)
    }
}

#[derive(Debug)]
pub(super) struct DeviceState {
    pub taken: VecDeque<Taken>,
    pub slots: Slots,
    /// For each lane of the device, by [`Lane::index`], the number of commands that were issued and not yet reported as completed
    /// or failed.
    pub under_way: [u32; 2 + KERNEL_QUEUES],
    /// Maximum number of commands that a lane holds, by [`Queue`]. A lane holds one command that runs and one that waits. A lane of kernels holds two
    /// more commands, because kernels may be short. It holds no more than two if the device copies matrices, has a single kernel queue and holds no
    /// registers. Such a device may run kernels and transfers in one queue, and a store would then wait for all kernels that were submitted before it.
    pub depth: [u32; 3],
    /// Whether the device copies any register from or to a matrix of the caller.
    pub copies: bool,
    /// Number of kernel queues that the dispatcher uses on this device.
    pub queues: usize,
    /// Number of the kernel queue that runs the task that the device has taken last.
    last_queue: usize,
    /// Whether kernels of a task may be queued behind the kernels of its predecessors on this device. A kernel queue does not order
    /// transfers, so this is false for a device that copies the registers of tasks.
    pub follows: bool,
    /// The tasks that only this device may take now: the tasks whose kernels may be queued behind the kernels of their predecessors on
    /// this device, and the ready tasks with kernels that use held registers of this device. The dispatcher skips those tasks of `own`
    /// that a device has already taken.
    pub own: BinaryHeap<Reverse<u32>>,
    /// The ready tasks of which this device is the owner.
    pub owned: BTreeSet<u32>,
    /// The held registers of this device that need device memory, sorted by the first command of the plan that uses each of them.
    pub held: Vec<Reg>,
    /// Index in `held` of the next register that gets memory.
    pub next_held: usize,
    /// Each register of `held` that a command before this command uses has memory, or its memory has been requested.
    pub wanted: CommandId,
    /// The ready tasks that transfer held registers of this device, for each kind of [`Queue`].
    pub transfers: [BinaryHeap<Reverse<u32>>; 3],
    /// The error because of which the device has left the run; `None` while the device takes tasks.
    pub out: Option<Error>,
    /// Whether the memory of this device's free physical registers must be freed.
    pub gives_up_memory: bool,
}

impl DeviceState {
    pub fn new(plan: &Plan, graph: &Graph, device: usize, reach: &Reach) -> Self {
        let registers = plan.registers();
        let copies = (0..)
            .map(Reg)
            .take(registers.len())
            .any(|reg| registers[reg].window.is_some_and(|window| !reach.in_place[window.matrix.0 as usize]));
        let mut held: Vec<Reg> = registers.held().filter(|&reg| reach.holds(device, &registers[reg])).collect();
        held.sort_by_key(|reg| graph.live_ranges[reg.0 as usize].first);
        let queues = reach.queues.clamp(1, KERNEL_QUEUES);
        let follows = registers.held().next().is_some() || (!copies && queues > 1);
        DeviceState {
            taken: VecDeque::new(),
            slots: Slots::new(reach.memory),
            under_way: [0; 2 + KERNEL_QUEUES],
            depth: [2, if copies && queues == 1 && !follows { 2 } else { 4 }, 2],
            copies,
            queues,
            last_queue: queues - 1,
            follows,
            own: BinaryHeap::new(),
            owned: BTreeSet::new(),
            held,
            next_held: 0,
            // registers that have memory from the start on count as used by command 0
            wanted: 1,
            transfers: Default::default(),
            out: None,
            gives_up_memory: false,
        }
    }

    /// Whether the device may take one more task now.
    pub fn has_room(&self, plan: &Plan) -> bool {
        let Some(last) = self.taken.back() else { return true };
        if self.follows {
            let waits = |taken: &&Taken| !(taken.kernels_are_out() || taken.last_kernel.is_none());
            return self.taken.iter().filter(waits).count() < self.queues;
        }
        let allocated = last.next_register == plan.tasks()[last.task as usize].registers.end;
        self.copies && allocated && self.taken.len() < Queue::ALL.len()
    }

    /// Returns the number of the kernel queue for the next task. The tasks of a device use its kernel queues in turn.
    pub fn next_queue(&mut self) -> usize {
        self.last_queue = (self.last_queue + 1) % self.queues;
        self.last_queue
    }
}
