//! Tests of the plans of all routines: tasks have the right names, every command has work to do, and empty problems need no plan.
//! These tests compute no results; the conformance suite tests the results of plans.

mod distributed;
mod lookahead;

use std::ops::Range;

use super::batched::{self, Each, Solve};
use super::{MAX_COMMANDS, Problem, gemm, getrf, getrs, laswp, trsm};
use crate::args::Getrs;
use crate::blocking::{Blocking, Part, Place, Resources};
use crate::command::{Command, CommandId, Effects};
use crate::dispatch::Reach;
use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
use crate::instruction::{Access, Instruction, Reg, Region, Tile};
use crate::matrix::{MatMut, MatRef};
use crate::plan::{MatrixId, Plan, Task};
use crate::scalar::DType;
use crate::schedule::Schedule;
use crate::simulate::CostModel;
use crate::value::Value;

const SIDES: [Side; 2] = [Side::Left, Side::Right];
const OPS: [Op; 2] = [Op::NoTrans, Op::Trans];
/// Numbers of rows and columns that the block sizes of the tests cut into one, two or three blocks, with and without smaller
/// blocks at the end.
const SIZES: [usize; 5] = [1, 3, 4, 8, 11];

fn blocking(share: usize) -> Blocking {
    Blocking { mc: 3, nc: 2, kc: 5, nb: 4, share, place: Place::Shared }
}

/// A result of m rows and n columns that is divided between two devices, by rows or by columns: the second device has two parts.
fn divided(m: usize, n: usize, by_rows: bool) -> Place {
    let extent = if by_rows { m } else { n };
    let ranges = [(0, 0..extent / 3), (1, extent / 3..extent - extent / 4), (1, extent - extent / 4..extent)];
    let part = |(device, along): (usize, Range<usize>)| {
        let (rows, cols) = if by_rows { (along, 0..n) } else { (0..m, along) };
        Part { rows, cols, device: Some(device) }
    };
    Place::Divided { parts: ranges.into_iter().filter(|(_, along)| !along.is_empty()).map(part).collect() }
}

fn product(m: usize, n: usize, k: usize, alpha: f64, beta: f64) -> gemm::Problem {
    gemm::Problem { m, n, k, alpha: alpha.into(), op_a: Op::NoTrans, op_b: Op::Trans, beta: beta.into() }
}

fn triangle(m: usize, n: usize, side: Side, op: Op) -> trsm::Problem {
    trsm::Problem { m, n, side, uplo: Uplo::Upper, op, diag: Diag::Unit, alpha: Value::F64(2.0), mode: TrsmMode::Substitution }
}

fn exchanges(m: usize, n: usize, side: Side) -> laswp::Problem {
    laswp::Problem { m, n, pivots: if side == Side::Left { m } else { n }, side, forward: true, dtype: DType::F64 }
}

fn factorisation(m: usize, n: usize, layout: Layout) -> getrf::Problem {
    getrf::Problem::pivoted((m, n), layout, DType::F64)
}

