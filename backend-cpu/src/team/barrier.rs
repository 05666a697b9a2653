//! Threads that wait for each other.

use std::hint::spin_loop;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a member polls at a barrier, and the caller at the end of a job, before it sleeps: the system may wake a thread on the
/// core of its waker, which both then share for milliseconds.
pub(super) const SPIN_AT_BARRIER: Duration = Duration::from_millis(5);

/// How long a thread polls before it lets other threads of its core run between two looks: the member that it waits for may be
/// among them.
const KEEPS_CORE: Duration = Duration::from_micros(50);

/// A reusable barrier.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    arrived: CachePadded<AtomicUsize>,
    /// How often the barrier has opened.
    openings: CachePadded<AtomicUsize>,
    /// Number of members that sleep or are about to sleep.
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
    /// Whether a member panicked: it will never arrive.
    pub broken: AtomicBool,
}

/// Pads a value so that it shares no cache line with others.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct CachePadded<T>(pub T);

/// Calls `holds` again and again until it returns true, for at most `time`; returns whether it did.
pub(super) fn spin(time: Duration, holds: impl Fn() -> bool) -> bool {
    let mut begin = None;
    loop {
        // a clock is slow
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
    /// Waits until `members` members have arrived. The last of them calls `last` before the barrier opens.
    ///
    /// # Panics
    /// If a member panicked, which never arrives.
    pub fn wait(&self, members: usize, last: impl FnOnce()) {
        let openings = self.openings.0.load(Ordering::Relaxed);
        // acquire and release: what members wrote before the barrier is visible to all after it
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
            // incremented before the condition is read again: whoever makes it true after that sees a sleeper
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let guard = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.wake.wait_while(guard, |()| !is_over()));
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
        if !is_open() {
            // the caller sees the panic of that member
            resume_unwind(Box::new("another member of the team panicked"));
        }
    }

    /// Ends all waits, since a member panicked.
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake_sleepers();
    }

    fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // a sleeper holds the lock from reading the condition until it sleeps
            drop(self.sleep.lock());
            self.wake.notify_all();
        }
    }
}
