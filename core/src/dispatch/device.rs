//! The dispatcher's state for one device.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{KERNEL_QUEUES, Lane, Reach};
use crate::command::{CommandId, Queue};
use crate::error::Error;
use crate::instruction::Reg;
use crate::plan::Plan;
use crate::slots::Slots;

/// A task that a device has taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub task: u32,
    /// Number of the queue of its kernels.
    pub number: usize,
    /// Next command to issue, by [`Queue`].
    pub cursors: [CommandId; 3],
    /// Next entry of the graph's `registers_by_first_use` whose register needs memory.
    pub birth: u32,
    pub unfinished: u32,
    /// Commands issued and not yet reported.
    pub under_way: u32,
    /// Whether a command that writes a matrix of the caller was issued.
    pub wrote: bool,
    /// Its last kernel, if it has any.
    pub last_kernel: Option<CommandId>,
    /// The kernel of the device's other queue that its first kernel waits for.
    pub after: Option<CommandId>,
}

impl Taken {
    /// Whether the lane carries out commands of this task.
    pub fn uses(&self, lane: Lane) -> bool {
        lane.queue != Queue::Exec || lane.number == self.number
    }

    /// Whether all its kernels were issued; false if it has none.
    pub fn kernels_are_out(&self) -> bool {
        self.last_kernel.is_some_and(|last| self.cursors[Queue::Exec as usize] > last)
    }
}

#[derive(Debug)]
pub(super) struct DeviceState {
    pub taken: VecDeque<Taken>,
    pub slots: Slots,
    /// Commands issued and not yet reported, by [`Lane::index`].
    pub under_way: [u32; 2 + KERNEL_QUEUES],
    /// Whether any register needs a copy.
    pub copies: bool,
    /// Number of kernel queues in use.
    pub queues: usize,
    /// Number of the kernel queue of the task taken last.
    last_queue: usize,
    /// Tasks whose kernels may be queued behind those of their predecessors on this device. A task that was taken since is
    /// skipped.
    pub followers: BinaryHeap<Reverse<u32>>,
    /// The error for which the device takes no more tasks.
    pub out: Option<Error>,
    /// Whether its free registers go back to the device.
    pub gives_up_memory: bool,
}

impl DeviceState {
    pub fn new(plan: &Plan, reach: &Reach) -> Self {
        let registers = plan.registers();
        let copies = (0..)
            .map(Reg)
            .take(registers.len())
            .any(|reg| registers[reg].window.is_some_and(|window| !reach.in_place[window.matrix.0 as usize]));
        let queues = reach.queues.clamp(1, KERNEL_QUEUES);
        DeviceState {
            taken: VecDeque::new(),
            slots: Slots::new(reach.memory),
            under_way: [0; 2 + KERNEL_QUEUES],
            copies,
            queues,
            last_queue: queues - 1,
            followers: BinaryHeap::new(),
            out: None,
            gives_up_memory: false,
        }
    }

    /// Whether the device may take one more task.
    pub fn has_room(&self, plan: &Plan) -> bool {
        let Some(last) = self.taken.back() else { return true };
        if self.copies {
            let allocated = last.birth == plan.tasks()[last.task as usize].registers.end;
            return allocated && self.taken.len() < Queue::ALL.len();
        }
        self.follows() && self.taken.iter().filter(|taken| !taken.kernels_are_out()).count() < self.queues
    }

    /// Whether kernels of a task may be queued behind those of its predecessors. Kernel queues do not order transfers, so
    /// this needs a device without copies.
    pub fn follows(&self) -> bool {
        !self.copies && self.queues > 1
    }

    /// Number of the kernel queue for the next task: each queue in turn.
    pub fn next_queue(&mut self) -> usize {
        self.last_queue = (self.last_queue + 1) % self.queues;
        self.last_queue
    }
}
