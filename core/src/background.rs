//! Threads that carry out transfers between the caller's memory and a device.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::task::Poll;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Arc, Condvar, Mutex, lock, wait};
use crate::token::{Pending, Token};

/// Maximum number of threads of a pool, and maximum number of parts into which one transfer is divided, so that several threads copy at the
/// same time. Eight copying threads use the full speed of a link of 55 GB/s. A transfer with as many parts as the pool has threads completes
/// before the next transfer begins, so that kernels that wait for it start early.
const MAX_THREADS: usize = 8;

/// Number of hardware threads that the process may use. The operating system is asked for the number only once, because the
/// system call takes longer than the copy of a small matrix.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Number of parts into which a transfer of `pieces` pieces is divided; at least one.
#[must_use]
pub fn copy_threads(pieces: usize) -> usize {
    MAX_THREADS.min(pieces).min(processors()).max(1)
}

/// Threads that carry out transfers in one direction between the caller's memory and a device. They start when the first job
/// does. Each device has pools of its own for each direction, because the link of one device is slower than the memory of the host, and because a copy
/// from a device may keep a thread waiting for kernels of that device.
#[derive(Debug)]
pub struct CopyPool {
    count: usize,
    threads: OnceLock<Option<ThreadPool>>,
}

/// A pool of as many threads as [`copy_threads`] returns at most.
impl Default for CopyPool {
    fn default() -> Self {
        CopyPool { count: copy_threads(usize::MAX), threads: OnceLock::new() }
    }
}

/// The number of jobs that have not ended yet, and the first error that a job has returned.
#[derive(Debug)]
struct Jobs {
    left: Mutex<(usize, Result<()>)>,
    ended: Condvar,
}

#[derive(Debug)]
struct PendingJobs(Arc<Jobs>);

impl CopyPool {
    /// A pool of one thread, which does the jobs one after the other, in the order in which they are started.
    #[must_use]
    pub fn in_order() -> Self {
        CopyPool { count: 1, threads: OnceLock::new() }
    }

    /// The threads. `None` if the operating system cannot start them.
    fn threads(&self) -> Option<&ThreadPool> {
        let name = |_| "lapidary".to_owned();
        let build = || ThreadPoolBuilder::new().num_threads(self.count).thread_name(name).build().ok();
        self.threads.get_or_init(build).as_ref()
    }

    /// Starts jobs in the given order. If the operating system cannot start threads, the calling thread runs the jobs. The returned token
    /// completes when all jobs have ended, and reports the first error of a job. A panic of a job counts as an error.
    pub fn start(&self, jobs: Vec<impl FnOnce() -> Result<()> + Send + 'static>) -> Token {
        let shared = Arc::new(Jobs { left: Mutex::new((jobs.len(), Ok(()))), ended: Condvar::new() });
        for job in jobs {
            let shared = Arc::clone(&shared);
            let carry_out = move || {
                let result = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|panic| Err(panicked("transfer", &*panic)));
                let mut left = lock(&shared.left);
                left.0 -= 1;
                if left.1.is_ok() {
                    left.1 = result;
                }
                if left.0 == 0 {
                    shared.ended.notify_all();
                }
            };
            match self.threads() {
                Some(threads) => threads.spawn_fifo(carry_out),
                None => carry_out(),
            }
        }
        Token::new(PendingJobs(shared))
    }
}

/// The error of a job that panicked.
pub(crate) fn panicked(operation: &'static str, panic: &(dyn Any + Send)) -> Error {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Error::new(ErrorKind::DeviceFailed, operation, format!("a thread panicked: {}", said.unwrap_or("it said nothing")))
}

impl Pending for PendingJobs {
    fn poll(&self) -> Poll<Result<()>> {
        let left = lock(&self.0.left);
        if left.0 == 0 { Poll::Ready(left.1.clone()) } else { Poll::Pending }
    }

    fn wait(&self) -> Result<()> {
        let mut left = lock(&self.0.left);
        while left.0 > 0 {
            left = wait(&self.0.ended, left);
        }
        left.1.clone()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn jobs_are_done_at_the_same_time() {
        if processors() < 2 {
            return;
        }
        let there = Arc::new(AtomicUsize::new(0));
        let meet = |_| {
            let there = Arc::clone(&there);
            move || {
                there.fetch_add(1, Ordering::Relaxed);
                let start = Instant::now();
                while there.load(Ordering::Relaxed) < 2 {
                    assert!(start.elapsed() < Duration::from_secs(20), "a job is alone");
                    std::thread::yield_now();
                }
                Ok(())
            }
        };
        CopyPool::default().start((0..2).map(meet).collect()).wait().unwrap();
        assert_eq!([0, 1].map(copy_threads), [1, 1]);
        assert!((1..=MAX_THREADS).contains(&copy_threads(1000)));
    }

    #[test]
    fn one_thread_does_jobs_in_the_order_in_which_they_are_started() {
        let (pool, done) = (CopyPool::in_order(), Arc::new(Mutex::new(Vec::new())));
        let job = |number: u64| {
            let done = Arc::clone(&done);
            move || {
                // the first jobs take longest
                std::thread::sleep(Duration::from_micros(100 * (20 - number)));
                lock(&done).push(number);
                Ok(())
            }
        };
        let tokens: Vec<Token> = (0..20).map(|number| pool.start(vec![job(number)])).collect();
        tokens[19].wait().unwrap();
        assert_eq!(*lock(&done), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn the_token_tells_the_end_of_all_jobs_and_an_error_or_a_panic_of_one() {
        let (done, pool) = (Arc::new(AtomicUsize::new(0)), CopyPool::default());
        for fault in ["none", "error", "panic"] {
            done.store(0, Ordering::Relaxed);
            let job = |number: usize| {
                let done = Arc::clone(&done);
                move || {
                    std::thread::sleep(Duration::from_millis(2));
                    done.fetch_add(1, Ordering::Relaxed);
                    match fault {
                        "error" if number == 3 => Err(Error::invalid("job", "told to fail")),
                        "panic" if number == 3 => panic!("told to {fault}"),
                        _ => Ok(()),
                    }
                }
            };
            let token = pool.start((0..9).map(job).collect());
            let told = token.wait();
            assert_eq!(done.load(Ordering::Relaxed), 9, "it tells the end of all");
            assert_eq!(told.as_ref().is_err_and(|error| error.to_string().contains("told to")), fault != "none", "{told:?}");
            assert!(matches!(token.poll(), Poll::Ready(again) if again.is_ok() == told.is_ok()));
        }
        assert!(pool.start(Vec::<fn() -> Result<()>>::new()).wait().is_ok());
    }
}
