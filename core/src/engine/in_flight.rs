//! Commands submitted to a device and not yet reported.

use std::task::Poll;
use std::time::{Duration, Instant};

use crate::command::CommandId;
use crate::dispatch::{Issue, Lane};
use crate::error::Result;
use crate::token::Token;

/// How long the engine's thread polls for ended commands before it sleeps: about the time that a wake-up takes.
const AWAKE: Duration = Duration::from_micros(100);

/// Time between two polls before the thread sleeps. More frequent polls would slow down the device's driver.
const LOOK: Duration = Duration::from_micros(5);

/// The shortest and the longest sleep between two polls after that.
const DOZE: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];

/// A command submitted to a device.
#[derive(Debug)]
struct Submitted {
    lane: Lane,
    issue: Issue,
    start: Option<f64>,
    token: Token,
}

/// A command that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub lane: Lane,
    pub issue: Issue,
    /// Time of its submission in the trace, if there is one.
    pub start: Option<f64>,
    pub result: Result<()>,
}

impl Submitted {
    fn ended(self, result: Result<()>) -> Ended {
        let Submitted { lane, issue, start, .. } = self;
        Ended { lane, issue, start, result }
    }
}

/// Commands submitted to a device and not yet reported. Dropping this waits for all of them, since the memory that they use
/// is only borrowed.
#[derive(Debug)]
pub(super) struct InFlight {
    submitted: Vec<Submitted>,
    /// When the thread last had something to do.
    busy: Instant,
}

impl InFlight {
    pub fn new() -> Self {
        InFlight { submitted: Vec::new(), busy: Instant::now() }
    }

    pub fn len(&self) -> usize {
        self.submitted.len()
    }

    /// The token of a command; `None` once its end was reported.
    pub fn token(&self, command: CommandId) -> Option<&Token> {
        self.submitted.iter().find(|submitted| submitted.issue.command == command).map(|submitted| &submitted.token)
    }

    /// Adds a command whose submission returned `submitted`. Returns its end if it has ended already.
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

    /// The first command that has ended.
    pub fn ended(&mut self) -> Option<Ended> {
        let ended = self.submitted.iter().enumerate().find_map(|(at, submitted)| match submitted.token.poll() {
            Poll::Ready(result) => Some((at, result)),
            Poll::Pending => None,
        });
        let (at, result) = ended?;
        self.busy = Instant::now();
        Some(self.submitted.remove(at).ended(result))
    }

    /// The first command, once it has ended.
    pub fn wait(&mut self) -> Option<Ended> {
        let result = self.submitted.first()?.token.wait();
        Some(self.submitted.remove(0).ended(result))
    }

    /// Lets some time pass before the next look; how long the driver may sleep besides: a part of the time that it has
    /// waited, not at all at first.
    pub fn pause(&self) -> Duration {
        let waited = self.busy.elapsed();
        if waited < AWAKE {
            let begin = Instant::now();
            while begin.elapsed() < LOOK {
                std::hint::spin_loop();
            }
            return Duration::ZERO;
        }
        (waited / 64).clamp(DOZE[0], DOZE[1])
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // after a panic: nobody asks any more how they ended
        self.submitted.iter().for_each(|submitted| drop(submitted.token.wait()));
    }
}
