//! Streams: calls on one device that return before their work is complete.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};

use crate::device::{Memory, Operand};
use crate::engine::DeviceRuntime;
use crate::engine::residents::SharedBuffer;
use crate::engine::worker::{Job, Worker};
use crate::error::{Error, Result};
use crate::facts::check_wait;
use crate::instruction::Instruction;
use crate::matrix::{Home, RawMat};
use crate::scalar::DType;
use crate::stream_queue::{HostElements, StreamQueue, StreamWork};
use crate::sync::{Mutex, lock};
use crate::token::Token;

/// Number of calls that share one token. A token takes the time of a short kernel.
const CALLS_PER_TOKEN: u64 = 256;

/// Maximum number of bytes of transfers that share one token.
const BYTES_PER_TOKEN: usize = 64 << 20;

/// Maximum number of calls of a stream that may be incomplete, and maximum number of bytes of their transfers. A further call waits for
/// the oldest calls, so that the memory of a stream is bounded. A browser's thread cannot wait, and the browser bounds the memory itself.
const MAX_PENDING: (u64, usize) = if cfg!(target_family = "wasm") { (u64::MAX, usize::MAX) } else { (2048, 1 << 30) };

/// A part of a call of a stream. All matrices are resident matrices of the stream's device, given by key.
#[derive(Clone, Debug)]
pub enum StreamCall<'a> {
    /// Runs instructions in order. Each operand is an index into `memory`.
    Run {
        /// The instructions to run.
        instructions: &'a [Instruction<usize>],
        /// The matrices of the instructions.
        memory: &'a [RawMat],
    },
    /// Copies host memory into a matrix.
    Write {
        /// The host memory to copy from.
        from: HostElements,
        /// The matrix to copy to.
        to: u64,
    },
    /// Copies a matrix into host memory.
    Read {
        /// The matrix to copy from.
        from: u64,
        /// The host memory to copy to.
        to: HostElements,
    },
}

impl StreamCall<'_> {
    /// Number of bytes of host memory that the part transfers.
    fn bytes(&self) -> usize {
        match self {
            StreamCall::Run { .. } => 0,
            StreamCall::Write { from: memory, .. } | StreamCall::Read { to: memory, .. } => memory.bytes(),
        }
    }
}

/// The calls of one stream that may be incomplete, and the errors of its calls.
#[derive(Debug, Default)]
pub struct StreamState {
    calls: Mutex<Calls>,
    failures: Mutex<Failures>,
}

/// The number of a call, and the error of this call or of a call after it.
type Failure = (u64, Error);

#[derive(Debug, Default)]
struct Failures {
    /// The first error, which the stream has not yet reported.
    current: Option<Failure>,
    /// The error that the stream has reported last.
    reported: Option<Failure>,
    /// Number of reported errors.
    count: u64,
}

impl Failures {
    fn outcome(&self, end: &StreamEnd) -> Result<()> {
        let since = self.count - end.reported;
        let failed = self.current.as_ref().or(self.reported.as_ref().filter(|_| since > 0));
        match failed {
            // of several errors since, only the last one is known
            Some((first, error)) if *first <= end.last || since > 1 => Err(error.clone()),
            Some(_) | None => Ok(()),
        }
    }
}

#[derive(Debug, Default)]
struct Calls {
    /// Number of the last call; calls count from 1.
    last: u64,
    /// The last calls, which have no token yet.
    open: Option<Group>,
    /// Earlier calls with their tokens, in order.
    ended: VecDeque<(Group, Arc<Token>)>,
}

/// Consecutive calls of a stream that share a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    first: u64,
    last: u64,
    /// Name of the routine, if all calls are calls of one routine.
    name: Option<&'static str>,
    /// Number of bytes that the calls transfer.
    bytes: usize,
}

impl Group {
    fn add(before: Option<Group>, call: Group) -> Self {
        match before {
            Some(group) => Group {
                last: call.last,
                name: group.name.filter(|name| call.name == Some(*name)),
                bytes: group.bytes + call.bytes,
                ..group
            },
            None => call,
        }
    }

    fn is_full(&self) -> bool {
        self.last - self.first + 1 >= CALLS_PER_TOKEN || self.bytes >= BYTES_PER_TOKEN
    }

