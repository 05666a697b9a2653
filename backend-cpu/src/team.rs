//! Threads that work on one call together.
//!
//! A [`Team`] keeps its threads from call to call. [`Team::run`] calls a body once for each member, the first on the caller's
//! own thread. Members share work by [`Pieces`], which a slow member takes fewer of, and meet at barriers.
//!
//! A thread without work looks for some without sleeping, for a while ([`SPIN`]), since calls often come in a row and a
//! sleeping thread takes many microseconds to wake. Who begins a job wakes some members and each of those some more, so that a
//! large team begins almost as soon as a small one, and a call for few members wakes few threads.

use std::any::Any;
use std::hint::spin_loop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// How long a thread without work looks for some before it sleeps.
const SPIN: Duration = Duration::from_micros(200);

/// Members that each member wakes when it begins.
const WAKES: usize = 4;

/// Least elements to move for each member: what repays its wake-up.
const WORK_OF_MEMBER: f64 = 20e3;

/// Strips for each member, so that a slow one takes fewer.
const STRIPS: usize = 4;

/// Lines of a strip are a multiple of this: rows of a strip fill whole cache lines.
const LINES: usize = 16;

/// How long a member that waits for others looks for them before it sleeps: where there are fewer cores than members, one
/// of the others may need this core.
const SPIN_AT_BARRIER: Duration = Duration::from_micros(50);

/// Threads that work on one call together.
#[derive(Debug)]
pub struct Team {
    /// Most members of a job.
    size: usize,
    /// Whether all take part in a job of any size.
    is_eager: bool,
    /// Locked for the length of a job: one job is under way at a time.
    workers: Mutex<Workers>,
}

/// The threads of all members but the caller.
#[derive(Debug, Default)]
struct Workers {
    /// The process that they belong to: a fork has no threads but one.
    process: u32,
    list: Vec<Worker>,
}

/// A thread of a team.
#[derive(Debug)]
struct Worker {
    thread: Thread,
    seat: Arc<Seat>,
}

/// Where a thread finds its work: none (null), a job, or its dismissal.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Seat(AtomicPtr<Job<'static>>);

/// Which members take part in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joining {
    /// All.
    All,
    /// Those who begin before the caller has ended.
    InTime,
}

/// A body with what its members share.
struct Job<'a> {
    body: &'a (dyn Fn(&Member<'_>) + Sync),
    /// The threads of all members but the caller.
    workers: &'a [Worker],
    /// The next worker to wake.
    next: AtomicUsize,
    /// Workers that are not done.
    left: AtomicUsize,
    caller: Thread,
    barrier: Barrier,
    /// Where the first members meet while others do something else.
    side: Barrier,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A place where members wait for one another, again and again.
#[derive(Debug, Default)]
struct Barrier {
    arrived: Apart<AtomicUsize>,
    /// How often all have met.
    meetings: Apart<AtomicUsize>,
    /// Members that sleep, or are about to.
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
    /// Whether a member panicked, so that it never arrives.
    broken: AtomicBool,
}

/// A value on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// A member of a team at work on a job.
pub(crate) struct Member<'a> {
    job: &'a Job<'a>,
    /// Number of the member, 0 for the caller.
    pub index: usize,
}

/// Pieces of work that members take one after the other.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Apart<AtomicUsize>);

impl Pieces {
    /// The number of the next piece, below `count`; `None` when all are taken.
    pub fn take(&self, count: usize) -> Option<usize> {
        // a look first: members that find nothing do not write to the shared line
        if self.0.0.load(Ordering::Relaxed) >= count {
            return None;
        }
        let piece = self.0.0.fetch_add(1, Ordering::Relaxed);
        (piece < count).then_some(piece)
    }

