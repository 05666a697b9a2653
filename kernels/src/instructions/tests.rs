//! Tests which kernels an instruction launches.

use std::sync::Arc;

use lapidary_core::{
    Accuracy, Conditions, DType, DeviceFacts, DeviceKind, Diag, Error, ErrorKind, Instruction, Op, Result, Side, TrsmMode, Uplo,
    Value,
};

use super::enqueue;
use crate::block::BlockParams;
use crate::call::{Call, Target, View};
use crate::database::Database;
use crate::messages::RECORD_BYTES;
use crate::product::Product;
use crate::program::Program;
use crate::record::launches;
use crate::scratch::Purpose;
use crate::tuning::{Dialect, Tuning};

/// Runs no kernel, but records the names and the numbers of work-items of kernels, and the requested scratch memory.
struct Recorder {
    facts: DeviceFacts,
    tuning: Tuning,
    conditions: Conditions,
    launched: Vec<(&'static str, usize)>,
    /// The operation for which the next kernels run, and that of each launch.
    operation: &'static str,
    operations: Vec<&'static str>,
    scratch: Vec<(Purpose, usize)>,
    /// Whether the device refuses kernels for products by vectors and for sums of parts.
    refuses: bool,
    /// Number of bytes that the device has for scratch memory of one purpose.
    free_bytes: usize,
    /// Whether the result lies in the buffer of a factor, so that the kernel cannot read the factor as an image.
    is_aliased: bool,
}

impl Recorder {
    /// Makes a recorder for a device that refuses no kernel and no memory.
    fn new(facts: DeviceFacts, tuning: Tuning) -> Self {
        let (launched, scratch, operations) = (Vec::new(), Vec::new(), Vec::new());
        let (operation, refuses, free_bytes, is_aliased) = ("", false, usize::MAX, false);
        let conditions = Conditions::default();
        Recorder { facts, tuning, conditions, launched, operation, operations, scratch, refuses, free_bytes, is_aliased }
    }
}

impl Target for Recorder {
    type Buffer = ();

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    fn conditions(&self) -> Conditions {
        self.conditions
    }

    fn can_run(&mut self, _program: &Program, kernel: &'static str) -> Result<bool> {
        Ok(!(self.refuses && ["gemm_vector", "sum_parts"].contains(&kernel)))
    }

    fn can_read_image(&mut self, _buffer: &(), _written: &()) -> Result<bool> {
        Ok(!self.is_aliased)
    }

    fn begin(&mut self, operation: &'static str) {
        self.operation = operation;
    }

    unsafe fn launch(&mut self, call: &Call<'_, '_, ()>) -> Result<()> {
        self.launched.push((call.kernel, call.global[0]));
        self.operations.push(self.operation);
        Ok(())
    }

    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> Result<Arc<()>> {
        if bytes > self.free_bytes {
            return Err(Error::new(ErrorKind::OutOfMemory, "scratch", "the device is full"));
        }
        self.scratch.push((purpose, bytes));
        Ok(Arc::new(()))
    }
}

/// Returns the facts of a device of `kind`.
fn device(kind: DeviceKind) -> DeviceFacts {
    let mut facts = DeviceFacts::new("test:0");
    facts.identity.kind = kind;
    facts.limits = crate::limits(1024, 48 << 10);
    (facts.limits.groups, facts.limits.buffer) = (65_535, 1 << 30);
    facts
}

/// Returns the kernels of the database for a device of `kind`.
fn shipped(kind: DeviceKind) -> Tuning {
    Tuning::lookup(Database::shipped(), &device(kind), Dialect::Wgsl)
}

/// Returns the shipped kernels with inverses of blocks of up to 256 unknowns.
fn inverting(kind: DeviceKind) -> Tuning {
    shipped(kind).preferring("inverted_block unknowns=256", &device(kind), Dialect::Wgsl).unwrap()
}

fn view(rows: usize, cols: usize) -> View<'static, ()> {
    View { buffer: &(), at: 0, ld: rows, rows, cols }
}

fn record(tuning: Tuning, dtype: DType, instruction: &Instruction<View<'_, ()>>) -> Recorder {
    record_on([false; 2], tuning, dtype, instruction)
}

fn record_on([refuses, is_full]: [bool; 2], tuning: Tuning, dtype: DType, instruction: &Instruction<View<'_, ()>>) -> Recorder {
    let free_bytes = if is_full { 0 } else { usize::MAX };
    let mut recorder = Recorder { refuses, free_bytes, ..Recorder::new(device(DeviceKind::Gpu), tuning) };
    // SAFETY: the recorder runs no kernel.
    unsafe { enqueue(&mut recorder, dtype, instruction).unwrap() };
    recorder
}