/// Makes plans of all routines, most of them with several tasks.
fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (m, n) in SIZES.into_iter().flat_map(|m| SIZES.map(|n| (m, n))) {
        plans.extend([(0, 2.0), (7, 0.0), (12, 1.0)].map(|(k, beta)| gemm::plan(&product(m, n, k, 1.0, beta), &blocking(1))));
        plans.push(gemm::plan(&product(m, n, 6, 1.0, 2.0), &Blocking { nc: 7, ..blocking(1) }));
        for by_rows in [false, true] {
            let divided = Blocking { nc: 7, place: divided(m, n, by_rows), ..blocking(1) };
            plans.extend([2.0, 0.0].map(|beta| gemm::plan(&product(m, n, 6, 1.0, beta), &divided)));
        }
        plans.extend([1, 2].map(|share| getrf::plan(&factorisation(m, n, Layout::ColMajor), &blocking(share))));
        plans.push(getrf::plan(&factorisation(m, n, Layout::RowMajor), &blocking(9)));
        for (layout, loads) in [(Layout::ColMajor, false), (Layout::ColMajor, true), (Layout::RowMajor, true)] {
            plans.push(getrf::plan(&factorisation(m, n, layout), &Blocking { place: Place::Held { loads }, ..blocking(9) }));
        }
        for (shares, nb, group_length) in [(vec![1, 1], 4, 1), (vec![3, 0, 1], 4, 2), (vec![1, 1], 1, 3)] {
            let distributed = Blocking { nb, place: Place::Distributed { shares, group_length }, ..blocking(1) };
            plans
                .extend([Layout::ColMajor, Layout::RowMajor].map(|layout| getrf::plan(&factorisation(m, n, layout), &distributed)));
        }
        let streamed = Blocking { place: Place::Streamed, kc: 3, ..blocking(1) };
        plans.extend([Layout::ColMajor, Layout::RowMajor].map(|layout| getrf::plan(&factorisation(m, n, layout), &streamed)));
        plans.extend(SIDES.map(|side| laswp::plan(&exchanges(m, n, side), &blocking(1))));
        // the search for zero pivots is left out, because it writes no matrix of the plan's element type
        let with_results = batches(m, n)
            .filter(|problem| !matches!(problem, Problem::Batched(batched::Problem { each: Each::ZeroPivots { .. }, .. })));
        plans.extend(with_results.map(|problem| problem.plan(&within(None, 1)).unwrap()));
        for op in OPS {
            plans.push(getrs::plan(&getrs::Problem::new(m, n, op, DType::F64), &blocking(1), &blocking(1)));
            for side in SIDES {
                let problem = triangle(m, n, side, op);
                plans.extend([0, 1].map(|mc| trsm::plan(&problem, &Blocking { mc, ..blocking(1) })));
                let place = divided(problem.order(), problem.nrhs(), false);
                plans.push(trsm::plan(&problem, &Blocking { mc: 1, place, ..blocking(1) }));
                plans.push(trsm::plan(&trsm::Problem { alpha: Value::F64(0.0), ..problem }, &blocking(1)));
            }
        }
    }
    plans
}

/// The tiles that a command accesses.
fn tiles(plan: &Plan, command: CommandId) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let whole = |reg| Tile { reg, region: Region::whole(plan.registers()[reg].rows, plan.registers()[reg].cols) };
    match &plan.commands()[command as usize] {
        Command::Exec(exec) => exec.instruction.operands(|tile, _| tiles.push(tile)),
        transfer => transfer.registers(&mut |reg| tiles.push(whole(reg))),
    }
    tiles
}

#[test]
fn every_command_has_something_to_do() {
    for plan in plans() {
        for command in 0..CommandId::try_from(plan.commands().len()).unwrap() {
            let has_elements = |tile: &Tile| tile.rows() > 0 && tile.cols() > 0;
            assert!(tiles(&plan, command).iter().all(has_elements), "{command} of {plan}");
        }
    }
}

/// The smallest rectangle that contains all rectangles.
fn around(regions: impl Iterator<Item = Region>) -> Option<Region> {
    let corners = regions.map(|Region { row, col, rows, cols }| [row, col, row + rows, col + cols]);
    let widen = |a: [usize; 4], b: [usize; 4]| [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])];
    let [row, col, end_row, end_col] = corners.reduce(widen)?;
    Some(Region { row, col, rows: end_row - row, cols: end_col - col })
}

/// The matrix and the rectangle for which a tile stands. `None` for scratch memory.
fn place(plan: &Plan, tile: Tile) -> Option<(MatrixId, Region)> {
    let window = plan.registers()[tile.reg].window?;
    Some((window.matrix, tile.region.shifted(window.row, window.col)))
}