    /// Adds the numbers of the calls to the error of one of them.
    pub fn add_to(self, error: Error) -> Error {
        let Group { first, last, name, .. } = self;
        let numbers = if first == last { format!("{first}") } else { format!("one of {first} to {last}") };
        let error = error.in_call(name.unwrap_or("stream"));
        error.with("call of the stream", format!("{numbers}, {}", name.unwrap_or("several routines")))
    }
}

/// The end of all calls that a stream has enqueued so far, for which a task waits.
#[derive(Debug)]
pub struct StreamEnd {
    last: u64,
    /// Number of errors that the stream had reported before.
    reported: u64,
    relay: Arc<Relay>,
    /// Whether a thread waits for the end.
    has_thread: bool,
}

/// A waker that wakes the task that has polled last, since an executor may move a task from thread to thread.
#[derive(Debug, Default)]
struct Relay(Mutex<Option<Waker>>);

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        // the lock is released first, because an executor may poll the task in `wake`
        let waker = lock(&self.0).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl StreamState {
    /// The error that the stream has not yet reported.
    ///
    /// # Errors
    /// Returns that error.
    pub fn failure(&self) -> Result<()> {
        lock(&self.failures).current.as_ref().map_or(Ok(()), |(_, error)| Err(error.clone()))
    }

    /// Whether the calls up to `end`, which have ended, were successful. An error stays the result of these calls after it was reported.
    ///
    /// # Errors
    /// Returns the error of a call up to `end`.
    pub fn outcome(&self, end: &StreamEnd) -> Result<()> {
        lock(&self.failures).outcome(end)
    }

    /// Returns what [`StreamState::outcome`] returns. An error counts as reported, so that the stream accepts calls again.
    ///
    /// # Errors
    /// Returns the error of a call up to `end`.
    pub fn report(&self, end: &StreamEnd) -> Result<()> {
        let mut failures = lock(&self.failures);
        let outcome = failures.outcome(end);
        if outcome.is_err()
            && let Some(failure) = failures.current.take()
        {
            failures.reported = Some(failure);
            failures.count += 1;
        }
        outcome
    }

    /// Records the error of a call or of the calls after it, unless the stream has an error already.
    pub(super) fn fail(&self, call: Group, error: Error) {
        lock(&self.failures).current.get_or_insert((call.first, call.add_to(error)));
    }

    /// Removes the calls that have completed. Returns the token of the last call up to number `last` that may be incomplete. The calls are
    /// not locked while a token is polled, because a poll may run callbacks.
    fn pending(&self, runtime: &DeviceRuntime, last: u64) -> Option<Arc<Token>> {
        let front = || lock(&self.calls).ended.front().map(|(group, token)| (*group, Arc::clone(token)));
        while let Some((group, token)) = front()
            && let Poll::Ready(result) = token.poll()
        {
            if let Err(error) = result {
                self.fail(group, error.with("device", &runtime.facts().name));
            }
            let mut calls = lock(&self.calls);
            // another thread may have removed the calls meanwhile
            if calls.ended.front().is_some_and(|(_, front)| Arc::ptr_eq(front, &token)) {
                calls.ended.pop_front();
            }
        }
        // the thread of a device without a queue records the errors of its jobs itself
        let _ = runtime.note_loss(self.failure());
        let calls = lock(&self.calls);
        let covering = calls.ended.iter().take_while(|(group, _)| group.first <= last).last();
        covering.map(|(_, token)| Arc::clone(token))
    }
}

impl Calls {
    /// Gives the last calls a token, which makes the device begin them.
    fn end(&mut self, runtime: &DeviceRuntime, stream: &StreamState) {
        let Some(group) = self.open.take() else { return };
        match runtime.end_of_streams() {
            Ok(token) => self.ended.push_back((group, Arc::new(token))),
            Err(error) => stream.fail(group, error),
        }
    }
}

