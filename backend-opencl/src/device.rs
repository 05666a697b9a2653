//! The [`Device`] implementation for OpenCL.

use std::slice::from_ref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cl3::command_queue::{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROPERTIES, get_command_queue_info};
use cl3::types::{cl_command_queue, cl_context};
use lapidary_core::{
    BufferRect, Conditions, DType, Device, DeviceBuffer, DeviceFacts, Error, HostRect, Instruction, KERNEL_QUEUES, KernelTime,
    Lookahead, Operand, Pending, Piece, PinnedMemory, ProgramCache, Result, StreamQueue, Token, Work,
};
use lapidary_kernels::{Database, View};

use crate::buffer::{Buffer, CommandQueue, Context, Event, Rect};
use crate::context::SharedContext;
use crate::conv::{failed, view};
use crate::kernels::Kernels;
use crate::pinned::{HostMemory, Spare};
use crate::platform::{Found, list};
use crate::queue::Queue;
use crate::running::{Health, Running};
use crate::stream::InTransfer;
use crate::transfers::{Direction, Transfers};

#[cfg(feature = "test-hooks")]
mod hooks;

/// An OpenCL device with its context and its queues: two queues for transfers, and one or two for kernels.
#[derive(Debug)]
pub struct OpenClDevice {
    /// The OpenCL platform, the OpenCL device, and the [`DeviceFacts`].
    found: Found,
    cache: Arc<ProgramCache>,
    /// The number of memory requests before the request that a test makes fail.
    #[cfg(feature = "test-hooks")]
    short: Option<std::sync::atomic::AtomicUsize>,
    health: Health,
    /// Declared before the queues, so that transfers of streams end before a queue is released.
    in_transfer: Arc<InTransfer>,
    // the fields below are declared before `context`, so that they are dropped before the context that they use
    load: Arc<Transfers>,
    /// Pinned memory for the next small requests.
    pub(crate) spare: Arc<Spare>,
    store: Arc<Transfers>,
    reserve: Mutex<Reserve>,
    kernels: Mutex<Kernels>,
    context: SharedContext,
}