/// The rectangles of matrices that the commands of a task write: by `ST` commands, or by kernels through held registers. A task without
/// such commands loads rectangles.
fn results(plan: &Plan, commands: Range<CommandId>) -> Vec<(MatrixId, Region)> {
    let (mut written, mut loaded) = (Vec::new(), Vec::new());
    for command in &plan.commands()[commands.start as usize..commands.end as usize] {
        match command {
            Command::Ld(ld) => loaded.extend(place(plan, ld.tile)),
            Command::St(st) => written.extend(place(plan, st.tile)),
            Command::Exec(exec) => exec.instruction.operands(|tile, access| {
                if access == Access::Write && plan.registers()[tile.reg].holder.is_some() {
                    written.extend(place(plan, tile));
                }
            }),
            Command::Mark(_) | Command::Bar(_) => {}
        }
    }
    if written.is_empty() { loaded } else { written }
}

#[test]
fn matrices_are_declared_as_they_are_used() {
    for plan in plans() {
        let registers = || (0..).map(Reg).take(plan.registers().len());
        let whole = |reg: Reg| Tile { reg, region: Region::whole(plan.registers()[reg].rows, plan.registers()[reg].cols) };
        let used: Vec<_> = registers().filter_map(|reg| place(&plan, whole(reg))).collect();
        let results: Vec<_> = plan.tasks().iter().flat_map(|task| results(&plan, task.commands.clone())).collect();
        for (id, matrix) in (0..).map(MatrixId).zip(plan.matrices()) {
            let of_matrix =
                |places: &[(MatrixId, Region)]| places.iter().filter(|(of, _)| *of == id).map(|(_, region)| *region).collect();
            let (used, written): (Vec<_>, Vec<_>) = (of_matrix(&used), of_matrix(&results));
            if let Some(used) = around(used.into_iter()) {
                assert_eq!(used, Region::whole(matrix.rows, matrix.cols), "{} of {plan}", matrix.name);
            }
            assert_eq!(written.is_empty(), !matrix.written, "{} of {plan}", matrix.name);
        }
    }
}

#[test]
fn a_task_is_called_by_its_result() {
    for plan in plans() {
        let is_float = |matrix: MatrixId| plan.matrices()[matrix.0 as usize].dtype == DType::F64;
        for task in plan.tasks() {
            let results = results(&plan, task.commands.clone());
            let of_matrix = results.iter().filter(|(matrix, _)| is_float(*matrix)).map(|(_, region)| *region);
            let Some(Region { row, col, rows, cols }) = around(of_matrix) else {
                assert!(["load info", "store pivots", "send", "receive"].contains(&task.label.what), "{} of {plan}", task.label);
                continue;
            };
            let label = task.label.region;
            if (task.label.what, task.device) == ("update", Some(0)) {
                // the task may also exchange rows of all columns on the left
                assert!((label.row, label.rows, label.col + label.cols) == (row, rows, col + cols) && label.col >= col, "{plan}");
                continue;
            }
            // the task of a panel also writes the rows of U above the panel
            let above = if task.label.what == "panel" { label.row - row } else { 0 };
            assert!(above <= label.col, "{} of {plan}", task.label);
            assert_eq!(label, Region { row: row + above, col, rows: rows - above, cols }, "{} of {plan}", task.label);
        }
    }
}

/// While a device loads a matrix that it holds, each of its first updates works on one panel at a time. Rows are stored as soon as they are
/// final.
#[test]
fn a_held_matrix_moves_while_the_device_computes() {
    let blocking = Blocking { place: Place::Held { loads: true }, ..blocking(1) };
    let plan = getrf::plan(&factorisation(18, 17, Layout::ColMajor), &blocking);
    let label = |task: &Task| task.label.to_string();
    let of = |what: &str| plan.tasks().iter().filter(|task| task.label.what == what).map(label).collect::<Vec<_>>();
    let panels = [0..4, 4..8, 8..12, 12..15, 15..17];
    assert_eq!(of("load"), panels.clone().map(|Range { start, end }| format!("load [0:18, {start}:{end}]")));
    let updates =
        ["update [0:18, 8:12]", "update [0:18, 12:15]", "update [0:18, 15:17]", "update [4:18, 12:15]", "update [4:18, 15:17]"];
    assert_eq!(of("update"), [&updates[..], &["update [8:18, 15:17]"]].concat());
    let stored: Vec<Region> = plan.tasks().iter().filter(|task| task.label.what == "store").map(|task| task.label.region).collect();
    assert_eq!(stored.iter().map(|region| region.rows * region.cols).sum::<usize>(), 18 * 17);
    // nothing writes a rectangle after it was stored
    let (graph, tasks) = (crate::graph::Graph::new(&plan), 0..u32::try_from(plan.tasks().len()).unwrap());
    for task in tasks.filter(|&task| plan.tasks()[task as usize].label.what == "store") {
        assert_eq!(graph.tasks.successors(task), [0_u32; 0], "{}", plan.tasks()[task as usize].label);
    }
}