fn factor(rows: usize, cols: usize) -> Instruction<View<'static, ()>> {
    let [a, ipiv, info] = [view(rows, cols), view(cols, 1), view(1, 1)];
    Instruction::Getrf { pivoting: true, first_row: 0, a, ipiv, info }
}

/// Returns the names of the kernels that factor a matrix, and the number of work-items of each kernel.
fn lu(tuning: Tuning, rows: usize, cols: usize) -> Vec<(&'static str, usize)> {
    record(tuning, DType::F32, &factor(rows, cols)).launched
}

#[test]
fn each_kernel_of_a_factorisation_has_its_operation() {
    let recorded = record(shipped(DeviceKind::Gpu), DType::F32, &factor(3000, 3000));
    let mut ran: Vec<(&str, &str)> =
        recorded.operations.iter().copied().zip(recorded.launched.iter().map(|(kernel, _)| *kernel)).collect();
    ran.sort_unstable();
    ran.dedup();
    let kernels = |operation| ran.iter().filter(|ran| ran.0 == operation).map(|ran| ran.1).collect::<Vec<_>>();
    assert_eq!(kernels("laswp"), ["exchange"]);
    assert!(kernels("getrf").iter().all(|kernel| kernel.contains("strip")) && !kernels("getrf").is_empty(), "{ran:?}");
    // a triangular solve by halves computes products, too
    assert!(kernels("trsm").iter().any(|kernel| kernel.starts_with("gemm")) && kernels("trsm").contains(&"solve"), "{ran:?}");
    assert!(kernels("gemm").iter().any(|kernel| kernel.starts_with("gemm")) && !kernels("gemm").contains(&"solve"), "{ran:?}");
    // an instruction that runs after the factorisation begins its own operation
    let beta = Value::new(DType::F32, 2.0);
    assert_eq!(record(shipped(DeviceKind::Gpu), DType::F32, &Instruction::Scale { beta, c: view(3, 3) }).operations, ["scale"]);
}

#[test]
fn strips_wait_where_groups_may_and_are_launched_one_by_one_elsewhere() {
    let launched = shipped(DeviceKind::Gpu);
    let mut waiting = launched.clone();
    waiting.groups_may_wait = true;
    let [narrow, wide] = [&waiting, &launched].map(|tuning| tuning.strips(DType::F32, 1000).next().unwrap());
    let (items, height) = (wide.items, wide.height());
    let all = [("enter_strips", height), ("getrf_strips", 3 * items), ("leave_strips", height)];
    assert_eq!(lu(waiting, 1000, 3 * narrow.width), all);
    // the first launch has one work-group because nothing is eliminated; launch s > 0 has a work-group for each strip from s on
    let steps = [items, 2 * items, items].map(|items| ("getrf_strip", items));
    assert_eq!(lu(launched, 1000, 3 * wide.width), [&all[..1], &steps, &all[2..]].concat());
}

#[test]
fn a_panel_has_as_many_strips_as_a_launch_takes() {
    for (groups_may_wait, most) in [(false, 128), (true, 256)] {
        let mut tuning = shipped(DeviceKind::Gpu);
        tuning.groups_may_wait = groups_may_wait;
        let params = tuning.strips(DType::F32, 2000).next().unwrap();
        let entered = |cols| lu(tuning.clone(), 2000, cols).iter().filter(|(kernel, _)| *kernel == "enter_strips").count();
        assert_eq!([entered(most * params.width), entered(most * params.width + 1)], [1, 2], "waits: {groups_may_wait}");
    }
}

/// Held rows take no launches for row exchanges and solves: the launch that factors a panel exchanges the rows of all columns, by more
/// work-groups than hold rows, and solves in the other columns of its block. Panels with fewer rows than the entry requires are factored by strips, and take launches for exchanges.
#[test]
fn held_rows_exchange_rows_in_the_launch_of_the_panel() {
    let mut facts = device(DeviceKind::Gpu);
    (facts.compute_units, facts.queues) = (Some(132), 2);
    facts.identity.architecture = "sm_90".to_owned();
    let launched = |entry: &str, rows, cols| {
        let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::OpenClC);
        lu(tuning.preferring(entry, &facts, Dialect::OpenClC).unwrap(), rows, cols)
    };
    let named = |launched: &[(&str, usize)], name: &str| launched.iter().filter(|(kernel, _)| *kernel == name).count();
    let held = launched("held_rows items=256", 300, 224);
    assert_eq!(["getrf_held_rows", "exchange", "solve"].map(|name| named(&held, name)), [7, 0, 0], "{held:?}");
    // 192 other columns
    assert_eq!(held[0], ("getrf_held_rows", 6 * 256));
    // two blocks of 160 columns are factored by held rows, and the block of 280 columns on the right by strips
    let mixed = launched("held_rows items=256 rows>=400", 700, 600);
    assert_eq!(["getrf_held_rows", "enter_strips", "exchange"].map(|name| named(&mixed, name)), [10, 1, 1], "{mixed:?}");
}

