//! Handles devices that have less memory than they report, and devices that are lost during a run.
//!
//! A device *leaves the run* if its memory does not suffice for its first task, if one of its commands lacks memory, or if the
//! device is lost. A command lacks memory if a kernel needs more scratch memory than is free, or if a driver finds too little
//! memory for a transfer. A device that has left the run takes no further task, and its tasks are handled as follows:
//!
//! - A task that has written nothing outside its registers is given back as soon as none of its commands is in flight. When a
//!   task is given back, another device runs the task from its beginning and loads the same values again. The matrices from which
//!   both devices load still hold these values, since the task has written nothing outside its registers, and no other task may
//!   write the values before the task is done.
//! - A task that has written outputs continues on its device, which can use the memory of the tasks that were given back. If a
//!   command of the continued task fails, the run ends with the error of this command.
//!
//! The run fails when all devices have left the run and no device has tasks.

use std::collections::VecDeque;

use crate::command::CommandId;
use crate::dispatch::device::Taken;
use crate::dispatch::memory::Memory;
use crate::dispatch::{Dispatcher, Lane, Step};
use crate::error::{Error, Result};
use crate::schedule::task_footprint;

impl Dispatcher<'_> {
    /// Reports that a command of this lane failed because the device lacks memory or is lost.
    ///
    /// # Errors
    /// Returns `error` if the task of the command has written outputs or uses held registers, because no other device can then run the
    /// task.
    pub fn refuse(&mut self, lane: Lane, command: CommandId, error: Error) -> Result<()> {
        self.report(lane, command);
        let Taken { task, wrote, .. } = *self.taken(lane.device, command);
        if wrote || self.plan.tasks()[task as usize].device.is_some() {
            return Err(error);
        }
        self.leave(lane.device, error);
        Ok(())
    }

    /// The error because of which one of the devices left the run; `None` if no device left the run.
    #[must_use]
    pub fn shortage(mut self) -> Option<Error> {
        self.devices.iter_mut().find_map(|device| device.out.take())
    }

    /// Checks whether the memory of a device suffices for its first task, which waits for memory. If the memory of the device does
    /// not suffice, the device leaves the run, unless the first task has written outputs: then the method returns the error of the
    /// refused allocation.
    pub(super) fn suffices(&mut self, device: usize) -> Result<Memory> {
        if !self.devices[device].slots.is_short() {
            return Ok(Memory::Assigned); // no allocation was refused, so memory for the task becomes free when commands complete
        }
        let taken = &self.devices[device].taken[0];
        let (task, wrote) = (&self.plan.tasks()[taken.task as usize], taken.wrote);
        let needed = task_footprint(self.plan, self.graph, &self.reach[device], task);
        match self.devices[device].slots.shortage(needed) {
            None => Ok(Memory::Assigned),
            Some(error) if wrote || task.device.is_some() => Err(error),
            Some(error) => {
                self.leave(device, error);
                Ok(Memory::Short)
            }
        }
    }

    fn leave(&mut self, device: usize, error: Error) {
        self.devices[device].out.get_or_insert(error);
        self.change_all();
    }

    /// Returns the next step of a device that has left the run. Returns `None` if the device has not left the run. The method
    /// also returns `None` if all tasks of the device have written outputs, because the device must then finish these tasks.
    pub(super) fn next_step_while_draining(&mut self, device: usize) -> Option<Step> {
        self.devices[device].out.as_ref()?;
        self.give_back(device);
        let state = &mut self.devices[device];
        if state.gives_up_memory {
            if let Some(slot) = state.slots.release() {
                return Some(Step::Release(slot));
            }
            state.gives_up_memory = false;
        }
        let taken = &state.taken;
        if taken.is_empty() {
            return Some(Step::Finished);
        }
        (!taken.iter().all(|taken| taken.wrote)).then_some(Step::Wait)
    }

    /// Gives back all tasks of a device that have written nothing and have no command in flight, as if the device had never taken
    /// them.
    fn give_back(&mut self, device: usize) {
        let is_bound = |taken: &Taken| taken.wrote || taken.under_way > 0;
        let taken = std::mem::take(&mut self.devices[device].taken);
        let (bound, free): (VecDeque<_>, VecDeque<_>) = taken.into_iter().partition(is_bound);
        self.devices[device].taken = bound;
        if free.is_empty() {
            return; // no task was given back, and the tasks that stay on the device reuse their own memory
        }
        for Taken { task, .. } in free {
            let info = &self.plan.tasks()[task as usize];
            for command in info.commands.clone() {
                self.unmet[command as usize] = self.graph.commands.predecessor_counts()[command as usize];
            }
            for reg in info.registers.clone() {
                self.uses[reg as usize] = self.graph.live_ranges[reg as usize].uses;
                let slot = self.memory[reg as usize].take();
                slot.into_iter().for_each(|slot| self.devices[device].slots.give_back(slot));
            }
            self.begun[task as usize] = false;
            if self.task_unmet[task as usize] == 0 {
                self.make_ready(task);
            }
            self.untaken += 1;
            self.change_all();
        }
        self.devices[device].gives_up_memory = true;
    }
}
