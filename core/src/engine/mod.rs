//! The engine: carries a schedule out. The only caller of a device.
//!
//! One thread drives each device. The thread asks the [`Dispatcher`] what it may submit, submits that without holding the lock,
//! and reports what has ended; it waits if there is nothing to submit or report. The first error stops all devices. It reaches
//! the caller, with its context, once no work is under way.

mod columns;
mod driver;
mod in_flight;
mod in_place;
mod measure;
mod registers;
mod residents;
mod sequences;
mod startup;
#[cfg(all(test, not(loom)))]
mod tests;
mod trace;

use std::time::Duration;

use crate::command::CommandId;
use crate::dispatch::{Dispatcher, Issue, Lane, Reach, Step};
use crate::enums::Layout;
use crate::error::{Error, ErrorKind, OUTPUTS, Result};
use crate::facts::DeviceFacts;
use crate::lane_pool::LanePool;
use crate::matrix::{Home, RawMat};
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::slots::{Slot, SlotId};
use crate::sync::{Condvar, Mutex, lock, wait, wait_for};

pub use driver::{CopyInUse, DeviceRuntime};
pub use in_place::InPlace;
pub use measure::TimedKernel;
pub use startup::Startup;
pub use trace::{Trace, TraceEvent};

/// A schedule while it runs.
pub struct Run<'p> {
    plan: &'p Plan,
    bindings: Bindings<'p>,
    devices: usize,
    state: Mutex<State<'p>>,
    changed: Condvar,
    trace: Option<&'p Trace>,
}

struct State<'p> {
    dispatcher: Dispatcher<'p>,
    error: Option<Error>,
    /// Threads that wait for a change.
    waiting: usize,
    /// Changes so far that gave threads work.
    changes: u64,
}

/// What the driver of a device does next.
enum Next {
    /// Submit a command.
    Submit(Lane, Issue),
    /// Allocate memory for a physical register and report the result.
    Obtain(Slot),
    /// Free the memory of a physical register.
    Release(SlotId),
    /// Wait until a command in flight ends, or until the run has seen more changes than this number.
    Wait(u64),
    /// Stop: nothing is left for the device to do.
    Finished,
}

/// Why a run ended early.
#[derive(Debug)]
pub struct RunError {
    /// The first error of a command, or the reason why the first device left the run.
    pub error: Error,
    /// Whether matrices that the plan writes may be partly written. If not, they are unchanged, and the call may be tried again.
    pub touched: bool,
}

/// The memory of a plan's matrices.
#[derive(Clone, Copy)]
struct Bindings<'p>(&'p [RawMat]);

// SAFETY: the bindings point to memory that the caller of [`run`] lends for the run. The dispatcher decides which thread
// accesses which part, and when.
unsafe impl Sync for Bindings<'_> {}
// SAFETY: as above.
unsafe impl Send for Bindings<'_> {}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Run({})", self.plan.operation())
    }
}

/// How a device sees matrices in memory.
#[must_use]
pub fn reach(device: usize, facts: &DeviceFacts, bindings: &[RawMat]) -> Reach {
    let in_place = |raw: &RawMat| {
        let home = match raw.home {
            Home::Host(_) => facts.host_memory,
            Home::Device(resident) => resident.device == device,
        };
        home && raw.layout == Layout::ColMajor
    };
    let (memory, in_place) = (facts.memory.unwrap_or(usize::MAX), bindings.iter().map(in_place).collect());
    Reach { memory, in_place, flops: facts.rates.flops, queues: facts.queues }
}

/// Runs a schedule on devices; `bindings` holds the memory of the plan's
/// matrices. What ran when is added to a trace, if one is given.
///
/// # Safety
/// The memory of the bindings must be as the plan declares (shapes, element
/// types, written or read), and nothing else may touch it meanwhile. The
/// schedule's [`reach`] was computed from these bindings and devices.
///
/// # Errors
/// The first error of a command, with the command, its task and its device, and
/// whether matrices that the plan writes may be partly written.
pub unsafe fn run(
    pool: &LanePool,
    devices: &[&DeviceRuntime],
    schedule: &Schedule,
    bindings: &[RawMat],
    trace: Option<&Trace>,
) -> Result<(), RunError> {
    // SAFETY: as the caller promises.
    let run = Run { trace, ..unsafe { Run::new(schedule, bindings) } };
    pool.run(devices.len(), &|device| devices[device].run_lane(&run, device))
        .map_err(|error| RunError::new(error, lock(&run.state).dispatcher.is_touched()))?;
    let finished = run.finish();
    if finished.is_err() {
        // whoever goes on from here may need their memory
        devices.iter().for_each(|device| device.trim());
    }
    finished
}

impl RunError {
    fn new(error: Error, touched: bool) -> Self {
        let error = if touched { error.with(OUTPUTS, "partly written") } else { error.untouched() };
        RunError { error, touched }
    }
}

impl<'p> Run<'p> {
    /// A run before its first command.
    ///
    /// # Safety
    /// As [`run`], for as long as devices are driven: the memory of the bindings
    /// is as the plan declares and nothing else touches it, and the schedule's
    /// [`reach`] was computed from these bindings and the devices that drive it, one thread each.
    #[must_use]
    pub unsafe fn new(schedule: &'p Schedule, bindings: &'p [RawMat]) -> Self {
        let state = State { dispatcher: schedule.dispatcher(), error: None, waiting: 0, changes: 0 };
        let devices = schedule.reach().len();
        Run {
            plan: schedule.plan(),
            bindings: Bindings(bindings),
            devices,
            state: Mutex::new(state),
            changed: Condvar::new(),
            trace: None,
        }
    }

