//! Work that has been submitted to a device and may not be complete.

use std::sync::{Arc, OnceLock};
use std::task::Poll;

use lapidary_core::{Error, ErrorKind, Pending, Result};

use crate::buffer::Event;
use crate::queue::{Queue, poll, wait};

/// Whether a device is lost. A loss is recorded, because drivers return various errors for later calls on a lost device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<OnceLock<String>>);

impl Health {
    /// The reason of the loss, as an error; `None` if the device is not lost.
    pub fn lost(&self) -> Option<Error> {
        self.0.get().map(|reason| Error::new(ErrorKind::DeviceLost, "opencl", reason.clone()))
    }

    /// Runs `work` and returns its result. If the device is lost already, returns the error of the loss instead.
    pub fn unless_lost<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        self.lost().map_or(Ok(()), Err)?;
        self.record_loss(work())
    }

    /// Returns `result` unchanged. If `result` is an error that reports the loss of the device, the loss is recorded.
    pub fn record_loss<R>(&self, result: Result<R>) -> Result<R> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::DeviceLost {
                let _ = self.0.set(error.to_string());
            }
        })
    }
}

/// Submitted work whose completion is signalled by an event.
#[derive(Debug)]
pub(crate) struct Running {
    pub queue: Arc<Queue>,
    pub event: Event,
    /// Name of the instruction; `None` for a transfer and for several instructions with different names.
    pub instruction: Option<&'static str>,
    pub health: Health,
}

impl Running {
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Blocks until the queue is empty, then returns `error`. Until the queue is empty, the driver may still access memory that the
    /// caller frees after an error.
    fn drain_and_fail(&self, error: Error) -> Result<()> {
        let _ = self.queue.finish();
        Err(error)
    }

    fn with_context(&self, result: Result<()>) -> Result<()> {
        let result = self.health.record_loss(result);
        result.map_err(|error| match self.instruction {
            Some(name) => error.with("instruction", name),
            None => error,
        })
    }
}

impl Pending for Running {
    fn poll(&self) -> Poll<Result<()>> {
        match poll(&self.event) {
            Poll::Ready(result) => Poll::Ready(self.with_context(result).or_else(|error| self.drain_and_fail(error))),
            Poll::Pending => self.health.lost().map_or(Poll::Pending, |lost| Poll::Ready(self.drain_and_fail(lost))),
        }
    }

    fn wait(&self) -> Result<()> {
        // the events of a lost device may never complete
        match self.health.lost() {
            Some(lost) => self.drain_and_fail(lost),
            None => self.with_context(wait(&self.event)).or_else(|error| self.drain_and_fail(error)),
        }
    }
}
