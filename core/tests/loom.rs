//! Tests of the synchronisation between engine threads and devices, in the thread interleavings of small plans.
//!
//! Two devices that work in place are tested in every interleaving, and so is the `LanePool`. A device that has a thread for
//! transfers and a thread for kernels has too many interleavings to test all of them. A device with threads of its own is tested
//! only in the interleavings with at most two preemptions, where a thread switch at a wait is no preemption.
//!
//! The command for these tests is `RUSTFLAGS="--cfg loom" cargo test -p lapidary-core --test loom --release`.
#![cfg(loom)]

#[path = "support/worker_thread.rs"]
mod worker_thread;

use std::collections::BTreeSet;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use lapidary_core::null::NullDevice;
use lapidary_core::{
    Access, BufferRect, DType, Device, DeviceBuffer, DeviceFacts, DeviceRuntime, Home, HostRect, Instruction, LanePool, Layout,
    Memory, Operand, Pending, Plan, Queue, RawMat, Region, Result, Run, RunError, Schedule, Token, Value, Work, reach,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

use worker_thread::{Served, WorkerThread};

/// The result of a run.
type Ended = Result<(), RunError>;

/// The address of memory that a request accesses, and the kind of access. The accessed memory is a column of the matrix or a
/// buffer.
type Touch = (usize, Access);

/// For each task of a plan, the columns of each tile that the task scales.
type Tasks = &'static [&'static [Range<usize>]];

/// A request to a device, with the times at which the request begins and ends.
#[derive(Clone, Debug)]
struct Span {
    device: usize,
    name: &'static str,
    touches: Vec<Touch>,
    begin: usize,
    end: usize,
    failed: bool,
}

/// The requests to all devices of a run, with times from one common clock.
#[derive(Debug, Default)]
struct Record {
    /// Counter that is incremented when a request begins and when a request ends. The model checker may switch threads at each
    /// increment of the clock. The increments have relaxed memory ordering, so that the clock orders no memory accesses that the
    /// engine leaves unordered.
    clock: AtomicUsize,
    /// The requests that have ended. The model checker does not see the lock of `spans`, since this lock is not a lock of `loom`.
    spans: Mutex<Vec<Span>>,
}

