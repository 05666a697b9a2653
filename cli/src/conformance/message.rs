//! Messages between the worker process, which runs the trials, and the process that watches it.
//!
//! The worker process writes messages to its standard output, each as JSON text in the framing of RFC 7464. The framing of RFC
//! 7464 separates messages from text that a library prints. The worker process reads one [`Job`] from its standard input. When
//! standard input closes, the watching process has ended.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};

use lapidary_conformance::report::{Grade, Identity, TrialReport};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};

/// Byte that begins a message. A line feed ends the message.
pub const MARK: u8 = 0x1e;

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
    /// The named trial begins, or the measurement of the grades begins.
    Began(String),
    /// A device is about to load or compile this program.
    Program(String),
    /// The trial that began last has ended with this report.
    Tried(Box<TrialReport>),
    /// The grades are measured, which ends the job.
    Graded(Vec<Grade>),
}

/// The work that the worker process does.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// Names of the trials to run. The grades are measured after these trials.
    pub trials: Vec<String>,
    /// Reports of trials that have already run. The grades use the figures of these trials too.
    pub tried: Vec<TrialReport>,
}

impl Message {
    /// Writes the message to standard output. If standard output is closed, the worker process ends.
    pub fn send(&self) {
        let text = serde_json::to_vec(self).expect("no map has keys that are no text");
        let framed = [&[MARK][..], &text, b"\n"].concat();
        let mut out = std::io::stdout().lock();
        if out.write_all(&framed).and_then(|()| out.flush()).is_err() {
            end();
        }
    }

    /// Splits a line into the text before a message and the message.
    pub fn read(line: &[u8]) -> (&[u8], Option<serde_json::Result<Message>>) {
        match line.iter().position(|&byte| byte == MARK) {
            None => (line, None),
            Some(at) => (&line[..at], Some(serde_json::from_slice(&line[at + 1..]))),
        }
    }
}

/// Ends the process at once. No exit handlers run, since a library whose call hangs may hang in them too. On Unix no core dump
/// is written.
fn end() -> ! {
    #[cfg(unix)]
    // SAFETY: `_exit` may be called in any state of the process.
    unsafe {
        libc::_exit(1)
    }
    #[cfg(not(unix))]
    std::process::abort()
}

/// The source of the worker process's job.
pub struct JobReceiver(Receiver<String>);

impl JobReceiver {
    /// Starts a thread that reads standard input. When standard input closes, the thread ends the process: the watching process
    /// has ended, and a call that hangs would keep this process alive.
    pub fn listen() -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut job = String::new();
            // If the job is cut off, its JSON does not parse, and `JobReceiver::job` reports the error.
            let _ = std::io::stdin().read_line(&mut job);
            let _ = sender.send(job);
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            end();
        });
        JobReceiver(receiver)
    }

    /// Waits for the job from the watching process.
    pub fn job(&self) -> Result<Job> {
        let text = self.0.recv().unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| Failure::usage(format!("standard input holds no trials to run: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn messages_are_told_from_what_a_library_prints() {
        let message = Message::Began("f64::gemm::random".to_owned());
        let line = format!("half a line\u{1e}{}\n", serde_json::to_string(&message).unwrap());
        let (printed, read) = Message::read(line.as_bytes());
        assert_eq!((printed, read.unwrap().unwrap()), (&b"half a line"[..], message));
        assert!(matches!(Message::read(b"only words\n"), (b"only words\n", None)));
        assert!(matches!(Message::read(b"\x1e{\"Began\": 1\n"), (b"", Some(Err(_)))));
    }
}
