//! Work that was submitted to a device.

use std::sync::{Arc, OnceLock};
use std::task::Poll;

use lapidary_core::{Error, ErrorKind, Pending, Result};

use crate::buffer::Event;
use crate::queue::{Queue, poll, wait};

/// Whether a device is lost. A loss is remembered, since drivers respond to calls on a lost device in many ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<OnceLock<String>>);

impl Health {
    /// Why the device is gone for good, if it is.
    pub fn lost(&self) -> Option<Error> {
        self.0.get().map(|reason| Error::new(ErrorKind::DeviceLost, "opencl", reason.clone()))
    }

    /// Runs `work`, unless the device is lost.
    pub fn unless_lost<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        self.lost().map_or(Ok(()), Err)?;
        self.heard(work())
    }

    /// Returns `result`. If it is an error that reports the loss of the device, the loss is remembered.
    pub fn heard<R>(&self, result: Result<R>) -> Result<R> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::DeviceLost {
                let _ = self.0.set(error.to_string());
            }
        })
    }
}

/// Work whose end is an event.
#[derive(Debug)]
pub(crate) struct Running {
    pub queue: Arc<Queue>,
    pub event: Event,
    /// The instruction, if it is one.
    pub instruction: Option<&'static str>,
    pub health: Health,
}

impl Running {
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The error of work whose event does not tell its end. The driver may still use memory that the caller takes back, so
    /// this waits until its queue is empty.
    fn given_up(&self, error: Error) -> Result<()> {
        let _ = self.queue.finish();
        Err(error)
    }

    fn told(&self, result: Result<()>) -> Result<()> {
        let result = self.health.heard(result);
        result.map_err(|error| match self.instruction {
            Some(name) => error.with("instruction", name),
            None => error,
        })
    }
}

impl Pending for Running {
    fn poll(&self) -> Poll<Result<()>> {
        match poll(&self.event) {
            Poll::Ready(result) => Poll::Ready(self.told(result).or_else(|error| self.given_up(error))),
            Poll::Pending => self.health.lost().map_or(Poll::Pending, |lost| Poll::Ready(self.given_up(lost))),
        }
    }

    fn wait(&self) -> Result<()> {
        // events of a lost device may never complete
        match self.health.lost() {
            Some(lost) => self.given_up(lost),
            None => self.told(wait(&self.event)).or_else(|error| self.given_up(error)),
        }
    }
}