impl OpenClDevice {
    pub(crate) fn in_context(
        found: Found,
        memory: Option<usize>,
        cache: Arc<ProgramCache>,
        context: SharedContext,
    ) -> Result<Self> {
        let queues = (0..KERNEL_QUEUES).map(|_| Queue::new(&context.handle, &found)).collect::<Result<_>>()?;
        Self::assemble(found, memory, cache, context, queues)
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    pub(crate) fn in_transfer(&self) -> &Arc<InTransfer> {
        &self.in_transfer
    }

    pub(crate) fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a device in the application's own context. Instructions run in the
    /// application's queue, which must be an in-order queue.
    ///
    /// # Safety
    /// `context` holds the device with the number `index`, and `queue` is a queue of this device in `context`.
    ///
    /// # Errors
    /// No device has the number `index`, the queue runs its commands out of order, or a call of the driver fails.
    pub unsafe fn from_parts(
        context: cl_context,
        index: usize,
        queue: cl_command_queue,
        memory: Option<usize>,
        cache: Arc<ProgramCache>,
    ) -> Result<Self> {
        let found = list().device(index, "from_parts")?;
        let properties =
            get_command_queue_info(queue, CL_QUEUE_PROPERTIES).map_err(|code| failed("clGetCommandQueueInfo", code))?;
        if properties.to_ulong() & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0 {
            return Err(Error::invalid("from_parts", "the queue runs its commands out of order; pass an in-order queue"));
        }
        // SAFETY: the caller guarantees valid handles; each handle is retained once for the value that owns it.
        let (context, queue) = unsafe {
            cl3::context::retain_context(context).map_err(|code| failed("clRetainContext", code))?;
            let context = SharedContext::from_owned(Context(context));
            cl3::command_queue::retain_command_queue(queue).map_err(|code| failed("clRetainCommandQueue", code))?;
            (context, Queue::from_owned(CommandQueue(queue)))
        };
        // the device has only one kernel queue, because kernels in a second queue would not be ordered with the application's
        // kernels
        Self::assemble(found, memory, cache, context, vec![queue])
    }

    fn assemble(
        mut found: Found,
        memory: Option<usize>,
        cache: Arc<ProgramCache>,
        context: SharedContext,
        queues: Vec<Queue>,
    ) -> Result<Self> {
        found.facts.queues = queues.len();
        found.facts.memory = memory.map_or(found.facts.memory, |limit| Some(limit.min(found.memory)));
        let health = Health::default();
        let in_transfer = Arc::new(InTransfer::new(&health));
        let spare = Arc::new(Spare::new(&health));
        let load = Arc::new(Transfers::new(&context.handle, &found, &health, Direction::ToDevice)?);
        let store = Arc::new(Transfers::new(&context.handle, &found, &health, Direction::ToHost)?);
        let mut kernels = Kernels::new(Arc::clone(&context.handle), found.clone(), queues, Arc::clone(&cache));
        // if the caller sets no limit, `facts.memory` leaves a part of the device's memory free, so scratch memory needs no limit
        if let Some(limit) = memory.and(found.facts.memory) {
            kernels.limit_memory(limit);
        }
        let kernels = Mutex::new(kernels);
        Ok(OpenClDevice {
            found,
            cache,
            #[cfg(feature = "test-hooks")]
            short: None,
            health,
            in_transfer,
            load,
            spare,
            store,
            reserve: Mutex::default(),
            kernels,
            context,
        })
    }

    /// Allocates a buffer and writes to it. Some drivers allocate the memory of a buffer only at its first use, which may then fail
    /// for lack of memory.
    fn alloc_now(&self, bytes: usize) -> Result<Buffer> {
        let buffer = Buffer::new(&self.context.handle, bytes)?;
        self.load.touch(&buffer)?;
        Ok(buffer)
    }

    /// Whether the driver can copy directly and fast between the two devices. The devices must share a context. In addition, `self`
    /// and `other` must stand for the same OpenCL device, or both must use host memory. Between two devices with memory of their
    /// own, drivers have been observed to move the whole buffer into the other device's memory, at 1 GB/s and without regard to the
    /// memory limit.
    pub(crate) fn is_peer_of(&self, other: &OpenClDevice) -> bool {
        let in_machine = |device: &OpenClDevice| device.found.facts.is_cpu() || device.found.is_unified;
        let is_same = self.found.handle() == other.found.handle();
        self.context.handle.0 == other.context.handle.0 && (is_same || (in_machine(self) && in_machine(other)))
    }

    /// Copies the first `bytes` bytes of a peer's buffer, and waits for the copy.
    fn copy_from_peer(&self, peer: &OpenClDevice, from: &Buffer, to: &Buffer, bytes: usize) -> Result<()> {
        peer.health.unless_lost(|| peer.after_application(from))?;
        self.health.unless_lost(|| {
            self.after_application(to)?;
            self.load.copy(from, to, bytes)
        })
    }

    /// If an application owns the buffer, blocks until all commands in the queue shared with the
    /// application have completed. After this function has returned, other queues may access the buffer.
    fn after_application(&self, buffer: &Buffer) -> Result<()> {
        if buffer.is_adopted() { self.kernels().finish() } else { Ok(()) }
    }

    pub(crate) fn is_pinned(&self, rect: &HostRect) -> bool {
        let start = rect.origin.addr();
        let last = (rect.rows.max(1) - 1) * rect.row_stride + (rect.cols.max(1) - 1) * rect.col_stride;
        let end = start + (last + 1) * rect.dtype.size();
        self.context
            .pinned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|range| range.start <= start && end <= range.end)
    }

    /// The cache of compiled programs that the device uses.
    #[must_use]
    pub fn cache(&self) -> &Arc<ProgramCache> {
        &self.cache
    }

    /// Makes the device record the times of its kernels, which [`Device::take_kernel_times`] returns. The records slow short kernels.
    /// The device keeps the times of at most 2²⁰ kernels, and the events of at most 1024 of them.
    ///
    /// # Errors
    /// The kernels run in a queue of the application ([`from_parts`](Self::from_parts)), or the driver refuses a queue that records
    /// times.
    pub fn with_kernel_times(self) -> Result<Self> {
        if self.found.facts.queues < KERNEL_QUEUES {
            let message = "the kernels run in a queue of the application: open the device by its number";
            return Err(Error::invalid("with_kernel_times", message));
        }
        self.kernels().record_times()?;
        Ok(self)
    }

    /// Looks up the kernels in `database` instead of the database of this crate.
    #[must_use]
    pub fn with_database(self, database: &Database) -> Self {
        self.kernels().use_database(database);
        self
    }
}

/// Reserved memory, which is freed when the device runs out of memory, so that existing buffers stay usable.
#[derive(Debug, Default)]
enum Reserve {
    /// Nothing has been allocated on the device yet.
    #[default]
    NotYet,
    /// The reserve is allocated. The buffer is never used. Dropping the buffer frees the reserve.
    Held {
        _buffer: Buffer,
    },
    GivenUp,
}

