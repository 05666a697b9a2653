//! Tasks whose kernels are queued behind those of their predecessors.
//!
//! A device that works in place and has two queues of kernels can take a task before its predecessors are done. It is
//! enough that all kernels of the predecessors were issued to this device. A queue keeps its own kernels in order. For
//! the other queue, the first kernel of the task names the last kernel that it must wait for ([`Issue::after`]).
//! This way a panel is factored beside an update, and no queue runs empty between two tasks.
//!
//! [`Issue::after`]: super::Issue::after

use std::cmp::Reverse;

use crate::command::{Command, CommandId};
use crate::dispatch::device::Taken;
use crate::dispatch::{Dispatcher, KERNEL_QUEUES};

// a task names one kernel of the other queue
const _: () = assert!(KERNEL_QUEUES == 2);

impl Dispatcher<'_> {
    /// The last kernel of a task, if it has any.
    pub(super) fn last_kernel(&self, task: u32) -> Option<CommandId> {
        let is_kernel = |&command: &CommandId| matches!(self.plan.commands()[command as usize], Command::Exec(_));
        self.plan.tasks()[task as usize].commands.clone().rev().find(is_kernel)
    }

    /// Called when all kernels of `task` have been issued to `device`: adds the successors that may now follow there.
    pub(super) fn let_follow(&mut self, device: usize, task: u32) {
        if !self.devices[device].follows() {
            return;
        }
        let graph = self.graph;
        for &later in graph.tasks.successors(task) {
            let given = self.predecessors(device, later).count();
            let waits = self.task_waits[later as usize];
            if usize::try_from(waits) == Ok(given) && !self.begun[later as usize] && self.last_kernel(later).is_some() {
                self.devices[device].followers.push(Reverse(later));
                self.changed = true;
            }
        }
    }

    /// Unfinished predecessors of `task` whose kernels were all issued to `device`, in the order in which it took them.
    fn predecessors(&self, device: usize, task: u32) -> impl Iterator<Item = &Taken> {
        let precedes = move |taken: &&Taken| self.graph.tasks.successors(taken.task).contains(&task);
        self.devices[device].taken.iter().filter(|taken| taken.kernels_are_out()).filter(precedes)
    }

    /// The last kernel of a predecessor of `task` in the other queue of `device` than `own_queue`, if there is any.
    pub(super) fn last_kernel_before(&self, device: usize, task: u32, own_queue: usize) -> Option<CommandId> {
        self.predecessors(device, task).filter(|taken| taken.number != own_queue).filter_map(|taken| taken.last_kernel).last()
    }

    /// Takes the first task in plan order that `device` may begin.
    pub(super) fn next_task(&mut self, device: usize) -> Option<u32> {
        let Dispatcher { ready, begun, devices, .. } = self;
        let followers = &mut devices[device].followers;
        for tasks in [&mut *ready, &mut *followers] {
            while tasks.peek().is_some_and(|&Reverse(task)| begun[task as usize]) {
                tasks.pop();
            }
        }
        // `Reverse`: the larger entry is the earlier task
        let first = if followers.peek() > ready.peek() { followers } else { ready };
        first.pop().map(|Reverse(task)| task)
    }
}
