//! Messages between the worker process, which runs the trials, and the process that watches the worker process.
//!
//! The worker process writes messages to its standard output, each as JSON text between the marks of RFC 7464, which separate a
//! message from text that a library prints. The worker process reads one [`Job`] from its standard input. If standard input closes,
//! the watching process has ended, and the worker process ends too.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};

use lapidary_conformance::report::{Grade, Identity, TrialReport};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};

/// The byte that begins a message. A line feed ends each message.
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

    /// Splits a line of standard output into the text before a message and the message.
    pub fn read(line: &[u8]) -> (&[u8], Option<serde_json::Result<Message>>) {
        match line.iter().position(|&byte| byte == MARK) {
            None => (line, None),
            Some(at) => (&line[..at], Some(serde_json::from_slice(&line[at + 1..]))),
        }
    }
}

/// Ends the process at once. No exit handlers run, since a library whose call hangs may hang in an exit handler too. On Unix the
/// process leaves no core dump.
fn end() -> ! {
    #[cfg(unix)]
    // SAFETY: `_exit` has no requirements, and may be called in any state of the process.
    unsafe {
        libc::_exit(1)
    }
    #[cfg(not(unix))]
    std::process::abort()
}

/// In the worker process, receives the [`Job`] that the watching process writes to the standard input of the worker process.
pub struct JobReceiver(Receiver<String>);

impl JobReceiver {
    /// Starts a thread that reads the standard input of the worker process. If standard input closes, the watching process has
    /// ended, and the thread ends the worker process. Without this thread, a call that hangs would keep the worker process alive.
    pub fn listen() -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut job = String::new();
            // If the text of the job is incomplete, it is no valid JSON, and `JobReceiver::job` returns the error.
            let _ = std::io::stdin().read_line(&mut job);
            let _ = sender.send(job);
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            end();
        });
        JobReceiver(receiver)
    }

    /// Waits until the watching process has sent the [`Job`], and returns the `Job`.
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
