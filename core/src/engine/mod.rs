//! The engine runs schedules on devices. Nothing but the engine calls a device.
//!
//! Each device of a run has one engine thread. An engine thread asks the [`Dispatcher`] for the next command, submits the command
//! to its device without holding the lock of the run, and reports completed commands to the dispatcher. If there is nothing to
//! submit or report, the engine thread waits. The first error stops the run on all devices. The engine returns the first error to
//! the caller, with its context, after all submitted commands have completed.

mod columns;
mod in_flight;
mod in_place;
mod measure;
mod prepare;
mod progress;
mod registers;
mod residents;
mod runtime;
mod sequences;
mod startup;
mod stream;
#[cfg(all(test, not(loom)))]
mod tests;
mod trace;
mod worker;

use std::time::Duration;

use crate::command::CommandId;
use crate::dispatch::{Dispatcher, Issue, Lane, Reach, Step};
use crate::enums::Layout;
use crate::error::{Error, ErrorKind, Outputs, Result};
use crate::facts::DeviceFacts;
use crate::lane_pool::LanePool;
use crate::matrix::{Home, RawMat};
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::slots::{Slot, SlotId};
use crate::sync::{Condvar, Mutex, lock, wait, wait_for};

pub use in_place::InPlace;
pub use measure::{TimedKernel, Times};
pub use prepare::{prepare, prepare_in_place};
pub use progress::{ProgressListener, RunProgress};
pub use runtime::{CopyInUse, DeviceRuntime};
pub use startup::Startup;
pub use stream::{StreamCall, StreamEnd, StreamState};
pub use trace::{Trace, TraceEvent, Watch};

use progress::Count;

/// The state of a schedule during its run, shared by the engine threads of all devices.
pub struct Run<'p> {
    plan: &'p Plan,
    bindings: Bindings<'p>,
    devices: usize,
    state: Mutex<State<'p>>,
    changed: Condvar,
    trace: Option<&'p Trace>,
    progress: Option<Count<'p>>,
}

struct State<'p> {
    dispatcher: Dispatcher<'p>,
    error: Option<Error>,
    /// Number of engine threads that sleep until `changed` is notified.
    waiting: usize,
    /// How many times the dispatcher has reported a change that may give work to sleeping engine threads.
    changes: u64,
}

/// The next action of a device's engine thread.
enum Next {
    /// Submit this command to the queue of this lane.
    Submit(Lane, Issue),
    /// Allocate device memory for this physical register and report the result to the dispatcher.
    Obtain(Slot),
    /// Free the device memory of this physical register.
    Release(SlotId),
    /// Wait until a command in flight completes, or until the run's change counter exceeds this number.
    Wait(u64),
    /// Submit no further command: the dispatcher has finished with this device.
    Finished,
}

/// The error that ended a run early, and the state of the matrices that the plan writes.
#[derive(Debug)]
pub struct RunError {
    /// The first error of a command or an allocation. If all devices left the run because they lack memory or are lost, `error`
    /// is the error of one of these devices.
    pub error: Error,
    /// Whether matrices that the plan writes may be partly written. If `touched` is false, the matrices are unchanged and the
    /// caller may retry the call.
    pub touched: bool,
}

/// The address, shape and layout of each matrix of a plan.
#[derive(Clone, Copy)]
struct Bindings<'p>(&'p [RawMat]);

// SAFETY: the caller of [`run`] keeps the memory of the bindings valid during the run. The dispatcher never lets two threads make
// conflicting accesses to the same elements.
unsafe impl Sync for Bindings<'_> {}
// SAFETY: the memory of the bindings stays valid during the run, and the dispatcher rules out conflicting accesses by two
// threads.
unsafe impl Send for Bindings<'_> {}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Run({})", self.plan.operation())
    }
}

/// Describes for the dispatcher how much memory a device has and which of the bound matrices the device works on in place.
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