/// No instruction requests more scratch memory than an eighth of the memory limit.
#[test]
fn scratch_memory_fits_a_memory_limit() {
    let ways = [
        ("vectors", shipped(DeviceKind::Gpu)),
        ("barrier-free", shipped(DeviceKind::Cpu)),
        ("parts", split(32, DeviceKind::Gpu)),
        ("inverses", inverting(DeviceKind::Gpu)),
    ];
    for dtype in [DType::F32, DType::F64] {
        let [one, zero] = [1.0, 0.0].map(|number| Value::new(dtype, number));
        let (op_a, op_b) = (Op::Trans, Op::NoTrans);
        let instructions = [
            Instruction::Gemm { alpha: one, op_a, a: view(900, 1001), op_b, b: view(900, 1100), beta: zero, c: view(1001, 1100) },
            Instruction::Trsm {
                mode: TrsmMode::Inverted,
                side: Side::Left,
                uplo: Uplo::Lower,
                op: Op::NoTrans,
                diag: Diag::Unit,
                alpha: one,
                a: view(700, 700),
                b: view(700, 900),
            },
            factor(3000, 700),
            factor(30_000, 100),
        ];
        for (way, tuning) in &ways {
            for limit in [32 << 10, 1 << 20, 8 << 20, 1 << 30] {
                for instruction in &instructions {
                    let asked = record(tuning.clone().within_memory(limit), dtype, instruction).scratch;
                    let mut most = [0; 6];
                    asked.iter().for_each(|&(purpose, bytes)| most[purpose as usize] = bytes.max(most[purpose as usize]));
                    let name = instruction.name();
                    assert!(most.iter().sum::<usize>() <= limit / 8, "{name} in {dtype}, {way}, of {limit}: {asked:?}");
                }
            }
        }
    }
}