impl Record {
    fn tick(&self) -> usize {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

/// A null device that records when each request begins and ends.
#[derive(Debug)]
struct Witness {
    device: usize,
    null: NullDevice,
    record: Arc<Record>,
    /// The threads of a device with asynchronous queues: one for transfers, unless the device works in place, and one for each
    /// kernel queue.
    workers: Vec<Arc<WorkerThread>>,
}

/// A value that refers to memory which the engine keeps valid as long as the token of the work is pending.
struct Lent<T>(T);

// SAFETY: the thread that receives a `Lent` passes the value to a null device, which accesses no memory of operands.
unsafe impl<T> Send for Lent<T> {}

impl<T> Lent<T> {
    fn take(self) -> T {
        self.0
    }
}

impl Witness {
    fn note(&self, name: &'static str, touches: Vec<Touch>, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let begin = self.record.tick();
        let result = work();
        let (end, failed) = (self.record.tick(), result.is_err());
        self.record.spans.lock().unwrap().push(Span { device: self.device, name, touches, begin, end, failed });
        result
    }
}

fn buffer(touched: &DeviceBuffer, access: Access) -> Vec<Touch> {
    vec![(std::ptr::from_ref(touched).addr(), access)]
}

/// Returns the address of the first element of each column, with the kind of access.
fn columns(dtype: DType, start: usize, (cols, stride): (usize, usize), access: Access) -> Vec<Touch> {
    (0..cols).map(|j| (start + j * stride * dtype.size(), access)).collect()
}

fn on_host(rect: &HostRect, access: Access) -> Vec<Touch> {
    columns(rect.dtype, rect.origin.addr(), (rect.cols, rect.col_stride), access)
}

impl Device for Witness {
    fn facts(&self) -> &DeviceFacts {
        self.null.facts()
    }

    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.null.alloc(bytes)
    }

    unsafe fn submit(&self, work: Work<'_>, after: &[&Token]) -> Result<Token> {
        // SAFETY: `transmute` changes only lifetimes. The device outlives its threads, and the engine keeps the operands valid
        // until the token reports completion. The caller fulfils the safety contract of `submit`.
        unsafe {
            let own: &'static Witness = std::mem::transmute(self);
            let copied = match work {
                Work::Run { instruction, .. } => Some(std::mem::transmute::<_, Instruction<Operand<'static>>>(*instruction)),
                Work::Write { .. } | Work::Read { .. } => None,
            };
            let lent = Lent((std::mem::transmute::<Work<'_>, Work<'static>>(work), copied));
            let carry_out = move || match lent.take() {
                (_, Some(instruction)) => own.launch(&instruction),
                (Work::Write { from, to }, _) => own.write(from, to),
                (Work::Read { from, to }, _) => own.read(from, to),
                (Work::Run { .. }, None) => unreachable!("it is copied"),
            };
            let before: Vec<Served> =
                after.iter().map(|token| token.get::<Served>().expect("work of this device").clone()).collect();
            let kernels = usize::from(!self.null.facts().host_memory);
            let worker = match work {
                Work::Run { queue, .. } => self.workers.get(kernels + queue),
                Work::Write { .. } | Work::Read { .. } => self.workers.first(),
            };
            match worker {
                None => carry_out().map(|()| Token::DONE),
                Some(worker) => Ok(worker.give(move || {
                    before.iter().try_for_each(Pending::wait)?;
                    carry_out()
                })),
            }
        }
    }

    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        let touches = [on_host(&from, Access::Read), buffer(to.buffer, Access::Write)].concat();
        // SAFETY: the caller fulfils the safety contract of `write`.
        self.note("write", touches, || unsafe { self.null.write(from, to) })
    }

    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        let touches = [buffer(from.buffer, Access::Read), on_host(&to, Access::Write)].concat();
        // SAFETY: the caller fulfils the safety contract of `read`.
        self.note("read", touches, || unsafe { self.null.read(from, to) })
    }

    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        let mut touches = Vec::new();
        instruction.operands(|Operand { memory, offset, cols, ld, dtype, .. }, access| {
            touches.extend(match memory {
                Memory::Host(base) => columns(dtype, base.addr().get() + offset * dtype.size(), (cols, ld), access),
                Memory::Buffer(touched) => buffer(touched, access),
            });
        });
        // SAFETY: the caller fulfils the safety contract of `launch`.
        self.note("launch", touches, || unsafe { self.null.launch(instruction) })
    }
}

/// Two tasks scale the same column.
const CHAIN: Tasks = &[&[0..1], &[0..1]];
/// Two tasks scale one column each.
const APART: Tasks = &[&[0..1], &[1..2]];
/// The first task scales both columns at once; the second and the third task scale one column each.
const FORK: Tasks = &[&[0..2], &[0..1], &[1..2]];
/// The first and the second task scale one column each; the third task scales both columns.
const JOIN: Tasks = &[&[0..1], &[1..2], &[0..2]];
/// One task scales the two columns of the matrix as two tiles. A device with threads of its own may load the second tile while it
/// scales the first tile.
const PAIR: Tasks = &[&[0..1, 1..2]];

/// Makes a plan with LD and EXEC for each tile of a task, followed by ST for each tile after all kernels of the task are done.
fn plan(tasks: Tasks) -> Plan {
    let mut plan = Plan::new("scale", DType::F64);
    let c = plan.output("C", (2, 2), Layout::ColMajor);
    for tiles in tasks {
        let (first, last) = (&tiles[0], &tiles[tiles.len() - 1]);
        plan.task("scale", Region { row: 0, col: first.start, rows: 2, cols: last.end - first.start });
        let scaled: Vec<_> = tiles
            .iter()
            .map(|cols| {
                let tile = plan.ld(c, &(0..2), cols);
                plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: tile });
                tile
            })
            .collect();
        if scaled.len() > 1 {
            plan.bar(Queue::St);
        }
        scaled.into_iter().for_each(|tile| plan.st(tile));
    }
    plan
}

fn binding() -> RawMat {
    let home = Home::Host(NonNull::dangling());
    RawMat { home, offset: 0, rows: 2, cols: 2, ld: 2, layout: Layout::ColMajor, dtype: DType::F64 }
}

