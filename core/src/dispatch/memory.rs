//! Assigns memory to the registers of taken tasks.

use super::device::DeviceState;
use super::{Dispatcher, Step};
use crate::command::CommandId;
use crate::error::Result;
use crate::instruction::Reg;
use crate::slots::{Grant, Slot};

/// The result of an attempt to assign memory to the registers of a device's tasks.
pub(super) enum Memory {
    /// All registers of the device's tasks have memory, or as many registers as the memory limit of the device allows now.
    Assigned,
    /// The caller must first carry out this step, which allocates or frees device memory.
    Ask(Step),
    /// The device has less memory than its first task needs, and has left the run.
    Short,
}

impl Dispatcher<'_> {
    /// Reports the result of an allocation that the dispatcher requested by [`Step::Obtain`].
    ///
    /// # Errors
    /// Returns the error of the allocation, unless the device lacks memory or is lost, so that other devices can run its tasks.
    pub fn obtained(&mut self, device: usize, slot: Slot, result: Result<()>) -> Result<()> {
        let slots = &mut self.devices[device].slots;
        match result {
            Ok(()) => slots.granted(slot),
            Err(error) => slots.refused(slot, error)?,
        }
        Ok(())
    }

    /// Assigns memory to the registers of a device's tasks, in plan order, as far as the memory limit of the device allows.
    pub(super) fn allocate(&mut self, device: usize) -> Result<Memory> {
        if let Some(memory) = self.allocate_held(device)? {
            return Ok(memory);
        }
        for t in 0..self.devices[device].taken.len() {
            let task = self.devices[device].taken[t].task;
            let end = self.plan.tasks()[task as usize].registers.end;
            while self.devices[device].taken[t].next_register < end {
                let reg = self.graph.registers_by_first_use[self.devices[device].taken[t].next_register as usize];
                if !self.in_place(device, reg) && self.uses[reg.0 as usize] > 0 {
                    let bytes = self.plan.registers().footprint(reg);
                    match self.devices[device].slots.take(bytes) {
                        Grant::Slot(slot) => self.memory[reg.0 as usize] = Some(slot),
                        Grant::Release(slot) => return Ok(Memory::Ask(Step::Release(slot))),
                        Grant::Obtain(slot) => return Ok(Memory::Ask(Step::Obtain(slot))),
                        Grant::Wait if t == 0 => return self.suffices(device),
                        Grant::Wait => return Ok(Memory::Assigned),
                    }
                }
                self.devices[device].taken[t].next_register += 1;
            }
        }
        Ok(Memory::Assigned)
    }

    /// Whether all held registers that the plan uses before the end of a task have memory, or have had memory.
    pub(super) fn held_have_memory(&self, device: usize, task: u32) -> bool {
        self.next_held(device, self.plan.tasks()[task as usize].commands.end).is_none()
    }

    /// Requests memory for the held registers of a task. Returns false if this memory has already been requested.
    pub(super) fn request_held(&mut self, device: usize, task: u32) -> bool {
        let wanted = self.plan.tasks()[task as usize].commands.end;
        let is_new = wanted > self.devices[device].wanted;
        self.devices[device].wanted = wanted.max(self.devices[device].wanted);
        is_new
    }

    /// The next held register of a device to get memory, if commands before `end` use it.
    fn next_held(&self, device: usize, end: CommandId) -> Option<Reg> {
        let DeviceState { held, next_held, .. } = &self.devices[device];
        held.get(*next_held).copied().filter(|reg| self.graph.live_ranges[reg.0 as usize].first < end)
    }

    /// Assigns memory to the held registers for which it was requested. Returns `None` if all of them have memory.
    fn allocate_held(&mut self, device: usize) -> Result<Option<Memory>> {
        while let Some(reg) = self.next_held(device, self.devices[device].wanted) {
            let DeviceState { slots, next_held, .. } = &mut self.devices[device];
            match slots.take(self.plan.registers().footprint(reg)) {
                Grant::Slot(slot) => {
                    self.memory[reg.0 as usize] = Some(slot);
                    *next_held += 1;
                    // a task that waited for the memory may be taken by another lane
                    self.changed.insert(device);
                }
                Grant::Release(slot) => return Ok(Some(Memory::Ask(Step::Release(slot)))),
                Grant::Obtain(slot) => return Ok(Some(Memory::Ask(Step::Obtain(slot)))),
                // the schedule fits into the memory limit, so the register waits for others unless the device has refused an allocation
                Grant::Wait => return slots.shortage(usize::MAX).map_or(Ok(Some(Memory::Assigned)), Err),
            }
        }
        Ok(None)
    }
}
