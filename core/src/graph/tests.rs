//! Tests which commands and tasks have an edge between them, and that the graph contains each edge only once.

use super::{Adjacency, Graph, LiveRange};
use crate::command::Queue;
use crate::enums::{Layout, Op};
use crate::instruction::{Instruction, Region};
use crate::plan::Plan;
use crate::scalar::DType;
use crate::value::Value;

fn edges(adjacency: &Adjacency) -> Vec<(u32, u32)> {
    let nodes = 0..u32::try_from(adjacency.predecessor_counts().len()).unwrap();
    let edges: Vec<_> = nodes.flat_map(|node| adjacency.successors(node).iter().map(move |&later| (node, later))).collect();
    let mut predecessor_counts = vec![0; adjacency.predecessor_counts().len()];
    edges.iter().for_each(|&(_, later)| predecessor_counts[later as usize] += 1);
    assert_eq!(predecessor_counts, adjacency.predecessor_counts());
    edges
}

#[test]
fn a_command_waits_for_those_it_conflicts_with() {
    let mut plan = Plan::new("test", DType::F64);
    let (a, c) = (plan.input("A", (2, 2), Layout::ColMajor), plan.output("C", (2, 2), Layout::ColMajor));
    plan.task("C", Region::whole(2, 2));
    let tile = plan.ld(a, &(0..2), &(0..2));
    let result = plan.ld(c, &(0..2), &(0..2));
    let pad = plan.scratch(2, 2);
    plan.exec(Instruction::Copy { a: tile, b: pad });
    let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
    plan.exec(Instruction::Gemm { alpha: Value::F64(1.0), op_a, a: pad, op_b, b: tile, beta: Value::F64(1.0), c: result });
    plan.st(result);
    let graph = Graph::new(&plan);
    // the product needs no edge from the copy, since both commands are in the EXEC queue. The store waits for the product, and the
    // product waits for the load, so the store needs no edge from the load
    assert_eq!(edges(&graph.commands), [(0, 2), (0, 3), (1, 3), (3, 4)]);
    assert!(edges(&graph.tasks).is_empty());
    // the five commands have four edges between them, and the one task has no edge. Each of the three registers has an index and a
    // live range of three numbers
    assert_eq!(graph.bytes(), 4 * ((6 + 4 + 5) + (2 + 1) + 3 * (1 + 3)));
}

#[test]
fn a_task_waits_for_those_it_conflicts_with() {
    let mut plan = Plan::new("test", DType::F64);
    let c = plan.output("C", (1, 4), Layout::ColMajor);
    // each task has one command, a load or a store, so that two tasks conflict through one pair of commands only
    for (loads, cols) in [(false, 0..2), (true, 1..3), (false, 3..4), (false, 0..4)] {
        plan.task("C", Region { row: 0, col: cols.start, rows: 1, cols: cols.len() });
        if loads {
            plan.ld(c, &(0..1), &cols);
        } else {
            let tile = plan.window(c, &(0..1), &cols);
            plan.st(tile);
        }
    }
    assert_eq!(edges(&Graph::new(&plan).tasks), [(0, 1), (0, 3), (1, 3), (2, 3)]);
}

#[test]
fn a_mark_waits_for_its_queue_and_a_bar_for_all_since_the_last_one() {
    let mut plan = Plan::new("test", DType::F64);
    let a = plan.input("A", (2, 2), Layout::ColMajor);
    plan.task("A", Region::whole(2, 2));
    let load = |plan: &mut Plan| plan.ld(a, &(0..2), &(0..2));
    load(&mut plan); // adds command 0 of the plan
    load(&mut plan);
    plan.bar(Queue::St); // adds command 2 of the plan
    load(&mut plan);
    plan.mark(Queue::Ld); // adds command 4 of the plan
    load(&mut plan);
    plan.mark(Queue::Ld); // adds command 6 of the plan
    plan.bar(Queue::Exec);
    plan.bar(Queue::St); // adds command 8 of the plan
    let mark = [(0, 4), (1, 4), (3, 4), (5, 6)];
    let bar = (0..7).map(|earlier| (earlier, 7));
    let bars = [(0, 2), (1, 2)].into_iter().chain(bar).chain((2..8).map(|earlier| (earlier, 8)));
    let mut expected: Vec<_> = mark.into_iter().chain(bars).collect();
    expected.sort_unstable();
    assert_eq!(edges(&Graph::new(&plan).commands), expected);
}

#[test]
fn a_register_that_is_two_operands_is_used_once() {
    let mut plan = Plan::new("test", DType::F64);
    let c = plan.output("C", (2, 2), Layout::ColMajor);
    plan.task("C", Region::whole(2, 2));
    let (tile, pad) = (plan.ld(c, &(0..2), &(0..2)), plan.scratch(2, 2));
    let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
    plan.exec(Instruction::Gemm { alpha: Value::F64(1.0), op_a, a: tile, op_b, b: tile, beta: Value::F64(0.0), c: pad });
    let live_ranges = Graph::new(&plan).live_ranges;
    assert_eq!(live_ranges, [LiveRange { first: 0, last: 1, uses: 2 }, LiveRange { first: 1, last: 1, uses: 1 }]);
}
