//! The physical registers of one device in one run, and the submission of commands that use them.

use std::collections::HashMap;
use std::ops::Range;

use crate::command::{Command, Exec};
use crate::device::{BufferRect, DeviceBuffer, HostRect, Memory, Operand, Work};
use crate::dispatch::{Issue, Lane};
use crate::engine::DeviceRuntime;
use crate::engine::Run;
use crate::error::Result;
use crate::instruction::{Region, Tile};
use crate::matrix::{Home, RawMat, Resident};
use crate::plan::{MatrixId, Plan, Window};
use crate::slots::{Slot, SlotId};
use crate::sync::{Arc, lock};
use crate::token::Token;

/// Memory that a physical register uses, or that is kept for a register of the next run.
#[derive(Debug)]
pub(super) struct Kept {
    pub buffer: Arc<DeviceBuffer>,
    pub bytes: usize,
    /// The columns of the caller's matrix whose elements this memory holds, too: the last command on this memory has stored these columns, or the
    /// last part of them. `None` if there are no such columns.
    pub stored: Option<StoredColumns>,
}

/// Some columns of a matrix, with all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredColumns {
    pub matrix: MatrixId,
    pub cols: Range<usize>,
}

/// The memory of a device's physical registers. When a `Registers` is dropped, the device keeps the memory of the registers for
/// the next run, unless the device works in host memory. After a panic of the backend the memory of the registers is freed
/// instead, because kernels may still use this memory.
#[derive(Debug)]
pub(super) struct Registers<'d> {
    runtime: &'d DeviceRuntime,
    slots: HashMap<SlotId, Kept>,
}

impl Drop for Registers<'_> {
    fn drop(&mut self) {
        if !self.runtime.facts().host_memory && !std::thread::panicking() {
            let before = std::mem::replace(&mut *lock(&self.runtime.kept), self.slots.drain().map(|(_, slot)| slot).collect());
            drop(before);
        }
    }
}

impl<'d> Registers<'d> {
    pub fn new(runtime: &'d DeviceRuntime) -> Self {
        Registers { runtime, slots: HashMap::new() }
    }

    /// Assigns memory to a physical register. If the device keeps memory of the register's size from an earlier run, the method
    /// assigns this memory. Otherwise the method frees all kept memory, so that the device never exceeds its memory limit, and
    /// allocates new memory for the register.
    pub fn obtain(&mut self, slot: Slot) -> Result<()> {
        let runtime = self.runtime;
        let mut kept = lock(&runtime.kept);
        let buffer = if let Some(at) = kept.iter().position(|kept| kept.bytes == slot.bytes) {
            kept.swap_remove(at).buffer
        } else {
            kept.clear();
            drop(kept);
            Arc::new(runtime.alloc(slot.bytes).map_err(|error| error.with("device", &runtime.facts().name))?)
        };
        self.slots.insert(slot.id, Kept { buffer, bytes: slot.bytes, stored: None });
        Ok(())
    }

    /// Frees the memory of a physical register.
    pub fn release(&mut self, slot: SlotId) {
        self.slots.remove(&slot);
    }

    /// Returns the memory of a physical register.
    fn kept(&self, slot: Slot) -> &Kept {
        let kept = self.slots.get(&slot.id).expect("a register of a command has memory");
        debug_assert_eq!(kept.bytes, slot.bytes);
        kept
    }

    /// Submits a command to the device. If the command is a kernel, it starts only after the kernels of the other kernel queue
    /// whose tokens are in `after`.
    pub fn submit(&mut self, run: &Run<'_>, lane: Lane, issue: &Issue, after: &[&Token]) -> Result<Token> {
        let command = &run.plan.commands()[issue.command as usize];
        for slot in issue.operands.iter().flatten() {
            self.slots.entry(slot.id).and_modify(|kept| kept.stored = stored_by(command, run));
        }
        match command {
            Command::Ld(ld) => {
                let (from, to) = self.transfer(run, ld.tile, issue);
                // SAFETY: the rectangle lies inside a matrix that the caller of `run` keeps borrowed, and the register has the
                // element type of the matrix. Until the LD has completed, the dispatcher issues no command that conflicts with it.
                unsafe { self.runtime.device.submit(Work::Write { from, to }, &[]) }
            }
            Command::St(st) => {
                let (to, from) = self.transfer(run, st.tile, issue);
                // SAFETY: the rectangle lies inside a matrix that the caller of `run` keeps borrowed. Until the ST has completed,
                // the dispatcher issues no command that conflicts with it.
                unsafe { self.runtime.device.submit(Work::Read { from, to }, &[]) }
            }
            Command::Exec(exec) => self.exec(run, exec, lane, issue, after),
            Command::Mark(_) | Command::Bar(_) => unreachable!("the dispatcher passes over empty commands"),
        }
    }

