//! What the dispatcher knows of one device.

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
    /// The queue of its kernels.
    pub number: usize,
    /// Next command that each queue looks at, by [`Queue`].
    pub cursors: [CommandId; 3],
    /// Next entry of the births that needs memory.
    pub birth: u32,
    pub unfinished: u32,
    /// Commands that were given out and not reported.
    pub under_way: u32,
    /// Whether a command that writes a matrix of the caller was given out.
    pub wrote: bool,
    /// Its last kernel, if it has any.
    pub last_kernel: Option<CommandId>,
    /// What its first kernel waits for in the device's other queue.
    pub after: Option<CommandId>,
}

impl Taken {
    /// Whether the lane carries out commands of this task.
    pub fn uses(&self, lane: Lane) -> bool {
        lane.queue != Queue::Exec || lane.number == self.number
    }

    /// Whether all its kernels were given out.
    pub fn kernels_are_out(&self) -> bool {
        self.last_kernel.is_some_and(|last| self.cursors[Queue::Exec as usize] > last)
    }
}

#[derive(Debug)]
pub(super) struct DeviceState {
    pub taken: VecDeque<Taken>,
    pub slots: Slots,
    /// Commands that were given out and not reported, by [`Lane::index`].
    pub under_way: [u32; 2 + KERNEL_QUEUES],
    /// Whether any register needs a copy.
    pub copies: bool,
    /// Queues of kernels in use.
    pub queues: usize,
    /// The queue of the task that was taken last.
    last_queue: usize,
    /// Tasks that may follow their predecessors in the queues of this device; those that were begun are passed over.
    pub followers: BinaryHeap<Reverse<u32>>,
    /// Why the device takes no tasks any more.
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

    /// Whether tasks may follow others in its queues: transfers know no such order.
    pub fn follows(&self) -> bool {
        !self.copies && self.queues > 1
    }

    /// The queue of kernels for the next task: each in turn.
    pub fn next_queue(&mut self) -> usize {
        self.last_queue = (self.last_queue + 1) % self.queues;
        self.last_queue
    }
}
