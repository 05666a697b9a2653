//! Tests of the rules by which devices take tasks and lanes receive commands.

use super::{Dispatcher, Lane, Reach, Step};
use crate::command::{CommandId, Queue};
use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
use crate::error::{Error, ErrorKind, Result};
use crate::instruction::{Instruction, Region};
use crate::plan::Plan;
use crate::scalar::DType;
use crate::schedule::Schedule;
use crate::simulate::CostModel;
use crate::value::Value;

/// Number of commands in each task of [`tiles`]: a load, two kernels and a store.
const COMMANDS: CommandId = 4;
const LD: CommandId = 0;
const EXEC: CommandId = 1;
const ST: CommandId = 3;
/// Number of bytes of a tile of the plan [`tiles`].
const TILE: usize = 4 * 4 * 8;

/// A plan in which each task scales one tile twice. Each task also has a register that no command uses.
fn tiles(count: usize) -> Plan {
    tiles_of(&vec![None; count])
}

/// Makes the plan of [`tiles`] with one task for each element of `owners`, which is the owner of the task, if it has one.
fn tiles_of(owners: &[Option<usize>]) -> Plan {
    let mut plan = Plan::new("scale", DType::F64);
    let c = plan.output("C", (4, 4 * owners.len()), Layout::ColMajor);
    for (j, &owner) in owners.iter().enumerate() {
        let cols = 4 * j..4 * j + 4;
        plan.task_for(owner, "C", Region { row: 0, col: cols.start, rows: 4, cols: 4 });
        plan.window(c, &(0..4), &cols);
        let tile = plan.ld(c, &(0..4), &cols);
        plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: tile });
        plan.exec(Instruction::Scale { beta: Value::F64(3.0), c: tile });
        plan.st(tile);
    }
    plan
}

fn in_place(flops: f64) -> Reach {
    Reach { memory: 0, in_place: vec![true], flops, queues: 1 }
}

fn copying(tiles: usize) -> Reach {
    Reach { memory: tiles * TILE, in_place: vec![false], flops: 1.0, queues: 1 }
}

/// Returns the next command of a lane; `None` if the lane must wait.
fn ask(dispatcher: &mut Dispatcher<'_>, device: usize, queue: Queue) -> Option<CommandId> {
    match next(dispatcher, Lane::new(device, queue), usize::MAX).unwrap() {
        Step::Run(issue) => Some(issue.command),
        Step::Wait => None,
        step => panic!("tasks are left: {step:?}"),
    }
}

/// Returns the next step of a lane on a device that refuses allocations of more than `most` bytes, even if its memory limit is
/// larger.
fn next(dispatcher: &mut Dispatcher<'_>, lane: Lane, most: usize) -> Result<Step> {
    loop {
        match dispatcher.next(lane)? {
            Step::Obtain(slot) => {
                let given = if slot.bytes > most { Err(short()) } else { Ok(()) };
                dispatcher.obtained(lane.device, slot, given)?;
            }
            Step::Release(_) => {}
            step => return Ok(step),
        }
    }
}

#[test]
fn a_kernel_is_given_out_when_those_are_that_it_waits_for() {
    let schedule = Schedule::new(tiles(2), vec![copying(2)]).unwrap();
    let (mut dispatcher, load) = (schedule.dispatcher(), Lane::new(0, Queue::Ld));
    assert_eq!([(); 2].map(|()| ask(&mut dispatcher, 0, Queue::Ld)), [Some(LD), Some(COMMANDS + LD)]);
    assert_eq!(ask(&mut dispatcher, 0, Queue::Exec), None, "its operand is on its way");
    dispatcher.complete(load, LD);
    assert_eq!([(); 3].map(|()| ask(&mut dispatcher, 0, Queue::Exec)), [Some(EXEC), Some(EXEC + 1), None]);
    assert_eq!(ask(&mut dispatcher, 0, Queue::St), None, "a store waits until kernels are done");
}

