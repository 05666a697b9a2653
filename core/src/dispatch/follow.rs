//! Tasks that follow their predecessors in the queues of a device.
//!
//! A device with two queues of kernels that works in place need not wait until a task is done to begin the next one: if all
//! kernels that a task waits for were given to this device, its own may be given too. Those in the same queue are in
//! order; for the other queue, the first kernel of the task names the last kernel there that it waits for ([`Issue::after`]).
//! So the panel of a factorisation is factored beside an update, and neither queue is ever empty between two tasks.
//!
//! [`Issue::after`]: super::Issue::after

use std::cmp::Reverse;

use crate::command::{Command, CommandId};
use crate::dispatch::Dispatcher;
use crate::dispatch::device::Taken;

impl Dispatcher<'_> {
    /// The last kernel of a task, if it has any.
    pub(super) fn last_kernel(&self, task: u32) -> Option<CommandId> {
        let is_kernel = |&command: &CommandId| matches!(self.plan.commands()[command as usize], Command::Exec(_));
        self.plan.tasks()[task as usize].commands.clone().rev().find(is_kernel)
    }

    /// All kernels of a task were given to a device: finds the tasks that may follow it there.
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

    /// Tasks that a task waits for and whose kernels were all given to a device, in the order in which it took them.
    fn predecessors(&self, device: usize, task: u32) -> impl Iterator<Item = &Taken> {
        let precedes = move |taken: &&Taken| self.graph.tasks.successors(taken.task).contains(&task);
        self.devices[device].taken.iter().filter(|taken| taken.kernels_are_out()).filter(precedes)
    }

    /// What a task waits for in the queues of a device other than its own.
    pub(super) fn last_kernel_before(&self, device: usize, task: u32, own_queue: usize) -> Option<CommandId> {
        self.predecessors(device, task).filter(|taken| taken.number != own_queue).filter_map(|taken| taken.last_kernel).last()
    }

    /// The first task in plan order that a device may begin.
    pub(super) fn next_task(&mut self, device: usize) -> Option<u32> {
        let Dispatcher { ready, begun, devices, .. } = self;
        let followers = &mut devices[device].followers;
        for tasks in [&mut *ready, &mut *followers] {
            while tasks.peek().is_some_and(|&Reverse(task)| begun[task as usize]) {
                tasks.pop();
            }
        }
        // the largest in reverse order is the first
        let first = if followers.peek() > ready.peek() { followers } else { ready };
        first.pop().map(|Reverse(task)| task)
    }
}
