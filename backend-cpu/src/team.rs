//! Threads that work on one call together.
//!
//! A [`Team`] keeps its threads between calls. [`Team::run`] calls a function once for each member. The first member runs on
//! the caller's own thread. Members claim work dynamically ([`WorkCounter`]), so that a slow thread claims less work. Members
//! synchronise at barriers.
//!
//! An idle thread polls for work for some time ([`SPIN`]) before it sleeps, because calls often follow each other closely and
//! waking a sleeping thread takes many microseconds. The caller wakes [`WAKES`] threads, and each woken thread wakes the same
//! number of other threads. Because woken threads wake other threads, a large team starts almost as fast as a small team. A job for
//! few members wakes few threads.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

mod barrier;
mod cores;
mod placement;
#[cfg(test)]
mod tests;

use crate::fast::Blocking;
use barrier::{Barrier, CachePadded, SPIN_AT_BARRIER, spin};
pub(crate) use cores::cores;
use cores::recent_cores;
use placement::{Mask, Placement, own_core};

/// How long an idle thread polls for work before it sleeps.
const SPIN: Duration = Duration::from_micros(200);

/// Number of threads that each member wakes when it starts. Waking a thread costs the waking thread a few microseconds. The woken
/// thread starts to run about 50 microseconds later.
const WAKES: usize = 15;

/// Minimum work per member, expressed as the number of element copies that take the same time. With less work per member, an
/// additional member costs more time than it saves.
const WORK_OF_MEMBER: f64 = 20e3;

/// Number of strips per member. With several strips per member, a slow member claims fewer strips than the other members.
const STRIPS: usize = 4;

/// The number of rows (or columns) of a strip is a multiple of this constant, so that two strips of rows share no cache line.
const LINES: usize = 16;

/// Rows (or columns) `0..count`, divided into strips. The last strip includes the remainder of the division, so that a strip has a
/// single row only if `count` is 1. A strip with a single row is avoided because a routine may compute a single row by another
/// method.
#[derive(Clone, Copy)]
pub(crate) struct Strips {
    count: usize,
    width: usize,
}

impl Strips {
    /// Divides `count` rows into strips of `width` rows. `width` is rounded up to a multiple of [`LINES`].
    pub fn new(count: usize, width: usize) -> Self {
        Strips { count, width: width.next_multiple_of(LINES) }
    }

    pub fn number(self) -> usize {
        (self.count / self.width).max(1)
    }

    pub fn get(self, index: usize) -> Range<usize> {
        let start = index * self.width;
        start..if index + 1 == self.number() { self.count } else { start + self.width }
    }
}

/// Threads that work on one call together. A copy of a team has the same threads.
#[derive(Clone, Debug)]
pub struct Team {
    /// Maximum number of members of a job.
    size: usize,
    /// Whether every job runs on all members of the team, even if the job is small.
    is_eager: bool,
    /// The threads, which all copies of the team share. A team of one member has none.
    threads: Option<Arc<Threads>>,
    /// Maximum sizes of the cache blocks of the products that the team computes.
    blocking: Blocking,
}

/// The threads of a team. The lock is held while a job runs, because a team runs one job at a time.
#[derive(Debug, Default)]
struct Threads {
    workers: Mutex<Workers>,
}

/// The threads of all members except the caller.
#[derive(Debug, Default)]
struct Workers {
    /// Id of the process that started the threads. After a fork, the child process does not have the threads of its parent.
    process: u32,
    list: Vec<Worker>,
}

/// A thread of a team, other than the caller's thread.
#[derive(Debug)]
struct Worker {
    thread: Thread,
    mailbox: Arc<Mailbox>,
}

/// The memory through which a thread of the team receives its jobs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Mailbox {
    /// The job assigned to the thread: null if there is no job, or a special address that ends the thread.
    job: AtomicPtr<Job<'static>>,
    placement: Placement,
}

/// Which members take part in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joining {
    /// All members of the job.
    All,
    /// The members whose threads start before the caller has finished its own part of the job.
    InTime,
}

/// A function that all members run, and the state that the members share.
struct Job<'a> {
    body: &'a (dyn Fn(&Member<'_>) + Sync),
    /// The threads of all members except the caller.
    workers: &'a [Worker],
    /// Index of the next worker to wake.
    next: AtomicUsize,
    /// Number of workers that have not finished the job.
    left: AtomicUsize,
    caller: Thread,
    callers_mask: Mask,
    barrier: Barrier,
    /// The barrier of the first few members of the job, if they work together while the other members do different work.
    group: Barrier,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A member of a team while it runs a job.
pub(crate) struct Member<'a> {
    job: &'a Job<'a>,
    /// Number of the member; 0 for the caller.
    pub index: usize,
}

/// A shared counter by which members claim pieces of work.
#[derive(Debug, Default)]
pub(crate) struct WorkCounter(CachePadded<AtomicUsize>);

