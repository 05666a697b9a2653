//! Tests of the engine with random plans in random legal orders. The tests of the engine check that the results always have the
//! same bits, that no dependency is violated, that no deadlock or memory leak occurs, and that every error reaches the caller.

mod beside;
mod digest;
mod late;
mod lu;
mod progress;
mod shortage;
mod wide;

use std::cell::{RefCell, UnsafeCell};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;

use crate::LanePool;
use crate::device::{Device, DeviceBuffer, HostRect, Memory, Operand};
use crate::dispatch::{Lane, Reach, Step};
use crate::engine::registers::Registers;
use crate::engine::{DeviceRuntime, Run, RunError, Watch, lock, reach, run};
use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::DeviceFacts;
use crate::instruction::{Instruction, Region};
use crate::matrix::{MatMut, RawMat};
use crate::null::{NullDevice, Record};
use crate::plan::Plan;
use crate::scalar::DType;
use crate::schedule::Schedule;
use crate::value::Value;

use digest::{DigestDevice, mix, words};
use late::LateQueues;

const ORDER: usize = 12;

/// A random task: a rectangle that the task updates, and rectangles that the task reads.
#[derive(Clone, Debug)]
struct TaskCase {
    result: (usize, Region),
    inputs: Vec<(usize, Region)>,
    scratch: bool,
    bar: bool,
    /// Whether the task loads its result again after the store, and updates the result a second time.
    again: bool,
}

fn rectangle() -> impl Strategy<Value = (usize, Region)> {
    (0..2_usize, 0..ORDER, 0..ORDER, 1..6_usize, 1..6_usize).prop_map(|(matrix, row, col, rows, cols)| {
        (matrix, Region { row, col, rows: rows.min(ORDER - row), cols: cols.min(ORDER - col) })
    })
}

fn task() -> impl Strategy<Value = TaskCase> {
    (rectangle(), prop::collection::vec(rectangle(), 0..4), any::<[bool; 3]>()).prop_map(
        |(result, inputs, [scratch, bar, again])| {
            // a register is a copy of its rectangle, so a task must not write elements through one register and read them through
            // another register
            let inputs = inputs.into_iter().filter(|(m, r)| *m != result.0 || !r.overlaps(&result.1)).collect();
            TaskCase { result, inputs, scratch, bar, again }
        },
    )
}

fn ranges(region: &Region) -> (Range<usize>, Range<usize>) {
    (region.row..region.row + region.rows, region.col..region.col + region.cols)
}

fn plan(tasks: &[TaskCase]) -> Plan {
    plan_of(tasks, Layout::RowMajor)
}

/// Makes a random plan whose second matrix has the layout `layout`. A device works in place on column-major matrices only.
fn plan_of(tasks: &[TaskCase], layout: Layout) -> Plan {
    let mut plan = Plan::new("random", DType::F64);
    let matrices = [plan.output("A", (ORDER, ORDER), Layout::ColMajor), plan.output("B", (ORDER, ORDER), layout)];
    for TaskCase { result, inputs, scratch, bar, again } in tasks {
        plan.task("random", result.1);
        let (rows, cols) = ranges(&result.1);
        let c = plan.ld(matrices[result.0], &rows, &cols);
        for (matrix, region) in inputs {
            let (rows, cols) = ranges(region);
            let a = plan.ld(matrices[*matrix], &rows, &cols);
            if *bar {
                plan.bar(crate::command::Queue::Exec);
            }
            if *scratch {
                let v = plan.scratch(a.rows(), a.cols());
                plan.exec(Instruction::Copy { a, b: v });
                plan.exec(Instruction::Gemm {
                    alpha: Value::F64(1.0),
                    op_a: Op::NoTrans,
                    a: v,
                    op_b: Op::NoTrans,
                    b: a,
                    beta: Value::F64(1.0),
                    c,
                });
            } else {
                let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
                plan.exec(Instruction::Trsm { mode, side, uplo, op, diag, alpha: Value::F64(1.0), a, b: c });
            }
            plan.mark(crate::command::Queue::Ld);
        }
        // the kernel scales the last quarter of the result, so that the tile begins at neither the first row nor the first column
        // of the register
        let (row, col) = (c.rows() / 2, c.cols() / 2);
        plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: c.sub(row, col, c.rows() - row, c.cols() - col) });
        plan.st(c);
        if *again {
            let (rows, cols) = ranges(&result.1);
            let c = plan.ld(matrices[result.0], &rows, &cols);
            plan.exec(Instruction::Scale { beta: Value::F64(3.0), c });
            plan.st(c);
        }
    }
    plan
}

