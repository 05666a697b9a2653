//! Compiles the kernels of a call before the call.

use std::ptr::NonNull;

use crate::command::{Command, Conditions};
use crate::device::{Memory, Operand};
use crate::engine::DeviceRuntime;
use crate::engine::registers::placed;
use crate::error::Result;
use crate::instruction::{Instruction, Tile};
use crate::matrix::RawMat;
use crate::schedule::Schedule;

/// Operands whose memory is not accessed.
const NO_MEMORY: Memory<'static> = Memory::Host(NonNull::dangling());

/// Compiles the kernels of a schedule: on each device, the kernels of all commands that the dispatcher may give to this device. `bindings` states
/// the shapes of the matrices, as for [`run`](crate::run).
///
/// # Errors
/// A device has no kernel for a command.
pub fn prepare(devices: &[&DeviceRuntime], schedule: &Schedule, bindings: &[RawMat]) -> Result<()> {
    let plan = schedule.plan();
    for (at, (runtime, reach)) in devices.iter().zip(schedule.reach()).enumerate() {
        for command in plan.commands() {
            let Command::Exec(exec) = command else { continue };
            let mut is_elsewhere = false;
            exec.instruction.operands(|tile, _| {
                is_elsewhere |= plan.registers()[tile.reg].holder.is_some_and(|holder| holder != at);
            });
            if !is_elsewhere {
                let is_copied = |tile: Tile| !reach.works_in_place(&plan.registers()[tile.reg]);
                let operands = exec.instruction.map(|tile| placed(plan, bindings, tile, NO_MEMORY, is_copied(tile)));
                runtime.device().prepare(&operands, runtime.conditions(exec))?;
            }
        }
    }
    Ok(())
}

/// Compiles the kernels that a device needs for `instructions`, whose operands are whole matrices in the memory of the device. Each operand states
/// the size and the leading dimension of its matrix.
///
/// # Errors
/// The device has no kernel for an instruction.
pub fn prepare_in_place(device: &DeviceRuntime, instructions: &[Instruction<RawMat>]) -> Result<()> {
    let operand = |raw: RawMat| Operand::of(&raw, NO_MEMORY);
    instructions.iter().try_for_each(|instruction| device.device().prepare(&instruction.map(operand), Conditions::default()))
}