/// What runs the work of the streams of a device.
enum Sink<'a> {
    Queue(&'a dyn StreamQueue),
    Worker(&'a Worker),
}

impl DeviceRuntime {
    fn sink(&self) -> Result<Sink<'_>> {
        match self.device.stream_queue() {
            Some(queue) => Ok(Sink::Queue(queue)),
            None => self.worker().map(Sink::Worker),
        }
    }

    /// Returns the thread that runs the work of streams, which starts at the first call of this method.
    fn worker(&self) -> Result<&Worker> {
        if let Some(worker) = self.worker.get() {
            return Ok(worker);
        }
        let worker = Worker::new(Arc::clone(&self.device))?;
        Ok(self.worker.get_or_init(|| worker))
    }

    fn end_of_streams(&self) -> Result<Token> {
        match self.sink()? {
            Sink::Queue(queue) => self.note_loss(queue.end()),
            Sink::Worker(worker) => Ok(worker.end()),
        }
    }

    /// Enqueues a call of the routine `name` that consists of `parts`, and returns before the call is complete. If too many calls of the
    /// stream are incomplete, the method first waits for the oldest of them.
    ///
    /// # Safety
    /// The matrices must meet the requirements of the instructions, and be at least as large as the host memory of transfers. Until
    /// [`DeviceRuntime::poll_stream`] or [`DeviceRuntime::wait_for_stream`] reports the end of the call, nothing else may access the host
    /// memory, and only calls of streams of this device and other methods of this runtime may access the matrices.
    ///
    /// # Errors
    /// An earlier call of the stream failed, or the device does not accept the call.
    pub unsafe fn enqueue(&self, stream: &Arc<StreamState>, name: &'static str, parts: &[StreamCall<'_>]) -> Result<()> {
        self.limit_calls(stream);
        stream.failure()?;
        let mut calls = lock(&stream.calls);
        let number = calls.last + 1;
        let bytes = parts.iter().map(StreamCall::bytes).sum();
        let group = Group { first: number, last: number, name: Some(name), bytes };
        // SAFETY: the caller fulfils the safety contract of `enqueue`, which includes the contract of `enqueue_part`.
        let accepted = parts.iter().try_for_each(|part| unsafe { self.enqueue_part(stream, group, part) });
        // the call is counted only now, because a token that was taken before does not cover it
        self.enqueued.fetch_add(1, Ordering::Release);
        calls.last = number;
        calls.open = Some(Group::add(calls.open, group));
        self.note_loss(accepted).map_err(|error| {
            let error = error.in_call(name).with("device", &self.facts().name);
            if error.kind().is_out_of_memory() {
                error.with("advice", "`Machine::trim` frees memory kept for later calls")
            } else {
                error
            }
        })
    }

    unsafe fn enqueue_part(&self, stream: &Arc<StreamState>, call: Group, part: &StreamCall<'_>) -> Result<()> {
        let sink = self.sink()?;
        match part {
            StreamCall::Run { instructions, memory } => {
                let bound = memory.iter().map(|raw| self.bound(raw)).collect::<Result<Vec<_>>>()?;
                match sink {
                    Sink::Queue(queue) => instructions.iter().try_for_each(|instruction| {
                        // SAFETY: the caller guarantees that no access to the matrices conflicts.
                        unsafe { queue.enqueue(StreamWork::Run(&resolve(instruction, &bound))) }
                    }),
                    Sink::Worker(worker) => {
                        let bound: Arc<[Bound]> = bound.into();
                        let job = |instruction: &Instruction<usize>| Job::Run(*instruction, Arc::clone(&bound));
                        instructions.iter().try_for_each(|instruction| worker.send(stream, call, job(instruction)))
                    }
                }
            }
            StreamCall::Write { from, to } => {
                let (from, to) = (from.clone(), self.resident(*to)?);
                match sink {
                    // SAFETY: the caller guarantees that no access to the matrix and the host memory conflicts.
                    Sink::Queue(queue) => unsafe { queue.enqueue(StreamWork::Write { from, to: &to }) },
                    Sink::Worker(worker) => worker.send(stream, call, Job::Write(from, to)),
                }
            }
            StreamCall::Read { from, to } => {
                let (from, to) = (self.resident(*from)?, to.clone());
                match sink {
                    // SAFETY: the caller guarantees that no access to the matrix and the host memory conflicts.
                    Sink::Queue(queue) => unsafe { queue.enqueue(StreamWork::Read { from: &from, to }) },
                    Sink::Worker(worker) => worker.send(stream, call, Job::Read(from, to)),
                }
            }
        }
    }

    fn bound(&self, raw: &RawMat) -> Result<Bound> {
        let Home::Device(resident) = raw.home else { unreachable!("streams take resident matrices") };
        let RawMat { offset, rows, cols, ld, dtype, .. } = *raw;
        Ok(Bound { buffer: self.resident(resident.key)?, offset, rows, cols, ld, dtype })
    }

    /// Gives the last calls a token if they are many, and waits for the oldest calls if too many are incomplete.
    fn limit_calls(&self, stream: &StreamState) {
        loop {
            let mut calls = lock(&stream.calls);
            if calls.open.is_some_and(|group| group.is_full()) {
                calls.end(self, stream);
            }
            let bytes: usize = calls.ended.iter().map(|(group, _)| group.bytes).sum();
            let Some((oldest, token)) = calls.ended.front() else { return };
            if calls.last - oldest.first < MAX_PENDING.0 && bytes < MAX_PENDING.1 {
                return;
            }
            let token = Arc::clone(token);
            drop(calls);
            // `pending` takes the result of the token, so that it is not lost here
            let _ = token.wait();
            let _ = stream.pending(self, 0);
        }
    }

    /// Makes the device begin all calls that the stream has enqueued so far, and returns their end.
    pub fn end_of_stream(&self, stream: &StreamState) -> StreamEnd {
        let reported = lock(&stream.failures).count;
        let mut calls = lock(&stream.calls);
        calls.end(self, stream);
        StreamEnd { last: calls.last, reported, relay: Arc::default(), has_thread: false }
    }

    /// Returns `Poll::Ready` if the calls up to `end` have completed or failed. Otherwise, the task of `context` is woken when they have.
    pub fn poll_stream(&self, stream: &StreamState, end: &mut StreamEnd, context: &Context<'_>) -> Poll<()> {
        let Some(token) = stream.pending(self, end.last) else { return Poll::Ready(()) };
        *lock(&end.relay.0) = Some(context.waker().clone());
        let waker = Waker::from(Arc::clone(&end.relay));
        if !token.wake_on_end(&waker) && !end.has_thread {
            end.has_thread = self.waiter.wake_after(token, waker);
        }
        // the calls may have ended before the waker was registered
        stream.pending(self, end.last).map_or(Poll::Ready(()), |_| Poll::Pending)
    }

    /// Waits until the calls up to `end` have completed or failed.
    ///
    /// # Errors
    /// The thread cannot wait, such as the thread of a browser's page.
    pub fn wait_for_stream(&self, stream: &StreamState, end: &StreamEnd) -> Result<()> {
        while let Some(token) = stream.pending(self, end.last) {
            let waited = token.wait();
            // the error of a call is recorded in the stream; a token that still is not ready has refused the wait
            if waited.is_err() && token.poll().is_pending() {
                return waited;
            }
        }
        Ok(())
    }

    /// Whether calls of streams may be incomplete.
    pub(super) fn has_stream_work(&self) -> bool {
        self.settled.load(Ordering::Acquire) < self.enqueued.load(Ordering::Acquire)
    }

    /// Waits for the calls of all streams of the device. Methods that access matrices of the device elsewhere than in kernel queue 0
    /// begin with this wait.
    ///
    /// # Errors
    /// A call failed, or the thread cannot wait, such as the thread of a browser's page. A device without a queue does not tell the errors
    /// of calls here, which their streams return.
    pub(super) fn settle_streams(&self) -> Result<()> {
        let enqueued = self.enqueued.load(Ordering::Acquire);
        if self.settled.load(Ordering::Acquire) >= enqueued {
            return Ok(());
        }
        check_wait("wait", self.facts().host_may_wait)?;
        let waited = self.end_of_streams()?.wait();
        self.note_loss(waited).map_err(|error| error.with("work", "calls of streams").with("device", &self.facts().name))?;
        self.settled.fetch_max(enqueued, Ordering::AcqRel);
        Ok(())
    }
}

/// A resident matrix with its buffer.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    buffer: SharedBuffer,
    offset: usize,
    rows: usize,
    cols: usize,
    ld: usize,
    dtype: DType,
}

impl Bound {
    fn operand(&self) -> Operand<'_> {
        let Bound { offset, rows, cols, ld, dtype, .. } = *self;
        Operand { memory: Memory::Buffer(&self.buffer), offset, rows, cols, ld, dtype }
    }
}

/// Describes the operands of an instruction on resident matrices.
pub(super) fn resolve<'a>(instruction: &Instruction<usize>, bound: &'a [Bound]) -> Instruction<Operand<'a>> {
    instruction.map(|matrix| bound[matrix].operand())
}
