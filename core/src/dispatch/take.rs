//! Which task a device takes next.

use std::cmp::Reverse;

use crate::dispatch::device::Taken;
use crate::dispatch::{Dispatcher, Lane};

impl Dispatcher<'_> {
    /// Adds a task whose predecessors are done to the tasks that a device may take.
    pub(super) fn make_ready(&mut self, task: u32) {
        let tasks = match self.plan.tasks()[task as usize].device {
            None => &mut self.ready,
            Some(device) if self.last_kernel(task).is_none() => {
                let commands = self.plan.tasks()[task as usize].commands.clone();
                let queue = self.queue_of(device, commands.start);
                debug_assert!(commands.into_iter().all(|c| self.queue_of(device, c) == queue), "a task loads only or stores only");
                &mut self.devices[device].transfers[queue as usize]
            }
            Some(device) => &mut self.devices[device].own,
        };
        tasks.push(Reverse(task));
    }

    /// Takes the next ready task for a lane that has no command to issue, or requests memory for the held registers of this task. Returns
    /// false if no task is ready, or if the device should not take a task now.
    pub(super) fn take(&mut self, lane: Lane) -> bool {
        let device = lane.device;
        let state = &self.devices[device];
        if state.out.is_some() {
            return false;
        }
        let transfer = state.transfers[lane.queue as usize].peek().map(|&Reverse(task)| task);
        let next = match transfer {
            None if !state.has_room(self.plan) => None,
            None => self.next_task(device),
            transfer => transfer,
        };
        let Some(task) = next else { return false };
        if !self.held_have_memory(device, task) {
            return self.request_held(device, task);
        }
        if transfer.is_some() {
            self.devices[device].transfers[lane.queue as usize].pop();
        }
        self.changed = true;
        self.untaken -= 1;
        self.begun[task as usize] = true;
        let last_kernel = self.last_kernel(task);
        // a task of held registers that has no kernels leaves the order in which tasks use the kernel queues as it is
        let is_transfer = last_kernel.is_none() && self.plan.tasks()[task as usize].device.is_some();
        let number = if is_transfer { 0 } else { self.devices[device].next_queue() };
        let after = self.last_kernel_before(device, task, number);
        let info = &self.plan.tasks()[task as usize];
        let start = info.commands.start;
        let unfinished = info.commands.end - start;
        self.devices[device].taken.push_back(Taken {
            task,
            number,
            cursors: [start; 3],
            next_register: info.registers.start,
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

    /// Finds the first task, in plan order, that `device` may begin. Returns `None` also if the device should leave this task to faster
    /// devices.
    fn next_task(&mut self, device: usize) -> Option<u32> {
        let leaves = self.should_leave_to_faster(device);
        let Dispatcher { plan, ready, begun, devices, .. } = self;
        let own = &mut devices[device].own;
        for tasks in [&mut *ready, &mut *own] {
            while tasks.peek().is_some_and(|&Reverse(task)| begun[task as usize]) {
                tasks.pop();
            }
        }
        // `Reverse` inverts the comparison, so the larger entry is the earlier task
        let first = if own.peek() > ready.peek() { own } else { ready };
        let task = first.peek().map(|&Reverse(task)| task);
        task.filter(|&task| !leaves || plan.tasks()[task as usize].device.is_some())
    }

    /// Whether the faster devices would finish all remaining tasks before `device` finished one task. The estimate assumes that
    /// all tasks take the same number of operations.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn should_leave_to_faster(&self, device: usize) -> bool {
        let own = self.reach[device].flops;
        let is_faster = |other: &usize| self.devices[*other].out.is_none() && self.reach[*other].flops > own;
        let faster: f64 = (0..self.reach.len()).filter(is_faster).map(|other| self.reach[other].flops).sum();
        self.untaken as f64 * own < faster
    }
}
