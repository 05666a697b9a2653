//! Keeps the last line that a process wrote to standard error before it ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Number of bytes that every computer is assumed to have. If the system refuses a request for more bytes, the refusal does not
/// show a lack of memory.
const MODEST: u64 = 1 << 30;

/// Maximum number of characters of the last line that are kept.
const LETTERS: usize = 200;

/// The end of the text that a process has written to its standard error until now.
#[derive(Clone, Debug, Default)]
pub struct StderrTail {
    /// The last line of the process's standard error that is not empty.
    line: String,
    /// Number of bytes of an allocation that failed in a Rust program, if there was one.
    refused: Option<u64>,
    /// Whether the process has closed its standard error.
    complete: bool,
}

impl StderrTail {
    /// The end of the standard error of a process that has ended. The function waits at most half a second until standard error is
    /// closed, since another process may hold it open.
    pub fn of(shared: &Arc<Mutex<Self>>) -> Self {
        for _ in 0..50 {
            if lock(shared, |words| words.complete) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        lock(shared, |words| words.clone())
    }

    /// The last line of standard error. `None` if the process wrote no line.
    pub fn line(&self) -> Option<&str> {
        Some(self.line.as_str()).filter(|line| !line.is_empty())
    }

    /// The message about the lack of memory, if the process ended because the system refused it memory.
    pub fn lacks_memory(&self, status: ExitStatus) -> Option<String> {
        let refused = self.refused.filter(|&bytes| bytes <= MODEST && !status.success())?;
        Some(format!("too little memory: the system refused the process {} KiB", refused.div_ceil(1 << 10)))
    }

    fn record_line(&mut self, line: &str) {
        let line = line.trim();
        // A Rust program prints this line before it ends because of a failed allocation.
        let refused = line.strip_prefix("memory allocation of ").and_then(|rest| rest.strip_suffix(" bytes failed"));
        self.refused = self.refused.or(refused.and_then(|bytes| bytes.parse().ok()));
        if !line.is_empty() {
            self.line = line.chars().take(LETTERS).collect();
        }
    }
}

/// Copies the standard error of a process to that of this process, and stores its last line in `heard`.
pub fn relay(stderr: impl Read, heard: &Arc<Mutex<StderrTail>>) {
    let (mut lines, mut line) = (BufReader::new(stderr), Vec::new());
    while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let _ = std::io::stderr().write_all(&line);
        lock(heard, |words| words.record_line(&String::from_utf8_lossy(&line)));
        line.clear();
    }
    lock(heard, |words| words.complete = true);
}

fn lock<R>(shared: &Mutex<StderrTail>, act: impl FnOnce(&mut StderrTail) -> R) -> R {
    act(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::StderrTail;

    fn heard(lines: &[&str]) -> StderrTail {
        let mut words = StderrTail::default();
        lines.iter().for_each(|line| words.record_line(line));
        words
    }

    #[test]
    fn the_last_line_is_kept() {
        assert_eq!(heard(&["STOP 3\n", "\n"]).line(), Some("STOP 3"));
        assert_eq!(heard(&[]).line(), None);
    }

    #[cfg(unix)]
    #[test]
    fn too_little_memory_is_told_where_a_modest_request_was_refused() {
        let [aborted, success] = [6, 0].map(std::os::unix::process::ExitStatusExt::from_raw);
        let words = heard(&["memory allocation of 4330560 bytes failed\n", "stack backtrace:\n"]);
        assert!(words.lacks_memory(aborted).unwrap().contains("4230 KiB"));
        assert!(words.lacks_memory(success).is_none());
        assert!(heard(&["memory allocation of 1152921504606846976 bytes failed"]).lacks_memory(aborted).is_none());
        assert!(heard(&["free(): invalid pointer"]).lacks_memory(aborted).is_none());
    }
}