/// After the end of a command, the dispatcher names the devices that may have a next command. The simulator asks only these
/// devices for commands. To ask all devices after each command would take most of the time of a simulation of many devices.
#[test]
fn the_end_of_a_command_concerns_the_devices_that_may_continue() {
    let mut plan = Plan::new("scale", DType::F64);
    let c = plan.output("C", (4, 12), Layout::ColMajor);
    let tiles = [0, 1, 2].map(|device| plan.hold(device, c, &(0..4), &(4 * device..4 * device + 4)));
    for (device, tile) in tiles.into_iter().enumerate() {
        plan.task_on(device, "load", Region { row: 0, col: 4 * device, rows: 4, cols: 4 });
        plan.load(tile);
        plan.task_on(device, "scale", Region { row: 0, col: 4 * device, rows: 4, cols: 4 });
        plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: tile });
    }
    let changed = |plan, reaches| {
        let schedule = Schedule::new(plan, reaches).unwrap();
        let mut dispatcher = schedule.dispatcher();
        let load = ask(&mut dispatcher, 1, Queue::Ld).unwrap();
        dispatcher.take_changed();
        dispatcher.complete(Lane::new(1, Queue::Ld), load);
        dispatcher.take_changed().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(changed(plan, vec![copying(1); 3]), [1]);
    // any device may take the task that begins when the load is done
    let mut plan = Plan::new("copy", DType::F64);
    let c = plan.output("C", (4, 4), Layout::ColMajor);
    for store in [false, true] {
        plan.task("C", Region::whole(4, 4));
        let tile = plan.ld(c, &(0..4), &(0..4));
        if store {
            plan.st(tile);
        }
    }
    assert_eq!(changed(plan, vec![copying(1); 3]), [0, 1, 2]);
}

#[test]
fn a_lane_holds_a_few_commands() {
    let plan = |is_held: bool| {
        let mut plan = Plan::new("scale", DType::F64);
        let c = plan.output("C", (4, 4), Layout::ColMajor);
        let held = is_held.then(|| plan.hold(0, c, &(0..4), &(0..4)));
        plan.task_on(0, "C", Region::whole(4, 4));
        held.into_iter().for_each(|tile| plan.load(tile));
        let tile = held.unwrap_or_else(|| plan.ld(c, &(0..4), &(0..4)));
        (0..9).for_each(|_| plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: tile }));
        plan
    };
    let cases =
        [(in_place(1.0), false, 4), (Reach { queues: 2, ..copying(1) }, false, 4), (copying(1), false, 2), (copying(1), true, 4)];
    for (reach, is_held, depth) in cases {
        let schedule = Schedule::new(plan(is_held), vec![reach]).unwrap();
        let mut dispatcher = schedule.dispatcher();
        if let Some(load) = ask(&mut dispatcher, 0, Queue::Ld) {
            dispatcher.complete(Lane::new(0, Queue::Ld), load);
        }
        let given = std::iter::from_fn(|| ask(&mut dispatcher, 0, Queue::Exec)).count();
        assert_eq!(given, depth);
        dispatcher.complete(Lane::new(0, Queue::Exec), EXEC);
        assert!(ask(&mut dispatcher, 0, Queue::Exec).is_some());
    }
}

#[test]
fn a_device_that_copies_takes_a_task_for_each_queue_and_others_one() {
    let schedule = Schedule::new(tiles(9), vec![copying(9), in_place(1.0), in_place(1.0)]).unwrap();
    let mut dispatcher = schedule.dispatcher();
    let loads = [0, 1, 2].map(|task| Some(task * COMMANDS + LD));
    let mut load = |()| {
        let command = ask(&mut dispatcher, 0, Queue::Ld);
        dispatcher.complete(Lane::new(0, Queue::Ld), command?);
        command
    };
    assert_eq!([(); 3].map(&mut load), loads);
    assert_eq!(ask(&mut dispatcher, 0, Queue::Ld), None);
    let kernels = [Some(3 * COMMANDS + EXEC), Some(3 * COMMANDS + EXEC + 1), None];
    assert_eq!([(); 3].map(|()| ask(&mut dispatcher, 1, Queue::Exec)), kernels);
    assert_eq!(ask(&mut dispatcher, 2, Queue::Exec), Some(4 * COMMANDS + EXEC));
}

#[test]
fn a_task_whose_registers_wait_for_memory_is_the_last_that_is_taken() {
    let schedule = Schedule::new(tiles(9), vec![copying(1), in_place(1.0)]).unwrap();
    let mut dispatcher = schedule.dispatcher();
    assert_eq!(ask(&mut dispatcher, 0, Queue::Ld), Some(LD));
    assert_eq!(ask(&mut dispatcher, 0, Queue::Ld), None);
    assert_eq!(ask(&mut dispatcher, 0, Queue::Ld), None);
    // the first device has taken the second task, which waits for memory, so the other device takes the third task
    assert_eq!(ask(&mut dispatcher, 1, Queue::Exec), Some(2 * COMMANDS + EXEC));
}

