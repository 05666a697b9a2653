//! Which task a device takes next.

use std::cmp::Reverse;

use crate::command::{Command, CommandId, Queue};
use crate::dispatch::device::{DeviceState, Taken};
use crate::dispatch::{Dispatcher, Lane};
use crate::instruction::Region;
use crate::plan::Task;

impl Dispatcher<'_> {
    /// Adds a task whose predecessors are done to the tasks that a device may take.
    pub(super) fn make_ready(&mut self, task: u32) {
        let Task { device, owner, .. } = self.plan.tasks()[task as usize];
        match device {
            Some(device) => _ = self.changed.insert(device),
            // any idle device may take the task, also from its owner
            None => self.change_all(),
        }
        if let Some(owner) = owner {
            debug_assert!(!self.begun[task as usize], "a task becomes ready before a device begins it");
            self.devices[owner].owned.insert(task);
            return;
        }
        let tasks = match device {
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
        if let Some(owner) = self.plan.tasks()[task as usize].owner {
            self.devices[owner].owned.remove(&task);
        }
        self.changed.insert(device);
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

    /// Returns the next task for `device`: the first task, in plan order, that it may begin, or else a task that it takes from another
    /// device. Returns `None` if there is no such task, or if the device should leave the task to faster devices.
    fn next_task(&mut self, device: usize) -> Option<u32> {
        let Dispatcher { ready, begun, devices, .. } = self;
        let DeviceState { own, owned, taken, .. } = &mut devices[device];
        for tasks in [&mut *ready, &mut *own] {
            while tasks.peek().is_some_and(|&Reverse(task)| begun[task as usize]) {
                tasks.pop();
            }
        }
        // `Reverse` inverts the comparison, so the larger entry is the earlier task
        let first = own.peek().max(ready.peek()).map(|&Reverse(task)| task);
        // tasks beyond the one that is loaded while another one is computed stay available to other devices
        let waiting = taken.iter().filter(|taken| !taken.kernels_are_out()).count();
        let owned = owned.first().copied().filter(|_| waiting < 2);
        let is_left = |task: &u32| self.plan.tasks()[*task as usize].device.is_none() && self.should_leave_to_faster(device);
        let first = first.filter(|task| !is_left(task));
        first.into_iter().chain(owned).min().or_else(|| self.task_of_another(device))
    }

    /// Returns the task that `device` takes from another device, if `device` is idle. First, the method chooses the device that
    /// needs the longest for the tasks that it has taken and for the tasks of its own that it has not begun. Then it chooses that task of this
    /// device with which the two devices finish the earliest. It returns the task only if the two devices then finish earlier than the other
    /// device would without help.
    fn task_of_another(&self, device: usize) -> Option<u32> {
        if !self.has_owners || !self.devices[device].taken.is_empty() {
            return None;
        }
        let seconds = |device: usize, task: u32| self.size(task) / self.reach[device].flops;
        let relieve = |other: usize| {
            let DeviceState { owned, out, .. } = &self.devices[other];
            let total = self.taken_seconds(other) + owned.iter().map(|&task| seconds(other, task)).sum::<f64>();
            let alone = if out.is_some() { f64::INFINITY } else { total };
            let later_end = |task: u32| (seconds(device, task).max(alone - seconds(other, task)), task);
            let (together, task) = owned.iter().rev().copied().map(later_end).min_by(|a, b| a.0.total_cmp(&b.0))?;
            (alone.is_infinite() || together < alone).then_some((alone, task))
        };
        (0..self.devices.len()).filter_map(relieve).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, task)| task)
    }

    /// Estimates for how many seconds a device still computes the tasks that it has taken: the kernels that were not issued, and those under way. The
    /// dispatcher knows only how many commands of a task are under way, and the method takes the last kernels that were issued for them.
    fn taken_seconds(&self, device: usize) -> f64 {
        let flops = |&command: &CommandId| match &self.plan.commands()[command as usize] {
            Command::Exec(exec) => Some(exec.instruction.flops()),
            _ => None,
        };
        let part_left = |taken: &Taken| {
            let commands = self.plan.tasks()[taken.task as usize].commands.clone();
            let issued = (commands.start..taken.cursors[Queue::Exec as usize]).rev().filter_map(|command| flops(&command));
            let under_way: f64 = issued.take(taken.under_way as usize).sum();
            let to_issue: f64 = (taken.cursors[Queue::Exec as usize]..commands.end).filter_map(|command| flops(&command)).sum();
            let all: f64 = commands.filter_map(|command| flops(&command)).sum();
            if all > 0.0 { (under_way + to_issue) / all } else { 0.0 }
        };
        let elements = self.devices[device].taken.iter().map(|taken| part_left(taken) * self.size(taken.task));
        // a device of unknown speed has the speed 0, so that its time is infinite
        elements.filter(|&left| left > 0.0).map(|left| left / self.reach[device].flops).sum()
    }

    /// The number of elements that a task computes, to which its number of operations is proportional.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn size(&self, task: u32) -> f64 {
        let Region { rows, cols, .. } = self.plan.tasks()[task as usize].label.region;
        rows as f64 * cols as f64
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