impl WorkCounter {
    /// Claims the next of `count` pieces. Returns `None` when all pieces are claimed.
    pub fn take(&self, count: usize) -> Option<usize> {
        // the counter is read first, so that no member writes to the shared cache line once all pieces are claimed
        if self.0.0.load(Ordering::Relaxed) >= count {
            return None;
        }
        let piece = self.0.0.fetch_add(1, Ordering::Relaxed);
        (piece < count).then_some(piece)
    }

    /// An upper bound of the number of pieces that have been claimed.
    pub fn taken(&self) -> usize {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Resets the counter. No member may claim pieces at the same time.
    pub fn refill(&self) {
        self.0.0.store(0, Ordering::Relaxed);
    }
}

impl Member<'_> {
    /// Number of members of the job.
    pub fn count(&self) -> usize {
        self.job.workers.len() + 1
    }

    /// Waits until all members have arrived. The last member to arrive calls `last` before any member continues.
    pub fn wait_for_all(&self, last: impl FnOnce()) {
        self.job.barrier.wait(self.count(), last);
    }

    /// Waits until the first `count` members, to which the calling member belongs, have arrived. The last member to arrive calls
    /// `last`.
    pub fn wait_for_group(&self, count: usize, last: impl FnOnce()) {
        debug_assert!(self.index < count);
        self.job.group.wait(count, last);
    }

    /// Waits until other members make a condition true.
    ///
    /// # Panics
    /// If a member panicked.
    pub fn wait_until(&self, holds: impl Fn() -> bool) {
        while !spin(SPIN_AT_BARRIER, &holds) {
            if self.job.barrier.broken.load(Ordering::SeqCst) {
                // the caller of the job gets the original panic of the other member instead of this panic
                resume_unwind(Box::new("another member of the team panicked"));
            }
        }
    }
}

impl Team {
    /// A team of at most `size` members. A thread of the team is started when a job first needs it.
    #[must_use]
    pub fn new(size: usize) -> Self {
        assert!(size > 0, "the calling thread is a member");
        Team { size, threads: (size > 1).then(Arc::default), ..Self::alone() }
    }

    /// A team whose only member is the calling thread.
    #[must_use]
    pub const fn alone() -> Self {
        Self::of_one(Blocking::DEFAULT)
    }

    /// A team whose only member is the calling thread, with other cache blocks.
    pub(crate) const fn of_one(blocking: Blocking) -> Self {
        Team { size: 1, is_eager: false, threads: None, blocking }
    }

    /// A team whose only member is the calling thread, with the cache blocks of this team.
    pub(crate) const fn one_member(&self) -> Self {
        Self::of_one(self.blocking)
    }

    /// The same threads with other cache blocks.
    #[must_use]
    pub fn with_blocking(self, blocking: Blocking) -> Self {
        Team { blocking, ..self }
    }

    /// Maximum sizes of the cache blocks of the products that the team computes.
    #[inline]
    pub(crate) const fn blocking(&self) -> Blocking {
        self.blocking
    }

    /// A team that runs every job on all its members, even if the job is small.
    #[cfg(test)]
    pub fn eager(size: usize) -> Self {
        let mut team = Self::new(size);
        team.is_eager = true;
        team
    }

    /// Maximum number of members of a job.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of members for a given amount of work, where 1 is the work for one member. There are at most as many members as cores
    /// that the process may use at present.
    #[must_use]
    pub(crate) fn members(&self, work: f64) -> usize {
        match work as usize {
            _ if self.is_eager => self.size,
            // `recent_cores` needs a clock, which some systems without threads do not have
            _ if self.size == 1 => 1,
            0 | 1 => 1,
            wanted => wanted.min(self.size).min(recent_cores()),
        }
    }

    /// Splits `0..count`, a range of rows or columns, into strips. Members claim strips and call `body` for each strip. `work` is
    /// the work per row or column, expressed as the number of element copies that take the same time. `work` determines the number
    /// of members.
    pub(crate) fn in_strips(&self, count: usize, work: f64, body: impl Fn(Range<usize>) + Sync) {
        let members = self.members(count as f64 * work / WORK_OF_MEMBER).min(count.div_ceil(LINES));
        if members <= 1 {
            if count > 0 {
                body(0..count);
            }
            return;
        }
        let (strips, pieces) = (Strips::new(count, count.div_ceil(STRIPS * members)), WorkCounter::default());
        self.run_in_time(members, &|_| {
            while let Some(piece) = pieces.take(strips.number()) {
                body(strips.get(piece));
            }
        });
    }

