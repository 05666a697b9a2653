//! A device with its physical registers and its resident matrices.

use std::collections::HashMap;

use crate::command::Command;
use crate::device::{Device, DeviceBuffer, DeviceInfo, HostRect, Memory, Operand, Work};
use crate::dispatch::Issue;
use crate::engine::columns::Columns;
use crate::engine::in_flight::{Ended, InFlight};
use crate::engine::{HaltOnPanic, Next, Run, Trace, TraceEvent};
use crate::error::{Error, ErrorKind, Result};
use crate::instruction::{Instruction, Reg, Tile};
use crate::matrix::{Home, RawMat, Resident};
use crate::plan::Window;
use crate::slots::{Slot, SlotId, Supply};
use crate::sync::{Arc, Mutex, lock};
use crate::token::Token;

/// Buffers by key, each with its size in bytes.
type Table<K> = Mutex<HashMap<K, (Arc<DeviceBuffer>, usize)>>;

/// A device with its physical registers and its resident matrices.
#[derive(Debug)]
pub struct Driver {
    pub(super) device: Box<dyn Device>,
    slots: Table<SlotId>,
    /// Memory of the last run's physical registers, for the next one: to take it anew may cost
    /// a device as much time as to fill it. None of a device that works in host memory, which others want too.
    kept: Mutex<Vec<(Arc<DeviceBuffer>, usize)>>,
    pub(super) columns: Columns,
    residents: Table<u64>,
}