/// With less memory, blocks of smaller order are inverted and fewer right-hand sides are copied at a time. Without memory, or without the
/// kernels that judge inverses, the solve substitutes.
#[test]
fn inverses_fit_the_memory_that_is_left() {
    let (mode, side, uplo, op, diag) = (TrsmMode::Inverted, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
    let alpha = Value::new(DType::F64, 1.0);
    let instruction = Instruction::Trsm { mode, side, uplo, op, diag, alpha, a: view(2048, 2048), b: view(2048, 4000) };
    // the inverses of blocks of order b take 8·2048·(b + 4) bytes, with two sums and a flag for each row
    for (free_bytes, [inversions, doublings, copies, solves]) in [
        (usize::MAX, [1, 6, 8, 0]),
        (8 * 2048 * 260 - 1, [1, 4, 16, 0]),
        (8 * 2048 * 36, [1, 0, 64 * 2, 0]),
        (8 * 2048 * 36 - 1, [0, 0, 0, 8]),
    ] {
        let mut recorder = Recorder { free_bytes, ..Recorder::new(device(DeviceKind::Gpu), inverting(DeviceKind::Gpu)) };
        // SAFETY: the recorder runs no kernel.
        unsafe { enqueue(&mut recorder, DType::F64, &instruction).unwrap() };
        let count = |kernel: &str| recorder.launched.iter().filter(|(launched, _)| *launched == kernel).count();
        let launched = ["trtri_block", "gemm_batched", "solve_copy", "solve"].map(count);
        assert_eq!(launched, [inversions, doublings, copies, solves], "{free_bytes} bytes");
    }
}

/// Without memory for the messages of work-groups that wait for one another, a solve for few right-hand sides uses other kernels.
#[test]
fn few_right_hand_sides_are_solved_without_memory_for_messages() {
    let facts = device(DeviceKind::Other);
    let tuning = || shipped(DeviceKind::Other).preferring("trsv items=64", &facts, Dialect::OpenClC).unwrap();
    let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
    let instruction =
        Instruction::Trsm { mode, side, uplo, op, diag, alpha: Value::new(DType::F64, 1.0), a: view(200, 200), b: view(200, 1) };
    let launched = |free_bytes| {
        let mut recorder = Recorder { free_bytes, ..Recorder::new(device(DeviceKind::Other), tuning()) };
        // SAFETY: the recorder runs no kernel.
        unsafe { enqueue(&mut recorder, DType::F64, &instruction).unwrap() };
        recorder.launched.iter().map(|(kernel, _)| *kernel).collect::<Vec<_>>()
    };
    assert_eq!([RECORD_BYTES, RECORD_BYTES - 1].map(launched), [["trsv"], ["solve"]]);
}

/// Returns the shipped kernels after a kernel in tiles of 8 × 4 elements that divides the terms into `split` parts.
fn split(split: usize, kind: DeviceKind) -> Tuning {
    let entry = Product::Block(BlockParams { split, ..BlockParams::PLAIN }).to_string();
    shipped(kind).preferring(&entry, &device(kind), Dialect::OpenClC).unwrap()
}

/// The terms are divided into fewer parts if there are few terms or little memory, and not divided if the device refuses the sum of the
/// parts.
#[test]
fn a_product_has_as_many_parts_as_terms_and_memory_allow() {
    let (m, n) = (20, 6);
    let product = |k: usize| {
        let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(DType::F64, number));
        let (op_a, op_b, a, b) = (Op::NoTrans, Op::Trans, view(m, k), view(n, k));
        Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c: view(m, n) }
    };
    let tuning = split(12, DeviceKind::Gpu);
    for (k, limit, flags, parts) in [
        (100, usize::MAX, [false; 2], 12),
        // a slice has two terms
        (23, usize::MAX, [false; 2], 12),
        (22, usize::MAX, [false; 2], 6),
        (3, usize::MAX, [false; 2], 1),
        // scratch memory for one purpose is a forty-eighth of the limit
        (100, 48 * 12 * m * n * 8, [false; 2], 12),
        (100, 48 * 12 * m * n * 8 - 1, [false; 2], 6),
        (100, 48 * m * n * 8, [false; 2], 1),
        (100, usize::MAX, [true, false], 1),
        (100, usize::MAX, [false, true], 1),
    ] {
        let recorder = record_on(flags, tuning.clone().within_memory(limit), DType::F64, &product(k));
        let launched: Vec<&str> = recorder.launched.iter().map(|(kernel, _)| *kernel).collect();
        let name = format!("k={k}, limit {limit}, {flags:?}");
        assert_eq!(launched, if parts == 1 { vec!["gemm_block"] } else { vec!["gemm_block", "sum_parts"] }, "{name}");
        if flags == [false; 2] {
            let bytes: Vec<usize> = recorder.scratch.iter().map(|(_, bytes)| *bytes).collect();
            assert_eq!(bytes, if parts == 1 { Vec::new() } else { vec![parts * m * n * 8] }, "{name}");
        }
    }
    // each part has 3 × 2 tiles
    let launched = launches(&device(DeviceKind::Gpu), &tuning, DType::F64, &product(100), Conditions::default()).unwrap();
    assert_eq!(launched.iter().map(|launch| launch.groups).collect::<Vec<_>>(), [[3, 24], [2, 1]]);
}

/// Returns the kernels for batches of `count` matrices: of a product, a factorisation, a solve, and the search for a zero pivot.
fn batches(tuning: &Tuning, n: usize, count: usize) -> [Vec<&'static str>; 4] {
    let dtype = DType::F64;
    let [one, zero] = [1.0, 0.0].map(|number| Value::new(dtype, number));
    let (all, ipiv, info) = (view(n, n * count), view(n * count, 1), view(count, 1));
    let op = Op::NoTrans;
    let instructions = [
        Instruction::GemmBatched { count, alpha: one, op_a: op, a: all, op_b: op, b: all, beta: zero, c: all },
        Instruction::GetrfBatched { count, pivoting: true, a: all, ipiv, info },
        Instruction::GetrsBatched { count, op, lu: all, ipiv, b: view(n, count) },
        Instruction::ZeroPivots { count, lu: all, info },
    ];
    instructions
        .map(|instruction| record(tuning.clone(), dtype, &instruction).launched.into_iter().map(|(kernel, _)| kernel).collect())
}

