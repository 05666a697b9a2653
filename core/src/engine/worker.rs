//! Threads of streams: a thread that runs the work of streams on a device without a queue, and a thread that wakes tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

use crate::background::panicked;
use crate::device::Device;
use crate::engine::residents::SharedBuffer;
use crate::engine::stream::{Bound, Group, StreamState, resolve};
use crate::error::{Error, ErrorKind, Outputs, Result};
use crate::instruction::Instruction;
use crate::stream_queue::HostElements;
use crate::sync::{Condvar, Mutex, lock, spawn, wait};
use crate::token::{Pending, Token};

/// Work of a stream, with the memory that it accesses.
#[derive(Debug)]
pub(super) enum Job {
    Run(Instruction<usize>, Arc<[Bound]>),
    Write(HostElements, SharedBuffer),
    Read(SharedBuffer, HostElements),
}

#[derive(Debug)]
enum Message {
    Job(Arc<StreamState>, Group, Job),
    End(Arc<End>),
}

/// A thread that runs the work of streams in order.
#[derive(Debug)]
pub(super) struct Worker {
    messages: Sender<Message>,
    /// Whether the thread drops its jobs, because nothing can observe their results.
    stops: Arc<AtomicBool>,
}

impl Worker {
    pub fn new(device: Arc<dyn Device>) -> Result<Self> {
        let (messages, received) = channel();
        let stops = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stops);
        let started = spawn(move || run(&*device, &received, &told));
        started.map_err(|source| Error::new(ErrorKind::Unsupported, "stream", "the system starts no thread").caused_by(source))?;
        Ok(Worker { messages, stops })
    }

    pub fn send(&self, stream: &Arc<StreamState>, call: Group, job: Job) -> Result<()> {
        let sent = self.messages.send(Message::Job(Arc::clone(stream), call, job));
        sent.map_err(|_| Error::new(ErrorKind::DeviceFailed, "stream", "the thread of the streams has ended"))
    }

    /// Returns a token of all jobs sent so far.
    pub fn end(&self) -> Token {
        let end = Arc::new(End::default());
        match self.messages.send(Message::End(Arc::clone(&end))) {
            Ok(()) => Token::new(WaitForEnd(end)),
            Err(_) => Token::DONE,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Release);
    }
}

fn run(device: &dyn Device, messages: &Receiver<Message>, stops: &AtomicBool) {
    for message in messages {
        match message {
            Message::Job(..) if stops.load(Ordering::Acquire) => {}
            // the matrices that a failed call should have written are undefined, so the following calls of the stream do not run
            Message::Job(stream, call, job) if stream.failure().is_ok() => {
                let done =
                    catch_unwind(AssertUnwindSafe(|| job.run(device))).unwrap_or_else(|panic| Err(panicked("stream", &*panic)));
                if let Err(error) = done {
                    let name = &device.facts().name;
                    stream.fail(call, error.with_outputs(Outputs::PartlyWritten).with("device", name));
                }
            }
            Message::Job(..) => {}
            // a waker of the application that panics ends no other stream
            Message::End(end) => drop(catch_unwind(AssertUnwindSafe(|| end.set()))),
        }
    }
}

impl Job {
    fn run(self, device: &dyn Device) -> Result<()> {
        // SAFETY: the caller of `DeviceRuntime::enqueue` guarantees that nothing else accesses the matrices and the host memory before
        // the end of the job, except jobs of this thread.
        unsafe {
            match self {
                Job::Run(instruction, bound) => device.launch(&resolve(&instruction, &bound)),
                Job::Write(from, to) => device.write(from.column(), &to),
                Job::Read(from, to) => device.read(&from, to.column()),
            }
        }
    }
}

/// Whether the thread has come to the end of some jobs, and the tasks to wake then.
#[derive(Debug, Default)]
struct End {
    state: Mutex<(bool, Vec<Waker>)>,
    reached: Condvar,
}

impl End {
    fn set(&self) {
        let wakers = {
            let mut state = lock(&self.state);
            state.0 = true;
            std::mem::take(&mut state.1)
        };
        self.reached.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[derive(Debug)]
struct WaitForEnd(Arc<End>);

impl Pending for WaitForEnd {
    fn poll(&self) -> Poll<Result<()>> {
        if lock(&self.0.state).0 { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn wait(&self) -> Result<()> {
        let mut state = lock(&self.0.state);
        while !state.0 {
            state = wait(&self.0.reached, state);
        }
        Ok(())
    }

    fn wake_on_end(&self, waker: &Waker) -> bool {
        let mut state = lock(&self.0.state);
        if !state.0 {
            if !state.1.iter().any(|other| other.will_wake(waker)) {
                state.1.push(waker.clone());
            }
            return true;
        }
        // the lock is released first, because an executor may poll the task in `wake_by_ref`
        drop(state);
        waker.wake_by_ref();
        true
    }
}

/// A thread that waits for tokens of a device in order and wakes tasks. The thread starts at the first use, and ends when the device is
/// dropped.
#[derive(Debug, Default)]
pub(super) struct Waiter(OnceLock<Option<Sender<Wait>>>);

/// A token, and the task to wake when its work has ended.
type Wait = (Arc<Token>, Waker);

impl Waiter {
    /// Wakes a task when the work of a token has ended, and returns true. If there is no thread that waits, wakes the task at once, so
    /// that it polls again, and returns false.
    pub fn wake_after(&self, token: Arc<Token>, waker: Waker) -> bool {
        let begin = || {
            let (sender, receiver) = channel::<Wait>();
            let wake_each = move || {
                for (token, waker) in receiver {
                    // the result stays with the token
                    let _ = token.wait();
                    waker.wake();
                }
            };
            spawn(wake_each).ok().map(|_| sender)
        };
        let unsent = match self.0.get_or_init(begin) {
            Some(sender) => sender.send((token, waker)).err().map(|error| error.0),
            None => Some((token, waker)),
        };
        match unsent {
            None => true,
            Some((_, waker)) => {
                waker.wake();
                false
            }
        }
    }
}
