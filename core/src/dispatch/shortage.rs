//! A device that has less memory than it reports.
//!
//! A device is *out* if the memory that it has does not suffice for its first task, or if one of its commands lacks memory:
//! a kernel needs scratch memory, or a driver needs memory for a transfer. The device then takes no further task, and
//!
//! - a task that has written nothing outside its registers is given back as soon as none of its commands is under way.
//!   Another device runs it from its beginning and loads the same values again: the task itself has written nothing, and
//!   no other task may write what it reads or writes before it is done;
//! - a task that has written outputs continues, in the memory that the given-back tasks leave. If one of its own
//!   commands lacks memory, the run ends with that error.
//!
//! When all devices are out and have no tasks left, the run has failed.

use std::cmp::Reverse;
use std::collections::VecDeque;

use crate::command::CommandId;
use crate::dispatch::device::Taken;
use crate::dispatch::memory::Memory;
use crate::dispatch::{Dispatcher, Lane, Step};
use crate::error::{Error, Result};
use crate::schedule::task_footprint;

impl Dispatcher<'_> {
    /// `command`, issued to `lane`, failed since the device lacked memory.
    ///
    /// # Errors
    /// Returns `error` if the command's task has written outputs: no other device can run the task then.
    pub fn refuse(&mut self, lane: Lane, command: CommandId, error: Error) -> Result<()> {
        self.report(lane, command);
        let taken = self.taken(lane.device, command);
        if taken.wrote {
            return Err(error);
        }
        self.leave(lane.device, error);
        Ok(())
    }

    /// Why devices are out, if any is.
    #[must_use]
    pub fn shortage(mut self) -> Option<Error> {
        self.devices.iter_mut().find_map(|device| device.out.take())
    }

    /// Whether the memory of a device suffices for its first task, which waits for memory. If it does not, the device is
    /// out.
    pub(super) fn suffices(&mut self, device: usize) -> Result<Memory> {
        if !self.devices[device].slots.is_short() {
            return Ok(Memory::Given); // it has what was promised: memory comes back
        }
        let taken = &self.devices[device].taken[0];
        let (task, wrote) = (&self.plan.tasks()[taken.task as usize], taken.wrote);
        let needed = task_footprint(self.plan, self.graph, &self.reach[device], task);
        match self.devices[device].slots.shortage(needed) {
            None => Ok(Memory::Given),
            Some(error) if wrote => Err(error),
            Some(error) => {
                self.leave(device, error);
                Ok(Memory::Short)
            }
        }
    }

    fn leave(&mut self, device: usize, error: Error) {
        self.devices[device].out.get_or_insert(error);
        self.changed = true;
    }

    /// The next step of `device` if it is out of the run. `None` if it is not out, or if all tasks that it has taken have written
    /// outputs, so that it must finish them.
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

    /// Tasks that have written nothing and have nothing under way are as if they had never been taken.
    fn give_back(&mut self, device: usize) {
        let is_bound = |taken: &Taken| taken.wrote || taken.under_way > 0;
        let taken = std::mem::take(&mut self.devices[device].taken);
        let (bound, free): (VecDeque<_>, VecDeque<_>) = taken.into_iter().partition(is_bound);
        self.devices[device].taken = bound;
        if free.is_empty() {
            return; // what a bound task has it uses again
        }
        for Taken { task, .. } in free {
            let info = &self.plan.tasks()[task as usize];
            for command in info.commands.clone() {
                self.waits[command as usize] = self.graph.commands.waits()[command as usize];
            }
            for reg in info.registers.clone() {
                self.uses[reg as usize] = self.graph.live_ranges[reg as usize].uses;
                let slot = self.memory[reg as usize].take();
                slot.into_iter().for_each(|slot| self.devices[device].slots.give_back(slot));
            }
            self.begun[task as usize] = false;
            if self.task_waits[task as usize] == 0 {
                self.ready.push(Reverse(task));
            }
            self.untaken += 1;
            self.changed = true;
        }
        self.devices[device].gives_up_memory = true;
    }
}
