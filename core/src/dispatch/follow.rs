//! Tasks whose kernels are queued behind the kernels of their predecessors.
//!
//! A device that works in place and has two kernel queues can take a task before the task's predecessors are done. So can a device
//! that holds the registers of the task and of its predecessors. The device may take a task early only if all kernels of the task's
//! unfinished predecessors have been issued to the same device. Each kernel queue keeps its own kernels in order.
//! To keep dependent kernels of the two queues in order, the first kernel of a task names
//! the kernel of the other queue that must complete first ([`Issue::after`]). Since kernels are queued early, a device factors a
//! panel of LU while an update runs, and no kernel queue is empty between two tasks.
//!
//! [`Issue::after`]: super::Issue::after

use std::cmp::Reverse;

use crate::command::{Command, CommandId};
use crate::dispatch::device::Taken;
use crate::dispatch::{Dispatcher, KERNEL_QUEUES};

// a task names at most one kernel of another kernel queue, so a device may use only two kernel queues
const _: () = assert!(KERNEL_QUEUES == 2);

impl Dispatcher<'_> {
    /// The last kernel of a task; `None` if the task has no kernels.
    pub(super) fn last_kernel(&self, task: u32) -> Option<CommandId> {
        let is_kernel = |&command: &CommandId| matches!(self.plan.commands()[command as usize], Command::Exec(_));
        self.plan.tasks()[task as usize].commands.clone().rev().find(is_kernel)
    }

    /// Lets `device` take `task` if all kernels of the unfinished predecessors of the task have been issued to the device. The dispatcher
    /// calls this method when all kernels of a predecessor have been issued to `device`, and when a predecessor is done.
    pub(super) fn let_follow(&mut self, device: usize, task: u32) {
        let is_of_another = self.plan.tasks()[task as usize].owner.is_some_and(|owner| owner != device);
        if is_of_another || !self.devices[device].follows || self.begun[task as usize] || self.last_kernel(task).is_none() {
            return;
        }
        let given = self.predecessors(device, task).count();
        if usize::try_from(self.task_unmet[task as usize]) == Ok(given) {
            self.devices[device].own.push(Reverse(task));
            self.changed.insert(device);
        }
    }

    /// Returns the unfinished predecessors of `task` that `device` has taken and whose kernels have all been issued, in the order
    /// in which the device took these predecessors.
    fn predecessors(&self, device: usize, task: u32) -> impl Iterator<Item = &Taken> {
        let precedes = move |taken: &&Taken| self.graph.tasks.successors(taken.task).contains(&task);
        self.devices[device].taken.iter().filter(|taken| taken.kernels_are_out()).filter(precedes)
    }

    /// Returns the last kernel that a predecessor of `task` has in the kernel queue of `device` that is not `own_queue`. Returns
    /// `None` if all kernels of the predecessors are in `own_queue`.
    pub(super) fn last_kernel_before(&self, device: usize, task: u32, own_queue: usize) -> Option<CommandId> {
        self.predecessors(device, task).filter(|taken| taken.number != own_queue).filter_map(|taken| taken.last_kernel).last()
    }
}
