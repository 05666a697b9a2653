//! The synchronisation the engine uses: the standard library's, or under
//! `--cfg loom` the model checker's.

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

/// A new thread, if the system gives one.
pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    #[cfg(not(loom))]
    return std::thread::Builder::new().name("lapidary".to_owned()).spawn(body);
    #[cfg(loom)]
    return Ok(loom::thread::spawn(body));
}

/// Locks a mutex. A poisoned one is as good as any: whoever panics while
/// holding a lock of the engine halts the run first.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits for a signal; the mutex is released meanwhile.
pub(crate) fn wait<'a, T>(signal: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    signal.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits for a signal, at most as long as `most`; the mutex is released meanwhile. If `most` is zero, or under the model
/// checker, which has no clock, this only lets other threads run once.
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

/// Number of times that a waiting thread polls before it sleeps. All polls together take about as long as waking a thread.
#[cfg(not(loom))]
const TURNS: usize = 200;

/// Waits while `pending` returns true. The wait is often short, so the thread polls a few times before it sleeps.
pub(crate) fn wait_while<'a, T>(
    mutex: &'a Mutex<T>,
    signal: &Condvar,
    mut guard: MutexGuard<'a, T>,
    pending: impl Fn(&T) -> bool,
) -> MutexGuard<'a, T> {
    #[cfg(not(loom))]
    for _ in 0..TURNS {
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
