//! A thread of a test device, which runs the submitted jobs one after the other.

use std::collections::VecDeque;
use std::task::Poll;

use lapidary_core::{Pending, Result, Token};
use loom::sync::{Arc, Condvar, Mutex};

/// The queue of the jobs that a thread of a device runs. After a call of `dismiss`, the thread ends as soon as the queue is
/// empty.
#[derive(Debug, Default)]
pub struct WorkerThread {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    given: Condvar,
}

struct Job(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

impl WorkerThread {
    pub fn serve(&self) {
        loop {
            let mut jobs = self.jobs.lock().unwrap();
            let job = loop {
                match jobs.0.pop_front() {
                    Some(job) => break job,
                    None if jobs.1 => return,
                    None => jobs = self.given.wait(jobs).unwrap(),
                }
            };
            drop(jobs);
            job.0();
        }
    }

    pub fn dismiss(&self) {
        self.jobs.lock().unwrap().1 = true;
        self.given.notify_one();
    }

    /// Submits a job to the thread and returns a token that reports the completion of the job.
    pub fn give(&self, work: impl FnOnce() -> Result<()> + Send + 'static) -> Token {
        let outcome = Arc::new(Outcome::default());
        let told = Arc::clone(&outcome);
        let job = move || {
            *told.0.lock().unwrap() = Some(work());
            told.1.notify_all();
        };
        self.jobs.lock().unwrap().0.push_back(Job(Box::new(job)));
        self.given.notify_one();
        Token::new(Served(outcome))
    }
}

/// The result of a job, and a condition variable that is notified when the job has ended.
#[derive(Debug, Default)]
struct Outcome(Mutex<Option<Result<()>>>, Condvar);

/// The pending state of a job's token.
#[derive(Clone, Debug)]
pub struct Served(Arc<Outcome>);

impl Pending for Served {
    fn poll(&self) -> Poll<Result<()>> {
        self.0.0.lock().unwrap().clone().map_or(Poll::Pending, Poll::Ready)
    }

    fn wait(&self) -> Result<()> {
        let mut outcome = self.0.0.lock().unwrap();
        while outcome.is_none() {
            outcome = self.0.1.wait(outcome).unwrap();
        }
        outcome.clone().unwrap()
    }
}