/// The matrices of a random plan, filled with distinct values.
struct Matrices([Vec<f64>; 2]);

impl Matrices {
    fn new() -> Self {
        Matrices([0, 1].map(|m| (0..ORDER * ORDER).map(|i| (1 + i + 1000 * m) as f64).collect()))
    }
    fn bindings(&mut self, layout: Layout) -> [RawMat; 2] {
        let [a, b] = &mut self.0;
        let a = MatMut::col_major(a, ORDER, ORDER).unwrap().raw();
        [a, MatMut::new(b, ORDER, ORDER, ORDER, layout).unwrap().raw()]
    }
    fn bits(&self) -> u64 {
        self.0.iter().flatten().fold(0, |digest, v| mix(digest, v.to_bits()))
    }
}

type Runtimes = [DeviceRuntime];

/// Runs a schedule command by command on the calling thread. The numbers in `choices` select the lane of each step.
fn step_by_step(schedule: &Schedule, runtimes: &Runtimes, bindings: &[RawMat], choices: &[u8]) -> Result<(), RunError> {
    // SAFETY: the matrices are as the plan declares, and only this test accesses them.
    let run = unsafe { Run::new(schedule, bindings) };
    let lanes: Vec<Lane> = schedule.dispatcher().lanes().collect();
    let registers = RefCell::new(runtimes.iter().map(Registers::new).collect::<Vec<_>>());
    let next = |lane| lock(&run.state).dispatcher.next(lane);
    let step = |lane: Lane| loop {
        let registers = &mut registers.borrow_mut()[lane.device];
        match next(lane) {
            Ok(Step::Obtain(slot)) => run.obtained(lane.device, slot, registers.obtain(slot)),
            Ok(Step::Release(slot)) => registers.release(slot),
            Ok(step) => return step,
            Err(error) => {
                run.fail(&mut lock(&run.state), error);
                return Step::Finished;
            }
        }
    };
    let (mut issued, mut choice) = (Vec::new(), choices.iter().cycle());
    loop {
        let pick = usize::from(*choice.next().unwrap());
        // each step either starts a command on a lane without a command, or finishes a command that was started
        let lane = lanes[pick % lanes.len()];
        let free = !issued.iter().any(|(l, _)| *l == lane);
        if free && let Step::Run(issue) = step(lane) {
            issued.push((lane, issue));
            continue;
        }
        if issued.is_empty() {
            // a lane that received `Step::Wait` may get a command after the dispatcher has returned steps for other lanes, so the
            // test asks for a step of each lane three times
            let mut asked = lanes.iter().cycle().take(3 * lanes.len()).map(|&lane| (lane, step(lane)));
            issued.extend(asked.find_map(|(lane, step)| if let Step::Run(issue) = step { Some((lane, issue)) } else { None }));
            if issued.is_empty() {
                assert!(lanes.iter().all(|&lane| step(lane) == Step::Finished), "deadlock");
                return run.finish();
            }
            continue;
        }
        let picked = pick % issued.len();
        // a kernel that must wait for a kernel of the other queue runs after that kernel
        let before = issued.iter().position(|(_, earlier)| issued[picked].1.after == Some(earlier.command));
        let (lane, issue) = issued.swap_remove(before.unwrap_or(picked));
        let submitted = registers.borrow_mut()[lane.device].submit(&run, lane, &issue, &[]);
        let result = submitted.and_then(|token| token.wait());
        run.complete(lane, issue.command, "digest", result);
    }
}

/// Runs a schedule by [`run`], with one engine thread for each device.
fn with_threads(schedule: &Schedule, runtimes: &Runtimes, bindings: &[RawMat]) -> Result<(), RunError> {
    let borrowed: Vec<_> = runtimes.iter().collect();
    // SAFETY: the matrices are as the plan declares, and only this test accesses them.
    unsafe { run(&LanePool::default(), &borrowed, schedule, bindings, Watch::default()) }
}

fn reaches(runtimes: &Runtimes, bindings: &[RawMat]) -> Vec<Reach> {
    runtimes.iter().enumerate().map(|(d, runtime)| reach(d, runtime.facts(), bindings)).collect()
}

fn runtime(device: impl Device) -> DeviceRuntime {
    DeviceRuntime::new(Box::new(device))
}