#[test]
fn a_batch_of_small_matrices_is_one_launch_and_one_of_large_ones_is_single_instructions() {
    for kind in [DeviceKind::Gpu, DeviceKind::Cpu] {
        for (n, count) in [(1, 10_000), (16, 10_000), (32, 1000), (33, 100), (256, 3)] {
            // on a CPU, a work-group of a batch has one work-item, but `getrf_rows` needs at least four
            let lu = if kind == DeviceKind::Gpu && n <= 32 { "getrf_rows" } else { "getrf_batched" };
            let one = ["gemm_batched", lu, "getrs_batched", "zero_pivots"];
            assert_eq!(batches(&shipped(kind), n, count), one.map(|kernel| vec![kernel]), "{kind:?}, order {n}");
        }
        // one launch has at most 65,535 work-groups, so that the batch takes two launches
        assert_eq!(batches(&shipped(kind), 40, 100_000)[1], ["getrf_batched"; 2]);
    }
    // a work-group of `getrf_rows` factors several matrices, so that the batch takes one launch
    assert_eq!(batches(&shipped(DeviceKind::Gpu), 4, 100_000)[1], ["getrf_rows"]);
    let [products, factors, solves, _] = batches(&shipped(DeviceKind::Gpu), 500, 3);
    assert_eq!(products, ["pad", "gemm_vector"].repeat(3));
    assert!(factors[0] == "clear" && !factors.contains(&"getrf_batched"), "{factors:?}");
    assert!(solves.len() > 3 && !solves.contains(&"getrs_batched"), "{solves:?}");
}

/// A device that reports its multiprocessors computes a product with few large tiles by smaller tiles instead.
#[test]
fn products_with_fewer_vector_tiles_than_multiprocessors_use_smaller_tiles() {
    let kernel = |units: usize, n: usize| {
        let mut facts = device(DeviceKind::Gpu);
        facts.compute_units = Some(units);
        let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::Wgsl);
        let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(DType::F64, number));
        let (op_a, op_b, a) = (Op::NoTrans, Op::Trans, view(n, n));
        record(tuning, DType::F64, &Instruction::Gemm { alpha, op_a, a, op_b, b: a, beta, c: a }).launched[0].0
    };
    assert_eq!([512, 1024].map(|n| kernel(132, n)), ["gemm_tile", "gemm_vector"]);
    assert_eq!([512, 1024].map(|n| kernel(1, n)), ["gemm_vector"; 2]);
}

#[test]
fn products_by_vectors_give_way_to_tiles_if_a_kernel_is_refused_or_memory_is_lacking() {
    let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(DType::F32, number));
    let kernels = |n: usize, refuses, is_full| -> Vec<&str> {
        let a = view(n, n);
        let product = Instruction::Gemm { alpha, op_a: Op::NoTrans, a, op_b: Op::Trans, b: a, beta, c: a };
        let recorder = record_on([refuses, is_full], shipped(DeviceKind::Gpu), DType::F32, &product);
        recorder.launched.into_iter().map(|(kernel, _)| kernel).collect()
    };
    // `gemm_vector` reads operands of order 1024 where they are stored. Operands of order 1023 are not stored in whole vectors, so that
    // `pad` first copies them
    assert_eq!([1024, 1023].map(|n| kernels(n, false, false)), [vec!["gemm_vector"], vec!["pad", "gemm_vector"]]);
    assert_eq!([1024, 1023].map(|n| kernels(n, true, false)), [vec!["gemm_tile"], vec!["gemm_tile"]]);
    assert_eq!([1024, 1023].map(|n| kernels(n, false, true)), [vec!["gemm_vector"], vec!["gemm_tile"]]);
}

