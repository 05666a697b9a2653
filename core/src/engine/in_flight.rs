//! The commands that an engine thread has submitted to its device and not yet reported to the run.

use std::task::Poll;
use std::time::Duration;

use crate::clock::Instant;
use crate::command::CommandId;
use crate::dispatch::{Issue, Lane};
use crate::error::Result;
use crate::token::Token;

/// How long the engine thread polls for completed commands before it sleeps. `POLL_TIME` is about the time that the system needs
/// to wake a sleeping thread.
const POLL_TIME: Duration = Duration::from_micros(100);

/// Time between two polls, as long as the engine thread does not sleep between polls. More frequent polls would slow down the
/// device's driver.
const POLL_INTERVAL: Duration = Duration::from_micros(5);

/// The shortest and the longest sleep between two polls, after the engine thread has polled for the time `POLL_TIME`.
const SLEEP_RANGE: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];

/// A command submitted to a device, with the token that reports its completion.
#[derive(Debug)]
struct Submitted {
    lane: Lane,
    issue: Issue,
    start: Option<f64>,
    token: Token,
}

/// A command that has completed or failed.
#[derive(Debug)]
pub(super) struct Ended {
    pub lane: Lane,
    pub issue: Issue,
    /// Time at which the command was submitted, in seconds of the trace; `None` if the run has no trace.
    pub start: Option<f64>,
    pub result: Result<()>,
}

impl Submitted {
    fn ended(self, result: Result<()>) -> Ended {
        let Submitted { lane, issue, start, .. } = self;
        Ended { lane, issue, start, result }
    }
}

/// The commands submitted to a device and not yet reported to the run. Dropping an `InFlight` waits until all its commands have
/// completed, since the run only borrows the memory of their operands.
#[derive(Debug)]
pub(super) struct InFlight {
    submitted: Vec<Submitted>,
    /// When the engine thread last submitted a command or last found a completed command.
    busy: Instant,
}

impl InFlight {
    pub fn new() -> Self {
        InFlight { submitted: Vec::new(), busy: Instant::now() }
    }

    pub fn len(&self) -> usize {
        self.submitted.len()
    }

    /// Returns the token of a command; `None` if the end of the command was already reported.
    pub fn token(&self, command: CommandId) -> Option<&Token> {
        self.submitted.iter().find(|submitted| submitted.issue.command == command).map(|submitted| &submitted.token)
    }

    /// Adds a command to the commands in flight, where `submitted` is the result of the command's submission. If the command has
    /// already completed or failed, the method does not add the command but returns its result.
    pub fn add(&mut self, lane: Lane, issue: Issue, start: Option<f64>, submitted: Result<Token>) -> Option<Ended> {
        let result = match submitted {
            Ok(token) if !token.is_done() => {
                self.submitted.push(Submitted { lane, issue, start, token });
                self.busy = Instant::now();
                return None;
            }
            done => done.map(drop),
        };
        Some(Ended { lane, issue, start, result })
    }

    /// Polls the commands in flight, then removes and returns the first completed command. Returns `None` if no command has
    /// completed.
    pub fn ended(&mut self) -> Option<Ended> {
        let ended = self.submitted.iter().enumerate().find_map(|(at, submitted)| match submitted.token.poll() {
            Poll::Ready(result) => Some((at, result)),
            Poll::Pending => None,
        });
        let (at, result) = ended?;
        self.busy = Instant::now();
        Some(self.submitted.remove(at).ended(result))
    }

    /// Blocks until the oldest command in flight completes, then removes and returns this command. Returns `None` if no command
    /// is in flight.
    pub fn wait(&mut self) -> Option<Ended> {
        let result = self.submitted.first()?.token.wait();
        Some(self.submitted.remove(0).ended(result))
    }

    /// Returns how long the engine thread may sleep before it polls again: a fraction of the time since the last submission or
    /// completion of a command. In the first `POLL_TIME` after a submission or completion, the method itself spins for a few
    /// microseconds and returns zero.
    pub fn poll_or_sleep_time(&self) -> Duration {
        let waited = self.busy.elapsed();
        if waited < POLL_TIME {
            let begin = Instant::now();
            while begin.elapsed() < POLL_INTERVAL {
                std::hint::spin_loop();
            }
            return Duration::ZERO;
        }
        (waited / 64).clamp(SLEEP_RANGE[0], SLEEP_RANGE[1])
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // the results are ignored: commands are still in flight here only after a panic, when no thread reports results
        self.submitted.iter().for_each(|submitted| drop(submitted.token.wait()));
    }
}
