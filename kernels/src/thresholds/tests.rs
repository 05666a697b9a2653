//! Tests that thresholds are entries of the database, and that they change which kernels a call launches.

use lapidary_core::{
    Conditions, DType, DeviceFacts, DeviceKind, Diag, Feature, Instruction, Op, Side, Swaps, TrsmMode, Uplo, Value,
};

use super::*;
use crate::call::View;
use crate::database::Scope;
use crate::limits;
use crate::record::launches;
use crate::space::Task;
use crate::tuning::Tuning;

fn device(kind: DeviceKind) -> DeviceFacts {
    let mut facts = DeviceFacts::new("test:0");
    facts.identity.kind = kind;
    facts.identity.model = "Model 5".to_owned();
    facts.limits = limits(1024, 48 << 10);
    (facts.limits.groups, facts.limits.buffer) = (65_535, 1 << 30);
    facts.features = vec![Feature::PartsOfVectors];
    facts
}

fn view(rows: usize, cols: usize) -> View<'static, ()> {
    View { buffer: &(), at: 0, ld: rows, rows, cols }
}

fn gemm(dtype: DType, [m, n, k]: [usize; 3]) -> Instruction<View<'static, ()>> {
    let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(dtype, number));
    let op = Op::NoTrans;
    Instruction::Gemm { alpha, op_a: op, a: view(m, k), op_b: op, b: view(k, n), beta, c: view(m, n) }
}

fn getrf(rows: usize, cols: usize) -> Instruction<View<'static, ()>> {
    Instruction::Getrf { pivoting: true, first_row: 0, a: view(rows, cols), ipiv: view(cols, 1), info: view(1, 1) }
}

/// Returns the kernels that an instruction launches if the entries of `text` precede the shipped ones, with their work-groups.
fn launched(text: &str, instruction: &Instruction<View<'_, ()>>, dtype: DType) -> Vec<(&'static str, [usize; 2])> {
    let facts = device(DeviceKind::Gpu);
    let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::OpenClC);
    let tuning = tuning.preferring(text, &facts, Dialect::OpenClC).unwrap();
    let launches = launches(&facts, &tuning, dtype, instruction, Conditions::default()).unwrap();
    launches.into_iter().map(|launch| (launch.kernel, launch.groups)).collect()
}

fn count(launches: &[(&str, [usize; 2])], kernel: &str) -> usize {
    launches.iter().filter(|(launched, _)| *launched == kernel).count()
}

#[test]
fn the_shipped_database_has_every_threshold_for_all_devices() {
    let today = |threshold, dtype| match threshold {
        Threshold::CopyOperands => 64,
        Threshold::CopiedTerms => 4096,
        Threshold::RepackB if dtype == DType::F32 => 2048,
        Threshold::RepackB => 1 << 20,
        Threshold::SplitUnits => 32,
        Threshold::SplitGroups => 16,
        Threshold::BatchedGemm => 1 << 16,
        Threshold::BatchedLu | Threshold::ExchangeGroups => 256,
        Threshold::LuBlock => 1024,
        Threshold::HeldBlock => 256,
        Threshold::LuPanel => 16,
        Threshold::LuColumns => 1 << 18,
        Threshold::LuStrips => 128,
        Threshold::LuWaitingStrips => 256,
        Threshold::StripRows => 32,
        Threshold::StripElements if dtype == DType::F32 => 128,
        Threshold::StripElements => 32,
        Threshold::TrsmBlock => 1 << 20,
        Threshold::TrsmTerms => 1024,
        Threshold::TrsvSides => 64,
        Threshold::InvertedBlock | Threshold::InvertedSolve => 0,
        Threshold::Lookahead if dtype == DType::F32 => 24_576,
        Threshold::Lookahead => 12_288,
        Threshold::LookaheadPanel => 2048,
        Threshold::BesidePanel => 0,
    };
    for kind in [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Other] {
        for dialect in [Dialect::OpenClC, Dialect::Wgsl] {
            // a database without thresholds, such as that of a user, gives way to the shipped one
            let tuning = Tuning::lookup(&Database::default(), &device(kind), dialect);
            for dtype in [DType::F32, DType::F64] {
                for threshold in Threshold::ALL {
                    assert_eq!(tuning.threshold(threshold, dtype), today(threshold, dtype), "{threshold:?} {dtype}");
                    assert_eq!(threshold.check(today(threshold, dtype)), Ok(()));
                    assert!(tuning.threshold_origin(threshold, dtype).starts_with("thresholds.txt:"));
                }
            }
        }
    }
    assert_eq!(Threshold::ALL.map(|threshold| threshold as usize).to_vec(), (0..Threshold::ALL.len()).collect::<Vec<_>>());
}