/// Runs `plan` on `devices` by the function `how`. Returns the result of the run, and a digest of the matrices after the run.
fn dispatch_all(
    plan: Plan,
    devices: Vec<DigestDevice>,
    how: impl Fn(&Schedule, &Runtimes, &[RawMat]) -> Result<(), RunError>,
) -> (Result<(), RunError>, u64) {
    let runtimes: Vec<_> = devices.into_iter().map(runtime).collect();
    let mut matrices = Matrices::new();
    let bindings = matrices.bindings(plan.matrices()[1].layout);
    let schedule = Schedule::new(plan, reaches(&runtimes, &bindings)).unwrap();
    let result = how(&schedule, &runtimes, &bindings);
    (result, matrices.bits())
}

fn alike(devices: usize, memory: Option<usize>) -> Vec<DigestDevice> {
    (0..devices).map(|_| DigestDevice::new(memory)).collect()
}

/// Returns the digest that all tests of `plan` expect: the digest of the matrices after one device has run the plan in plan
/// order, in place where the device can.
fn in_plan_order(plan: Plan) -> u64 {
    let (result, bits) = dispatch_all(plan, alike(1, None), |s, d, b| step_by_step(s, d, b, &[0]));
    result.unwrap();
    bits
}

/// A number of bytes that suffices for the registers of the largest task of a random plan, and is not much larger than needed.
const TIGHT: usize = 8 * 25 * 8;

proptest! {
    #[test]
    fn every_legal_order_gives_the_same_bits(
        tasks in prop::collection::vec(task(), 1..12),
        devices in 1..4_usize,
        choices in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let expected = in_plan_order(plan(&tasks));
        for memory in [None, Some(TIGHT), Some(10 * TIGHT)] {
            let (result, bits) = dispatch_all(plan(&tasks), alike(devices, memory), |s, d, b| step_by_step(s, d, b, &choices));
            prop_assert!(result.is_ok());
            prop_assert_eq!(bits, expected);
        }
    }

    #[test]
    fn threads_give_the_same_bits(
        tasks in prop::collection::vec(task(), 1..30),
        devices in prop::collection::vec((any::<bool>(), prop::option::of(any::<u64>())), 1..4),
    ) {
        let expected = in_plan_order(plan(&tasks));
        let device = |(copies, late): (bool, Option<u64>)| {
            DigestDevice { late: late.map(LateQueues::new), ..DigestDevice::new(copies.then_some(TIGHT)) }
        };
        let (result, bits) = dispatch_all(plan(&tasks), devices.into_iter().map(device).collect(), with_threads);
        prop_assert!(result.is_ok());
        prop_assert_eq!(bits, expected);
    }

    /// With two kernel queues, the dispatcher may issue the kernels of a task before the predecessors of the task are done.
    #[test]
    fn two_queues_of_kernels_give_the_same_bits(
        tasks in prop::collection::vec(task(), 1..30),
        choices in prop::collection::vec(any::<u8>(), 1..64),
        late in prop::option::of(any::<u64>()),
        copies in any::<bool>(),
    ) {
        let plan = || plan_of(&tasks, Layout::ColMajor);
        let expected = in_plan_order(plan());
        let device = || {
            let mut device = DigestDevice { late: late.map(LateQueues::new), ..DigestDevice::new(copies.then_some(TIGHT)) };
            device.facts.queues = 2;
            vec![device]
        };
        let outcomes = [
            dispatch_all(plan(), device(), |s, d, b| step_by_step(s, d, b, &choices)),
            dispatch_all(plan(), device(), with_threads),
        ];
        for (result, bits) in outcomes {
            prop_assert!(result.is_ok());
            prop_assert_eq!(bits, expected);
        }
    }

    #[test]
    fn an_error_reaches_the_caller_with_its_context(tasks in prop::collection::vec(task(), 1..12), devices in 1..4_usize) {
        let failing = alike(devices, Some(TIGHT)).into_iter().map(|device| DigestDevice { failure: Some("scale"), ..device });
        let (result, _) = dispatch_all(plan(&tasks), failing.collect(), with_threads);
        let error = result.unwrap_err().error;
        prop_assert_eq!(error.kind(), ErrorKind::DeviceFailed);
        prop_assert!(error.context().any(|(key, value)| key == "command" && value.contains("EXEC scale")));
    }

    #[test]
    fn memory_stays_under_the_limit_and_is_given_back(
        runs in prop::collection::vec(prop::collection::vec(task(), 1..20), 1..3),
        failure in prop::option::of((0..60_usize, any::<bool>())),
    ) {
        let device = NullDevice::new(Some(TIGHT));
        let runtime = runtime(match failure {
            Some((at, true)) => device.out_of_memory_at(at),
            Some((at, false)) => device.failing_at(at),
            None => device,
        });
        let record = || runtime.device().downcast::<NullDevice>().unwrap().record();
        let mut matrices = Matrices::new();
        let bindings = matrices.bindings(Layout::RowMajor);
        for tasks in runs {
            let schedule = Schedule::new(plan(&tasks), vec![reach(0, runtime.facts(), &bindings)]).unwrap();
            // SAFETY: a null device accesses no memory.
            let result = unsafe { run(&LanePool::default(), &[&runtime], &schedule, &bindings, Watch::default()) };
            prop_assert!(result.is_ok() || failure.is_some());
            // the memory that a run keeps for the next run counts against the memory limit too
            let Record { most, held, .. } = record();
            prop_assert!(most <= TIGHT, "{} bytes held of {TIGHT}", most);
            prop_assert!(result.is_ok() || held == 0, "{held} bytes are kept of a run that failed");
        }
        runtime.trim();
        prop_assert_eq!(record().held, 0);
    }
}

