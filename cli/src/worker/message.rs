//! Messages between a worker process and the process that watches it.
//!
//! The worker process writes messages to its standard output, each as JSON text between the marks of RFC 7464, which separate a
//! message from text that a library prints. The worker process reads jobs from its standard input, one JSON text in each line. If
//! standard input closes, the watching process has ended, and the worker process ends too.

use std::io::{BufRead, Write};
use std::marker::PhantomData;
use std::sync::mpsc::{Receiver, channel};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Result};

/// The byte that begins a message. A line feed ends each message.
const MARK: u8 = 0x1e;

/// A type of the messages from a worker process.
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// Returns the name of the program that a device is about to load or compile, if this is the content of the message. Otherwise
    /// returns the message.
    fn program(self) -> Result<String, Self>;
}

/// Writes a message to standard output. If standard output is closed, the worker process ends.
pub fn send<M: Message>(message: &M) {
    let text = serde_json::to_vec(message).expect("no map has keys that are no text");
    let framed = [&[MARK][..], &text, b"\n"].concat();
    let mut out = std::io::stdout().lock();
    if out.write_all(&framed).and_then(|()| out.flush()).is_err() {
        end();
    }
}

/// Splits a line of standard output into the text before a message and the message.
pub(super) fn read<M: Message>(line: &[u8]) -> (&[u8], Option<serde_json::Result<M>>) {
    match line.iter().position(|&byte| byte == MARK) {
        None => (line, None),
        Some(at) => (&line[..at], Some(serde_json::from_slice(&line[at + 1..]))),
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

/// In the worker process, receives the jobs that the watching process writes to the standard input of the worker process.
pub struct Inbox<J> {
    lines: Receiver<String>,
    jobs: PhantomData<J>,
}

impl<J: DeserializeOwned> Inbox<J> {
    /// Starts a thread that reads the standard input of the worker process. If standard input closes, the watching process has
    /// ended, and the thread ends the worker process. Without this thread, a call that hangs would keep the worker process alive.
    pub fn listen() -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                // A line that is no text is no valid JSON either, and `Inbox::next` returns the error.
                let _ = sender.send(line.unwrap_or_default());
            }
            end();
        });
        Inbox { lines, jobs: PhantomData }
    }

    /// Waits until the watching process has sent a job, and returns the job.
    pub fn next(&self) -> Result<J> {
        let text = self.lines.recv().unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| Failure::usage(format!("standard input holds no job: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Said(u32);

    impl Message for Said {
        fn program(self) -> Result<String, Self> {
            Err(self)
        }
    }

    #[test]
    fn messages_are_told_from_what_a_library_prints() {
        let line = format!("half a line\u{1e}{}\n", serde_json::to_string(&Said(3)).unwrap());
        let (printed, message) = read(line.as_bytes());
        assert_eq!((printed, message.unwrap().unwrap()), (&b"half a line"[..], Said(3)));
        assert!(matches!(read::<Said>(b"only words\n"), (b"only words\n", None)));
        assert!(matches!(read::<Said>(b"\x1e{\"Began\": 1\n"), (b"", Some(Err(_)))));
    }
}