#[test]
fn the_next_panel_stands_before_the_other_updates_which_are_shared_out() {
    let labels = |share| {
        let plan: Plan = getrf::plan(&factorisation(9, 10, Layout::ColMajor), &blocking(share));
        plan.tasks().iter().map(|task| task.label.to_string()).collect::<Vec<_>>()
    };
    let update_in_one = ["panel [0:9, 0:4]", "panel [4:9, 4:7]", "update [0:9, 7:10]", "panel [7:9, 7:9]", "update [4:9, 9:10]"];
    let exchanges = ["update [7:9, 9:10]", "exchange [4:9, 0:4]", "exchange [7:9, 4:7]"];
    assert_eq!(labels(1), [&update_in_one[..], &exchanges].concat());
    let update_in_two = ["panel [0:9, 0:4]", "panel [4:9, 4:7]", "update [0:9, 7:9]", "update [0:9, 9:10]", "panel [7:9, 7:9]"];
    assert_eq!(labels(2), [&update_in_two[..], &["update [4:9, 9:10]"], &exchanges].concat());
}

#[test]
fn tasks_of_a_batch_take_equal_numbers_of_matrices() {
    let problem = batched::Problem { count: 1000, each: Each::Gemm(product(16, 16, 16, 1.0, 0.0)) };
    let columns = |resources: Resources| {
        let of_task = |task: &Task| task.label.region.cols / 16;
        problem.plan(&resources).tasks().iter().map(of_task).collect::<Vec<_>>()
    };
    assert_eq!(columns(within(None, 2)), [125; 8]);
    assert_eq!(columns(Resources { resident: true, ..within(None, 1) }), [1000]);
    // on devices that copy, the matrices of a task take a few megabytes, or as much as fits in the device memory
    assert_eq!(columns(within(Some(1 << 30), 2)), [682, 318]);
    assert_eq!(columns(within(Some(100 * 4 * 3 * 16 * 16 * 8), 2)), [100; 10]);
}

/// Problems of all routines, with the sizes m and n.
fn problems(m: usize, n: usize) -> Vec<Problem> {
    let products = [(0, 2.0), (50, 0.0), (50, 1.0)].map(|(k, beta)| Problem::Gemm(product(m, n, k, 1.0, beta)));
    let solves = SIDES
        .into_iter()
        .flat_map(|side| OPS.map(|op| triangle(m, n, side, op)))
        .flat_map(|problem| [problem, trsm::Problem { alpha: Value::F64(0.0), ..problem }].map(Problem::Trsm));
    let factorisations = [(None, true), (Some(3), true), (None, false)].map(|(nb, pivoting)| {
        let problem = getrf::Problem { pivoting, ..factorisation(m, n, Layout::RowMajor) };
        Problem::Getrf { problem, nb }
    });
    let with_factors = OPS.map(|op| Problem::Getrs(getrs::Problem::new(m, n, op, DType::F64)));
    let rows = SIDES.map(|side| Problem::Laswp(exchanges(m, n, side)));
    let batches = batches(m.min(9), n);
    products.into_iter().chain(solves).chain(factorisations).chain(with_factors).chain(rows).chain(batches).collect()
}