/// The reserve takes one of every `RESERVE` bytes of a device's memory.
const RESERVE: usize = 128;

impl Device for OpenClDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.found.facts
    }

    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.health.unless_lost(|| self.alloc_within_reserve(bytes)).map(DeviceBuffer::new)
    }

    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        // SAFETY: the caller guarantees the contract of `Device::write`, which includes the conditions of `transfer`.
        unsafe { self.transfer(&self.load, from, &Rect::of(to), true)?.wait() }
    }

    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        // SAFETY: the caller guarantees the contract of `Device::read`, which includes the conditions of `transfer`.
        unsafe { self.transfer(&self.store, to, &Rect::of(from), true)?.wait() }
    }

    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        // SAFETY: the caller guarantees the contract of `Device::launch` until this method returns. The wait for the event makes
        // the driver start the kernels.
        unsafe { self.enqueue(from_ref(instruction), (0, Conditions::default()), &[])?.wait() }
    }

    unsafe fn launch_and_read(&self, instructions: &[Instruction<Operand<'_>>], reads: &[(&DeviceBuffer, HostRect)]) -> Result<()> {
        let piece = |from: &Buffer, to: &HostRect| self.store.single_piece(to).filter(|_| !from.is_adopted());
        let pieces = reads.iter().map(|(from, to)| Some((from.get(), *to, piece(from.get(), to)?)));
        let pieces: Option<Vec<(&Buffer, HostRect, Piece)>> = pieces.collect();
        // SAFETY: the caller guarantees the contract of `Device::launch_and_read` until this method returns. The queue runs the
        // copies after the kernels.
        unsafe {
            let running = self.enqueue(instructions, (0, Conditions::default()), &[])?;
            let read = pieces.as_ref().map(|pieces| self.health.record_loss(self.store.read_each(&running.queue, pieces)));
            running.wait()?;
            match read {
                // if memory for all copies at once is lacking, the buffers are read one after the other
                Some(Err(error)) if !error.kind().is_out_of_memory() => Err(error),
                Some(Ok(())) => Ok(()),
                Some(Err(_)) | None => reads.iter().try_for_each(|&(from, to)| self.read(BufferRect::packed(from, to.rows), to)),
            }
        }
    }

    /// If an application owns the buffer of a transfer, this method first blocks until the application's queue is empty.
    unsafe fn submit(&self, work: Work<'_>, after: &[&Token]) -> Result<Token> {
        // SAFETY: the caller guarantees the contract of `Device::submit`, which includes the conditions of `transfer` and
        // `enqueue`. Each queue runs its kernels in order.
        unsafe {
            match work {
                Work::Write { from, to } => self.transfer(&self.load, from, &Rect::of(to), false),
                Work::Read { from, to } => self.transfer(&self.store, to, &Rect::of(from), false),
                Work::Run { instruction, queue, conditions } => {
                    let events: Vec<&Event> = after.iter().filter_map(|token| token.get().map(Running::event)).collect();
                    let running = self.enqueue(from_ref(instruction), (queue, conditions), &events)?;
                    // a driver may never start a command that is not flushed, and polling its event would then never end
                    match self.health.record_loss(running.queue.flush()) {
                        Ok(()) => Ok(Token::new(running)),
                        Err(error) => running.wait().and(Err(error.with("instruction", instruction.name()))),
                    }
                }
            }
        }
    }

    fn stream_queue(&self) -> Option<&dyn StreamQueue> {
        Some(self)
    }

    fn lost(&self) -> Option<Error> {
        self.health.lost()
    }

    fn scratch_bytes(&self) -> usize {
        self.kernels().scratch_bytes()
    }

    fn prepare(&self, instruction: &Instruction<Operand<'_>>, conditions: Conditions) -> Result<()> {
        let view = |Operand { offset: at, rows, cols, ld, .. }: Operand<'_>| View { buffer: &(), at, rows, cols, ld };
        self.kernels().prepare(instruction.dtype(), &instruction.map(view), conditions)
    }

    fn lookahead(&self, dtype: DType) -> Option<Lookahead> {
        Some(self.kernels().lookahead(dtype))
    }

    fn prefer_kernels(&self, entries: &str) -> Option<Result<()>> {
        Some(self.kernels().prefer(entries))
    }

    fn take_kernel_times(&self) -> Option<Result<Vec<KernelTime>>> {
        self.kernels().take_times().map(|taken| self.health.record_loss(taken))
    }

    fn trim(&self) {
        self.kernels().trim();
        self.spare.clear();
    }

    fn copy_from(&self, peer: &dyn Device, from: &DeviceBuffer, to: &DeviceBuffer, bytes: usize) -> Option<Result<()>> {
        let peer = peer.downcast::<OpenClDevice>().filter(|peer| self.is_peer_of(peer))?;
        Some(self.copy_from_peer(peer, from.get(), to.get(), bytes))
    }

    fn alloc_pinned(&self, bytes: usize) -> Option<Box<dyn PinnedMemory>> {
        if self.health.lost().is_some() {
            return None;
        }
        let size = Spare::size(bytes);
        // a driver may refuse to pin memory although the host has free memory
        let pin = |size| {
            #[cfg(feature = "test-hooks")]
            let size = self.asked(size);
            self.load.pin(size).ok()
        };
        let again = || {
            self.in_transfer.free_ended();
            self.spare.take(size)
        };
        let pinned = self.spare.take(size).or_else(again).or_else(|| pin(size))?;
        Some(Box::new(HostMemory::new(pinned, size, &self.context.pinned, &self.spare)))
    }
}

