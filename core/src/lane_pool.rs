//! The threads of the engine. All runs of plans use the threads of one pool, one run after another.
//!
//! [`LanePool::run`] calls a function on several threads at the same time, one of which is the caller's own thread.
//! [`LanePool::run`] returns when all calls of the function have returned. The lanes of a run wait for one another, so each lane
//! needs a thread of its own. The pool starts further threads if a run needs more threads than the pool has, and keeps all its
//! threads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Arc, Condvar, JoinHandle, Mutex, lock, spawn, wait, wait_while};

/// A pointer to the function that each lane of a run calls. The pointer is raw, because the threads of the pool outlive the
/// function.
#[derive(Clone, Copy)]
struct Body(*const (dyn Fn(usize) + Sync));

// SAFETY: the function behind the pointer is `Sync`, and `LanePool::run` returns, and so ends the borrow of the function, only
// when no thread of the pool uses the function any more.
unsafe impl Send for Body {}

#[derive(Default)]
struct State {
    body: Option<Body>,
    /// Number of lanes of the current run that threads of the pool have begun to execute.
    next: usize,
    lanes: usize,
    finished: usize,
    panic: Option<Box<dyn Any + Send>>,
    dismissed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

/// A pool of threads that wait until a run gives them a lane to execute.
#[derive(Default)]
pub struct LanePool {
    shared: Arc<Shared>,
    /// The threads of the pool. This mutex stays locked during a run, so that the runs of several callers take place one after
    /// another.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for LanePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LanePool({} threads)", lock(&self.threads).len())
    }
}

impl LanePool {
    /// Calls `body(0)` … `body(lanes - 1)` in parallel, and returns when all these calls have returned.
    ///
    /// # Errors
    /// Fails if the operating system cannot start a thread for a lane. If a thread is missing, `run` returns without having
    /// called `body`.
    ///
    /// # Panics
    /// Panics if a call of `body` panicked, after all other calls of `body` have ended.
    pub fn run(&self, lanes: usize, body: &(dyn Fn(usize) + Sync)) -> Result<()> {
        let mut threads = lock(&self.threads);
        while threads.len() + 1 < lanes {
            let shared = Arc::clone(&self.shared);
            let thread = spawn(move || shared.serve()).map_err(|source| {
                let message = format!("the system gives no thread beside {}", threads.len());
                Error::new(ErrorKind::DeviceFailed, "run", message).caused_by(source)
            })?;
            threads.push(thread);
        }
        if lanes > 1 {
            self.shared.begin(lanes - 1, body);
        }
        let own = catch_unwind(AssertUnwindSafe(|| {
            if lanes > 0 {
                body(0);
            }
        }));
        let others = if lanes > 1 { self.shared.end() } else { None };
        drop(threads);
        if let Some(panic) = own.err().or(others) {
            resume_unwind(panic);
        }
        Ok(())
    }
}

impl Drop for LanePool {
    fn drop(&mut self) {
        lock(&self.shared.state).dismissed = true;
        self.shared.work.notify_all();
        for thread in lock(&self.threads).drain(..) {
            // a thread of the pool catches the panics of the function that it calls, so `join` does not fail
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn begin(&self, lanes: usize, body: &(dyn Fn(usize) + Sync)) {
        // SAFETY: the cast changes only the lifetime of the reference to `body`. `LanePool::run` calls `end` before it returns,
        // and `end` returns when no thread of the pool uses `body` any more.
        let body: *const (dyn Fn(usize) + Sync + 'static) = unsafe { std::mem::transmute(std::ptr::from_ref(body)) };
        let mut state = lock(&self.state);
        *state = State { body: Some(Body(body)), lanes, ..State::default() };
        self.work.notify_all();
    }

    fn end(&self) -> Option<Box<dyn Any + Send>> {
        let working = |state: &State| state.finished < state.lanes;
        let mut state = wait_while(&self.state, &self.done, lock(&self.state), working);
        state.body = None;
        state.panic.take()
    }

    /// The main loop of a thread of the pool: the thread executes one lane after another until the pool is dropped.
    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            match state.body {
                _ if state.dismissed => return,
                Some(body) if state.next < state.lanes => {
                    state.next += 1;
                    let lane = state.next;
                    drop(state);
                    // SAFETY: `LanePool::run` borrows the function `body` until all lanes have finished, and this lane finishes
                    // only after the call.
                    let result = catch_unwind(AssertUnwindSafe(|| unsafe { (*body.0)(lane) }));
                    state = lock(&self.state);
                    state.panic = result.err().or(state.panic.take());
                    state.finished += 1;
                    if state.finished == state.lanes {
                        self.done.notify_one();
                    }
                }
                Some(_) | None => state = wait(&self.work, state),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn lanes_run_at_the_same_time_and_threads_are_kept() {
        let pool = LanePool::default();
        for lanes in [0, 1, 4, 2, 4] {
            let (barrier, sum) = (Barrier::new(lanes), AtomicUsize::new(0));
            let body = |lane| {
                barrier.wait();
                sum.fetch_add(lane + 1, Ordering::Relaxed);
            };
            pool.run(lanes, &body).unwrap();
            assert_eq!(sum.into_inner(), lanes * (lanes + 1) / 2);
        }
        assert_eq!(lock(&pool.threads).len(), 3);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_survives() {
        let pool = LanePool::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| pool.run(2, &|lane| assert!(lane == 0, "lane {lane}"))));
        assert!(panicked.is_err());
        pool.run(2, &|_| {}).unwrap();
    }
}