/// A plan of ten tasks, each of which scales one tile.
fn ten_tiles() -> Plan {
    let mut plan = Plan::new("scale", DType::F64);
    let c = plan.output("A", (4, 40), Layout::ColMajor);
    for j in 0..10 {
        plan.task("A", Region { row: 0, col: 4 * j, rows: 4, cols: 4 });
        let tile = plan.ld(c, &(0..4), &(4 * j..4 * j + 4));
        plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: tile });
        plan.st(tile);
    }
    plan
}

#[test]
fn a_slow_device_leaves_the_last_tasks_to_a_fast_one() {
    let tasks_of_the_slow = |slower: f64| {
        let reach = |flops| Reach { memory: usize::MAX, in_place: vec![true], flops, queues: 1 };
        let schedule = Schedule::new(ten_tiles(), vec![reach(1.0), reach(slower)]).unwrap();
        let cost = |flops| crate::CostModel { flops: 1.0, bandwidth: 1.0, latency: 1.0 / flops };
        let timeline = schedule.simulate(&[cost(1.0), cost(slower)]);
        timeline.entries.iter().filter(|entry| entry.lane.device == 1).count()
    };
    // while the slow device runs one task, the fast device runs one, two, four or eleven tasks
    assert_eq!([1.0, 0.5, 0.25, 0.09].map(tasks_of_the_slow), [5, 3, 2, 0]);
}

#[test]
fn too_little_memory_is_refused_with_the_need() {
    let mut plan = Plan::new("scale", DType::F64);
    let c = plan.output("C", (4, 4), Layout::ColMajor);
    plan.task("C", Region::whole(4, 4));
    let tile = plan.ld(c, &(0..4), &(0..4));
    plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: tile });
    plan.st(tile);
    let error =
        Schedule::new(plan, vec![Reach { memory: 100, in_place: vec![false], flops: 1.0, queues: 1 }]).unwrap_err().of("null:0");
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("128"), "{error}");
}

#[test]
fn a_copying_device_overlaps_its_queues() {
    let schedule =
        Schedule::new(ten_tiles(), vec![Reach { memory: 3 * 128, in_place: vec![false], flops: 1.0, queues: 1 }]).unwrap();
    let cost = crate::CostModel { flops: 1.0, bandwidth: 1e9, latency: 1.0 };
    // each of the ten tasks has three commands of one second: the thirty commands take 12 s in a pipeline, and 30 s without
    // overlap
    let seconds = schedule.simulate(&[cost]).seconds();
    assert!(seconds < 13.0, "{seconds}");
}

/// If the run were not stopped, the other lanes would wait for ever for commands of the lane that panicked.
#[test]
fn a_panic_of_a_device_stops_all_lanes_and_reaches_the_caller() {
    let tile = Region { row: 0, col: 0, rows: 3, cols: 3 };
    let tasks = [TaskCase { result: (0, tile), inputs: Vec::new(), scratch: false, bar: false, again: false }];
    let with_panic =
        || dispatch_all(plan(&tasks), vec![DigestDevice { panics: true, ..DigestDevice::new(Some(TIGHT)) }], with_threads);
    assert!(std::panic::catch_unwind(with_panic).is_err());
}

#[test]
fn memory_of_another_is_a_matrix_that_is_not_counted() {
    let runtime = runtime(DigestDevice::new(Some(TIGHT)));
    runtime.adopt(7, runtime.device().alloc(64).unwrap());
    assert_eq!((words(&runtime.resident(7).unwrap()).len(), runtime.free_memory()), (8, TIGHT));
    runtime.discard(7);
    assert!(runtime.resident(7).is_err());
}
