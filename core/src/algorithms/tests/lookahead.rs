//! Tests of LU in panels on one device with two queues of kernels.

use super::*;
use crate::blocking::Lookahead;
use crate::command::PanelShape;
use crate::enums::Accuracy;
use crate::graph::Graph;
use crate::simulate::Timeline;

/// Returns the plan of LU with panels of `nb` columns on one device that holds the matrix.
fn in_panels(m: usize, n: usize, nb: usize) -> Plan {
    let resident = Resources { resident: true, ..within(None, 1) };
    let problem = Problem::Getrf { problem: factorisation(m, n, Layout::ColMajor), nb: None };
    problem.by_panels(Some(Lookahead { min_order: m.min(n), min_nb: nb })).unwrap().plan(&resident).unwrap()
}

#[test]
fn lu_works_in_panels_from_the_order_on_that_a_device_states() {
    let problem = |m, n, nb| Problem::Getrf { problem: factorisation(m, n, Layout::ColMajor), nb };
    let lookahead = Some(Lookahead { min_order: 100, min_nb: 30 });
    assert_eq!(problem(100, 150, None).by_panels(lookahead), Some(problem(100, 150, Some(30))));
    assert_eq!(problem(99, 150, None).by_panels(lookahead), None);
    // at most eight panels up to order 16384, which are wider than the minimum only by whole tiles
    assert_eq!(problem(240, 240, None).by_panels(lookahead), Some(problem(240, 240, Some(30))));
    assert_eq!(problem(241, 241, None).by_panels(lookahead), Some(problem(241, 241, Some(128))));
    assert_eq!(problem(8193, 9000, None).by_panels(lookahead), Some(problem(8193, 9000, Some(1152))));
    assert_eq!(problem(50_000, 50_000, None).by_panels(lookahead), Some(problem(50_000, 50_000, Some(3200))));
    assert_eq!(problem(100, 150, None).by_panels(None), None);
    // a caller's width precedes
    assert_eq!([lookahead, None].map(|lookahead| problem(9, 9, Some(4)).by_panels(lookahead)), [Some(problem(9, 9, Some(4))); 2]);
    assert_eq!(Problem::Gemm(product(500, 500, 500, 1.0, 0.0)).by_panels(lookahead), None);
}

/// Factored columns are the first panel: the plan begins with their update, and states its accuracy in every command.
#[test]
fn a_factorisation_continues_after_factored_columns() {
    let problem = getrf::Problem { factored: 40, accuracy: Accuracy::Normwise, ..factorisation(110, 120, Layout::ColMajor) };
    let continued = Problem::Getrf { problem, nb: Some(30) };
    let resident = Resources { resident: true, ..within(None, 1) };
    let plan = continued.plan(&resident).unwrap();
    let tasks: Vec<&str> = plan.tasks().iter().map(|task| task.label.what).collect();
    assert_eq!(tasks, ["update", "panel", "update", "panel", "update", "panel", "update"]);
    assert_eq!(plan.commands().len(), continued.commands(&resident));
    let execs = plan.commands().iter().filter_map(|command| if let Command::Exec(exec) = command { Some(exec) } else { None });
    assert!(execs.clone().all(|exec| exec.conditions.accuracy == Accuracy::Normwise));
    let panels: Vec<usize> = execs
        .filter_map(|exec| if let Instruction::Getrf { first_row, .. } = exec.instruction { Some(first_row) } else { None })
        .collect();
    assert_eq!(panels, [40, 70, 90]);
    // the pivots of the factored columns are copied to the device
    let reads_pivots = |instruction: &Instruction<usize>| {
        let (mut at, mut reads) = (0, false);
        instruction.operands(|matrix, _| {
            reads |= matrix == 1 && instruction.reads(at);
            at += 1;
        });
        reads
    };
    assert!(continued.instructions().iter().any(reads_pivots));
    // no instruction continues a factorisation
    let whole = Problem::Getrf { problem, nb: None };
    assert_eq!(whole.by_panels(None), Some(Problem::Getrf { problem, nb: Some(110) }));
}