    /// How many pieces were taken, or more.
    pub fn taken(&self) -> usize {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Puts all pieces back. Only while nobody takes any.
    pub fn refill(&self) {
        self.0.0.store(0, Ordering::Relaxed);
    }
}

/// Cores that the calling thread may use, which a control group may change at any time. The system is asked ten times a second
/// at most, by any thread: that takes it tens of microseconds.
fn cores() -> usize {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    /// The tenth of a second in which the system was asked last, counted from 1, and its answer.
    static ANSWER: AtomicU64 = AtomicU64::new(0);
    let now = BEGIN.get_or_init(Instant::now).elapsed().as_millis() as u64 / 100 + 1;
    let answer = ANSWER.load(Ordering::Relaxed);
    if answer >> 32 == now & 0xffff_ffff {
        return (answer & 0xffff_ffff) as usize;
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    ANSWER.store(now << 32 | cores as u64, Ordering::Relaxed);
    cores
}

/// Looks whether a condition holds, without sleeping, for so long; whether it came to hold.
fn spin(time: Duration, holds: impl Fn() -> bool) -> bool {
    let mut begin = None;
    for look in 0_u32.. {
        if holds() {
            return true;
        }
        spin_loop();
        // a clock is slow
        if look % 64 == 63 && begin.get_or_insert_with(Instant::now).elapsed() > time {
            return false;
        }
    }
    unreachable!("the loop has no end")
}

impl Barrier {
    /// Waits until `members` of them are here. The last one calls `last` before any goes on.
    ///
    /// # Panics
    /// If a member panicked, which never arrives.
    fn meet(&self, members: usize, last: impl FnOnce()) {
        let meetings = self.meetings.0.load(Ordering::Relaxed);
        // all that members did before they came is seen by all that go on
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == members {
            self.arrived.0.store(0, Ordering::Relaxed);
            last();
            self.meetings.0.store(meetings + 1, Ordering::SeqCst);
            self.wake_sleepers();
            return;
        }
        let have_met = || self.meetings.0.load(Ordering::SeqCst) != meetings;
        let is_over = || have_met() || self.broken.load(Ordering::SeqCst);
        if !spin(SPIN_AT_BARRIER, is_over) {
            // counted before the last look: whoever ends the wait after that look sees a sleeper
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let guard = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.wake.wait_while(guard, |()| !is_over()));
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
        assert!(have_met(), "another member of the team panicked");
    }

    /// Ends all waits for a member that panicked.
    fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake_sleepers();
    }

    fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // a sleeper that has looked holds the lock until it sleeps
            drop(self.sleep.lock());
            self.wake.notify_all();
        }
    }
}

impl Member<'_> {
    /// Number of members.
    pub fn count(&self) -> usize {
        self.job.workers.len() + 1
    }

    /// Waits for all members of the team. The last one calls `last` before any goes on.
    pub fn meet(&self, last: impl FnOnce()) {
        self.job.barrier.meet(self.count(), last);
    }

    /// The same for the first `count` members only, of which this is one.
    pub fn meet_first(&self, count: usize, last: impl FnOnce()) {
        debug_assert!(self.index < count);
        self.job.side.meet(count, last);
    }

    /// Waits until a condition holds that other members make true.
    ///
    /// # Panics
    /// If a member panicked.
    pub fn wait_until(&self, holds: impl Fn() -> bool) {
        while !spin(SPIN_AT_BARRIER, &holds) {
            assert!(!self.job.barrier.broken.load(Ordering::SeqCst), "another member of the team panicked");
            thread::yield_now();
        }
    }
}

impl Team {
    /// A team of at most `size` members. Its threads begin when a job first needs them.
    #[must_use]
    pub const fn new(size: usize) -> Self {
        assert!(size > 0, "the calling thread is a member");
        Team { size, is_eager: false, workers: Mutex::new(Workers { process: 0, list: Vec::new() }) }
    }

    /// The calling thread.
    #[must_use]
    pub const fn alone() -> Self {
        Self::new(1)
    }

    /// A team of which all members take part, however little there is to do.
    #[cfg(test)]
    pub fn eager(size: usize) -> Self {
        let mut team = Self::new(size);
        team.is_eager = true;
        team
    }

    /// Most members of a job.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The members that so much work repays, where one member is worth 1; no more than there are cores now.
    #[must_use]
    pub(crate) fn members(&self, work: f64) -> usize {
        match work as usize {
            _ if self.is_eager => self.size,
            // a clock, which counting cores needs, is not everywhere where there is one thread
            _ if self.size == 1 => 1,
            0 | 1 => 1,
            wanted => wanted.min(self.size).min(cores()),
        }
    }

    /// Calls `body` for all of `0..count` in strips, which members take one after the other: as many members as are repaid by
    /// `count` lines, each of which takes as long as to move `work` elements. No strip is a single line, unless there is but one:
    /// a line alone may be computed in another way.
    pub(crate) fn in_strips(&self, count: usize, work: f64, body: impl Fn(Range<usize>) + Sync) {
        let members = self.members(count as f64 * work / WORK_OF_MEMBER).min(count.div_ceil(LINES));
        if members <= 1 {
            if count > 0 {
                body(0..count);
            }
            return;
        }
        let strip = count.div_ceil(STRIPS * members).next_multiple_of(LINES);
        let (strips, pieces) = ((count / strip).max(1), Pieces::default());
        self.run_in_time(members, &|_| {
            while let Some(piece) = pieces.take(strips) {
                // the last one takes the rest
                body(piece * strip..if piece + 1 == strips { count } else { (piece + 1) * strip });
            }
        });
    }

