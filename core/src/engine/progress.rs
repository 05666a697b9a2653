//! The progress of a run, counted in floating-point operations.

use std::fmt;

use crate::command::{Command, CommandId};
use crate::plan::Plan;
use crate::sync::{Mutex, lock};

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunProgress {
    /// Name of the routine of the plan.
    pub operation: &'static str,
    /// Number of floating-point operations of the commands that have completed.
    pub done_flops: f64,
    /// Number of floating-point operations of all commands of the plan.
    pub plan_flops: f64,
}

/// The function that runs report their progress to.
pub struct ProgressListener(Box<dyn Fn(RunProgress) + Send + Sync>);

impl ProgressListener {
    /// Reports to `tell`.
    pub fn new(tell: impl Fn(RunProgress) + Send + Sync + 'static) -> Self {
        ProgressListener(Box::new(tell))
    }
}

impl fmt::Debug for ProgressListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressListener")
    }
}

/// The progress of one run, which has a listener.
pub(super) struct Count<'p> {
    listener: &'p ProgressListener,
    plan: &'p Plan,
    now: Mutex<RunProgress>,
}

impl<'p> Count<'p> {
    /// Begins to count the operations of a plan. Reports that no operation is done.
    pub(super) fn new(listener: &'p ProgressListener, plan: &'p Plan) -> Self {
        let plan_flops = plan.commands().iter().map(flops).sum();
        let now = RunProgress { operation: plan.operation(), done_flops: 0.0, plan_flops };
        (listener.0)(now);
        Count { listener, plan, now: Mutex::new(now) }
    }

    /// Counts a command that has completed, and reports the progress if the command has operations. The lock is held during the report, so
    /// that the reports of all engine threads rise.
    pub(super) fn add(&self, command: CommandId) {
        let flops = flops(&self.plan.commands()[command as usize]);
        if flops > 0.0 {
            let mut now = lock(&self.now);
            // a task that a device has given back runs again on another device
            now.done_flops = (now.done_flops + flops).min(now.plan_flops);
            (self.listener.0)(*now);
        }
    }
}

fn flops(command: &Command) -> f64 {
    match command {
        Command::Exec(exec) => exec.instruction.flops(),
        Command::Ld(_) | Command::St(_) | Command::Mark(_) | Command::Bar(_) => 0.0,
    }
}
