//! The worker process: compiles candidates, checks their results, and times them.

use std::time::Instant;

use lapidary::core::Routine;
use lapidary::{DType, Machine, Scalar};

use super::message::{Call, Job, Message};
use crate::bench::placement::Placement;
use crate::bench::problem::Problem;
use crate::failure::Result;
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
    let Call { seed, .. } = job.call;
    let call = job.call.clone();
    let mut problem = Problem::<T>::new(call.shape()?, seed, machine, Placement::Resident)?;
    while job.call == call {
        let message = measure(machine, &mut problem, &job)
            .unwrap_or_else(|failure| Message::Failed(failure.to_string().lines().next().unwrap_or_default().to_owned()));
        send(&message);
        job = inbox.next()?;
    }
    Ok(job)
}

fn measure<T: Scalar>(machine: &Machine, problem: &mut Problem<'_, T>, job: &Job) -> Result<Message> {
    let start = Instant::now();
    machine.prefer_kernels(&job.entries)?;
    problem.reset()?;
    problem.ours()?;
    let check = problem.check_ours()?;
    if !check.passed() {
        return Ok(Message::Wrong(format!(
            "the result is wrong: {} is {:.3e}, above {}",
            check.what, check.ratio, check.threshold
        )));
    }
    let setup_seconds = start.elapsed().as_secs_f64();
    let mut seconds = Vec::new();
    for _ in 0..job.runs {
        // a product overwrites no operand that it reads
        if problem.shape().routine != Routine::Gemm {
            problem.reset()?;
        }
        let start = Instant::now();
        problem.ours()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(Message::Measured { setup_seconds, seconds })
}