#[test]
fn the_manual_lists_every_threshold_and_whether_it_is_searched() {
    let manual = include_str!("../../../docs/tuning.md");
    for threshold in Threshold::ALL {
        let start = format!("| `{} {}=` |", threshold.name(), threshold.unit());
        let row = manual.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{start}"));
        let task = row.rsplit('|').nth(1).unwrap().trim();
        let is_searched = |task: &Task| task.kernels().contains(&threshold.name());
        let searched = Task::ALL.into_iter().find(is_searched).map_or(String::new(), |task| format!("`{}`", task.name()));
        assert_eq!((task, threshold.trials().is_empty()), (&*searched, searched.is_empty()), "{threshold:?}");
    }
}

#[test]
fn entries_for_few_devices_and_of_users_come_first() {
    let mut mine = Database::default();
    let text = "lu_block columns=1\n[kind gpu]\nlu_block f64 columns=2\nlu_block columns=3\nlu_panel wgsl columns=4\n\
                [device Model 5]\nlu_panel opencl f32 columns=5 # by reasoning";
    assert_eq!(mine.add("mine.txt", text), Vec::<String>::new());
    let tuning = Tuning::lookup(&mine.then(Database::shipped()), &device(DeviceKind::Gpu), Dialect::OpenClC);
    let both = |threshold| [DType::F32, DType::F64].map(|dtype| tuning.threshold(threshold, dtype));
    assert_eq!([both(Threshold::LuBlock), both(Threshold::LuPanel)], [[3, 2], [5, 16]]);
    assert_eq!(tuning.threshold_origin(Threshold::LuPanel, DType::F32), "mine.txt:7: by reasoning");
    // a text that a call prefers comes before all others, and leaves the other thresholds as they are
    let facts = device(DeviceKind::Gpu);
    let preferred = tuning.preferring("lu_block columns=9", &facts, Dialect::OpenClC).unwrap();
    let both = |threshold| [DType::F32, DType::F64].map(|dtype| preferred.threshold(threshold, dtype));
    assert_eq!([both(Threshold::LuBlock), both(Threshold::LuPanel)], [[9, 9], [5, 16]]);
}

#[test]
fn a_value_outside_the_range_is_named_and_skipped() {
    for (line, reason) in [
        ("lu_block columns=0", "columns of lu_block is at least 1: a part of the work is not empty"),
        ("lu_panel columns=1025", "columns of lu_panel is from 1 to 1024"),
        ("strip_rows rows=34", "rows of strip_rows is a multiple of 4 from 4 to 64"),
        ("strip_rows rows=68", "rows of strip_rows is a multiple of 4 from 4 to 64"),
        ("trsm_block unknowns=31", "unknowns of trsm_block is at least 32"),
        ("inverted_block unknowns=16", "unknowns of inverted_block is 0 or a power of two from 32 to 1024"),
        ("inverted_block unknowns=96", "unknowns of inverted_block is 0 or a power of two from 32 to 1024"),
        ("inverted_block unknowns=2048", "unknowns of inverted_block is 0 or a power of two from 32 to 1024"),
        ("lu_block rows=5", "columns is not given"),
        ("lu_block columns=5 rows=5", "lu_block has no parameter `rows`"),
        ("lu_block rows>=5 columns=5", "`rows>=5` means nothing to lu_block, which knows language"),
        ("lu_block side<=5 columns=5", "`side<=5` means nothing to lu_block, which knows language"),
        ("stop lu_block", "no kernel is called `lu_block`"),
    ] {
        let mut database = Database::default();
        let problems = database.add("my.txt", &format!("[kind gpu]\n{line}"));
        assert!(problems.len() == 1 && problems[0].contains(reason) && problems[0].starts_with("my.txt:2:"), "{problems:?}");
        assert_eq!(Scope::chain(&device(DeviceKind::Gpu)).len(), 3);
        assert_eq!(database.entries(&device(DeviceKind::Gpu), Dialect::Wgsl).count(), 0);
    }
}

