//! Measures candidates in a worker process. A candidate that ends or hangs the worker process counts as failed.

use std::time::Duration;

use lapidary::kernels::space::Task;
use lapidary_tune::{Journal, Outcome, Timing};

use super::message::{Call, Job, Message};
use crate::bench::measure::median;
use crate::failure::{Failure, Result};
use crate::worker::{Ended, Event, Worker};

/// Measures candidates, each in the worker process that the previous candidate has left, or in a new one.
pub struct Meter {
    worker: Option<Worker<Message>>,
    /// Time limit of a candidate.
    limit: Duration,
}

/// Times of a candidate, or the reason why it failed.
pub type Measured = Result<Timing, String>;

impl Meter {
    /// Makes a meter whose candidates may take the time `limit`, which includes their compilation.
    pub fn new(limit: Duration) -> Self {
        Meter { worker: None, limit }
    }

    /// Measures a candidate and writes its outcome to a journal. With `checks_edges`, the candidate must first pass
    /// [`check_edges`](Self::check_edges).
    ///
    /// # Errors
    /// The journal cannot be written, no worker process starts, or the device cannot be opened.
    pub fn measure(&mut self, journal: &mut Journal, values: &[usize], job: &Job, checks_edges: bool) -> Result<Outcome> {
        let unwritten = |error| {
            Failure::check(format!(
                "the journal cannot be written: {error}; the outcomes before are kept: free space and start the same command again"
            ))
        };
        journal.begin(values).map_err(unwritten)?;
        let measured = self.checked(job, checks_edges).inspect_err(|_| {
            // the candidate is not to blame for a failure that ends the run, and the failure is reported, not that of the journal
            let _ = journal.cancel(values);
        });
        match measured? {
            Ok(timing) => {
                journal.end(values, timing).map_err(unwritten)?;
                Ok(Outcome::Seconds(timing.seconds))
            }
            Err(reason) => {
                journal.failed(values, &reason).map_err(unwritten)?;
                Ok(Outcome::Failed)
            }
        }
    }

    /// Runs a candidate, after the check of its edges if `checks_edges` is set.
    fn checked(&mut self, job: &Job, checks_edges: bool) -> Result<Measured> {
        // the first line is the candidate; a product of odd sizes may need another kernel for a part
        let candidate = job.entries.lines().next().unwrap_or_default();
        match if checks_edges { self.check_edges(&job.call, candidate)? } else { Ok(()) } {
            Ok(()) => self.run(job),
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Runs a candidate.
    ///
    /// # Errors
    /// No worker process starts, the device cannot be opened, or the operands do not fit into memory.
    pub fn run(&mut self, job: &Job) -> Result<Measured> {
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.open()?,
        };
        worker.give(job);
        let measured = match worker.next() {
            Event::Said(Message::Measured { setup_seconds, seconds }) => {
                Ok(Timing { setup_seconds, runs: seconds.len(), seconds: median(seconds) })
            }
            Event::Said(Message::Unfit(reason)) => Err(reason),
            // the next candidate gets a new worker process, because some drivers refuse all work after an error
            Event::Said(Message::Failed(reason)) => return Ok(Err(reason)),
            Event::Said(Message::Refused { status, message }) => return Err(Failure::with_status(Some(status), message)),
            Event::Said(other) => return Err(Failure::check(format!("the worker process says {other:?}"))),
            Event::Ended(Ended { how, .. }) => return Ok(Err(format!("the candidate {how}"))),
        };
        self.worker = Some(worker);
        Ok(measured)
    }

    fn open(&self) -> Result<Worker<Message>> {
        let mut worker = Worker::start(self.limit)?;
        match worker.next() {
            Event::Said(Message::Opened) => Ok(worker),
            Event::Said(Message::Refused { status, message }) => Err(Failure::with_status(Some(status), message)),
            Event::Said(other) => Err(Failure::check(format!("the device is not opened, and the process says {other:?}"))),
            Event::Ended(Ended { how, .. }) => Err(Failure::check(format!("while it is opened, the device {how}"))),
        }
    }

    /// Checks that a candidate computes right results for odd sizes and odd leading dimensions, with every transposition of the operands.
    ///
    /// # Errors
    /// As for [`Meter::run`].
    pub fn check_edges(&mut self, call: &Call, entries: &str) -> Result<Result<(), String>> {
        let odd = call.sizes.map(|size| (size / 2) | 1);
        for &transposed in transpositions(call.task()?) {
            let call = Call { sizes: odd, transposed, is_padded: true, ..call.clone() };
            if let Err(reason) = self.run(&Job { call: call.clone(), entries: entries.to_owned(), runs: 0 })? {
                return Ok(Err(format!("{}: {reason}", call.words()?)));
            }
        }
        Ok(Ok(()))
    }
}

/// The transpositions of the operands of a task: of A and of B.
fn transpositions(task: Task) -> &'static [[bool; 2]] {
    match task {
        Task::Gemm | Task::GemmBatched => &[[false, false], [true, false], [false, true], [true, true]],
        Task::Trsm | Task::Trtri => &[[false, false], [true, false]],
        Task::Getrf | Task::GetrfBatched | Task::Laswp | Task::Scale => &[[false, false]],
    }
}