    /// Runs `body` on at most `members` threads in parallel, and returns after `body` has returned on all threads. `body` runs on
    /// fewer threads if the team is smaller or the system cannot start a thread.
    ///
    /// # Panics
    /// If `body` panicked on a thread. The caller's thread panics only after `body` has ended on all threads.
    pub(crate) fn run(&self, members: usize, body: &(dyn Fn(&Member<'_>) + Sync)) {
        self.begin(members, body, Joining::All);
    }

    /// Runs `body` as [`Team::run`] does, but not on the threads that have not started `body` when the caller's own `body` returns.
    /// `body` must not use [barriers](Member::wait_for_all), because some members may never arrive.
    ///
    /// # Panics
    /// If `body` panicked on a thread. The caller's thread panics only after `body` has ended on all threads that started it.
    pub(crate) fn run_in_time(&self, members: usize, body: &(dyn Fn(&Member<'_>) + Sync)) {
        self.begin(members, body, Joining::InTime);
    }

    fn begin(&self, members: usize, body: &(dyn Fn(&Member<'_>) + Sync), joining: Joining) {
        let members = members.clamp(1, self.size);
        let guard = self.threads.as_ref().filter(|_| members > 1).map(|threads| threads.workers(members - 1));
        let workers = guard.as_ref().map_or(&[][..], |workers| &workers.list[..workers.list.len().min(members - 1)]);
        let job = Job {
            body,
            workers,
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(workers.len()),
            caller: thread::current(),
            callers_mask: if workers.is_empty() { Mask::default() } else { Mask::own() },
            barrier: Barrier::default(),
            group: Barrier::default(),
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
}

impl Threads {
    /// Locks the list of worker threads, and starts threads until the list has `count` threads or the system cannot start more.
    fn workers(&self, count: usize) -> MutexGuard<'_, Workers> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if workers.process != process {
            *workers = Workers { process, list: Vec::new() };
        }
        let before = workers.list.len();
        while workers.list.len() < count {
            let (mailbox, index) = (Arc::<Mailbox>::default(), workers.list.len() + 1);
            let own = Arc::clone(&mailbox);
            let spawned = thread::Builder::new().name(format!("lapidary {index}")).spawn(move || own.run_jobs(index));
            let Ok(handle) = spawned else { break };
            workers.list.push(Worker { thread: handle.thread().clone(), mailbox });
        }
        // a new thread often starts on its creator's core, and can be moved to another core only after it has registered
        let are_known = || workers.list[before..].iter().all(|worker| worker.mailbox.placement.is_known());
        spin(SPIN_AT_BARRIER, are_known);
        workers
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for worker in &self.workers.get_mut().unwrap_or_else(PoisonError::into_inner).list {
            worker.mailbox.job.store(Mailbox::end_mark(), Ordering::Release);
            worker.thread.unpark();
        }
    }
}

impl Mailbox {
    /// The special address that ends a thread if it is in the mailbox in place of a job. No job lies at this address.
    fn end_mark() -> *mut Job<'static> {
        std::ptr::without_provenance_mut(align_of::<Job<'static>>())
    }

    /// The main function of the thread of member `index`. The thread runs jobs until the team is dropped.
    fn run_jobs(&self, index: usize) {
        self.placement.register();
        loop {
            let job = self.next();
            if job == Self::end_mark() {
                return;
            }
            // SAFETY: `Team::run` keeps the job alive until this worker has decremented `left`.
            let job = unsafe { &*job };
            job.take_part(index);
            // the handle of the caller's thread is cloned first, because the caller may free the job as soon as `left` is 0
            let caller = job.caller.clone();
            if job.left.fetch_sub(1, Ordering::Release) == 1 {
                caller.unpark();
            }
            // the affinity mask is restored last, so that the caller of the job does not wait for the system call
            self.placement.restore();
        }
    }

    /// Waits until the thread is assigned a job, and returns the job.
    fn next(&self) -> *mut Job<'static> {
        loop {
            let has_job = || !self.job.load(Ordering::Relaxed).is_null();
            while !spin(SPIN, has_job) {
                self.placement.register();
                thread::park();
            }
            // the job is null if the caller has taken it back
            let job = self.job.swap(null_mut(), Ordering::Acquire);
            if !job.is_null() {
                self.placement.awake();
                return job;
            }
        }
    }
}

impl Job<'_> {
    /// Wakes the next workers, then runs the function of the job as member `index`.
    fn take_part(&self, index: usize) {
        let core = own_core();
        for _ in 0..WAKES {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(worker) = self.workers.get(next) else { break };
            let job = std::ptr::from_ref(self).cast::<Job<'static>>().cast_mut();
            worker.mailbox.placement.exclude(core, &self.callers_mask);
            worker.mailbox.job.store(job, Ordering::Release);
            worker.thread.unpark();
        }
        let member = Member { job: self, index };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.body)(&member))) {
            // only the first panic is kept, because it causes the other panics
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
            self.barrier.break_up();
            self.group.break_up();
        }
    }

    /// Takes the job back from the workers that have not started it.
    fn close(&self) {
        // workers whose index is at least `named` have not received the job
        let named = self.next.swap(self.workers.len(), Ordering::Relaxed).min(self.workers.len());
        let mut late = self.workers.len() - named;
        let own = std::ptr::from_ref(self).cast::<Job<'static>>().cast_mut();
        for worker in &self.workers[..named] {
            let taken = worker.mailbox.job.compare_exchange(own, null_mut(), Ordering::Relaxed, Ordering::Relaxed);
            late += usize::from(taken.is_ok());
        }
        self.left.fetch_sub(late, Ordering::Relaxed);
    }

    /// Waits until all workers that have received the job have finished it.
    fn wait(&self) {
        while !spin(SPIN_AT_BARRIER, || self.left.load(Ordering::Acquire) == 0) {
            thread::park();
        }
    }
}
