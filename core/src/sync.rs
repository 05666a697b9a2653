//! Synchronisation primitives of the engine: the primitives of the standard library, or under `--cfg loom` the primitives of the
//! model checker loom.

#[cfg(loom)]
pub(crate) use loom::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{JoinHandle, yield_now},
};
use std::time::Duration;
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{JoinHandle, yield_now},
};

/// Starts a thread that runs `body`. Fails if the operating system cannot start a thread.
pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    #[cfg(not(loom))]
    return std::thread::Builder::new().name("lapidary".to_owned()).spawn(body);
    #[cfg(loom)]
    return Ok(loom::thread::spawn(body));
}

/// Locks a mutex, even if the mutex is poisoned. A panic of an engine thread stops the run on all devices, so the engine needs no
/// special treatment of a poisoned mutex.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits until `signal` is notified. The mutex of `guard` is unlocked during the wait.
pub(crate) fn wait<'a, T>(signal: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    signal.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits until `signal` is notified, but not longer than `most`. The mutex is unlocked during the wait. If `most` is zero, the
/// function only yields once to other threads. Under the model checker loom, which has no clock, the function also yields once
/// and does not wait.
pub(crate) fn wait_for<'a, T>(
    mutex: &'a Mutex<T>,
    signal: &Condvar,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> MutexGuard<'a, T> {
    if most.is_zero() || cfg!(loom) {
        drop(guard);
        yield_now();
        return lock(mutex);
    }
    signal.wait_timeout(guard, most).unwrap_or_else(std::sync::PoisonError::into_inner).0
}

/// Number of times that a waiting thread polls before it sleeps. `POLLS_BEFORE_SLEEP` polls together take about as long as it
/// takes to wake a sleeping thread.
#[cfg(not(loom))]
const POLLS_BEFORE_SLEEP: usize = 200;

/// Waits while `pending` returns true. Many waits are short, so the waiting thread calls `pending` repeatedly before it sleeps.
pub(crate) fn wait_while<'a, T>(
    mutex: &'a Mutex<T>,
    signal: &Condvar,
    mut guard: MutexGuard<'a, T>,
    pending: impl Fn(&T) -> bool,
) -> MutexGuard<'a, T> {
    #[cfg(not(loom))]
    for _ in 0..POLLS_BEFORE_SLEEP {
        if !pending(&guard) {
            return guard;
        }
        drop(guard);
        (0..8).for_each(|_| std::hint::spin_loop());
        guard = lock(mutex);
    }
    #[cfg(loom)]
    let _ = mutex;
    while pending(&guard) {
        guard = wait(signal, guard);
    }
    guard
}
