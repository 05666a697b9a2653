//! A device that has less memory than it says.
//!
//! It shows when a register needs memory, or when a command fails: a kernel wants
//! scratch memory, a driver wants some for a transfer. The device is then *out*:
//! it takes no further task, and
//!
//! - a task of it that has written nothing outside its registers goes back, as
//!   soon as none of its commands is under way, and is done from its beginning by
//!   another device. The matrices are for it as they were: no other task may write
//!   what it reads or writes before it is done, and of what it writes itself it
//!   has written nothing. So it loads the same values again, also where it would
//!   later load what it had stored;
//! - a task that has written goes on, with the memory that the others have left. If the command that failed
//!   belongs to it, the run ends with the error.
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
    /// Its task has written outputs, so that no other device can do it: the error.
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

    /// Whether a device has enough for the first of its tasks, which waits for
    /// memory. If not it is out.
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

    /// The next step of a device that is out of the run. `None` if it is not out, or if all its tasks have written outputs
    /// and must be finished.
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