/// Batches of `count` problems whose order is about `n`.
fn batches(n: usize, count: usize) -> impl Iterator<Item = Problem> {
    let dtype = DType::F64;
    let products = [(0, 0.5), (4, 0.0), (4, 1.0)].map(|(k, beta)| Each::Gemm(product(n + 1, n, k, 1.0, beta)));
    let factorisations = [(n + 2, n), (n, n + 2)].map(|(m, n)| Each::Getrf(factorisation(m, n, Layout::ColMajor)));
    let solves = OPS.map(|op| Each::Getrs(Solve { n, nrhs: 2, op, dtype }));
    let all = products.into_iter().chain(factorisations).chain(solves).chain([Each::ZeroPivots { n, dtype }]);
    all.map(move |each| Problem::Batched(batched::Problem { count, each }))
}

fn within(limit: Option<usize>, devices: usize) -> Resources {
    Resources::alike(devices, limit, 8)
}

#[test]
fn commands_are_counted_before_a_plan_is_made() {
    let sizes = [(1, 1), (8, 300), (300, 8), (170, 130), (40, 40)];
    let limits = [None, Some(1 << 10), Some(5000), Some(100 << 10)];
    for ((m, n), limit) in sizes.into_iter().flat_map(|size| limits.map(|limit| (size, limit))) {
        let resident = Resources { resident: true, ..within(None, 1) };
        let unlike = Resources { shares: vec![3, 0, 1], ..within(limit, 3) };
        for resources in [within(limit, 1), within(limit, 3), unlike, resident] {
            let narrow = Problem::Getrf { problem: factorisation(m, n, Layout::ColMajor), nb: Some(2) };
            for problem in problems(m, n).into_iter().chain([narrow]) {
                let plan = problem.plan(&resources).unwrap();
                assert_eq!(problem.commands(&resources), plan.commands().len(), "{problem:?} with {resources:?}");
                assert_eq!(problem.operation(), plan.operation());
            }
        }
    }
}

/// Problems so large that blocks of products and right-hand sides of solves have several strips, on a device with enough memory.
#[test]
fn plans_with_strips_are_counted_and_run_within_the_memory() {
    let mut strips = 0;
    for (m, n, k) in [(1030, 2100, 1300), (5000, 4200, 3000), (2500, 2600, 9000)] {
        for limit in [30 << 20, 200 << 20, 500 << 20, 4 << 30] {
            let resources = within(Some(limit), 1);
            let solves = SIDES.map(|side| Problem::Trsm(triangle(m, n, side, Op::Trans)));
            let getrs = Problem::Getrs(getrs::Problem::new(m, n, Op::NoTrans, DType::F64));
            for problem in [Problem::Gemm(product(m, n, k, 1.0, 0.5)), getrs].into_iter().chain(solves) {
                let plan = problem.plan(&resources).unwrap();
                assert_eq!(problem.commands(&resources), plan.commands().len(), "{problem:?} within {limit}");
                let transfers = plan.commands().iter().filter(|command| matches!(command, Command::St(_))).count();
                strips += transfers - plan.tasks().len().min(transfers);
                let reach = Reach { memory: limit, in_place: vec![false; plan.matrices().len()], flops: 1.0, queues: 1 };
                Schedule::new(plan, vec![reach]).unwrap();
            }
        }
    }
    assert!(strips > 20, "{strips} strips are stored before the end of their task");
}

#[test]
fn commands_of_endless_problems_are_counted_without_their_blocks() {
    let endless = [9_999_999_999_999, usize::MAX].map(|n| problems(n, n));
    let flat = [problems(usize::MAX, 9), problems(9, usize::MAX)];
    for problem in endless.iter().flatten() {
        assert!(problem.commands(&within(Some(1 << 20), 1)) > MAX_COMMANDS, "{problem:?}");
    }
    for problem in endless.iter().chain(&flat).flatten() {
        // the count of the commands must not overflow, or `check` would panic
        for limit in [None, Some(1 << 10), Some(usize::MAX)] {
            let _ = problem.check(&within(limit, 1));
            let _ = problem.check(&within(limit, 2));
            let _ = problem.check(&Resources { shares: vec![1, 0], ..within(limit, 2) });
        }
    }
}

/// Whether the schedule of a problem fits in the memory of `devices` devices with `limit` bytes each.
fn runs_within(problem: &Problem, limit: usize, devices: usize) -> bool {
    let plan = problem.plan(&within(Some(limit), devices)).unwrap();
    let reach = Reach { memory: limit, in_place: vec![false; plan.matrices().len()], flops: 1.0, queues: 1 };
    Schedule::new(plan, vec![reach; devices]).is_ok()
}

