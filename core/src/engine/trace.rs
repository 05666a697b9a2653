//! A trace records when each command of a run started and ended.

use std::sync::{Mutex, PoisonError};

use crate::clock::Instant;
use crate::dispatch::Lane;
use crate::engine::ProgressListener;

/// A command that was executed, with its start time and its end time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TraceEvent {
    /// Name of the device that executed the command.
    pub device: String,
    /// The queue that executed the command, with the index of its device in the run.
    pub lane: Lane,
    /// Text that names the command and shows its algebra.
    pub label: String,
    /// Seconds from the beginning of the trace to the start of the command. The start of a command is its submission or the end
    /// of the previous command of its lane, whichever is later.
    pub start: f64,
    /// Seconds from the beginning of the trace to the end of the command.
    pub end: f64,
}

/// Records the commands of all runs to which this trace is passed.
#[derive(Debug)]
pub struct Trace {
    begin: Instant,
    events: Mutex<Vec<TraceEvent>>,
}

/// Who is told what a run does. By default nobody is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch<'w> {
    /// Records the commands of the run.
    pub trace: Option<&'w Trace>,
    /// Hears the progress of a run of a plan. A call without a plan reports no progress.
    pub progress: Option<&'w ProgressListener>,
}

impl Default for Trace {
    fn default() -> Self {
        Trace { begin: Instant::now(), events: Mutex::default() }
    }
}

impl Trace {
    /// Removes and returns all events recorded so far, in the order in which the commands ended.
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