    /// Calls `body` once for each of at most `members` members, all at the same time; returns when all have returned. There
    /// are fewer members if the team is smaller, or the system gives no thread.
    ///
    /// # Panics
    /// If a body panicked, once all have returned.
    pub(crate) fn run(&self, members: usize, body: &(dyn Fn(&Member<'_>) + Sync)) {
        self.begin(members, body, Joining::All);
    }

    /// The same for a job that is done when the caller's body has returned and those that have begun by then: members whose
    /// threads come too late take no part. They may not [meet](Member::meet).
    ///
    /// # Panics
    /// As [`Team::run`].
    pub(crate) fn run_in_time(&self, members: usize, body: &(dyn Fn(&Member<'_>) + Sync)) {
        self.begin(members, body, Joining::InTime);
    }

    fn begin(&self, members: usize, body: &(dyn Fn(&Member<'_>) + Sync), joining: Joining) {
        let members = members.clamp(1, self.size);
        let guard = (members > 1).then(|| self.workers(members - 1));
        let workers = guard.as_ref().map_or(&[][..], |workers| &workers.list[..workers.list.len().min(members - 1)]);
        let job = Job {
            body,
            workers,
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(workers.len()),
            caller: thread::current(),
            barrier: Barrier::default(),
            side: Barrier::default(),
            panic: Mutex::default(),
        };
        job.take_part(0);
        if joining == Joining::InTime {
            job.close();
        }
        job.wait();
        if let Some(panic) = job.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }

    /// The threads, at least `count` of them if the system gives so many.
    fn workers(&self, count: usize) -> MutexGuard<'_, Workers> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if workers.process != process {
            *workers = Workers { process, list: Vec::new() };
        }
        while workers.list.len() < count {
            let (seat, index) = (Arc::<Seat>::default(), workers.list.len() + 1);
            let own = Arc::clone(&seat);
            let spawned = thread::Builder::new().name(format!("lapidary {index}")).spawn(move || own.serve(index));
            let Ok(handle) = spawned else { break };
            workers.list.push(Worker { thread: handle.thread().clone(), seat });
        }
        workers
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for worker in &self.workers.get_mut().unwrap_or_else(PoisonError::into_inner).list {
            worker.seat.0.store(Seat::dismissal(), Ordering::Release);
            worker.thread.unpark();
        }
    }
}

impl Seat {
    /// An address at which no job lies.
    fn dismissal() -> *mut Job<'static> {
        std::ptr::without_provenance_mut(align_of::<Job<'static>>())
    }

    /// The life of the thread of member `index`: one job after the other until it is dismissed.
    fn serve(&self, index: usize) {
        loop {
            let job = self.next();
            if job == Self::dismissal() {
                return;
            }
            // SAFETY: `Team::run` keeps the job until this worker says that it is done.
            let job = unsafe { &*job };
            job.take_part(index);
            // the job may be gone when it was counted
            let caller = job.caller.clone();
            if job.left.fetch_sub(1, Ordering::Release) == 1 {
                caller.unpark();
            }
        }
    }

    /// Waits for a job.
    fn next(&self) -> *mut Job<'static> {
        loop {
            let has_job = || !self.0.load(Ordering::Relaxed).is_null();
            while !spin(SPIN, has_job) {
                thread::park();
            }
            // a job that was closed meanwhile is gone
            let job = self.0.swap(null_mut(), Ordering::Acquire);
            if !job.is_null() {
                return job;
            }
        }
    }
}

impl Job<'_> {
    /// Wakes some workers, then does the part of member `index`.
    fn take_part(&self, index: usize) {
        for _ in 0..WAKES {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(worker) = self.workers.get(next) else { break };
            let job = std::ptr::from_ref(self).cast::<Job<'static>>().cast_mut();
            worker.seat.0.store(job, Ordering::Release);
            worker.thread.unpark();
        }
        let member = Member { job: self, index };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.body)(&member))) {
            // the first panic is told: others follow from it
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
            self.barrier.break_up();
            self.side.break_up();
        }
    }

    /// Takes the job back from workers that have not begun.
    fn close(&self) {
        // workers that nobody was to wake yet
        let named = self.next.swap(self.workers.len(), Ordering::Relaxed).min(self.workers.len());
        let mut late = self.workers.len() - named;
        let own = std::ptr::from_ref(self).cast::<Job<'static>>().cast_mut();
        for worker in &self.workers[..named] {
            let taken = worker.seat.0.compare_exchange(own, null_mut(), Ordering::Relaxed, Ordering::Relaxed);
            late += usize::from(taken.is_ok());
        }
        self.left.fetch_sub(late, Ordering::Relaxed);
    }

    /// Waits for all workers that have begun, or will.
    fn wait(&self) {
        while !spin(SPIN, || self.left.load(Ordering::Acquire) == 0) {
            thread::park();
        }
    }
}
