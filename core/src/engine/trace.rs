//! What a run did when.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::dispatch::Lane;

/// One command that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// Name of the device.
    pub device: String,
    /// The queue, with the index of the device in the run.
    pub lane: Lane,
    /// The command and its algebra.
    pub label: String,
    /// Seconds from the beginning of the trace to the start of the command: its submission, or the end of the command before it
    /// in the lane if that is later.
    pub start: f64,
    /// The same to its end.
    pub end: f64,
}

/// The commands of the runs that it was given to.
#[derive(Debug)]
pub struct Trace {
    begin: Instant,
    events: Mutex<Vec<TraceEvent>>,
}

impl Default for Trace {
    fn default() -> Self {
        Trace { begin: Instant::now(), events: Mutex::default() }
    }
}

impl Trace {
    /// The events so far, in the order of their ends; they are forgotten here.
    pub fn take(&self) -> Vec<TraceEvent> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    pub(super) fn add(&self, event: TraceEvent) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}