    fn has_one_device(&self) -> bool {
        self.devices == 1
    }

    /// The next step of a device. If no command of it is under way (`is_idle`), waits until there is something to do.
    fn next(&self, device: usize, is_idle: bool) -> Next {
        let mut state = lock(&self.state);
        loop {
            let (mut changed, mut lanes) = (false, 0);
            // stores first, loads last: a store reads results that may still be in a cache
            for lane in state.dispatcher.lanes_of(device).rev() {
                lanes += 1;
                let step = state.dispatcher.next(lane);
                changed |= self.announce(&mut state);
                match step {
                    Ok(Step::Run(issue)) => return Next::Submit(lane, issue),
                    Ok(Step::Obtain(slot)) => return Next::Obtain(slot),
                    Ok(Step::Release(slot)) => return Next::Release(slot),
                    Ok(Step::Finished) => return Next::Finished,
                    Ok(Step::Wait) => {}
                    Err(error) => {
                        self.fail(&mut state, error);
                        return Next::Finished;
                    }
                }
            }
            // a later lane may have made work for one that was asked before it
            if !(changed && lanes > 1) {
                if !is_idle {
                    return Next::Wait(state.changes);
                }
                state.waiting += 1;
                state = wait(&self.changed, state);
                state.waiting -= 1;
            }
        }
    }

    /// Reports the result of an allocation to the dispatcher.
    fn obtained(&self, device: usize, slot: Slot, result: Result<()>) {
        let mut state = lock(&self.state);
        if let Err(error) = state.dispatcher.obtained(device, slot, result) {
            self.fail(&mut state, error);
        }
    }

    /// Lets a thread that polls commands under way sleep for at most `pause`; returns at once if the number of changes is no
    /// longer `seen`.
    fn rest(&self, seen: u64, pause: Duration) {
        let mut state = lock(&self.state);
        if state.changes == seen {
            state.waiting += 1;
            state = wait_for(&self.state, &self.changed, state, pause);
            state.waiting -= 1;
        }
    }

    /// Wakes the threads that wait, if something has changed for them; whether it has.
    fn announce(&self, state: &mut State<'p>) -> bool {
        let changed = state.dispatcher.take_changed();
        if changed {
            state.changes += 1;
            if state.waiting > 0 {
                self.changed.notify_all();
            }
        }
        changed
    }

    fn complete(&self, lane: Lane, command: CommandId, device: &str, result: Result<()>) {
        let mut state = lock(&self.state);
        let outcome = match result {
            Ok(()) => {
                state.dispatcher.complete(lane, command);
                Ok(())
            }
            Err(error) => {
                let task = self.plan.tasks().iter().find(|task| task.commands.contains(&command));
                let label = task.map(|task| task.label.to_string()).unwrap_or_default();
                let error = error.with("command", self.plan.describe(command)).with("task", label).with("device", device);
                let is_shortage = error.kind().is_recoverable_elsewhere();
                if is_shortage { state.dispatcher.refuse(lane, command, error) } else { Err(error) }
            }
        };
        match outcome {
            Ok(()) => {
                self.announce(&mut state);
            }
            Err(error) => self.fail(&mut state, error),
        }
    }

    /// The first error stops all devices.
    fn fail(&self, state: &mut State<'p>, error: Error) {
        state.error.get_or_insert(error);
        state.dispatcher.halt();
        self.announce(state);
    }

    /// The outcome, when no device has anything left to do.
    ///
    /// # Errors
    /// The first error of a command, or why the devices ran out of memory.
    pub fn finish(self) -> Result<(), RunError> {
        #[cfg(not(loom))]
        let state = self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        #[cfg(loom)]
        let state = self.state.into_inner().expect("loom's mutexes are not poisoned");
        let State { dispatcher, error, .. } = state;
        let touched = dispatcher.is_touched();
        match (error, dispatcher.is_done()) {
            (Some(error), _) => Err(RunError::new(error, touched)),
            (None, true) => Ok(()),
            (None, false) => {
                let unknown = || Error::new(ErrorKind::DeviceFailed, self.plan.operation(), "no device carried the commands out");
                Err(RunError::new(dispatcher.shortage().unwrap_or_else(unknown), touched))
            }
        }
    }
}

/// Stops the other devices when a driver panics, so that the panic reaches the caller.
struct HaltOnPanic<'a, 'p>(&'a Run<'p>);

impl Drop for HaltOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = lock(&self.0.state);
            state.dispatcher.halt();
            self.0.announce(&mut state);
        }
    }
}

/// The one device whose memory the bindings lie in, if any does.
///
/// # Errors
/// Operands lie on different devices.
pub fn resident_device(operation: &'static str, bindings: &[RawMat]) -> Result<Option<usize>> {
    let mut devices = bindings.iter().filter_map(|raw| match raw.home {
        Home::Device(resident) => Some(resident.device),
        Home::Host(_) => None,
    });
    let first = devices.next();
    match devices.find(|&other| Some(other) != first) {
        None => Ok(first),
        Some(other) => {
            let message = format!("operands lie on devices {} and {other}; upload them to the same one", first.unwrap_or(other));
            Err(Error::new(ErrorKind::Unsupported, operation, message))
        }
    }
}