#[test]
fn a_slow_device_takes_a_task_unless_the_others_are_done_before() {
    let takes = |tasks| {
        let schedule = Schedule::new(tiles(tasks), vec![in_place(1.0), in_place(0.25)]).unwrap();
        ask(&mut schedule.dispatcher(), 1, Queue::Exec).is_some()
    };
    // while the slow device runs one task, the fast device runs four tasks
    assert_eq!([3, 4, 5].map(takes), [false, true, true]);
}

#[test]
fn a_device_takes_its_own_tasks_and_then_tasks_of_a_device_that_has_many() {
    let owners = [Some(0), Some(1), Some(1), Some(1), Some(1)];
    let takes = |speed| {
        let schedule = Schedule::new(tiles_of(&owners), vec![in_place(speed), in_place(1.0)]).unwrap();
        let mut dispatcher = schedule.dispatcher();
        let mut take = |device: usize| {
            let command = ask(&mut dispatcher, device, Queue::Exec)?;
            assert_eq!(ask(&mut dispatcher, device, Queue::Exec), Some(command + 1), "both kernels of the task");
            (command..command + 2).for_each(|command| dispatcher.complete(Lane::new(device, Queue::Exec), command));
            Some(command / COMMANDS)
        };
        [take(1), take(0), take(0), take(0)]
    };
    // the second device has three tasks left, then two, then one
    assert_eq!(takes(1.0), [Some(1), Some(0), Some(4), Some(3)]);
    assert_eq!(takes(0.4), [Some(1), Some(0), Some(4), None], "the device would take longer than the owner for two tasks");
    assert_eq!(takes(0.3), [Some(1), Some(0), None, None]);
}

/// A device of 0.6 of the speed of another device takes the other device's last task only while the other device still needs the time of most of a
/// task for the task that it has begun.
#[test]
fn a_device_takes_a_task_by_the_time_that_the_owner_needs_for_the_tasks_that_it_has_begun() {
    let mut plan = Plan::new("trsm", DType::F64);
    let c = plan.output("C", (4, 8), Layout::ColMajor);
    for cols in [0..4, 4..8] {
        plan.task_for(Some(1), "C", Region { row: 0, col: cols.start, rows: 4, cols: 4 });
        let tile = plan.ld(c, &(0..4), &cols);
        let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Upper, Op::NoTrans, Diag::Unit);
        (0..2).for_each(|_| plan.exec(Instruction::Trsm { mode, side, uplo, op, diag, alpha: Value::F64(1.0), a: tile, b: tile }));
        plan.st(tile);
    }
    let takes = |kernels_done| {
        let schedule = Schedule::new(plan.clone(), vec![in_place(0.6), in_place(1.0)]).unwrap();
        let mut dispatcher = schedule.dispatcher();
        for command in EXEC..EXEC + kernels_done {
            assert_eq!(ask(&mut dispatcher, 1, Queue::Exec), Some(command));
            dispatcher.complete(Lane::new(1, Queue::Exec), command);
        }
        assert_eq!(ask(&mut dispatcher, 1, Queue::Exec), Some(EXEC + kernels_done), "the owner goes on");
        ask(&mut dispatcher, 0, Queue::Exec)
    };
    assert_eq!([takes(0), takes(1)], [Some(COMMANDS + EXEC), None]);
}

#[test]
fn a_device_that_is_busy_takes_only_its_own_tasks() {
    // an idle device of this speed would take the task of the other device
    let schedule = Schedule::new(tiles_of(&[Some(0), Some(1)]), vec![Reach { flops: 9.0, ..copying(9) }, copying(9)]).unwrap();
    let mut dispatcher = schedule.dispatcher();
    assert_eq!([(); 2].map(|()| ask(&mut dispatcher, 0, Queue::Ld)), [Some(LD), None]);
    assert_eq!(ask(&mut dispatcher, 1, Queue::Ld), Some(COMMANDS + LD));
}

#[test]
fn the_tasks_of_a_device_that_left_the_run_are_taken_by_others() {
    let schedule = Schedule::new(tiles_of(&[Some(0), Some(0)]), vec![copying(9), Reach { flops: 0.0, ..copying(9) }]).unwrap();
    let mut dispatcher = schedule.dispatcher();
    assert_eq!(ask(&mut dispatcher, 1, Queue::Ld), None);
    assert_eq!(ask(&mut dispatcher, 0, Queue::Ld), Some(LD));
    dispatcher.refuse(Lane::new(0, Queue::Ld), LD, short()).unwrap();
    while !matches!(dispatcher.next(Lane::new(0, Queue::Ld)), Ok(Step::Finished)) {}
    assert_eq!([(); 2].map(|()| ask(&mut dispatcher, 1, Queue::Ld)), [Some(COMMANDS + LD), None]);
}

