//! Watches a worker process: receives its messages, finds out how it ends, and ends it if it hangs.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::message::{Message, read};
use super::stderr_tail::{StderrTail, relay};
use crate::failure::{Failure, Result};

/// Interval at which a worker process that sends no message is checked. The time without a message is counted in these intervals,
/// so that a run which is suspended and continued loses at most one interval of its time limit.
const STEP: Duration = Duration::from_millis(100);

/// Longest time in which the worker process must end after its last message.
const GRACE: Duration = Duration::from_secs(5);

/// A message from the worker process, or the end of the worker process.
pub enum Event<M> {
    /// The worker process has sent this message.
    Said(M),
    /// The worker process has ended or was killed, and sends no more messages.
    Ended(Ended),
}

/// How the worker process ended.
pub struct Ended {
    /// Description of how the process ended. The description completes a sentence that begins with the name of the work.
    pub how: String,
    /// Message about the lack of memory, if the system refused memory to the process.
    pub lacks_memory: Option<String>,
    /// Seconds between the last message and the end of the process.
    pub seconds: f64,
}

/// A worker process, which sends messages of the type `M`.
pub struct Worker<M> {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<M>,
    stderr_tail: Arc<Mutex<StderrTail>>,
    limit: Duration,
    /// Time of the last message.
    spoke: Instant,
    /// The program that a device has loaded or compiled last since the last message.
    program: Option<String>,
}

impl<M: Message> Worker<M> {
    /// Starts this program with the same arguments and `--here`. `limit` is the longest permitted time between two messages.
    pub fn start(limit: Duration) -> Result<Self> {
        let failed = |error| Failure::check(format!("cannot start a worker process: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1)).arg("--here");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        let (sender, messages) = channel();
        let stderr_tail = Arc::new(Mutex::new(StderrTail::default()));
        let stdout = child.stdout.take();
        std::thread::spawn(move || stdout.map(|stdout| hear(stdout, &sender)));
        let (stderr, heard) = (child.stderr.take(), Arc::clone(&stderr_tail));
        std::thread::spawn(move || stderr.map(|stderr| relay(stderr, &heard)));
        Ok(Worker { stdin: child.stdin.take(), child, messages, stderr_tail, limit, spoke: Instant::now(), program: None })
    }

    /// Sends the job to the worker process. If the process has ended, this function does nothing, and [`next`](Self::next) reports
    /// the end.
    pub fn give(&mut self, job: &impl Serialize) {
        let text = serde_json::to_string(job).expect("no map has keys that are no text") + "\n";
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush());
        }
    }

    /// Waits for the next message. If no message comes within the time limit, the worker process is killed.
    pub fn next(&mut self) -> Event<M> {
        let (mut waited, mut status) = (Duration::ZERO, None);
        loop {
            match self.messages.recv_timeout(STEP) {
                Ok(message) => match message.program() {
                    // The time limit continues, since no work ends when a program is loaded.
                    Ok(program) => {
                        self.program = Some(program);
                        continue;
                    }
                    Err(message) => {
                        (self.spoke, self.program) = (Instant::now(), None);
                        return Event::Said(message);
                    }
                },
                Err(RecvTimeoutError::Disconnected) => return Event::Ended(self.ended()),
                // The worker process has ended, but another process that it started may hold its standard output open.
                Err(RecvTimeoutError::Timeout) if status.is_some() => return Event::Ended(self.ended()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            status = self.child.try_wait().ok().flatten();
            waited += STEP;
            if status.is_none() && waited >= self.limit {
                self.kill();
                let how = format!("does not end within {} s; --timeout sets another limit", self.limit.as_secs());
                return Event::Ended(self.describe_end(how));
            }
        }
    }

    /// Describes how a process ended that sends no more messages.
    fn ended(&mut self) -> Ended {
        let Some(status) = self.wait() else {
            return self
                .describe_end("does not go on: the process says nothing more that can be understood, and was ended".to_owned());
        };
        let words = StderrTail::of(&self.stderr_tail);
        let said = words.line().map_or(String::new(), |line| format!(", which said last: {line}"));
        Ended { lacks_memory: words.lacks_memory(status), ..self.describe_end(format!("ends the process ({status}){said}")) }
    }

    fn describe_end(&self, mut how: String) -> Ended {
        if let Some(program) = &self.program {
            how += &format!("; the program that was loaded or compiled last is {program}");
        }
        Ended { how, lacks_memory: None, seconds: self.spoke.elapsed().as_secs_f64() }
    }

    /// Waits for the exit status of a process that sends no more messages. `None` if the process does not end within [`GRACE`].
    fn wait(&mut self) -> Option<ExitStatus> {
        let mut waited = Duration::ZERO;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                _ if waited >= GRACE => break,
                _ => std::thread::sleep(STEP / 10),
            }
            waited += STEP / 10;
        }
        self.kill();
        None
    }

    /// Waits until a process that has completed its job ends by itself.
    pub fn finish(mut self) {
        self.wait();
    }
}

impl<M> Worker<M> {
    fn kill(&mut self) {
        // `kill` fails if the process has already ended. A process that waits inside the operating system cannot be killed, so that
        // this loop gives up after `GRACE`.
        let _ = self.child.kill();
        let end = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(STEP / 10);
        }
    }
}

impl<M> Drop for Worker<M> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Forwards messages to `sender` until a message cannot be parsed. Text that the worker process prints between its messages is
/// copied to the standard error of this process, since the standard output of this process may receive results.
fn hear<M: Message>(stdout: impl Read, sender: &Sender<M>) {
    let (mut lines, mut line) = (BufReader::new(stdout), Vec::new());
    while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let (printed, message) = read(&line);
        let _ = std::io::stderr().write_all(printed);
        match message {
            Some(Ok(message)) => {
                let _ = sender.send(message);
            }
            Some(Err(_)) => return,
            None => {}
        }
        line.clear();
    }
}
