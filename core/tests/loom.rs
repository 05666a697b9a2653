//! The hand-shake of the queues in every interleaving of a small graph.
//!
//! Run by `RUSTFLAGS="--cfg loom" cargo test -p lapidary-core --test loom --release`.
#![cfg(loom)]

use std::ptr::NonNull;

use lapidary_core::null::{NullDevice, Request};
use lapidary_core::{Crew, Drive, Driver, Home, Instruction, Lane, Layout, Plan, RawMat, Reach, Region, Run, Schedule};
use loom::sync::Arc;

/// Two tiles scaled, the second after the first: LD EXEC ST each.
fn chain(dependent: bool) -> Plan<f64> {
    let mut plan = Plan::new("chain");
    let c = plan.output("C", (2, 2), Layout::ColMajor);
    for task in 0..2 {
        let cols = if dependent { 0..1 } else { task..task + 1 };
        plan.task("scale", Region { row: 0, col: cols.start, rows: 2, cols: 1 });
        let tile = plan.ld(c, &(0..2), &cols);
        plan.exec(Instruction::Scale { beta: 2.0, c: tile });
        plan.st(tile);
    }
    plan
}

fn binding() -> RawMat {
    let home = Home::Host(NonNull::dangling());
    RawMat { home, offset: 0, rows: 2, cols: 2, ld: 2, layout: Layout::ColMajor }
}

/// What one run shares among its threads.
struct Shared {
    schedule: Schedule<f64>,
    bindings: [RawMat; 1],
    drivers: Vec<Driver<NullDevice>>,
}

// SAFETY: the bindings are never followed: a null device touches no memory.
unsafe impl Sync for Shared {}
unsafe impl Send for Shared {}

/// All lanes on threads of their own; what the first device recorded, and the outcome.
fn drive(plan: Plan<f64>, devices: Vec<NullDevice>, copies: bool) -> (Vec<Request>, bool) {
    let reach = Reach { memory: if copies { 32 } else { usize::MAX }, in_place: vec![!copies] };
    let schedule = Schedule::new(plan, vec![reach; devices.len()]).unwrap();
    let drivers = devices.into_iter().map(Driver::new).collect();
    let owned = Box::into_raw(Box::new(Shared { schedule, bindings: [binding()], drivers }));
    // SAFETY: freed below, when no thread is left.
    let shared: &'static Shared = unsafe { &*owned };
    let lanes: Vec<Lane> = shared.schedule.dispatcher().lanes().collect();
    // SAFETY: a null device touches no memory.
    let run = Arc::new(unsafe { Run::new(&shared.schedule, &shared.bindings) });
    let threads: Vec<_> = lanes[1..]
        .iter()
        .map(|&lane| {
            let run = Arc::clone(&run);
            loom::thread::spawn(move || shared.drivers[lane.device].drive(&run, lane))
        })
        .collect();
    shared.drivers[lanes[0].device].drive(&run, lanes[0]);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let outcome = Arc::try_unwrap(run).expect("all lanes have returned").finish();
    shared.drivers.iter().for_each(Drive::free_all);
    assert!(shared.drivers.iter().all(|d| d.device().record().held == 0), "memory leaks");
    let requests = shared.drivers[0].device().record().requests;
    // SAFETY: all threads have been joined and the run is gone.
    drop(unsafe { Box::from_raw(owned) });
    (requests, outcome.is_ok())
}

/// All interleavings with at most two preemptions (every switch at a wait is
/// free): the bound that keeps three queues within seconds.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(check);
}

#[test]
fn three_queues_of_one_device_finish_in_dependency_order() {
    model(|| {
        let (requests, ok) = drive(chain(true), vec![NullDevice::new(Some(32))], true);
        assert!(ok);
        let of = |wanted: &Request| requests.iter().filter(|r| *r == wanted).count();
        assert_eq!([of(&Request::Write(2, 1)), of(&Request::Launch("scale")), of(&Request::Read(2, 1))], [2, 2, 2]);
        let at = |wanted: &Request, nth: usize| requests.iter().enumerate().filter(|(_, r)| *r == wanted).nth(nth).unwrap().0;
        for task in 0..2 {
            assert!(at(&Request::Write(2, 1), task) < at(&Request::Launch("scale"), task));
            assert!(at(&Request::Launch("scale"), task) < at(&Request::Read(2, 1), task));
        }
        // the second task reads what the first has written
        assert!(at(&Request::Read(2, 1), 0) < at(&Request::Write(2, 1), 1));
    });
}

#[test]
fn two_devices_share_independent_tasks() {
    model(|| {
        let (_, ok) = drive(chain(false), vec![NullDevice::new(None), NullDevice::new(None)], false);
        assert!(ok);
    });
}

#[test]
fn two_devices_pass_a_dependent_task_on() {
    model(|| {
        let (_, ok) = drive(chain(true), vec![NullDevice::new(None), NullDevice::new(None)], false);
        assert!(ok);
    });
}

#[test]
fn an_error_in_any_command_stops_every_lane() {
    for request in 0..6 {
        model(move || {
            let (_, ok) = drive(chain(true), vec![NullDevice::new(Some(32)).failing_at(request)], true);
            assert!(!ok);
        });
    }
}

#[test]
fn the_crew_runs_every_lane_and_is_dismissed() {
    model(|| {
        let crew = Crew::default();
        let count = std::sync::atomic::AtomicUsize::new(0);
        for _ in 0..2 {
            crew.run(
                2,
                &|_| {
                    count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                },
                || {},
            );
        }
        assert_eq!(count.into_inner(), 4);
    });
}