#[test]
fn a_register_that_no_command_uses_takes_no_memory() {
    let schedule = Schedule::new(tiles(3), vec![copying(1)]).unwrap();
    let costs = CostModel { flops: 1.0, bandwidth: 1.0, latency: 1.0 };
    let mut entries = schedule.simulate(&[costs]).entries.into_iter();
    assert!(entries.all(|entry| entry.issue.operands[0].unwrap().id == 0));
}

#[test]
fn a_store_waits_for_the_kernels_before_it() {
    let schedule = Schedule::new(tiles(1), vec![copying(1)]).unwrap();
    let mut dispatcher = schedule.dispatcher();
    for (queue, command) in [(Queue::Ld, LD), (Queue::Exec, EXEC), (Queue::Exec, EXEC + 1), (Queue::St, ST)] {
        assert!(!dispatcher.is_touched());
        let mut others = Queue::ALL.into_iter().filter(|&other| other != queue);
        assert!(others.all(|other| ask(&mut dispatcher, 0, other).is_none()), "before {command}");
        assert_eq!(ask(&mut dispatcher, 0, queue), Some(command));
        dispatcher.complete(Lane::new(0, queue), command);
    }
    assert!(dispatcher.is_touched() && dispatcher.is_done());
}

fn short() -> Error {
    Error::new(ErrorKind::OutOfMemory, "test", "told to be short")
}

#[test]
fn a_task_that_has_written_and_finds_no_memory_is_an_error() {
    let mut plan = Plan::new("test", DType::F64);
    let c = plan.output("C", (4, 12), Layout::ColMajor);
    plan.task("C", Region::whole(4, 12));
    for cols in [0..4, 4..12] {
        let tile = plan.ld(c, &(0..4), &cols);
        plan.st(tile);
    }
    // the second tile is larger than the first, and gets memory only after the memory of the first tile is free
    let schedule = Schedule::new(plan, vec![copying(2)]).unwrap();
    let mut dispatcher = schedule.dispatcher();
    for (command, queue) in [(0, Queue::Ld), (1, Queue::St)] {
        let lane = Lane::new(0, queue);
        let step = next(&mut dispatcher, lane, TILE).unwrap();
        assert!(matches!(step, Step::Run(issue) if issue.command == command));
        dispatcher.complete(lane, command);
    }
    let error = next(&mut dispatcher, Lane::new(0, Queue::Ld), TILE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
}

/// The plan has four tasks: the first three tasks scale one tile each, and the last task scales both tiles.
#[test]
fn a_task_follows_what_it_waits_for_into_the_queues_of_its_device() {
    let mut plan = Plan::new("scale", DType::F64);
    let c = plan.output("C", (4, 8), Layout::ColMajor);
    for cols in [0..4, 4..8, 0..4, 0..8] {
        plan.task("C", Region { row: 0, col: cols.start, rows: 4, cols: cols.len() });
        let tile = plan.ld(c, &(0..4), &cols);
        plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: tile });
        plan.st(tile);
    }
    let kernel = |task: CommandId| 3 * task + 1;
    let schedule = Schedule::new(plan, vec![Reach { queues: 3, ..in_place(1.0) }]).unwrap();
    let mut dispatcher = schedule.dispatcher();
    let lanes: Vec<Lane> = dispatcher.lanes().collect();
    assert_eq!(lanes.len(), super::KERNEL_QUEUES);
    let mut given = |lane: usize| match dispatcher.next(lanes[lane]).unwrap() {
        Step::Run(issue) => Some((issue.command, issue.after)),
        _ => None,
    };
    // in one queue the third task follows the first task; in the other queue the fourth task follows the second task, and waits for
    // the third task too
    assert_eq!(given(0), Some((kernel(0), None)));
    assert_eq!(given(1), Some((kernel(1), None)));
    assert_eq!(given(0), Some((kernel(2), None)));
    assert_eq!(given(1), Some((kernel(3), Some(kernel(2)))));
    assert_eq!([given(0), given(1)], [None; 2]);
    // the test reports the kernels as completed in another order than the order in which the dispatcher issued them
    for (task, lane) in [(3, 1), (0, 0), (1, 1), (2, 0)] {
        assert!(!dispatcher.is_done());
        dispatcher.complete(lanes[lane], kernel(task));
        assert!(lanes.iter().all(|&lane| !matches!(dispatcher.next(lane), Ok(Step::Run(_)))));
    }
    assert!(dispatcher.is_done());
}