#[test]
fn a_limit_that_takes_too_many_commands_is_refused_and_the_figure_in_the_refusal_suffices() {
    let mut refused = Vec::new();
    for (m, n, devices) in [(1500, 1500, 1), (9, 600_000, 2), (6000, 6000, 3)] {
        for problem in problems(m, n) {
            let Err(small) = problem.check(&within(Some(1 << 10), devices)) else { continue };
            assert!(small.commands > MAX_COMMANDS && small.least > small.limit, "{small:?}");
            assert!(problem.check(&within(Some(small.least - 1), devices)).is_err(), "{problem:?}: less than {small:?} suffices");
            // to make a large plan takes long, so the test makes one plan for each routine
            if !refused.contains(&problem.operation()) {
                assert!(runs_within(&problem, small.least, devices), "{problem:?}: {small:?}");
                refused.push(problem.operation());
            }
        }
    }
    refused.sort_unstable();
    let batched = ["gemm_batched", "getrf_batched", "getrs_batched"];
    assert_eq!(refused, ["gemm", batched[0], "getrf", batched[1], "getrs", batched[2], "laswp", "trsm"]);
}

/// Long columns need more memory than the tiles of the triangle.
#[test]
fn the_figure_in_the_refusal_of_a_solve_has_room_for_a_column() {
    let solve = Problem::Getrs(getrs::Problem::new(20_000, 1, Op::NoTrans, DType::F64));
    let small = solve.check(&within(Some(1 << 10), 1)).unwrap_err();
    assert!(runs_within(&solve, small.least, 1), "{small:?}");
}

#[test]
fn commands_that_no_limit_is_to_blame_for_are_not_refused() {
    let narrow = Problem::Getrf { problem: factorisation(40_000, 40_000, Layout::ColMajor), nb: Some(1) };
    for limit in [None, Some(1 << 30)] {
        assert!(narrow.commands(&within(limit, 1)) > MAX_COMMANDS);
        assert_eq!(narrow.check(&within(limit, 1)), Ok(()));
    }
    // a memory limit is refused if it raises the number of commands far above the number without a memory limit
    let problem = Problem::Getrf { problem: factorisation(9000, 9000, Layout::ColMajor), nb: Some(1) };
    let small = problem.check(&within(Some(1 << 10), 1)).unwrap_err();
    assert!(small.allowed > MAX_COMMANDS && small.commands > small.allowed, "{small:?}");
    assert_eq!(problem.check(&within(Some(small.least), 1)), Ok(()));
}

/// Tests the conditions under which Netlib's BLAS and LAPACK return at once.
#[test]
fn nothing_is_planned_where_there_is_nothing_to_do() {
    let quick = |m, n, k, alpha, beta| product(m, n, k, alpha, beta).is_empty();
    assert!(quick(0, 1, 1, 1.0, 0.0) && quick(1, 0, 1, 1.0, 0.0));
    assert!(quick(1, 1, 0, 1.0, 1.0) && quick(1, 1, 1, 0.0, 1.0));
    assert!(!quick(1, 1, 1, 1.0, 1.0) && !quick(1, 1, 0, 1.0, 0.0) && !quick(1, 1, 1, 0.0, 0.5));
    for (m, n) in [(0, 1), (1, 0), (1, 1)] {
        let none = m * n == 0;
        assert_eq!(triangle(m, n, Side::Left, Op::Trans).is_empty(), none);
        assert_eq!(getrs::Problem::new(m, n, Op::Trans, DType::F64).is_empty(), none);
        assert_eq!(exchanges(m, n, Side::Left).is_empty(), none);
    }
    assert!(laswp::Problem { pivots: 0, ..exchanges(1, 1, Side::Left) }.is_empty());
}