/// The data that all threads of a run share.
struct Shared {
    schedule: Schedule,
    bindings: [RawMat; 1],
    drivers: Vec<DeviceRuntime>,
}

// SAFETY: no thread accesses the memory of the bindings, since a null device accesses no memory.
unsafe impl Sync for Shared {}
// SAFETY: no thread accesses the memory of the bindings, since a null device accesses no memory.
unsafe impl Send for Shared {}

/// A device of a run: a null device, and whether the device has threads of its own.
type Case = (NullDevice, bool);

/// Runs `tasks` with one engine thread for each device. Returns the requests to the devices, ordered by their begin, and the
/// result of the run.
fn run_all_lanes(tasks: Tasks, devices: Vec<Case>) -> (Vec<Span>, Ended) {
    let bindings = [binding()];
    let reaches = devices.iter().enumerate().map(|(index, (device, _))| reach(index, device.facts(), &bindings)).collect();
    let schedule = Schedule::new(plan(tasks), reaches).unwrap();
    let record = Arc::new(Record::default());
    let mut workers = Vec::new();
    let mut witness = |(device, (null, is_late)): (usize, Case)| {
        let threads = if is_late { null.facts().queues + usize::from(!null.facts().host_memory) } else { 0 };
        let own: Vec<_> = (0..threads).map(|_| Arc::new(WorkerThread::default())).collect();
        workers.extend(own.iter().cloned());
        DeviceRuntime::new(Box::new(Witness { device, null, record: Arc::clone(&record), workers: own }))
    };
    let drivers = devices.into_iter().enumerate().map(&mut witness).collect();
    let serving: Vec<_> = workers
        .iter()
        .map(|worker| {
            let worker = Arc::clone(worker);
            loom::thread::spawn(move || worker.serve())
        })
        .collect();
    let owned = Box::into_raw(Box::new(Shared { schedule, bindings, drivers }));
    // SAFETY: the memory of `Shared` is freed only at the end of this function, after all threads have been joined.
    let shared: &'static Shared = unsafe { &*owned };
    // SAFETY: a null device accesses no memory.
    let run = Arc::new(unsafe { Run::new(&shared.schedule, &shared.bindings) });
    let threads: Vec<_> = (1..shared.drivers.len())
        .map(|device| {
            let run = Arc::clone(&run);
            loom::thread::spawn(move || shared.drivers[device].run_lane(&run, device))
        })
        .collect();
    shared.drivers[0].run_lane(&run, 0);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let outcome = Arc::try_unwrap(run).expect("all drivers have returned").finish();
    workers.iter().for_each(|worker| worker.dismiss());
    serving.into_iter().for_each(|thread| thread.join().unwrap());
    shared.drivers.iter().for_each(DeviceRuntime::trim);
    assert!(shared.drivers.iter().all(|d| d.device().downcast::<Witness>().unwrap().null.record().held == 0), "memory leaks");
    // SAFETY: `owned` comes from `Box::into_raw`, and nothing uses `Shared` any more: all threads have been joined, and the run has
    // been consumed.
    drop(unsafe { Box::from_raw(owned) });
    let mut spans = std::mem::take(&mut *record.spans.lock().unwrap());
    spans.sort_by_key(|span| span.begin);
    assert_no_conflict(&spans);
    (spans, outcome)
}

/// Asserts that of two requests that overlap in time, neither writes memory that the other request accesses.
fn assert_no_conflict(spans: &[Span]) {
    for (nth, first) in spans.iter().enumerate() {
        for second in spans[nth + 1..].iter().filter(|second| second.begin < first.end) {
            let conflict = |x: &Touch, y: &Touch| x.0 == y.0 && (x.1 == Access::Write || y.1 == Access::Write);
            let apart = !first.touches.iter().any(|x| second.touches.iter().any(|y| conflict(x, y)));
            assert!(apart, "conflicting requests overlap: {first:?} and {second:?}");
        }
    }
}

/// Runs `check` in all interleavings, or only in those with at most `preemptions` preemptions.
fn model(preemptions: Option<usize>, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(check);
}

