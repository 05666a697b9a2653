//! Tests how much memory a schedule needs, and which schedules are refused.

use super::Schedule;
use crate::dispatch::Reach;
use crate::enums::Layout;
use crate::instruction::{Instruction, Region};
use crate::plan::Plan;
use crate::scalar::DType;
use crate::value::Value;

/// Number of bytes of a tile.
const TILE: usize = 4 * 4 * 8;

/// The first task of the plan computes `V ← A` in two registers, then `C ← 2·C` in a third register. At most two of the three
/// registers are in use at the same time. The second task of the plan uses one register.
fn plan() -> Plan {
    let mut plan = Plan::new("test", DType::F64);
    let (a, c) = (plan.input("A", (4, 4), Layout::ColMajor), plan.output("C", (4, 4), Layout::ColMajor));
    plan.task("C", Region::whole(4, 4));
    let tile = plan.ld(a, &(0..4), &(0..4));
    let pad = plan.scratch(4, 4);
    plan.exec(Instruction::Copy { a: tile, b: pad });
    let result = plan.ld(c, &(0..4), &(0..4));
    plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: result });
    plan.st(result);
    plan.window(c, &(0..4), &(0..4)); // a register that no command uses
    plan.task("C", Region::whole(4, 4));
    plan.ld(c, &(0..4), &(0..4));
    plan
}

fn footprint(in_place: [bool; 2]) -> usize {
    let reach = Reach { memory: usize::MAX, in_place: in_place.to_vec(), flops: 1.0, queues: 1 };
    Schedule::new(plan(), vec![reach]).unwrap().footprint(0)
}

#[test]
fn a_register_needs_memory_from_its_first_command_to_its_last() {
    assert_eq!(footprint([false, false]), 2 * TILE, "the copy needs both, the rest one");
    assert_eq!(footprint([true, false]), TILE);
    assert_eq!(footprint([true, true]), TILE, "scratch memory is never in place");
    let nothing =
        Schedule::new(Plan::new("test", DType::F64), vec![Reach { memory: 0, in_place: Vec::new(), flops: 1.0, queues: 1 }]);
    assert_eq!(nothing.unwrap().footprint(0), 0);
}

#[test]
fn a_schedule_is_accepted_where_its_memory_is_just_enough() {
    let accept = |memory| {
        let reach = |memory| Reach { memory, in_place: vec![false; 2], flops: 1.0, queues: 1 };
        Schedule::new(plan(), vec![reach(usize::MAX), reach(memory)])
    };
    assert_eq!(accept(2 * TILE).unwrap().reach().len(), 2);
    let short = accept(2 * TILE - 1).unwrap_err();
    assert_eq!((short.device, short.limit, short.needed), (1, 255, 256));
    let error = short.of("wgpu:7").to_string();
    assert!(error.contains("the memory limit of wgpu:7 is 255 B") && error.contains("256"), "{error}");
}
