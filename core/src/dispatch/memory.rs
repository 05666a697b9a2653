//! Memory for the registers of taken tasks.

use super::{Dispatcher, Step};
use crate::error::Result;
use crate::slots::{Grant, Slot};

/// Whether the registers of a device's tasks have memory.
pub(super) enum Memory {
    /// As many as there is memory for.
    Given,
    /// The caller has to ask the device.
    Ask(Step),
    /// The device turned out to have too little, and is out.
    Short,
}

impl Dispatcher<'_> {
    /// What became of a request for memory.
    ///
    /// # Errors
    /// The error, if it does not say that the device goes on with the memory that it has.
    pub fn obtained(&mut self, device: usize, slot: Slot, result: Result<()>) -> Result<()> {
        let slots = &mut self.devices[device].slots;
        match result {
            Ok(()) => slots.granted(slot),
            Err(error) => slots.refused(slot, error)?,
        }
        Ok(())
    }

    /// Gives memory to the registers of the taken tasks, in order, while there is some.
    pub(super) fn allocate(&mut self, device: usize) -> Result<Memory> {
        for t in 0..self.devices[device].taken.len() {
            let task = self.devices[device].taken[t].task;
            let end = self.plan.tasks()[task as usize].registers.end;
            while self.devices[device].taken[t].birth < end {
                let reg = self.graph.births[self.devices[device].taken[t].birth as usize];
                if !self.in_place(device, reg) && self.uses[reg.0 as usize] > 0 {
                    let bytes = self.plan.registers().footprint(reg);
                    match self.devices[device].slots.take(bytes) {
                        Grant::Slot(slot) => self.memory[reg.0 as usize] = Some(slot),
                        Grant::Release(slot) => return Ok(Memory::Ask(Step::Release(slot))),
                        Grant::Obtain(slot) => return Ok(Memory::Ask(Step::Obtain(slot))),
                        Grant::Wait if t == 0 => return self.suffices(device),
                        Grant::Wait => return Ok(Memory::Given),
                    }
                }
                self.devices[device].taken[t].birth += 1;
            }
        }
        Ok(Memory::Given)
    }
}
