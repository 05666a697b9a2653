//! Barriers, at which threads wait for each other.

use std::hint::spin_loop;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a member polls at a barrier before it sleeps. The caller of a job polls for the same time at the end of the job. A
/// sleep is avoided because the system may wake a thread on its waker's core, which both threads then share for milliseconds.
pub(super) const SPIN_AT_BARRIER: Duration = Duration::from_millis(5);

/// How long a thread polls before it starts to yield its core to other threads between two polls. On the yielded core, the system
/// can run the member for which the thread waits.
const KEEPS_CORE: Duration = Duration::from_micros(50);

/// A barrier that members can use repeatedly.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    arrived: CachePadded<AtomicUsize>,
    /// Number of times that the barrier has opened.
    openings: CachePadded<AtomicUsize>,
    /// Number of members that sleep or are about to sleep.
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
    /// Whether a member has panicked and will therefore never arrive.
    pub broken: AtomicBool,
}

/// Pads a value so that it shares no cache line with other values.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct CachePadded<T>(pub T);

/// Calls `holds` repeatedly until it returns true, for at most `time`. Returns whether `holds` has returned true.
pub(super) fn spin(time: Duration, holds: impl Fn() -> bool) -> bool {
    let mut begin = None;
    loop {
        // reading the clock is slow, so the clock is read only after every 64 polls
        for _ in 0..64 {
            if holds() {
                return true;
            }
            spin_loop();
        }
        let passed = begin.get_or_insert_with(Instant::now).elapsed();
        if passed > time {
            return false;
        }
        if passed > KEEPS_CORE {
            thread::yield_now();
        }
    }
}

impl Barrier {
    /// Waits until `members` members have arrived. The last member to arrive calls `last` before the barrier opens.
    ///
    /// # Panics
    /// If a member has panicked and will therefore never arrive.
    pub fn wait(&self, members: usize, last: impl FnOnce()) {
        let openings = self.openings.0.load(Ordering::Relaxed);
        // acquire and release: after the barrier, each member sees all values that members wrote before the barrier
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == members {
            self.arrived.0.store(0, Ordering::Relaxed);
            last();
            self.openings.0.store(openings + 1, Ordering::SeqCst);
            self.wake_sleepers();
            return;
        }
        let is_open = || self.openings.0.load(Ordering::SeqCst) != openings;
        let is_over = || is_open() || self.broken.load(Ordering::SeqCst);
        if !spin(SPIN_AT_BARRIER, is_over) {
            // `sleepers` is incremented before `is_over` is evaluated again, so that a thread that makes `is_over` true afterwards
            // sees this sleeper
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let guard = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.wake.wait_while(guard, |()| !is_over()));
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
        if !is_open() {
            // the caller of the job gets the original panic of the other member instead of this panic
            resume_unwind(Box::new("another member of the team panicked"));
        }
    }

    /// Ends the waits of all members, because a member has panicked.
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake_sleepers();
    }

    fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // a sleeper holds the lock from its last evaluation of `is_over` until it sleeps, so it cannot miss the notification
            drop(self.sleep.lock());
            self.wake.notify_all();
        }
    }
}
