//! The worker process: compiles candidates, checks their results, and times them.

use std::time::Instant;

use lapidary::{DType, Machine, Scalar};

use super::message::{Job, Message};
use super::workload::{Workload, workload};
use crate::failure::{Result, Status};
use crate::worker::{Inbox, send};

/// Runs the jobs of the searching process until that process ends.
///
/// # Errors
/// The operands of a call do not fit into memory, or a job is malformed.
pub fn work(machine: &Machine, inbox: &Inbox<Job>) -> Result<()> {
    send(&Message::Opened);
    let mut job = inbox.next()?;
    loop {
        job = match job.call.dtype() {
            DType::F64 => run_call::<f64>(machine, job, inbox)?,
            DType::F32 | DType::I32 => run_call::<f32>(machine, job, inbox)?,
        };
    }
}

/// Runs the jobs that have the same call as `job`. Returns the first job with another call.
fn run_call<T: Scalar>(machine: &Machine, mut job: Job, inbox: &Inbox<Job>) -> Result<Job> {
    let call = job.call.clone();
    let mut workload = workload::<T>(&call, machine)?;
    while job.call == call {
        let message = measure(machine, &mut *workload, &job).unwrap_or_else(|failure| {
            let reason = failure.to_string().lines().next().unwrap_or_default().to_owned();
            let does_not_suit = failure.code() == Status::BadInput as i32;
            if does_not_suit { Message::Unfit(reason) } else { Message::Failed(reason) }
        });
        send(&message);
        job = inbox.next()?;
    }
    Ok(job)
}

fn measure(machine: &Machine, workload: &mut dyn Workload, job: &Job) -> Result<Message> {
    let start = Instant::now();
    machine.prefer_kernels(&job.entries)?;
    workload.reset()?;
    workload.run()?;
    let mut check = workload.check()?;
    if check.passed() {
        check = workload.check_others()?.unwrap_or(check);
    }
    if !check.passed() {
        return Ok(Message::Unfit(format!(
            "the result is wrong: {} is {:.3e}, above {}",
            check.what, check.ratio, check.threshold
        )));
    }
    let setup_seconds = start.elapsed().as_secs_f64();
    let seconds = (0..job.runs).map(|_| sample(workload)).collect::<Result<Vec<f64>>>()?;
    Ok(Message::Measured { setup_seconds, seconds })
}

/// Shortest duration of a sample, in seconds. Short calls are repeated, because the wait for a call takes tens of microseconds, and
/// because the clock of a device falls while the host checks a result.
const SHORTEST_SAMPLE: f64 = 5e-3;
/// Maximum number of calls in a sample.
const MAX_CALLS: usize = 1000;

/// Measures how many seconds a call takes. The first call of a sample does not count.
fn sample(workload: &mut dyn Workload) -> Result<f64> {
    // the time of a single call contains the wait, so that a few calls show how many fill a sample
    let start = Instant::now();
    let Some(first) = workload.repeat(1) else {
        workload.reset()?;
        return timed(|| workload.run());
    };
    first?;
    let few = if start.elapsed().as_secs_f64() < SHORTEST_SAMPLE / 10.0 { 10 } else { 1 };
    let mut series = |calls: usize| Ok(timed(|| workload.repeat(calls).unwrap_or(Ok(())))? / calls as f64);
    let time: f64 = series(few)?;
    series(((SHORTEST_SAMPLE / time).ceil() as usize).clamp(1, MAX_CALLS))
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}
