//! The queue of streams, which is kernel queue 0 of the device.

use std::sync::{Arc, Mutex, PoisonError};

use cl3::command_queue::{enqueue_read_buffer, enqueue_write_buffer};
use cl3::types::CL_NON_BLOCKING;
use lapidary_core::{HostElements, Result, StreamQueue, StreamWork, Token};

use crate::buffer::{Buffer, Event};
use crate::conv::{failed, view};
use crate::device::OpenClDevice;
use crate::queue::{poll, wait};
use crate::running::Running;

/// Host memory that the driver may still access, with the events of its transfers.
#[derive(Debug, Default)]
pub(crate) struct InTransfer(Mutex<Vec<(Event, HostElements)>>);

impl InTransfer {
    /// Keeps host memory until its transfer has ended, and frees the memory of transfers that have ended.
    fn keep(&self, event: Event, memory: HostElements) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(event, _)| poll(event).is_pending());
        kept.push((event, memory));
    }
}

impl Drop for InTransfer {
    fn drop(&mut self) {
        for (event, memory) in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if wait(&event).is_err() {
                // the driver may still access the memory of a failed transfer
                std::mem::forget(memory);
            }
        }
    }
}

impl StreamQueue for OpenClDevice {
    unsafe fn enqueue(&self, work: StreamWork<'_>) -> Result<()> {
        self.health().unless_lost(|| match work {
            // SAFETY: the caller guarantees the contract of `StreamQueue::enqueue`.
            StreamWork::Run(instruction) => unsafe {
                self.kernels().enqueue_in_stream(instruction.dtype(), &instruction.map(view))
            },
            StreamWork::Write { from, to } => {
                let (queue, mem, no_events): (_, &Buffer, _) =
                    (Arc::clone(self.kernels().stream_queue()), to.get(), std::ptr::null());
                let (bytes, start) = (from.bytes(), from.start().cast());
                // SAFETY: the caller guarantees access to the buffer and to the memory, which `keep` keeps until the transfer has ended.
                let event =
                    unsafe { enqueue_write_buffer(queue.handle(), mem.handle(), CL_NON_BLOCKING, 0, bytes, start, 0, no_events) };
                self.in_transfer().keep(Event(event.map_err(|code| failed("clEnqueueWriteBuffer", code))?), from);
                queue.flush()
            }
            StreamWork::Read { from, to } => {
                let (queue, mem, no_events): (_, &Buffer, _) =
                    (Arc::clone(self.kernels().stream_queue()), from.get(), std::ptr::null());
                let (bytes, start) = (to.bytes(), to.start().cast());
                // SAFETY: the caller guarantees access to the buffer and to the memory, which `keep` keeps until the transfer has ended.
                let event =
                    unsafe { enqueue_read_buffer(queue.handle(), mem.handle(), CL_NON_BLOCKING, 0, bytes, start, 0, no_events) };
                self.in_transfer().keep(Event(event.map_err(|code| failed("clEnqueueReadBuffer", code))?), to);
                queue.flush()
            }
        })
    }

    fn end(&self) -> Result<Token> {
        self.health().unless_lost(|| {
            let queue = Arc::clone(self.kernels().stream_queue());
            let event = queue.end()?;
            queue.flush()?;
            Ok(Token::new(Running { queue, event, instruction: None, health: self.health().clone() }))
        })
    }
}
