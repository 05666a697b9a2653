//! What the process that runs the trials and the one that watches it say to each other.
//!
//! The first writes messages to its standard output, each a JSON text between the marks of RFC 7464;
//! what a library prints beside them is told apart. It reads one [`Job`] from its standard input, whose
//! end says that the other is gone.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};

use lapidary_conformance::report::{Grade, Identity, TrialReport};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};

/// What begins a message; a line feed ends it.
pub const MARK: u8 = 0x1e;

/// A message of the process that runs the trials.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// The subject is loaded or opened.
    Opened(Identity),
    /// The subject does not load or open, for a reason that ends the run with this exit status.
    Refused {
        /// The exit status.
        status: i32,
        /// The reason.
        message: String,
    },
    /// A trial or the grades begin.
    Began(String),
    /// A device is about to load or compile a program.
    Program(String),
    /// The trial that began last has ended.
    Tried(Box<TrialReport>),
    /// The grades are measured: everything is done.
    Graded(Vec<Grade>),
}

/// The work for the process that calls the subject.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The names of the trials to run; the grades follow them.
    pub trials: Vec<String>,
    /// Reports of the trials that ran before; the grades use their figures too.
    pub tried: Vec<TrialReport>,
}

impl Message {
    /// Writes the message to standard output. Where nobody reads it the process ends.
    pub fn send(&self) {
        let text = serde_json::to_vec(self).expect("no map has keys that are no text");
        let framed = [&[MARK][..], &text, b"\n"].concat();
        let mut out = std::io::stdout().lock();
        if out.write_all(&framed).and_then(|()| out.flush()).is_err() {
            end();
        }
    }

    /// The message of a line, and what stands before it.
    pub fn read(line: &[u8]) -> (&[u8], Option<serde_json::Result<Message>>) {
        match line.iter().position(|&byte| byte == MARK) {
            None => (line, None),
            Some(at) => (&line[..at], Some(serde_json::from_slice(&line[at + 1..]))),
        }
    }
}

/// Ends the process at once. Nothing orderly runs, since a library whose call hangs may hang there too; on Unix
/// nothing is dumped.
fn end() -> ! {
    #[cfg(unix)]
    // SAFETY: the call ends the process in any state
    unsafe {
        libc::_exit(1)
    }
    #[cfg(not(unix))]
    std::process::abort()
}

/// Where the job comes from.
pub struct Orders(Receiver<String>);

impl Orders {
    /// Listens from now on. When standard input ends the process does, wherever it is: the one that
    /// watches it is gone, and a call that hangs would stay behind.
    pub fn listen() -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut job = String::new();
            // a job that is cut off does not parse; `job` reports that
            let _ = std::io::stdin().read_line(&mut job);
            let _ = sender.send(job);
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            end();
        });
        Orders(receiver)
    }

    /// The job.
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