impl Driver {
    /// A driver of `device`.
    #[must_use]
    pub fn new(device: Box<dyn Device>) -> Self {
        Driver { device, slots: Mutex::default(), kept: Mutex::default(), columns: Columns::default(), residents: Mutex::default() }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Runs one instruction at once on the caller's thread, operands in host memory.
    ///
    /// # Safety
    /// The device computes on host memory, and the operands are as the
    /// instruction asks, touched by nothing else meanwhile.
    ///
    /// # Errors
    /// The kernel failed.
    #[inline]
    pub unsafe fn launch(&self, instruction: &Instruction<RawMat>) -> Result<()> {
        let on_host = instruction.map(|raw| match raw.home {
            Home::Host(base) => Operand::of(&raw, Memory::Host(base)),
            Home::Device(_) => unreachable!("the caller passes host memory"),
        });
        // SAFETY: as the caller promises.
        unsafe { self.device.launch(&on_host) }
    }

    /// Copies a host matrix into new memory of the device, packed column-major.
    ///
    /// # Safety
    /// `from` is host memory that may be read.
    ///
    /// # Errors
    /// The device has no memory left, or the transfer failed.
    pub unsafe fn upload(&self, key: u64, from: &RawMat) -> Result<()> {
        let bytes = from.bytes();
        let left = self.free_memory();
        if bytes > left {
            let message = format!("the matrix takes {bytes} bytes, {} has {left} left", self.info().name);
            return Err(Error::new(ErrorKind::OutOfMemory, "upload", message));
        }
        self.trim();
        let buffer = self.device.alloc(bytes).map_err(|error| error.with("device", &self.info().name))?;
        if !is_empty(from) {
            // SAFETY: as the caller promises; the buffer is new.
            unsafe { self.device.write(HostRect::whole(from), &buffer)? };
        }
        lock(&self.residents).insert(key, (Arc::new(buffer), bytes));
        Ok(())
    }

    /// Makes a buffer that is there already, and is another's to count, a resident matrix.
    pub fn adopt(&self, key: u64, buffer: DeviceBuffer) {
        lock(&self.residents).insert(key, (Arc::new(buffer), 0));
    }

    /// Copies a resident matrix into host memory.
    ///
    /// # Safety
    /// `to` is host memory that may be written, of the shape and element type that was uploaded.
    ///
    /// # Errors
    /// The transfer failed.
    pub unsafe fn download(&self, key: u64, to: &RawMat) -> Result<()> {
        let buffer = self.resident(key)?;
        if is_empty(to) {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        unsafe { self.device.read(&buffer, HostRect::whole(to)) }
    }

    /// Forgets a resident matrix.
    pub fn discard(&self, key: u64) {
        lock(&self.residents).remove(&key);
    }

    /// Replaces the elements of a resident matrix.
    ///
    /// # Safety
    /// As [`Driver::download`], but that the memory is read.
    ///
    /// # Errors
    /// The transfer failed.
    pub unsafe fn refill(&self, key: u64, from: &RawMat) -> Result<()> {
        let buffer = self.resident(key)?;
        if is_empty(from) {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        unsafe { self.device.write(HostRect::whole(from), &buffer) }
    }

    /// Copies the resident matrix `peer_key` of `peer` into the resident matrix `key` of this device, if the devices have
    /// a way that is faster than through the host; whether they have. `peer` may be this device.
    ///
    /// # Errors
    /// There is no matrix of one of the keys, or the copy failed.
    pub fn copy_from(&self, key: u64, peer: &Driver, peer_key: u64, bytes: usize) -> Result<bool> {
        let (to, from) = (self.resident(key)?, peer.resident(peer_key)?);
        self.device.copy_from(peer.device(), &from, &to, bytes).map_or(Ok(false), |copied| copied.map(|()| true))
    }

    /// The memory of a resident matrix.
    ///
    /// # Errors
    /// There is no matrix of that key.
    pub fn resident(&self, key: u64) -> Result<Arc<DeviceBuffer>> {
        let found = lock(&self.residents).get(&key).map(|(buffer, _)| Arc::clone(buffer));
        found.ok_or_else(|| Error::invalid("view", "the matrix was uploaded to another machine"))
    }

    /// Memory for a physical register: of the last run, whose other sizes are given back before
    /// there is new memory, so that there is never more than a limit allows.
    fn register(&self, bytes: usize) -> Result<Arc<DeviceBuffer>> {
        let mut kept = lock(&self.kept);
        if let Some(at) = kept.iter().position(|&(_, size)| size == bytes) {
            return Ok(kept.swap_remove(at).0);
        }
        kept.clear();
        self.device.alloc(bytes).map(Arc::new)
    }

    /// The memory of a physical register.
    fn slot(&self, slot: Slot) -> Arc<DeviceBuffer> {
        let slots = lock(&self.slots);
        let (buffer, bytes) = slots.get(&slot.id).expect("a register of a command has memory");
        debug_assert_eq!(*bytes, slot.bytes);
        Arc::clone(buffer)
    }

    pub(super) fn submit(&self, run: &Run<'_>, issue: &Issue) -> Result<Token> {
        match &run.plan.commands()[issue.command as usize] {
            Command::Ld(ld) => self.transfer(run, ld.reg, issue, Direction::Write),
            Command::St(st) => self.transfer(run, st.reg, issue, Direction::Read),
            Command::Exec(exec) => self.exec(run, &exec.instruction, issue),
            Command::Mark(_) | Command::Bar(_) => unreachable!("the dispatcher passes over empty commands"),
        }
    }

    fn transfer(&self, run: &Run<'_>, reg: Reg, issue: &Issue, direction: Direction) -> Result<Token> {
        let info = &run.plan.registers()[reg];
        let Window { matrix, row, col } = info.window.expect("only a register with a window is transferred");
        let buffer = self.slot(issue.operands[0].expect("a register that is transferred has memory"));
        let raw = &run.bindings[matrix.0 as usize];
        let rect = HostRect::part(raw, row, col, info.rows, info.cols);
        let work = match direction {
            Direction::Write => Work::Write { from: rect, to: &buffer },
            Direction::Read => Work::Read { from: &buffer, to: rect },
        };
        // SAFETY: the rectangle lies inside a matrix of that element type, lent for the
        // run; the dispatcher issues no conflicting command meanwhile.
        unsafe { self.device.submit(work, &[]) }
    }

    fn exec(&self, run: &Run<'_>, instruction: &Instruction, issue: &Issue) -> Result<Token> {
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
        // SAFETY: operands lie inside their memory; the dispatcher issues no conflicting
        // command meanwhile but kernels, which this queue keeps in order.
        unsafe { self.device.submit(Work::Run { instruction: &resolved, queue: 0 }, &[]) }
    }

    /// The buffer behind a tile; none for host memory.
    fn memory(&self, run: &Run<'_>, tile: Tile, slot: Option<Slot>) -> Result<Option<Arc<DeviceBuffer>>> {
        if let Some(slot) = slot {
            return Ok(Some(self.slot(slot)));
        }
        let window = run.plan.registers()[tile.reg].window.expect("scratch memory is never in place");
        Ok(match run.bindings[window.matrix.0 as usize].home {
            Home::Host(_) => None,
            Home::Device(Resident { key, .. }) => Some(self.resident(key)?),
        })
    }
}

/// A tile as the device sees it: copied into a physical register, packed, or in place.
fn operand<'a>(run: &Run<'_>, tile: Tile, buffer: Option<&'a DeviceBuffer>, copied: bool) -> Operand<'a> {
    let (info, region) = (&run.plan.registers()[tile.reg], tile.region);
    let (offset, ld, home) = if copied {
        (region.row + region.col * info.rows, info.rows, None)
    } else {
        let window = info.window.expect("scratch memory is never in place");
        let raw = &run.bindings[window.matrix.0 as usize];
        (raw.offset + raw.index(window.row + region.row, window.col + region.col), raw.ld, Some(raw.home))
    };
    let memory = match (buffer, home) {
        (Some(buffer), _) => Memory::Buffer(buffer),
        (None, Some(Home::Host(base))) => Memory::Host(base),
        (None, _) => unreachable!("device memory has a buffer"),
    };
    Operand { memory, offset, rows: region.rows, cols: region.cols, ld, dtype: info.dtype }
}

/// Seen from the device: `Write` into it, `Read` out of it.
#[derive(Clone, Copy)]
enum Direction {
    Write,
    Read,
}

/// Whether there is nothing to move. Of no rows there may be any number of columns, so that no device is asked to count them.
fn is_empty(raw: &RawMat) -> bool {
    raw.rows == 0 || raw.cols == 0
}

impl Driver {
    /// What the device is and has.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    /// Works in a run as its device of that number until nothing is left to do.
    pub fn drive(&self, run: &Run<'_>, device: usize) {
        // dropped last: the others are stopped when nothing of this device is under way
        let _guard = HaltOnPanic(run);
        let mut in_flight = InFlight::new();
        loop {
            let ended = match run.next(device, &mut &*self, in_flight.is_empty()) {
                Next::Submit(lane, issue) => in_flight.add(lane, issue, run.trace.map(Trace::now), || self.submit(run, &issue)),
                Next::Wait(seen) => {
                    let ended = in_flight.ended();
                    if ended.is_none() {
                        run.rest(seen, in_flight.pause());
                    }
                    ended
                }
                Next::Finished => break,
            };
            if let Some(ended) = ended {
                self.report(run, ended);
            }
        }
        while let Some(ended) = in_flight.wait() {
            self.report(run, ended);
        }
    }

    /// Tells the run, and its trace, how a command ended.
    fn report(&self, run: &Run<'_>, Ended { lane, issue, start, result }: Ended) {
        if let (Some(trace), Some(start)) = (run.trace, start) {
            let (device, label, end) = (self.info().name.clone(), run.plan.describe(issue.command), trace.now());
            trace.add(TraceEvent { device, lane, label, start, end });
        }
        if result.as_ref().is_err_and(|error| error.kind().leaves_it_to_others()) {
            self.trim();
        }
        run.complete(lane, issue.command, &self.info().name, result);
    }

    /// Frees all physical registers, at the end of a run, and keeps their memory for the next one.
    pub fn free_all(&self) {
        let freed = lock(&self.slots).drain().map(|(_, slot)| slot).collect();
        if !self.info().host_memory {
            *lock(&self.kept) = freed;
        }
    }

    /// Gives back the memory that is kept for runs: matrices on the device, or kernels beside them, may need it. A run
    /// that is under way keeps its memory again at its end.
    pub fn release_registers(&self) {
        lock(&self.kept).clear();
    }

    /// Gives back all memory that is kept for later calls.
    pub fn trim(&self) {
        self.release_registers();
        self.columns.trim();
        self.device.trim();
    }

    /// Bytes of the device's limit that neither resident matrices hold nor copies of columns nor kernels.
    #[must_use]
    pub fn free_memory(&self) -> usize {
        let held = lock(&self.residents).values().map(|(_, bytes)| bytes).sum::<usize>()
            + self.columns.held()
            + self.device.scratch_bytes();
        self.info().memory.map_or(usize::MAX, |limit| limit.saturating_sub(held))
    }
}

/// Memory of the device for physical registers.
impl Supply for &Driver {
    fn obtain(&mut self, slot: Slot) -> Result<()> {
        let buffer = self.register(slot.bytes).map_err(|error| error.with("device", &self.info().name))?;
        lock(&self.slots).insert(slot.id, (buffer, slot.bytes));
        Ok(())
    }

    fn release(&mut self, slot: SlotId) {
        lock(&self.slots).remove(&slot);
    }
}