/// Runs a schedule on devices. `bindings` states in which memory each matrix of the plan lies. The engine
/// adds every executed command to the trace of `watch`, with its start time and its end time, and reports the progress to the listener of
/// `watch`.
///
/// # Safety
/// The memory of the bindings must be as the plan declares (shapes, element types, written or read), and nothing else may access
/// this memory until `run` returns. The [`reach`] of the schedule must have been computed from the same bindings and devices; a device that
/// could work in place on a matrix may be declared to copy it.
///
/// # Errors
/// Returns the first error of a command or an allocation of the run. The error of a command names the command, its task and its
/// device. The returned error states whether matrices that the plan writes may be partly written.
pub unsafe fn run(
    pool: &LanePool,
    devices: &[&DeviceRuntime],
    schedule: &Schedule,
    bindings: &[RawMat],
    watch: Watch<'_>,
) -> Result<(), RunError> {
    if bindings.iter().any(|raw| matches!(raw.home, Home::Device(_))) {
        let settled = devices.iter().try_for_each(|device| device.settle_streams());
        settled.map_err(|error| RunError::new(error, false))?;
    }
    // SAFETY: the caller fulfils the safety contract of `run`, which includes the contract of `Run::new`.
    let run = unsafe { Run::new(schedule, bindings) }.watched(watch);
    pool.run(devices.len(), &|device| devices[device].run_lane(&run, device))
        .map_err(|error| RunError::new(error, lock(&run.state).dispatcher.is_touched()))?;
    let finished = run.finish();
    if finished.is_err() {
        // after an error the devices free their kept memory, since the caller may need memory to retry the call
        devices.iter().for_each(|device| device.trim());
    }
    finished
}

impl RunError {
    fn new(error: Error, touched: bool) -> Self {
        let error = if touched { error.with_outputs(Outputs::PartlyWritten) } else { error.untouched() };
        RunError { error, touched }
    }
}

impl<'p> Run<'p> {
    /// Creates the state of a run before its first command.
    ///
    /// # Safety
    /// The contract of [`run`] must hold as long as engine threads use this value: the memory of the bindings is as the plan
    /// declares, nothing else accesses this memory, and the [`reach`] of the schedule was computed from the same bindings and
    /// devices, as [`run`] allows. Each device may have only one engine thread.
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
            progress: None,
        }
    }

    /// Tells `watch` what the run does.
    fn watched(self, watch: Watch<'p>) -> Self {
        let progress = watch.progress.map(|listener| Count::new(listener, self.plan));
        Run { trace: watch.trace, progress, ..self }
    }

    fn has_one_device(&self) -> bool {
        self.devices == 1
    }

    /// Returns the next action of a device's engine thread. If no command of the device is in flight (`is_idle`), the thread
    /// sleeps until there is an action.
    fn next(&self, device: usize, is_idle: bool) -> Next {
        let mut state = lock(&self.state);
        loop {
            let (mut changed, mut lanes) = (false, 0);
            // the loop requests a step for the store lane first and for the load lane last, since the result that a store reads
            // may still be in a cache
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
            // if a step changed the dispatcher's state, a lane for which the loop found no work before that step may have work
            // now, so the loop starts again with the first lane
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

    /// Reports to the dispatcher whether the device could allocate memory for a physical register.
    fn obtained(&self, device: usize, slot: Slot, result: Result<()>) {
        let mut state = lock(&self.state);
        if let Err(error) = state.dispatcher.obtained(device, slot, result) {
            self.fail(&mut state, error);
        }
    }

    /// Lets an engine thread sleep for at most `longest` while its commands are in flight. Returns at once if the
    /// change counter of the run is not equal to `seen`.
    fn rest(&self, seen: u64, longest: Duration) {
        let mut state = lock(&self.state);
        if state.changes == seen {
            state.waiting += 1;
            state = wait_for(&self.state, &self.changed, state, longest);
            state.waiting -= 1;
        }
    }

    /// Wakes the sleeping engine threads if the dispatcher reports a change, and counts the change. Returns whether the
    /// dispatcher reported a change.
    fn announce(&self, state: &mut State<'p>) -> bool {
        let changed = !state.dispatcher.take_changed().is_empty();
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

    /// Stops the run on all devices. The run keeps `error` unless the run has failed with an earlier error.
    fn fail(&self, state: &mut State<'p>, error: Error) {
        state.error.get_or_insert(error);
        state.dispatcher.halt();
        self.announce(state);
    }

    /// Returns the outcome of the run, after the engine threads of all devices have returned.
    ///
    /// # Errors
    /// Returns the first error that stopped the run. If all devices left the run because they lack memory or are lost, returns
    /// the error of one of these devices.
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

/// Stops the run on all devices if an engine thread panics, so that the other threads return and the panic reaches the caller.
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

/// Index of the device in whose memory the bound matrices lie; `None` if all matrices lie in host memory.
///
/// # Errors
/// The matrices lie on different devices.
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
