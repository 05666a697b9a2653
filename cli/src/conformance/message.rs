//! Messages of the worker process, which runs the trials, and its job.

use lapidary_conformance::report::{Grade, Identity, TrialReport};
use serde::{Deserialize, Serialize};

use crate::failure::Result;
use crate::worker;

/// A message from the worker process.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// The worker process has loaded or opened the subject.
    Opened(Identity),
    /// The subject could not be loaded or opened. The run ends with the exit status `status`.
    Refused {
        /// Exit status of the run.
        status: i32,
        /// Reason why the subject could not be opened.
        message: String,
    },
    /// The trial with this name begins, or the measurement of the grades begins.
    Began(String),
    /// A device is about to load or compile the program with this name.
    Program(String),
    /// The trial that began last has ended with this report.
    Tried(Box<TrialReport>),
    /// The measurement of the grades has ended with these grades, and so has the job of the worker process.
    Graded(Vec<Grade>),
}

/// The work that the watching process gives to the worker process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// Names of the trials to run. The grades are measured after these trials.
    pub trials: Vec<String>,
    /// Reports of trials that ran before. The grades use the figures of these trials too.
    pub tried: Vec<TrialReport>,
}

impl worker::Message for Message {
    fn program(self) -> Result<String, Self> {
        match self {
            Message::Program(program) => Ok(program),
            message => Err(message),
        }
    }
}
