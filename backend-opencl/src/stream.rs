//! The queue of streams, which is kernel queue 0 of the device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use cl3::command_queue::{enqueue_read_buffer, enqueue_write_buffer};
use cl3::types::CL_NON_BLOCKING;
use lapidary_core::{HostElements, Pending, Result, StreamQueue, StreamWork, Token};

use crate::buffer::{Buffer, Event};
use crate::conv::{failed, view};
use crate::device::OpenClDevice;
use crate::queue::{poll, wait};
use crate::running::{Health, Running};
use crate::transfers::Direction;

/// The event of a transfer of a stream, and the host memory of the transfer.
type Transfer = (Event, HostElements);

/// The transfers of streams that may be incomplete. The driver may still access the host memory of these transfers.
#[derive(Debug)]
pub(crate) struct InTransfer {
    transfers: Mutex<Vec<Transfer>>,
    health: Health,
}

impl InTransfer {
    pub fn new(health: &Health) -> Self {
        InTransfer { transfers: Mutex::default(), health: health.clone() }
    }

    /// Keeps host memory until its transfer has ended.
    fn keep(&self, event: Event, memory: HostElements) {
        self.transfers().push((event, memory));
    }

    /// Frees the memory of transfers that have ended. Transfers end in the order in which they were enqueued.
    pub fn free_ended(&self) {
        let mut kept = self.transfers();
        let count = kept.iter().take_while(|(event, _)| poll(event).is_ready()).count();
        let ended = kept.drain(..count).collect();
        drop(kept);
        self.free(ended);
    }

    /// Waits for transfers and frees their memory. The driver may still access the memory of a failed transfer, and the transfers of a
    /// lost device may never end: their memory is not freed.
    fn free(&self, transfers: Vec<Transfer>) {
        for (event, memory) in transfers {
            if self.health.lost().is_some() || wait(&event).is_err() {
                std::mem::forget(memory);
            }
        }
    }

    fn transfers(&self) -> MutexGuard<'_, Vec<Transfer>> {
        self.transfers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InTransfer {
    fn drop(&mut self) {
        let transfers = std::mem::take(&mut *self.transfers());
        self.free(transfers);
    }
}

/// Work of streams. When the work has ended, the host memory of its transfers is freed.
#[derive(Debug)]
struct InStream {
    running: Running,
    in_transfer: Arc<InTransfer>,
}

impl Pending for InStream {
    fn poll(&self) -> Poll<Result<()>> {
        let outcome = self.running.poll();
        if outcome.is_ready() {
            self.in_transfer.free_ended();
        }
        outcome
    }

    fn wait(&self) -> Result<()> {
        let outcome = self.running.wait();
        self.in_transfer.free_ended();
        outcome
    }
}

impl OpenClDevice {
    /// Enqueues a transfer between host memory and the beginning of a buffer in the queue of streams.
    ///
    /// # Safety
    /// The contract of [`StreamQueue::enqueue`] holds.
    unsafe fn transfer_in_stream(&self, direction: Direction, buffer: &Buffer, memory: HostElements) -> Result<()> {
        let queue = Arc::clone(self.kernels().stream_queue());
        let (mem, bytes, start, no_events) = (buffer.handle(), memory.bytes(), memory.start().cast(), std::ptr::null());
        // SAFETY: the caller guarantees access to the buffer and to the memory, which `keep` keeps until the transfer has ended.
        let (call, event) = unsafe {
            match direction {
                Direction::ToDevice => {
                    let event = enqueue_write_buffer(queue.handle(), mem, CL_NON_BLOCKING, 0, bytes, start, 0, no_events);
                    ("clEnqueueWriteBuffer", event)
                }
                Direction::ToHost => {
                    let event = enqueue_read_buffer(queue.handle(), mem, CL_NON_BLOCKING, 0, bytes, start, 0, no_events);
                    ("clEnqueueReadBuffer", event)
                }
            }
        };
        self.in_transfer().keep(Event(event.map_err(|code| failed(call, code))?), memory);
        queue.flush()
    }
}

impl StreamQueue for OpenClDevice {
    unsafe fn enqueue(&self, work: StreamWork<'_>) -> Result<()> {
        // SAFETY: the caller guarantees the contract of `StreamQueue::enqueue`.
        self.health().unless_lost(|| unsafe {
            match work {
                StreamWork::Run(instruction) => self.kernels().enqueue_in_stream(instruction.dtype(), &instruction.map(view)),
                StreamWork::Write { from, to } => self.transfer_in_stream(Direction::ToDevice, to.get(), from),
                StreamWork::Read { from, to } => self.transfer_in_stream(Direction::ToHost, from.get(), to),
            }
        })
    }

    fn end(&self) -> Result<Token> {
        self.health().unless_lost(|| {
            let queue = Arc::clone(self.kernels().stream_queue());
            let event = queue.end()?;
            queue.flush()?;
            let running = Running { queue, event, instruction: None, health: self.health().clone() };
            Ok(Token::new(InStream { running, in_transfer: Arc::clone(self.in_transfer()) }))
        })
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::{DType, Device, ProgramCache};

    use super::*;
    use crate::platform::list;

    #[test]
    fn pinned_memory_of_ended_writes_is_used_again_although_no_token_was_polled() {
        if list().devices.is_empty() && std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none() {
            return;
        }
        let device = OpenClDevice::open(0, None, Arc::new(ProgramCache::new(None))).unwrap();
        let (buffer, queue) = (device.alloc(64).unwrap(), device.stream_queue().unwrap());
        let write = || {
            let memory = device.alloc_pinned(64).unwrap();
            let start = memory.ptr();
            // SAFETY: the memory has 64 bytes, and nothing else accesses it.
            unsafe { start.write_bytes(0, 64) };
            let from = HostElements::new(start, 8, DType::F64, Arc::new(memory));
            // SAFETY: the buffer has 64 bytes, and only these writes access it.
            unsafe { queue.enqueue(StreamWork::Write { from, to: &buffer }).unwrap() };
            start
        };
        let first = write();
        device.kernels().stream_queue().finish().unwrap();
        assert_eq!(write(), first);
        device.kernels().stream_queue().finish().unwrap();
    }
}