#[test]
fn thresholds_of_products_choose_their_kernels() {
    let kernels = |text: &str, dtype, sizes| -> Vec<&str> {
        launched(text, &gemm(dtype, sizes), dtype).into_iter().map(|(kernel, _)| kernel).collect()
    };
    // operands of odd sizes are copied to vectors, or multiplied by tiles
    assert_eq!(kernels("", DType::F64, [99, 99, 99]), ["pad", "gemm_vector"]);
    assert_eq!(kernels("copy_operands extent=100", DType::F64, [99, 99, 99]), ["gemm_tile"]);
    assert_eq!(kernels("copy_operands extent=100", DType::F64, [101, 101, 101]), ["pad", "gemm_vector"]);
    // the terms that are copied at a time, in slices of 8 or 16 terms
    assert_eq!(kernels("copied_terms terms=50", DType::F64, [99, 99, 99]), ["pad", "gemm_vector"].repeat(2));
    assert_eq!(kernels("copied_terms f32 terms=50", DType::F64, [99, 99, 99]), ["pad", "gemm_vector"]);
    // B, which is not transposed, is read as it is or copied
    assert_eq!(kernels("", DType::F32, [1024; 3]), ["gemm_vector"]);
    assert_eq!(kernels("repack_b extent=1024", DType::F32, [1024; 3]), ["pad", "gemm_vector"]);
    assert_eq!([DType::F32, DType::F64].map(|dtype| kernels("", dtype, [2048; 3]).len()), [2, 1]);
}

#[test]
fn thresholds_of_divided_terms_limit_the_work_groups() {
    let split =
        "gemm_block mwg=8 nwg=4 kwg=2 mr=4 nr=2 kr=2 memory=0 stages=1 pad=0 vw=1 order=0 indexing=0 inline=0 raster=1 split=64\n";
    // 2 × 3 tiles
    let groups = |text: &str| launched(&format!("{split}{text}"), &gemm(DType::F64, [16, 12, 1000]), DType::F64)[0].1;
    assert_eq!(groups(""), [2, 3 * 64]);
    assert_eq!(groups("split_units units=4"), [2, 3 * 8]);
    assert_eq!(groups("split_groups groups_per_unit=1"), [2, 3 * 4]);
    assert_eq!(groups("split_groups groups_per_unit=1\nsplit_units units=1"), [2, 3]);
}

#[test]
fn thresholds_of_batches_choose_between_one_launch_and_single_instructions() {
    let (count, n, dtype) = (3, 64, DType::F64);
    let all = view(n, n * count);
    let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(dtype, number));
    let (op, ipiv, info) = (Op::NoTrans, view(n * count, 1), view(count, 1));
    let products = Instruction::GemmBatched { count, alpha, op_a: op, a: all, op_b: op, b: all, beta, c: all };
    let factors = Instruction::GetrfBatched { count, pivoting: true, a: all, ipiv, info };
    let first = |text: &str, instruction| launched(text, instruction, dtype)[0].0;
    assert_eq!(first("", &products), "gemm_batched");
    assert_eq!(first("batched_gemm kibiproducts=257", &products), "gemm_batched");
    assert_eq!(first("batched_gemm kibiproducts=256", &products), "gemm_vector");
    assert_eq!(["", "batched_lu order=64"].map(|text| first(text, &factors)), ["getrf_batched"; 2]);
    assert_eq!(first("batched_lu order=63", &factors), "clear");
}

#[test]
fn thresholds_of_factorisations_choose_panels_and_blocks() {
    let lu = |text: &str, rows, cols| launched(text, &getrf(rows, cols), DType::F32);
    let panels = |text: &str, rows, cols| {
        let launches = lu(text, rows, cols);
        ["getrf_strip", "getrf_column", "getrf_panel"].map(|kernel| count(&launches, kernel))
    };
    // a panel of 8 columns is one strip, one panel of 9 launches, or one launch
    assert_eq!(panels("", 1000, 8), [1, 0, 0]);
    assert_eq!(panels("strip_rows rows=16", 9000, 8), [0, 9, 0]);
    assert_eq!(panels("strip_rows rows=64", 9000, 8), [4, 0, 0], "two columns of 36 rows are a strip");
    assert_eq!(panels("strip_elements elements=16", 1000, 8), [2, 0, 0], "four columns of 4 rows are a strip");
    assert_eq!(panels("stop strips\nlu_columns rows=999", 1000, 8), [0, 0, 1]);
    assert_eq!(panels("stop strips\nlu_columns rows=1000", 1000, 8), [0, 9, 0]);
    // LU in panels of at most as many columns as the threshold says
    let one_group = "stop strips\nstop columns\n";
    assert_eq!(["16", "8", "32"].map(|most| panels(&format!("{one_group}lu_panel columns={most}"), 1000, 32)[2]), [2, 4, 1]);
    let entered = |text: &str| count(&lu(text, 1000, 64), "enter_strips");
    assert_eq!(["", "lu_strips strips=4", "lu_waiting_strips strips=4"].map(entered), [1, 2, 1]);
    // with the threshold 1024, LU divides 1000 columns into blocks of 500 columns first; with 128, it divides them into blocks of 128 columns
    let products = |text: &str| count(&lu(&format!("lu_strips strips=4\n{text}"), 2000, 1000), "gemm_vector");
    assert_ne!(products("lu_block columns=1024"), products("lu_block columns=128"));
    assert_eq!(products(""), products("lu_block columns=1024"));
}