#[test]
fn blocks_are_chosen_by_the_order_and_the_number_of_right_hand_sides() {
    let size = |side| (triangle(5, 7, side, Op::NoTrans).order(), triangle(5, 7, side, Op::NoTrans).nrhs());
    assert_eq!(SIDES.map(size), [(5, 7), (7, 5)]);
    assert_eq!(getrs::Problem::new(5, 7, Op::NoTrans, DType::F64).size(), (5, 7));
}

/// The instructions of a solve with factors have the mode of the solve, whichever system it solves.
#[test]
fn both_triangles_of_a_solve_with_factors_have_its_mode() {
    for (op, mode) in OPS.into_iter().flat_map(|op| [TrsmMode::Inverted, TrsmMode::Substitution].map(|mode| (op, mode))) {
        let solve = getrs::Problem::new(5, 7, op, DType::F64).with_mode(mode);
        let has_mode = |instruction: &Instruction<usize>| matches!(instruction, Instruction::Trsm { mode: of, .. } if *of == mode);
        assert_eq!(solve.instructions([0, 1, 2]).iter().filter(|instruction| has_mode(instruction)).count(), 2);
        let (lu, mut b) = ([1.0], [1.0]);
        let args =
            Getrs::new(MatRef::col_major(&lu, 1, 1).unwrap(), &[0], MatMut::col_major(&mut b, 1, 1).unwrap()).op(op).mode(mode);
        let (solve, _) = getrs::normalise(&args.check().unwrap());
        assert_eq!(solve.instructions([0, 1, 2]).iter().filter(|instruction| has_mode(instruction)).count(), 2);
    }
}

#[test]
fn what_is_chosen_runs_within_the_memory_down_to_small_tiles() {
    let sizes = [(1, 1), (8, 300), (300, 8), (170, 130), (1, 3000), (3000, 1), (3, 1000), (1000, 3)];
    for (m, n, devices) in sizes.into_iter().flat_map(|(m, n)| [1, 3].map(|devices| (m, n, devices))) {
        for limit in [40 << 10, 100 << 10, 1 << 20] {
            let chosen = within(Some(limit), devices);
            let plans = [
                gemm::plan(&product(m, n, 1, 1.0, 1.0), &chosen.gemm(m, n, 1)),
                gemm::plan(&product(m, n, 50, 1.0, 1.0), &chosen.gemm(m, n, 50)),
                gemm::plan(&product(m, n, 5000, 1.0, 1.0), &chosen.gemm(m, n, 5000)),
                getrf::plan(&factorisation(m, n, Layout::RowMajor), &chosen.getrf(m, n)),
                laswp::plan(&exchanges(m, n, Side::Left), &chosen.laswp(m, n, Side::Left)),
                trsm::plan(&triangle(m, n, Side::Left, Op::Trans), &chosen.trsm(m, n)),
            ];
            for plan in plans {
                let reach = Reach { memory: limit, in_place: vec![false; plan.matrices().len()], flops: 1.0, queues: 1 };
                Schedule::new(plan, vec![reach; devices]).unwrap();
            }
        }
    }
}

/// Simulates a product of a short, wide matrix and a tall matrix: while the device multiplies one pair of pieces, it loads the
/// next pair.
#[test]
fn long_pieces_are_loaded_while_others_are_multiplied() {
    const LIMIT: usize = 1 << 20;
    let (n, k) = (8, 1_000_000);
    let blocking = within(Some(LIMIT), 1).gemm(n, n, k);
    let plan = gemm::plan(&product(n, n, k, 1.0, 0.0), &blocking);
    let pieces = plan.commands().len() / 3;
    // the speeds are chosen so that the product of two pieces takes as long as the transfer of the two pieces
    let (bandwidth, flops) = (8.0, n as f64);
    let reach = Reach { memory: LIMIT, in_place: vec![false; 3], flops, queues: 1 };
    let seconds = Schedule::new(plan, vec![reach]).unwrap().simulate(&[CostModel { flops, bandwidth, latency: 0.0 }]).seconds();
    let of_loads = (2 * n * k) as f64;
    assert!(seconds < of_loads * (1.0 + 2.0 / pieces as f64), "{seconds} s, loads alone take {of_loads} s");
}
