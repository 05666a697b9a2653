//! Threads of streams: a thread that runs the work of streams on a device without a queue, and threads that wake tasks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Poll, Waker};

use crate::background::panicked;
use crate::device::{BufferRect, Device};
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
            Message::End(end) => end.set(),
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
                Job::Write(from, to) => device.write(from.column(), BufferRect::packed(&to, from.column().rows)),
                Job::Read(from, to) => device.read(BufferRect::packed(&from, to.column().rows), to.column()),
            }
        }
    }
}

/// Whether the thread has come to the end of some jobs.
#[derive(Debug, Default)]
struct End {
    is_reached: Mutex<bool>,
    reached: Condvar,
}

impl End {
    fn set(&self) {
        *lock(&self.is_reached) = true;
        self.reached.notify_all();
    }
}

/// The end of jobs as a token. The thread itself wakes no task, because a waker may wait for later jobs of the thread.
#[derive(Debug)]
struct WaitForEnd(Arc<End>);

impl Pending for WaitForEnd {
    fn poll(&self) -> Poll<Result<()>> {
        if *lock(&self.0.is_reached) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn wait(&self) -> Result<()> {
        let mut is_reached = lock(&self.0.is_reached);
        while !*is_reached {
            is_reached = wait(&self.0.reached, is_reached);
        }
        Ok(())
    }
}

/// Maximum number of threads of a [`Waiter`] that run no waker.
const MAX_FREE: usize = 2;

/// Threads that wait for tokens of a device in order and wake tasks. The first thread starts at the first use. While all threads run wakers,
/// which may wait for the device themselves, a further thread waits for the next token. The threads end when the device is dropped, and
/// the drop waits until no thread waits for a token.
#[derive(Debug, Default)]
pub(super) struct Waiter(Arc<Waits>);

#[derive(Debug, Default)]
struct Waits {
    state: Mutex<WaitState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WaitState {
    pending: VecDeque<Wait>,
    /// Number of threads that run no waker.
    free: usize,
    /// Whether the device is dropped.
    stops: bool,
}

/// A token, and the task to wake when its work has ended.
type Wait = (Arc<Token>, Waker);

impl Waiter {
    /// Wakes a task when the work of a token has ended, and returns true. If there is no thread that waits, wakes the task at once, so
    /// that it polls again, and returns false.
    pub fn wake_after(&self, token: Arc<Token>, waker: Waker) -> bool {
        let mut state = lock(&self.0.state);
        if state.free == 0 && !self.0.start_thread(&mut state) {
            drop(state);
            waker.wake();
            return false;
        }
        state.pending.push_back((token, waker));
        self.0.changed.notify_one();
        true
    }
}

impl Drop for Waiter {
    /// Waits for the threads that run no waker. A thread that outlives the machine would use the driver while the process ends, and
    /// some drivers crash then. A thread that runs a waker is not waited for, because the waker may be what drops the device.
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.stops = true;
        self.0.changed.notify_all();
        while state.free > 0 {
            state = wait(&self.0.changed, state);
        }
    }
}

impl Waits {
    /// Starts a further thread. Returns false if the system starts no thread.
    fn start_thread(self: &Arc<Self>, state: &mut WaitState) -> bool {
        let waits = Arc::clone(self);
        let is_started = spawn(move || waits.run()).is_ok();
        state.free += usize::from(is_started);
        is_started
    }

    fn run(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        loop {
            if let Some((token, waker)) = state.pending.pop_front() {
                drop(state);
                // the result stays with the token
                let _ = catch_unwind(AssertUnwindSafe(|| token.wait()));
                // no lock is held here, since this may be the last owner of the work
                drop(token);
                self.wake(waker);
                state = lock(&self.state);
            } else if state.stops || state.free > MAX_FREE {
                state.free -= 1;
                self.changed.notify_all();
                return;
            } else {
                state = wait(&self.changed, state);
            }
        }
    }

    /// Runs a waker of the application. Another thread waits for the next token meanwhile.
    fn wake(self: &Arc<Self>, waker: Waker) {
        let mut state = lock(&self.state);
        state.free -= 1;
        self.changed.notify_all();
        if state.free == 0 && !state.pending.is_empty() {
            // without a further thread, the next tokens wait for the end of the waker
            self.start_thread(&mut state);
        }
        drop(state);
        // `free` does not count this thread, so that a waker of the application that panics ends this thread only
        waker.wake();
        lock(&self.state).free += 1;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Work that ends while a thread waits for it.
    #[derive(Debug)]
    struct Slow(Arc<AtomicBool>);

    impl Pending for Slow {
        fn poll(&self) -> Poll<Result<()>> {
            if self.0.load(Ordering::Acquire) { Poll::Ready(Ok(())) } else { Poll::Pending }
        }

        fn wait(&self) -> Result<()> {
            std::thread::sleep(Duration::from_millis(50));
            self.0.store(true, Ordering::Release);
            Ok(())
        }
    }

    #[test]
    fn a_dropped_waiter_waits_for_the_work() {
        let has_ended = Arc::new(AtomicBool::new(false));
        let waiter = Waiter::default();
        waiter.wake_after(Arc::new(Token::new(Slow(Arc::clone(&has_ended)))), Waker::noop().clone());
        drop(waiter);
        assert!(has_ended.load(Ordering::Acquire));
    }
}
