//! Assigns memory to the registers of taken tasks.

use super::device::DeviceState;
use super::{Dispatcher, Step};
use crate::command::{CommandId, Effects, distinct_registers};
use crate::error::Result;
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

    /// Adds the held registers of a task that the device has taken to the registers that want memory.
    pub(super) fn want_held(&mut self, device: usize, task: u32) {
        for command in self.plan.tasks()[task as usize].commands.clone() {
            distinct_registers(&self.plan.commands()[command as usize], |reg| {
                let is_held = self.reach[device].holds(device, &self.plan.registers()[reg]);
                let wanted = &mut self.devices[device].wanted;
                if is_held && self.memory[reg.0 as usize].is_none() && !wanted.contains(&reg) {
                    wanted.push_back(reg);
                }
            });
        }
    }

    /// Whether all held registers of a command have memory.
    pub(super) fn held_have_memory(&self, device: usize, command: CommandId) -> bool {
        let mut have = true;
        self.plan.commands()[command as usize].registers(&mut |reg| {
            let is_held = self.reach[device].holds(device, &self.plan.registers()[reg]);
            have &= !is_held || self.memory[reg.0 as usize].is_some();
        });
        have
    }

    /// Assigns memory to the held registers of a device's tasks, in the order in which the device has taken the tasks. Returns `None` if all of
    /// them have memory.
    fn allocate_held(&mut self, device: usize) -> Result<Option<Memory>> {
        while let Some(&reg) = self.devices[device].wanted.front() {
            let DeviceState { slots, wanted, .. } = &mut self.devices[device];
            match slots.take(self.plan.registers().footprint(reg)) {
                Grant::Slot(slot) => {
                    self.memory[reg.0 as usize] = Some(slot);
                    wanted.pop_front();
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