    /// Returns the rectangle of the caller's matrix that the tile copies, and the memory of the tile.
    fn transfer(&self, run: &Run<'_>, Tile { reg, region }: Tile, issue: &Issue) -> (HostRect, BufferRect<'_>) {
        let info = &run.plan.registers()[reg];
        let Window { matrix, row, col } = info.window.expect("only a register with a window is transferred");
        let Region { row: own_row, col: own_col, rows, cols } = region;
        let rect = HostRect::part(&run.bindings.0[matrix.0 as usize], row + own_row, col + own_col, rows, cols);
        let buffer = &self.kept(issue.operands[0].expect("a register that is transferred has memory")).buffer;
        (rect, BufferRect { buffer, offset: own_row + own_col * info.rows, ld: info.rows.max(1) })
    }

    fn exec(&self, run: &Run<'_>, exec: &Exec, lane: Lane, issue: &Issue, after: &[&Token]) -> Result<Token> {
        let instruction = &exec.instruction;
        let (mut buffers, mut at): ([Option<Arc<DeviceBuffer>>; 3], usize) = ([const { None }; 3], 0);
        let mut failed = None;
        instruction.operands(|tile, _| {
            match self.memory(run, tile, issue.operands[at]) {
                Ok(buffer) => buffers[at] = buffer,
                Err(error) => failed = Some(error),
            }
            at += 1;
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let mut at = 0..;
        let resolved = instruction.map(|tile| {
            let at = at.next().expect("endless");
            operand(run, tile, buffers[at].as_deref(), issue.operands[at].is_some())
        });
        let work = Work::Run { instruction: &resolved, queue: lane.number, conditions: self.runtime.conditions(exec) };
        // SAFETY: each operand lies inside its register or inside a matrix that the caller of `run` keeps borrowed. Until this
        // kernel has completed, the dispatcher issues no command that conflicts with it, except kernels that their queue or
        // `after` keeps in order with this kernel.
        unsafe { self.runtime.device.submit(work, after) }
    }

    /// Returns the buffer that holds a tile; `None` if the tile lies in host memory.
    fn memory(&self, run: &Run<'_>, tile: Tile, slot: Option<Slot>) -> Result<Option<Arc<DeviceBuffer>>> {
        if let Some(slot) = slot {
            return Ok(Some(Arc::clone(&self.kept(slot).buffer)));
        }
        let window = run.plan.registers()[tile.reg].window.expect("scratch memory is never in place");
        Ok(match run.bindings.0[window.matrix.0 as usize].home {
            Home::Host(_) => None,
            Home::Device(Resident { key, .. }) => Some(self.runtime.resident(key)?),
        })
    }
}

/// Returns the columns of the caller's matrix that are complete after a store command, if the command is the last one on its register. The register
/// must hold all rows of these columns, either during the whole plan or because it holds the whole matrix. Returns `None` for other commands. If
/// the command stores only a part of the columns, earlier commands have stored the other parts.
fn stored_by(command: &Command, run: &Run<'_>) -> Option<StoredColumns> {
    let Command::St(st) = command else { return None };
    let info = &run.plan.registers()[st.tile.reg];
    let Window { matrix, col, .. } = info.window?;
    let RawMat { rows, cols, .. } = run.bindings.0[matrix.0 as usize];
    let is_final = info.rows == rows && (info.from_start || info.cols == cols);
    is_final.then(|| StoredColumns { matrix, cols: col..col + info.cols })
}

/// Describes a tile as an operand of a kernel. If `copied`, the tile lies in a physical register, whose memory is `buffer`. Otherwise, the tile is a
/// part of the caller's matrix, which lies in the device memory `buffer`, or in host memory if `buffer` is `None`.
fn operand<'a>(run: &Run<'_>, tile: Tile, buffer: Option<&'a DeviceBuffer>, copied: bool) -> Operand<'a> {
    let window = run.plan.registers()[tile.reg].window;
    let memory = match (buffer, window.map(|window| run.bindings.0[window.matrix.0 as usize].home)) {
        (Some(buffer), _) => Memory::Buffer(buffer),
        (None, Some(Home::Host(base))) => Memory::Host(base),
        (None, _) => unreachable!("device memory has a buffer"),
    };
    placed(run.plan, run.bindings.0, tile, memory, copied)
}

/// Describes a tile as an operand of a kernel, with the position and the leading dimension of the tile in `memory`. If `copied`, `memory` holds the
/// register of the tile; otherwise, it holds the caller's matrix, which `bindings` describes.
pub(super) fn placed<'a>(plan: &Plan, bindings: &[RawMat], tile: Tile, memory: Memory<'a>, copied: bool) -> Operand<'a> {
    let (info, Region { row, col, rows, cols }) = (&plan.registers()[tile.reg], tile.region);
    let (offset, ld) = if copied {
        (row + col * info.rows, info.rows)
    } else {
        let window = info.window.expect("scratch memory is never in place");
        let raw = &bindings[window.matrix.0 as usize];
        (raw.offset + raw.index(window.row + row, window.col + col), raw.ld)
    };
    Operand { memory, offset, rows, cols, ld, dtype: info.dtype }
}