/// A product reads images if they are large enough for its operands, or for copies of them, and if it writes to none of them.
#[test]
fn products_by_images_give_way_if_an_operand_is_no_image() {
    let images = "gemm_vector f64 mwg=64 nwg=64 kwg=8 mr=4 nr=8 lanes_n=4 zigzag=1 ahead=0 images=1";
    let tile = "gemm_tile mwg=32 nwg=32 kwg=16 mr=4 nr=4 vwm=1 stages=2\nstop gemm";
    let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(DType::F64, number));
    let kernels = |n: usize, image_pixels: usize, is_aliased| -> Vec<(&str, usize)> {
        let mut facts = device(DeviceKind::Gpu);
        facts.limits.image_pixels = image_pixels;
        let tuning = Tuning::lookup(&Database::default(), &facts, Dialect::OpenClC);
        let tuning = tuning.preferring(&format!("{images}\n{tile}"), &facts, Dialect::OpenClC).unwrap();
        let mut recorder = Recorder { is_aliased, ..Recorder::new(facts, tuning) };
        let a = view(n, n);
        let product = Instruction::Gemm { alpha, op_a: Op::NoTrans, a, op_b: Op::Trans, b: a, beta, c: a };
        // SAFETY: the recorder runs no kernel.
        unsafe { enqueue(&mut recorder, DType::F64, &product).unwrap() };
        recorder.launched
    };
    // a matrix of order 128 has 8192 pixels of two elements
    let (vectors, tiles) = (vec![("gemm_vector", 2 * 128)], vec![("gemm_tile", 4 * 8)]);
    assert_eq!([8192, 8191].map(|pixels| kernels(128, pixels, false)), [vectors, tiles.clone()]);
    assert_eq!(kernels(128, 8192, true), tiles);
    // the copies of slices of odd matrices lie in one image, which holds 32 of the 128 terms of both factors here
    let copies = kernels(127, 4096, false);
    let pads = copies.iter().filter(|(kernel, _)| *kernel == "pad").count();
    assert_eq!((pads, copies.len()), (4, 8), "{copies:?}");
}

/// The kernel `gemm_mma` copies vectors only of matrices that lie on whole vectors, and has guards only for products with parts of tiles.
#[test]
fn copies_of_vectors_depend_on_the_places_of_all_matrices() {
    let facts = device(DeviceKind::Gpu);
    let values = "mwg=64 nwg=32 kwg=16 mw=32 nw=16 stages=2 raster=2 split=1 guarded=1 ptx=0";
    let entries = format!("gemm_mma f64 {values} unit=8\ngemm_mma f32 {values} unit=1\nstop gemm");
    let tuning = shipped(DeviceKind::Gpu).preferring(&entries, &facts, Dialect::OpenClC).unwrap();
    // whether the text copies vectors, and whether it has guards, for matrices of order n with the given places and leading dimensions
    let form = |dtype: DType, n: usize, at: [usize; 3], ld: [usize; 3]| {
        let [a, b, c] = std::array::from_fn(|i| View { at: at[i], ld: ld[i], ..view(n, n) });
        let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(dtype, number));
        let product = Instruction::Gemm { alpha, op_a: Op::NoTrans, a, op_b: Op::NoTrans, b, beta, c };
        match launches(&facts, &tuning, dtype, &product, Conditions::default()).unwrap()[0].program {
            Program::GemmMma { guarded, aligned, .. } => (aligned, guarded),
            other => panic!("{other:?}"),
        }
    };
    let (single, double) = (DType::F32, DType::F64);
    assert_eq!(form(single, 64, [0, 4, 8], [64, 68, 72]), (true, false));
    assert_eq!(form(single, 65, [0; 3], [68; 3]), (true, true));
    for i in 0..3 {
        let (mut at, mut ld) = ([0; 3], [64; 3]);
        at[i] = 2;
        assert_eq!([single, double].map(|dtype| form(dtype, 64, at, [64; 3])), [(false, false), (true, false)]);
        ld[i] = 66;
        assert_eq!([single, double].map(|dtype| form(dtype, 64, [0; 3], ld)), [(false, false), (true, false)]);
    }
}

/// A long product in single precision whose error is bounded in norm is a sum of shorter products.
#[test]
fn a_long_product_with_a_bound_in_norm_is_a_sum_of_shorter_ones() {
    let (op, kind) = (Op::NoTrans, DeviceKind::Gpu);
    let (a, b, c) = (view(2000, 10_000), view(10_000, 2000), view(2000, 2000));
    let launches = |dtype, accuracy| {
        let [alpha, beta] = [1.0, 0.5].map(|value| Value::new(dtype, value));
        let mut recorder = Recorder::new(device(kind), shipped(kind));
        (recorder.conditions.accuracy, recorder.refuses) = (accuracy, true);
        // SAFETY: the recorder runs no kernel.
        unsafe { enqueue(&mut recorder, dtype, &Instruction::Gemm { alpha, op_a: op, a, op_b: op, b, beta, c }).unwrap() };
        recorder.launched.into_iter().map(|(kernel, _)| kernel).collect::<Vec<_>>()
    };
    assert_eq!(launches(DType::F32, Accuracy::Normwise), ["gemm_tile"; 3]);
    for (dtype, accuracy) in [(DType::F32, Accuracy::Componentwise), (DType::F64, Accuracy::Normwise)] {
        assert_eq!(launches(dtype, accuracy), ["gemm_tile"]);
    }
}
