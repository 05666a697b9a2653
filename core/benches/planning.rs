//! This benchmark measures the time of planning, scheduling and dispatching. Together, planning, scheduling and dispatching take at
//! most 1 µs per command, for up to 10⁶ commands (`bench/results/2026-11-22-planning.txt`).
//!
//! Each benchmark group plans, schedules and dispatches one routine with growing numbers of commands. The commands
//! are dispatched but not executed. The throughput is the number of commands per second. The benchmark also prints how many bytes
//! of memory a plan and its graph take for each command.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lapidary_core::algorithms::{gemm, getrf};
use lapidary_core::{Blocking, DType, Layout, Op, Place, Plan, Reach, Schedule, Step, Value};

/// The problem `C ← A·B + C` for a C of order n and an inner dimension k.
fn product(n: usize, k: usize) -> gemm::Problem {
    let (alpha, beta) = (Value::F64(1.0), Value::F64(1.0));
    gemm::Problem { m: n, n, k, alpha, op_a: Op::NoTrans, op_b: Op::NoTrans, beta }
}

fn gemm_plan(tiles: usize) -> Plan {
    let n = tiles * 8;
    let problem = product(n, n);
    gemm::plan(&problem, &Blocking { mc: 8, nc: 8, kc: 8, nb: 8, share: usize::MAX, place: Place::Shared })
}

/// A plan with only one task. The task adds many products of one tile of A and one tile of B to a single tile of C.
fn long_plan(pieces: usize) -> Plan {
    let problem = product(8, pieces * 8);
    gemm::plan(&problem, &Blocking { mc: 8, nc: 8, kc: 8, nb: 8, share: usize::MAX, place: Place::Shared })
}

/// Number of bytes of six tiles, so that a device has memory for two products of tiles at the same time.
const TWO_SETS: usize = 6 * 8 * 8 * 8;

fn getrf_plan(panels: usize) -> Plan {
    let n = panels * 8;
    let problem = getrf::Problem::pivoted((n, n), Layout::ColMajor, DType::F64);
    getrf::plan(&problem, &Blocking { mc: n, nc: 8, kc: 8, nb: 8, share: usize::MAX, place: Place::Shared })
}

/// Dispatches all commands to two devices, and reports each command as completed at once.
fn dispatch(schedule: &Schedule) {
    let mut dispatcher = schedule.dispatcher();
    let lanes: Vec<_> = dispatcher.lanes().collect();
    while !dispatcher.is_done() {
        for &lane in &lanes {
            match dispatcher.next(lane).expect("no memory is refused") {
                Step::Run(issue) => dispatcher.complete(lane, issue.command),
                Step::Obtain(slot) => dispatcher.obtained(lane.device, slot, Ok(())).expect("it was obtained"),
                Step::Release(_) | Step::Wait | Step::Finished => {}
            }
        }
    }
}

fn routine(c: &mut Criterion, name: &str, plan: fn(usize) -> Plan, memory: usize, sizes: &[usize]) {
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    for &size in sizes {
        let sample = plan(size);
        let commands = sample.commands().len();
        let reach = vec![Reach { memory, in_place: vec![false; sample.matrices().len()], flops: 1.0, queues: 1 }; 2];
        let schedule = Schedule::new(sample, reach.clone()).expect("two sets fit");
        let bytes = (schedule.plan().bytes() + schedule.graph().bytes()) / commands;
        println!("{name}: {commands} commands, {bytes} bytes per command");
        group.throughput(Throughput::Elements(commands as u64));
        group.bench_function(BenchmarkId::new("plan, schedule and dispatch", commands), |b| {
            b.iter(|| {
                let schedule = Schedule::new(black_box(plan(size)), reach.clone()).expect("two sets fit");
                dispatch(&schedule);
            });
        });
    }
    group.finish();
}

fn planning(c: &mut Criterion) {
    routine(c, "gemm", gemm_plan, usize::MAX, &[8, 32, 69]);
    routine(c, "gemm within a limit", long_plan, TWO_SETS, &[1000, 10_000, 100_000]);
    routine(c, "getrf", getrf_plan, usize::MAX, &[20, 80, 500]);
}

criterion_group!(benches, planning);
criterion_main!(benches);