/// Maximum number of preemptions with which the tests of three threads take only seconds. With three preemptions the tests of
/// three threads take more than a minute. Without a bound on preemptions the tests of three threads had not finished after 100 s.
const FEW: Option<usize> = Some(2);
/// Maximum number of preemptions with which the tests of four threads take only seconds.
const ONE: Option<usize> = Some(1);

/// Runs `tasks` on two devices that work in place, in every interleaving. `check` receives the launches of each run. Each element
/// of the result lists, for some interleaving, the devices of the launches in the order in which the launches began.
fn two_devices(tasks: Tasks, check: fn(&[Span])) -> BTreeSet<Vec<usize>> {
    let seen = std::sync::Arc::new(Mutex::new(BTreeSet::new()));
    let devices = std::sync::Arc::clone(&seen);
    model(None, move || {
        let (spans, outcome) = run_all_lanes(tasks, vec![(NullDevice::new(None), false), (NullDevice::new(None), false)]);
        outcome.unwrap();
        assert_eq!(spans.len(), tasks.len(), "a launch for each task: {spans:?}");
        check(&spans);
        devices.lock().unwrap().insert(spans.iter().map(|span| span.device).collect());
    });
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn the_threads_of_one_device_finish_in_dependency_order() {
    model(FEW, || {
        let (spans, outcome) = run_all_lanes(CHAIN, vec![(NullDevice::new(Some(32)), true)]);
        outcome.unwrap();
        // the second task reads the column that the first task has written
        let names: Vec<_> = spans.iter().map(|span| span.name).collect();
        assert_eq!(names, ["write", "launch", "read", "write", "launch", "read"]);
        assert!(spans.windows(2).all(|pair| pair[0].end < pair[1].begin), "{spans:?}");
    });
}

/// The second part of this test runs two devices that copy matrices. Each of the two devices may run a task that depends on a
/// task of the other device.
#[test]
fn a_device_without_threads_does_one_thing_after_the_other() {
    model(None, || {
        let (spans, outcome) = run_all_lanes(PAIR, vec![(NullDevice::new(Some(64)), false)]);
        outcome.unwrap();
        let names: Vec<_> = spans.iter().map(|span| span.name).collect();
        assert_eq!(names, ["write", "launch", "write", "launch", "read", "read"]);
        assert!(spans.windows(2).all(|pair| pair[0].end < pair[1].begin), "{spans:?}");
    });
    model(FEW, || {
        let devices = [32, 32].map(|bytes| (NullDevice::new(Some(bytes)), false));
        let (spans, outcome) = run_all_lanes(FORK, devices.into());
        outcome.unwrap();
        assert_eq!(spans.iter().filter(|span| span.name == "launch").count(), 3, "{spans:?}");
    });
}

/// The work of a dropped token is still done, and a thread that waits for later work in the same queue sees the effect of the
/// dropped work.
#[test]
fn a_token_may_be_dropped() {
    model(None, || {
        let worker = Arc::new(WorkerThread::default());
        let done = Arc::new(AtomicUsize::new(0));
        let count = |_| {
            let done = Arc::clone(&done);
            worker.give(move || {
                done.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        };
        let [first, second] = [1, 2].map(count);
        drop(first);
        let serving = {
            let worker = Arc::clone(&worker);
            loom::thread::spawn(move || worker.serve())
        };
        second.wait().unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 2);
        worker.dismiss();
        serving.join().unwrap();
    });
}

#[test]
fn two_devices_share_independent_tasks() {
    let devices = two_devices(APART, |spans| assert_ne!(spans[0].touches, spans[1].touches, "{spans:?}"));
    assert_eq!(devices, BTreeSet::from([vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]]));
}

#[test]
fn two_devices_keep_the_order_of_a_chain() {
    let devices = two_devices(CHAIN, |spans| {
        assert_eq!(spans[0].touches, spans[1].touches);
        assert!(spans[0].end < spans[1].begin, "{spans:?}");
    });
    // the device that completes the first task always takes the second task too
    assert_eq!(devices, BTreeSet::from([vec![0, 0], vec![1, 1]]));
}

#[test]
fn two_devices_pass_a_dependent_task_on() {
    let devices = two_devices(FORK, |spans| {
        assert!(spans[0].touches.len() == 2 && spans[1].touches != spans[2].touches, "{spans:?}");
        assert!(spans[1..].iter().all(|later| spans[0].end < later.begin), "{spans:?}");
    });
    assert!(devices.contains(&vec![0, 0, 1]) && devices.contains(&vec![1, 1, 0]), "{devices:?}");
}

/// On a device with two kernel queues, the kernel of the last task may be issued before the first two tasks are done. The last
/// task must run after the first two tasks: the order of its queue puts it after one of the two, and a token puts it after the
/// other.
#[test]
fn kernels_of_two_queues_keep_the_order_of_their_tasks() {
    let overlapped = std::sync::Arc::new(AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&overlapped);
    model(FEW, move || {
        let (spans, outcome) = run_all_lanes(JOIN, vec![(NullDevice::new(None).with_queues(2), true)]);
        outcome.unwrap();
        assert!(spans.len() == 3 && spans[2].touches.len() == 2, "{spans:?}");
        seen.fetch_or(spans[1].begin < spans[0].end, Ordering::Relaxed);
    });
    assert!(overlapped.load(Ordering::Relaxed), "no kernels of the two queues were at work at once");
    for request in 0..3 {
        model(FEW, move || {
            let (_, outcome) = run_all_lanes(JOIN, vec![(NullDevice::new(None).with_queues(2).failing_at(request), true)]);
            assert!(outcome.is_err());
        });
    }
}

#[test]
fn an_error_in_any_command_stops_the_run() {
    for request in 0..6 {
        model(FEW, move || {
            let (_, outcome) = run_all_lanes(CHAIN, vec![(NullDevice::new(Some(32)).failing_at(request), true)]);
            assert!(outcome.is_err());
        });
    }
}

/// Runs `tasks` on a device that has no memory for request number `request`, either alone or (`company`) beside a device that
/// works in place. Returns whether another request of the device was in progress at the same time as the request without memory.
fn runs_short(tasks: Tasks, request: usize, company: bool, preemptions: Option<usize>) -> bool {
    let seen = std::sync::Arc::new(AtomicBool::new(false));
    let overlapped = std::sync::Arc::clone(&seen);
    model(preemptions, move || {
        let others = company.then(|| (NullDevice::new(None), false));
        let devices = [(NullDevice::new(Some(32)).out_of_memory_at(request), true)].into_iter().chain(others).collect();
        let (spans, outcome) = run_all_lanes(tasks, devices);
        let failed = spans.iter().find(|span| span.failed);
        let is_store = failed.is_some_and(|span| span.name == "read");
        assert!(outcome.is_ok() || !company || is_store, "a task is half done, or left: {outcome:?}");
        let meanwhile = |x: &Span, y: &Span| x.begin < y.begin && y.begin < x.end;
        let overlap = failed.is_some_and(|f| spans.iter().any(|s| s.device == 0 && (meanwhile(s, f) || meanwhile(f, s))));
        overlapped.fetch_or(overlap, Ordering::Relaxed);
    });
    seen.load(Ordering::Relaxed)
}

#[test]
fn a_shortage_in_any_request_leaves_whole_tasks() {
    // indices of the requests that lacked memory while another request of the device was in progress
    let overlapped = |tasks| -> Vec<usize> { (0..8).filter(|&request| runs_short(tasks, request, false, FEW)).collect() };
    assert_eq!(overlapped(APART), [3, 4, 5, 6]);
    assert_eq!(overlapped(PAIR), [3, 4]);
}

#[test]
fn another_device_does_what_a_short_one_leaves() {
    (0..8).for_each(|request| {
        runs_short(PAIR, request, true, ONE);
    });
    assert!(runs_short(PAIR, 3, true, FEW), "a kernel was under way");
}

#[test]
fn the_pool_runs_every_lane_and_is_dismissed() {
    model(None, || {
        let pool = LanePool::default();
        let count = std::sync::atomic::AtomicUsize::new(0);
        for _ in 0..2 {
            let count_one = |_| {
                count.fetch_add(1, Ordering::SeqCst);
            };
            pool.run(2, &count_one).unwrap();
        }
        assert_eq!(count.into_inner(), 4);
    });
}