#[test]
fn thresholds_of_exchanges_and_triangles_limit_their_launches() {
    let swaps = Swaps { side: Side::Left, forward: true, first_row: 0 };
    let exchange = Instruction::Laswp { swaps, a: view(1000, 1000), ipiv: view(1000, 1) };
    assert_eq!(launched("", &exchange, DType::F64), [("exchange", [256, 1])]);
    assert_eq!(launched("exchange_groups groups=7", &exchange, DType::F64), [("exchange", [7, 1])]);
    // work-groups of 512 work-items, and for at most 256 exchanges four times as many of 128 work-items
    let few = |count| Instruction::Laswp { swaps, a: view(1000, 1000), ipiv: view(count, 1) };
    let groups = |count| launched("exchange_groups groups=7", &few(count), DType::F64)[0].1[0];
    assert_eq!([1, 256, 257].map(groups), [28, 28, 7]);
    let alpha = Value::new(DType::F64, 1.0);
    let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
    let solve = Instruction::Trsm { mode, side, uplo, op, diag, alpha, a: view(256, 256), b: view(256, 100) };
    let solves = |text: &str| count(&launched(text, &solve, DType::F64), "solve");
    assert_eq!(["", "trsm_block unknowns=128", "trsm_block unknowns=32"].map(solves), [1, 2, 8]);
    // blocks of 32 unknowns are inverted at once; to double their order takes two launches, and two more for a last pair of unlike orders
    let inverses = |order: usize, text: &str| {
        let mode = TrsmMode::Inverted;
        let solve = Instruction::Trsm { mode, side, uplo, op, diag, alpha, a: view(order, order), b: view(order, 100) };
        let launches = launched(text, &solve, DType::F64);
        ["trtri_block", "gemm_batched", "sum_blocks", "judge_blocks", "solve_copy", "solve"].map(|kernel| count(&launches, kernel))
    };
    assert_eq!(inverses(2048, "")[..5], [0; 5]);
    let (block, least) = ("inverted_block unknowns=256", "inverted_solve unknowns=2048");
    assert_eq!(inverses(2048, block), [1, 6, 2, 1, 8, 0]);
    assert_eq!(inverses(2048, &format!("{block}\n{least}")), [1, 6, 2, 1, 8, 0]);
    assert_eq!(inverses(2047, &format!("{block}\n{least}"))[..5], [0; 5]);
    // the order of a block is at most an eighth of the order of the triangle, but at least 32
    assert_eq!(inverses(2047, block), [1, 8, 2, 1, 16, 0]);
    assert_eq!(inverses(511, block), [1, 0, 2, 1, 16, 0]);
    assert_eq!(inverses(40, block), [1, 0, 2, 1, 2, 0]);
    assert_eq!(inverses(1024, "inverted_block unknowns=32"), [1, 0, 2, 1, 32, 0]);
}

/// A product in a triangular solve has at most as many terms as the threshold says, by default 1024. The solve for each half of the unknowns has as
/// many products as a solve of half the order.
#[test]
fn products_of_triangular_solves_have_few_terms() {
    let products = |text: &str, n: usize| {
        let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
        let alpha = Value::new(DType::F64, 1.0);
        let solve = Instruction::Trsm { mode, side, uplo, op, diag, alpha, a: view(n, n), b: view(n, 100) };
        let launched = launched(text, &solve, DType::F64);
        launched.iter().filter(|(kernel, _)| kernel.starts_with("gemm")).count()
    };
    let [small, double, half, larger] = [1024, 2048, 2560, 5120].map(|n| products("", n));
    assert_eq!((double, larger), (2 * small + 1, 2 * half + 3));
    assert_eq!(products("trsm_terms terms=1000", 2048), 2 * small + 2);
}