/// A task updates the columns of a panel and factors it. The task before it updates all other columns. Neither of the two tasks
/// waits for the other, so that they run at the same time.
#[test]
fn an_update_runs_beside_the_next_panel() {
    // LU factors four panels; ten columns of the matrix lie on the right of the last panel
    let (m, n) = (110, 120);
    let plan = in_panels(m, n, 30);
    let tasks: Vec<&str> = plan.tasks().iter().map(|task| task.label.what).collect();
    let steps = ["panel", "update", "panel", "update", "panel", "update", "panel", "update"];
    assert_eq!(tasks, steps);
    let beside = |task: &Task| -> Vec<(&str, Option<PanelShape>)> {
        let of_command = |command: CommandId| match &plan.commands()[command as usize] {
            Command::Exec(exec) => Some((exec.instruction.name(), exec.conditions.beside_panel)),
            _ => None,
        };
        task.commands.clone().filter_map(of_command).collect()
    };
    let update = |panel| ["laswp", "trsm", "gemm"].map(|name| (name, panel));
    let [first, _, second, ..] = plan.tasks() else { panic!("{plan}") };
    assert_eq!(beside(first), [("getrf", None)]);
    assert_eq!(beside(second), [&update(None)[..], &[("getrf", None)]].concat());
    // the rows on the left of a panel are exchanged in the task of the update, from the second update on
    let updates = [1, 3, 5].map(|task| beside(&plan.tasks()[task]));
    let panels = [(80, 30), (50, 25), (25, 25)].map(|(rows, cols)| Some(PanelShape { rows, cols }));
    let [first, later] = [0, 1].map(|exchanges| move |panel| [&update(panel)[..], &[("laswp", panel)][..exchanges]].concat());
    assert_eq!(updates, [first(panels[0]), later(panels[1]), later(panels[2])]);
    // no panel follows the last update, which has no rows below the last panel
    assert_eq!(beside(&plan.tasks()[7]), ["laswp", "trsm", "laswp"].map(|name| (name, None)));
    // the rows on the left of the last two panels of a square matrix are exchanged in tasks of their own
    let square = in_panels(m, m, 30);
    let exchanges = square.tasks().iter().filter(|task| task.label.what == "exchange").map(|task| task.label.to_string());
    assert_eq!(exchanges.collect::<Vec<_>>(), ["exchange [60:110, 0:60]", "exchange [85:110, 0:85]"]);
    let graph = Graph::new(&plan);
    // an update that exchanges rows also waits for an earlier task: that of the panel whose rows it exchanges for the first time
    assert_eq!(graph.tasks.predecessor_counts(), [0, 1, 1, 3, 2, 3, 2, 3]);
    assert_eq!([0, 2, 4].map(|task| graph.tasks.successors(task).last().copied()), [Some(3), Some(5), Some(7)]);
    for step in [1, 3, 5] {
        let later: Vec<u32> = [step, step + 1].iter().flat_map(|&task| graph.tasks.successors(task).to_vec()).collect();
        let mut next = [step + 2, step + 3].into_iter().filter(|&task| task < 8);
        assert!(next.all(|task| later.iter().filter(|&&to| to == task).count() == 2), "{step}: {later:?}");
        assert!(!graph.tasks.successors(step).contains(&(step + 1)), "a panel waits for the update beside it, task {step}");
    }
    assert!(plan.to_string().contains(", beside a panel of 80 × 30 elements\n"), "{plan}");
}

/// Simulates LU on a device with `queues` queues of kernels, each of which computes an operation in a nanosecond.
fn simulated(plan: Plan, queues: usize) -> (Schedule, Timeline) {
    let reach = Reach { memory: 0, in_place: vec![true; 3], flops: 1e9, queues };
    let schedule = Schedule::new(plan, vec![reach]).unwrap();
    let timeline = schedule.simulate(&[CostModel { flops: 1e9, bandwidth: 1.0, latency: 1e-7 }]);
    (schedule, timeline)
}

#[test]
fn panels_and_the_updates_beside_them_run_in_different_queues() {
    let (schedule, timeline) = simulated(in_panels(700, 700, 100), 2);
    let mut queues = [Vec::new(), Vec::new()];
    for entry in &timeline.entries {
        let Command::Exec(exec) = &schedule.plan().commands()[entry.issue.command as usize] else { continue };
        match exec.instruction {
            Instruction::Getrf { .. } => queues[0].push(entry.lane.number),
            Instruction::Gemm { .. } if exec.conditions.beside_panel.is_some() => queues[1].push(entry.lane.number),
            _ => {}
        }
    }
    assert_eq!(queues, [vec![0; 7], vec![1; 5]]);
    let one = simulated(in_panels(700, 700, 100), 1).1.seconds();
    assert!(timeline.seconds() < 0.95 * one, "{} s in two queues, {one} s in one", timeline.seconds());
}

/// A device whose memory does not hold the matrix exchanges the rows on the left of the panels after the last panel. Otherwise it would load
/// these columns in each step.
#[test]
fn a_device_that_streams_the_matrix_exchanges_the_rows_on_the_left_at_the_end() {
    let exchanges = |limit: usize| {
        let devices = within(Some(limit), 1);
        let plan = Problem::Getrf { problem: factorisation(110, 120, Layout::ColMajor), nb: Some(30) }.plan(&devices).unwrap();
        plan.tasks().iter().filter(|task| task.label.what == "exchange").count()
    };
    let bytes = 110 * 120 * 8;
    // three panels
    assert_eq!([exchanges(bytes), exchanges(2 * bytes)], [2, 0]);
}