impl OpenClDevice {
    /// Begins the transfer of a rectangle between the host and a rectangle of a buffer.
    ///
    /// # Safety
    /// The conditions of [`Transfers::begin`] hold.
    unsafe fn transfer(&self, transfers: &Arc<Transfers>, rect: HostRect, own: &Rect, waits: bool) -> Result<Token> {
        self.health.unless_lost(|| {
            self.after_application(&own.buffer)?;
            // SAFETY: the caller guarantees the conditions of `Transfers::begin`.
            unsafe { transfers.begin(rect, self.is_pinned(&rect), own, waits) }
        })
    }

    /// Enqueues instructions in the kernel queue with the index `place.0`, beside a panel of the shape `place.1`, if there is one. The
    /// first instruction starts after the events in `after`, which belong to other queues.
    ///
    /// # Safety
    /// The contract of [`Device::submit`] holds.
    unsafe fn enqueue(
        &self,
        instructions: &[Instruction<Operand<'_>>],
        place: (usize, Conditions),
        after: &[&Event],
    ) -> Result<Running> {
        let views = instructions.iter().map(|instruction| (instruction.dtype(), instruction.map(view)));
        // SAFETY: the caller guarantees the contract of `Device::submit`.
        let (queue, event) = self.health.unless_lost(|| unsafe { self.kernels().run(views, place, after) })?;
        // the event does not tell which of several instructions failed
        let mut names = instructions.iter().map(Instruction::name);
        let instruction = names.next().filter(|first| names.all(|name| name == *first));
        Ok(Running { queue, event, instruction, health: self.health.clone() })
    }

    fn alloc_within_reserve(&self, bytes: usize) -> Result<Buffer> {
        #[cfg(feature = "test-hooks")]
        let bytes = self.asked(bytes);
        if self.found.facts.is_cpu() {
            return Buffer::new(&self.context.handle, bytes);
        }
        let mut reserve = self.reserve.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*reserve, Reserve::NotYet) {
            self.load.reserve()?;
            self.store.reserve()?;
            *reserve =
                self.alloc_now(self.found.memory / RESERVE).map_or(Reserve::GivenUp, |buffer| Reserve::Held { _buffer: buffer });
        }
        self.alloc_now(bytes).inspect_err(|error| {
            if error.kind().is_out_of_memory() {
                // any command may fail on a device without free memory, so the reserve is freed for the driver's own use
                *reserve = Reserve::GivenUp;
                self.kernels().trim();
                self.spare.clear();
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::ErrorKind;

    use super::*;
    use crate::program::tests::device;

    #[test]
    fn a_device_that_is_lost_stays_so() {
        let Some((found, context)) = device() else { return };
        let (cache, context) = (Arc::new(ProgramCache::new(None)), SharedContext::from_owned(context));
        let device = OpenClDevice::in_context(found, None, cache, context).unwrap();
        let gone = || -> Result<()> { Err(failed("clFinish", cl3::error_codes::CL_INVALID_COMMAND_QUEUE)) };
        assert!(device.alloc(8).is_ok() && device.lost().is_none());
        device.health.unless_lost(gone).unwrap_err();
        assert_eq!(device.alloc(8).unwrap_err().kind(), ErrorKind::DeviceLost);
        assert!(device.lost().unwrap().to_string().contains("CL_INVALID_COMMAND_QUEUE"));
    }
}