/// With few right-hand sides, work-groups wait for one another by OpenCL on devices of compute capability 9.0, in both modes. A launch has a
/// work-group for each 64 unknowns of each right-hand side, and at most as many unknowns as messages fit into scratch memory. Another device
/// that prefers the kernel runs one work-group.
#[test]
fn few_right_hand_sides_are_solved_by_work_groups_that_wait() {
    let solved = |architecture: &str, text: &str, [n, sides]: [usize; 2]| {
        let mut facts = device(if architecture.is_empty() { DeviceKind::Cpu } else { DeviceKind::Gpu });
        facts.identity.architecture = architecture.to_owned();
        let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::OpenClC);
        let tuning = tuning.preferring(text, &facts, Dialect::OpenClC).unwrap();
        let of = |mode| {
            let (side, uplo, op, diag) = (Side::Right, Uplo::Lower, Op::NoTrans, Diag::NonUnit);
            let alpha = Value::new(DType::F64, 1.0);
            let solve = Instruction::Trsm { mode, side, uplo, op, diag, alpha, a: view(n, n), b: view(sides, n) };
            let launches = launches(&facts, &tuning, DType::F64, &solve, Conditions::default()).unwrap();
            launches.into_iter().filter(|launch| launch.kernel == "trsv").map(|launch| launch.groups[0]).collect::<Vec<_>>()
        };
        let [substituted, inverted] = [TrsmMode::Substitution, TrsmMode::Inverted].map(of);
        assert_eq!(substituted, inverted);
        substituted
    };
    assert_eq!(solved("sm_90", "", [32_768, 1]), [512]);
    assert_eq!(solved("sm_90", "", [4097, 3]), [65 * 3]);
    // at most 74752 unknowns of all right-hand sides in a launch
    assert_eq!(solved("sm_90", "", [5000, 32]), [7 * 32, 36 * 32, 36 * 32]);
    assert_eq!([solved("sm_90", "", [100, 64]), solved("sm_90", "", [100, 65])], [vec![128], vec![]]);
    assert_eq!(solved("sm_90", "trsv_sides sides=2", [100, 3]), []);
    assert_eq!([solved("", "", [1000, 2]), solved("", "trsv items=64", [1000, 2])], [vec![], vec![1]]);
}

/// Blocks are inverted by OpenCL on devices of compute capability 9.0, and by wgpu on GPUs of NVIDIA, whose facts state no architecture. An H100
/// was measured in both.
#[test]
fn blocks_of_large_triangles_are_inverted_where_inverses_are_faster() {
    let of = |kind, vendor: &str, architecture: &str| {
        let mut facts = device(kind);
        facts.identity.vendor = vendor.to_owned();
        facts.identity.architecture = architecture.to_owned();
        facts
    };
    let (by_opencl, by_wgpu) = (of(DeviceKind::Gpu, "NVIDIA Corporation", "sm_90"), of(DeviceKind::Gpu, "NVIDIA", ""));
    let solutions = |facts: &DeviceFacts, dialect, dtype, mode, n: usize, sides| {
        let (alpha, side, uplo, op, diag) = (Value::new(dtype, 1.0), Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
        let solve = Instruction::Trsm { mode, side, uplo, op, diag, alpha, a: view(n, n), b: view(n, sides) };
        let tuning = Tuning::lookup(Database::shipped(), facts, dialect);
        launches(facts, &tuning, dtype, &solve, Conditions::default())
            .unwrap()
            .into_iter()
            .filter(|launch| launch.kernel == "solve_copy")
            .count()
    };
    for (facts, dialect) in [(&by_opencl, Dialect::OpenClC), (&by_wgpu, Dialect::Wgsl)] {
        let by_default = |dtype, n, sides| solutions(facts, dialect, dtype, TrsmMode::default(), n, sides);
        assert_eq!([2047, 2048, 4096, 8192].map(|n| by_default(DType::F64, n, 100)), [0, 8, 8, 16], "{dialect:?}");
        assert_eq!([2048, 4095, 4096, 8192].map(|n| by_default(DType::F32, n, 100)), [0, 0, 8, 16], "{dialect:?}");
        // a smaller triangle is worth its inverses with many right-hand sides
        assert_eq!([4095, 4096].map(|sides| by_default(DType::F64, 1024, sides)), [0, 8], "{dialect:?}");
        assert_eq!(solutions(facts, dialect, DType::F64, TrsmMode::Substitution, 4096, 100), 0, "{dialect:?}");
    }
    let others = [
        (by_opencl, Dialect::Wgsl),
        (by_wgpu, Dialect::OpenClC),
        (of(DeviceKind::Gpu, "AMD", ""), Dialect::Wgsl),
        (of(DeviceKind::Cpu, "NVIDIA", ""), Dialect::Wgsl),
    ];
    for (facts, dialect) in &others {
        assert_eq!(solutions(facts, *dialect, DType::F64, TrsmMode::Inverted, 4096, 100), 0, "{facts:?}");
    }
}
