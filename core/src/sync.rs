//! The synchronisation the engine uses: the standard library's, or under
//! `--cfg loom` the model checker's.

#[cfg(loom)]
pub(crate) use loom::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{JoinHandle, spawn},
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{JoinHandle, spawn},
};

/// Locks a mutex. A poisoned one is as good as any: whoever panics while
/// holding a lock of the engine halts the run first.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits for a signal; the mutex is released meanwhile.
pub(crate) fn wait<'a, T>(signal: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    signal.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
}
