//! Tests which entries of the database a device gets.

use super::*;
use crate::database::CPU_BLOCKS;
use crate::limits;

/// Returns a device of `kind` with work-groups of at most `work_group` work-items and `kibibytes` KiB of local memory.
fn device(kind: DeviceKind, work_group: usize, kibibytes: usize) -> DeviceFacts {
    let mut facts = DeviceFacts::new("test:0");
    facts.identity.kind = kind;
    facts.limits = limits(work_group, kibibytes << 10);
    facts
}

fn shipped(facts: &DeviceFacts, dialect: Dialect) -> Tuning {
    Tuning::lookup(Database::shipped(), facts, dialect)
}

/// Returns the kernels for products of order n in the order of preference, with the extents of their tiles.
fn products(tuning: &Tuning, dtype: DType, n: usize) -> Vec<(&'static str, [usize; 2])> {
    tuning.products(dtype, [n; 3]).map(|product| (product.kernel(), product.tile())).collect()
}

#[test]
fn groups_solve_and_exchange_as_many_rows_as_the_limits_allow() {
    for (name, work_group, kibibytes, solve, exchange) in [
        ("a GPU", 1024, 48, [Some(128), Some(128)], Some(512)),
        ("a browser", 256, 16, [Some(64), Some(32)], Some(256)),
        ("little memory", 256, 6, [Some(16), None], Some(128)),
        ("groups of eight", 8, 16, [None, None], Some(8)),
    ] {
        let tuning = shipped(&device(DeviceKind::Gpu, work_group, kibibytes), Dialect::OpenClC);
        let first = |family, dtype| tuning.groups(family, dtype, usize::MAX).next();
        assert_eq!([DType::F32, DType::F64].map(|dtype| first(Family::Solve, dtype)), solve, "{name}");
        assert_eq!(first(Family::Exchange, DType::F64), exchange, "{name}");
    }
}

#[test]
fn products_have_tiles_as_large_as_keeps_every_multiprocessor_at_work() {
    let mut h100 = device(DeviceKind::Gpu, 1024, 48);
    h100.compute_units = Some(132);
    for dialect in [Dialect::OpenClC, Dialect::Wgsl] {
        let tuning = shipped(&h100, dialect);
        let first = |dtype, n| products(&tuning, dtype, n)[0];
        assert_eq!([4096, 1024].map(|n| first(DType::F64, n)), [("gemm_vector", [128; 2]), ("gemm_vector", [64; 2])]);
        assert_eq!([512, 64].map(|n| first(DType::F64, n)), [("gemm_tile", [32; 2]), ("gemm_tile", [16; 2])]);
        assert_eq!([4096, 1024].map(|n| first(DType::F32, n)), [("gemm_vector", [256, 128]), ("gemm_vector", [64; 2])]);
        // operands that are not worth a copy to vectors
        assert_eq!(products(&tuning, DType::F64, 4096)[2], ("gemm_tile", [128, 64]));
    }
    // few tiles and many terms
    let h100 = shipped(&h100, Dialect::OpenClC);
    for (sizes, tile, groups) in [
        ([2000, 1, 2000], [64, 8], 512),
        ([1, 2000, 2000], [8, 64], 512),
        ([2000, 16, 2000], [64, 8], 1024),
        ([64, 64, 16_384], [32; 2], 128),
        ([64, 64, 1024], [32; 2], 32),
    ] {
        for dtype in [DType::F32, DType::F64] {
            let first = h100.products(dtype, sizes).next().unwrap();
            assert_eq!((first.kernel(), first.tile(), first.groups(sizes)), ("gemm_block", tile, groups), "{dtype} {sizes:?}");
        }
    }
    // few terms, or enough tiles
    for sizes in [[2000, 1, 500], [64, 64, 1000], [5000, 1, 5000], [512, 512, 4096]] {
        let are_tiles = [DType::F32, DType::F64].map(|dtype| h100.products(dtype, sizes).next().unwrap().kernel() == "gemm_tile");
        assert_eq!(are_tiles, [true; 2], "{sizes:?}");
    }
    assert_eq!(h100.products(DType::F64, [2500, 1, 2500]).next().unwrap().tile(), [16; 2]);
    // a driver that does not report the number of multiprocessors
    let unknown = shipped(&device(DeviceKind::Other, 1024, 48), Dialect::OpenClC);
    assert_eq!(products(&unknown, DType::F64, 64)[0], ("gemm_vector", [64; 2]));
}

#[test]
fn an_entry_applies_to_the_sizes_and_the_groups_that_it_names() {
    let gpu = device(DeviceKind::Gpu, 256, 16);
    let tile = "mwg=8 nwg=4 kwg=2 mr=4 nr=2 kr=2 memory=0 stages=1 pad=0 vw=1 order=0 indexing=0 inline=0 raster=1";
    let text = format!(
        "gemm_block side<=4 tall {tile} split=2\ngemm_block terms>=100 terms<=200 {tile} split=3\n\
         gemm_block groups>=64 {tile} split=8\ngemm_block {tile} split=1"
    );
    let tuning = shipped(&gpu, Dialect::Wgsl).preferring(&text, &gpu, Dialect::Wgsl).unwrap();
    let parts = |sizes| match tuning.products(DType::F32, sizes).next() {
        Some(Product::Block(params)) => params.split,
        other => panic!("{other:?}"),
    };
    assert_eq!([[100, 4, 2], [100, 5, 2], [4, 100, 2]].map(parts), [2, 1, 1]);
    assert_eq!([99, 100, 200, 201].map(|k| parts([5, 5, k])), [1, 3, 3, 1]);
    let bounded = format!("gemm_block groups>=4 groups<=16 {tile} split=9\nstop gemm");
    let tuning = shipped(&gpu, Dialect::Wgsl).preferring(&bounded, &gpu, Dialect::Wgsl).unwrap();
    let applies = |m| tuning.products(DType::F32, [m, 4, 2]).next().is_some();
    assert_eq!([24, 25, 128, 129].map(applies), [false, true, true, false], "tiles have 8 × 4 elements");
    // 4 × 2 tiles, and as many parts of at least one slice of two terms
    assert_eq!([14, 15].map(|k| parts([32, 8, k])), [1, 8]);
}

#[test]
fn a_device_gets_only_kernels_within_its_limits() {
    for (name, work_group, kibibytes, expected) in [
        ("little memory", 1024, 16, ("gemm_vector", [64; 2])),
        ("small groups", 64, 12, ("gemm_tile", [32; 2])),
        ("single work-items", 1, 1, ("gemm_tile", [4; 2])),
        ("no local memory", 256, 0, ("gemm_panel", [6, 4])),
    ] {
        let tuning = shipped(&device(DeviceKind::Gpu, work_group, kibibytes), Dialect::OpenClC);
        assert_eq!(products(&tuning, DType::F64, 4096)[0], expected, "{name}");
    }
}

#[test]
fn work_groups_wait_only_in_wgsl_and_where_the_device_lets_them() {
    let mut gpu = device(DeviceKind::Gpu, 1024, 48);
    gpu.features = vec![Feature::GroupsMayWait];
    assert!(shipped(&gpu, Dialect::Wgsl).groups_may_wait && !shipped(&gpu, Dialect::OpenClC).groups_may_wait);
    gpu.features.clear();
    assert!(!shipped(&gpu, Dialect::Wgsl).groups_may_wait);
}

#[test]
fn a_processor_goes_without_barriers_in_vectors_of_its_width_and_with_groups_where_loops_are_short() {
    let mut processor = device(DeviceKind::Cpu, 4096, 512);
    processor.vector_bits = 512;
    let [opencl, wgsl] = [Dialect::OpenClC, Dialect::Wgsl].map(|dialect| shipped(&processor, dialect));
    // in WGSL, a work-group has the eight work-items of a vector, unless a product has fewer than four tiles
    for (tuning, n, tile) in [(&opencl, 1, [24, 8]), (&wgsl, 1, [6, 4]), (&wgsl, 64, [8 * 16, 12])] {
        assert_eq!(products(tuning, DType::F64, n)[0], ("gemm_panel", tile));
        let first = |family| tuning.groups(family, DType::F64, usize::MAX).next();
        assert_eq!([Family::Panel, Family::Strips, Family::Exchange, Family::Solve].map(first), [Some(1), None, None, None]);
    }
    processor.limits.loop_iterations = 60_000;
    let short = shipped(&processor, Dialect::OpenClC);
    assert_eq!(short.groups(Family::Panel, DType::F64, 100).next(), Some(512));
}

#[test]
fn preferred_entries_come_first_and_those_that_do_not_fit_are_refused() {
    let gpu = device(DeviceKind::Gpu, 256, 16);
    let prefer = |text: &str| shipped(&gpu, Dialect::OpenClC).preferring(text, &gpu, Dialect::OpenClC);
    let tuning = prefer("gemm_tile f64 mwg=8 nwg=4 kwg=4 mr=4 nr=1 vwm=2 stages=1\nsolve items=16\nstop strips").unwrap();
    assert_eq!(products(&tuning, DType::F64, 4096)[..2], [("gemm_tile", [8, 4]), ("gemm_vector", [64; 2])]);
    assert_eq!(products(&tuning, DType::F32, 4096)[0], ("gemm_vector", [64; 2]));
    assert_eq!(tuning.groups(Family::Solve, DType::F32, 0).take(2).collect::<Vec<_>>(), [16, 64]);
    assert_eq!(tuning.strips(DType::F64, 100).next(), None);
    assert!(prefer("elements items=512").unwrap_err().contains("512 work-items are more than the 256"));
    let only = prefer("gemm_tile f64 mwg=8 nwg=4 kwg=4 mr=4 nr=1 vwm=2 stages=1\nstop gemm f64").unwrap();
    assert_eq!(products(&only, DType::F64, 4096), [("gemm_tile", [8, 4])]);
    assert!(products(&only, DType::F32, 4096).len() > 1);
    assert!(prefer("solve items=512 f16").unwrap_err().contains("`f16` is no parameter"));
}

#[test]
fn entries_that_a_device_cannot_run_are_named() {
    let mut gpu = device(DeviceKind::Gpu, 256, 16);
    gpu.dtypes = vec![DType::F32, DType::F64];
    let mut mine = Database::default();
    let text = "[kind gpu]\nsolve items=64\nelements items=512  # m=3\nbatched f64 items=3\n[kind cpu]\nelements items=1024";
    assert_eq!(mine.add("mine.txt", text), Vec::<String>::new());
    let named = refusals(&mine, &gpu, Dialect::OpenClC);
    assert!(named.len() == 2 && named[0].starts_with("mine.txt:3: elements items=512 is not used: 512 work-items"), "{named:?}");
    assert!(named[1].starts_with("mine.txt:4: batched items=3 is not used: "), "{named:?}");
    // an entry that is too large in one of two types only is used in the other type
    let mut mine = Database::default();
    assert_eq!(mine.add("mine.txt", "solve items=128\nsolve f64 items=128"), Vec::<String>::new());
    let mut little = device(DeviceKind::Gpu, 256, 24);
    little.dtypes = gpu.dtypes;
    let of = |dtype| check(Kernel::new("solve", &[("items", 128)]).unwrap(), dtype, &little, Dialect::OpenClC).is_ok();
    assert_eq!([DType::F32, DType::F64].map(of), [true, false], "the test needs limits that fit one type");
    assert_eq!(refusals(&mine, &little, Dialect::OpenClC).len(), 1);
}

#[test]
fn the_blocks_of_the_cpu_are_looked_up_by_type_and_model() {
    let mut processor = device(DeviceKind::Cpu, 1, 0);
    processor.identity.model = "Model 3".to_owned();
    let shipped = Database::shipped();
    let terms = |database: &Database, dtype| database.cpu_blocks(&processor, dtype).map(|blocks| blocks.kc);
    assert_eq!([DType::F32, DType::F64].map(|dtype| terms(shipped, dtype)), [Some(1024), Some(512)]);
    assert_eq!(shipped.cpu_blocks(&device(DeviceKind::Gpu, 256, 16), DType::F64), None);
    let mut mine = Database::default();
    let text = "[device Model 3]\ncpu_blocks f64 kc=99 mc=300 nc=1 team_mc=200 team_nc=1\ncpu_blocks f64 kc=64 mc=2 nc=3 team_mc=4 team_nc=5";
    assert_eq!(mine.add("mine", text), Vec::<String>::new());
    let mine = mine.then(shipped);
    assert_eq!([DType::F32, DType::F64].map(|dtype| terms(&mine, dtype)), [Some(1024), Some(64)]);
}

/// With every limit halved again and again, a device still gets a kernel for products and for each step of a factorisation.
#[test]
fn a_device_with_halved_limits_gets_kernels_for_every_instruction() {
    for kind in [DeviceKind::Gpu, DeviceKind::Other, DeviceKind::Cpu] {
        let mut facts = device(kind, 256, 16);
        for halvings in 0..=8 {
            for (dialect, dtype) in [(Dialect::OpenClC, DType::F64), (Dialect::Wgsl, DType::F32)] {
                let tuning = shipped(&facts, dialect);
                let limits = format!("{kind:?}, limits halved {halvings} times, {dtype}");
                for n in [1, 100, 4096] {
                    assert!(tuning.products(dtype, [n; 3]).next().is_some(), "{limits}, order {n}");
                }
                assert!(tuning.groups(Family::Elements, dtype, 0).next().is_some(), "{limits}");
            }
            facts.limits.work_group = (facts.limits.work_group / 2).max(1);
            facts.limits.local_memory /= 2;
        }
    }
}

/// A user's entry for multiply-adds in single precision comes before the shipped entries, on devices that take instructions of PTX. A
/// probe in single precision decides whether the device has them.
#[test]
fn single_precision_has_a_kernel_with_instructions_of_ptx() {
    let entry = "gemm_mma f32 opencl mwg=128 nwg=128 kwg=16 mw=64 nw=32 stages=4 raster=8 split=1 unit=1 guarded=1 aligned=0 ptx=1";
    let mut h100 = device(DeviceKind::Gpu, 1024, 48);
    h100.identity.architecture = "sm_90".to_owned();
    let tuning = shipped(&h100, Dialect::OpenClC).preferring(entry, &h100, Dialect::OpenClC).unwrap();
    let first = tuning.products(DType::F32, [4096; 3]).next().unwrap();
    assert_eq!(format!("{first}"), entry.replace(" f32 opencl", ""));
    assert_eq!(first.program(DType::F32).probe(), Some(Program::MmaProbe { dtype: DType::F32, unit: 1, ptx: true }));
    assert_ne!(tuning.products(DType::F64, [4096; 3]).next(), Some(first));
    h100.identity.architecture.clear();
    let refusal = shipped(&h100, Dialect::OpenClC).preferring(entry, &h100, Dialect::OpenClC).unwrap_err();
    assert!(refusal.contains("PTX"), "{refusal}");
}

/// The entries for one architecture apply to the sizes for which they were measured.
#[test]
fn compute_capability_9_0_has_entries_of_its_own() {
    let mut h100 = device(DeviceKind::Gpu, 1024, 48);
    h100.compute_units = Some(132);
    h100.identity.architecture = "sm_90".to_owned();
    let tuning = shipped(&h100, Dialect::OpenClC);
    let first = |dtype, sizes| {
        let product = tuning.products(dtype, sizes).next().unwrap();
        (product.kernel(), product.tile())
    };
    let tiles = [16_384, 3072, 1024, 768, 512].map(|n| first(DType::F32, [n; 3]));
    assert_eq!(tiles, [[256, 64], [128, 64], [128, 64], [32, 32], [64, 32]].map(|tile| ("gemm_mma", tile)));
    let in_norm = |dtype| match tuning.products_with(Accuracy::Normwise, dtype, [4096; 3]).next() {
        Some(Product::Mma(params)) => params.unit,
        other => panic!("{other:?}"),
    };
    assert_eq!([DType::F32, DType::F64].map(in_norm), [16, 8]);
    assert_eq!(first(DType::F64, [2000, 1, 2000]), ("gemm_block", [64, 1]));
    // large tiles have the highest speed; smaller ones divide 3072² or 512² elements better between 132 multiprocessors, or read the
    // first of few terms sooner
    let tiles = [4096, 3072, 1024, 512].map(|n| first(DType::F64, [n; 3]));
    assert_eq!(tiles, [[128, 128], [64, 128], [64, 64], [32, 64]].map(|tile| ("gemm_mma", tile)));
    assert_eq!(first(DType::F64, [8192, 8192, 128]), ("gemm_mma", [128, 64]));
    assert_eq!(first(DType::F64, [5000; 3]), ("gemm_mma", [64, 256]));
    // the terms of few tiles are divided
    let parts = |sizes: [usize; 3]| tuning.products(DType::F64, sizes).next().unwrap().parts(sizes[2]);
    assert_eq!([[64, 64, 16_384], [8192, 128, 8192]].map(parts), [32, 1]);
    // without instructions of PTX, the entries for all devices apply
    h100.identity.architecture.clear();
    assert_eq!(products(&shipped(&h100, Dialect::OpenClC), DType::F64, 4096)[0], ("gemm_vector", [128; 2]));
    // the other language has no architecture
    assert_eq!(products(&shipped(&h100, Dialect::Wgsl), DType::F64, 512)[0], ("gemm_tile", [32; 2]));
}

/// A device that OpenCL and wgpu both offer reads images in OpenCL C only.
#[test]
fn images_belong_to_opencl() {
    let mut gpu = device(DeviceKind::Gpu, 1024, 48);
    let entry = "gemm_vector mwg=64 nwg=64 kwg=16 mr=4 nr=8 lanes_n=4 zigzag=1 ahead=0 images=1";
    let mut database = Database::default();
    assert_eq!(database.add("text", entry), Vec::<String>::new());
    let names = |gpu: &DeviceFacts, dialect| Tuning::lookup(&database, gpu, dialect).products(DType::F32, [64; 3]).count();
    assert_eq!([Dialect::OpenClC, Dialect::Wgsl].map(|dialect| names(&gpu, dialect)), [0, 0]);
    gpu.limits.image_pixels = 1 << 20;
    assert_eq!([Dialect::OpenClC, Dialect::Wgsl].map(|dialect| names(&gpu, dialect)), [1, 0]);
}

/// No values of an entry make the checks of a device overflow or divide by zero.
#[test]
fn any_values_are_accepted_or_refused() {
    let facts = device(DeviceKind::Gpu, 1024, 48);
    let values = [0, 1, 2, 3, 4, 31, 32, 33, 64, 96, 1 << 20];
    let mut state = 1_usize;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        values[(state >> 33) % values.len()]
    };
    for kernel in Product::KERNELS.into_iter().chain(Family::ALL.map(Family::name)).chain([CPU_BLOCKS]) {
        let axes = crate::space::axes(kernel, DType::F32).unwrap();
        for _ in 0..2000 {
            let values: Vec<(&str, usize)> = axes.iter().map(|axis| (axis.name, draw())).collect();
            let Ok(kernel) = Kernel::new(kernel, &values) else { continue };
            for dtype in [DType::F32, DType::F64] {
                let _ = check(kernel, dtype, &facts, Dialect::OpenClC);
            }
        }
    }
}

/// Work-groups that wait for one another run at the same time, and a work-item receives the candidate of each.
#[test]
fn held_rows_have_as_many_work_groups_as_run_together() {
    let mut h100 = device(DeviceKind::Gpu, 1024, 48);
    (h100.compute_units, h100.queues) = (Some(132), 2);
    let holds = |facts: &DeviceFacts, rows, items| HeldRows::on(facts).hold(rows, items);
    assert!(holds(&h100, 1024, 256) && !holds(&h100, 1025, 256), "one work-group on a device of another instruction set");
    h100.identity.architecture = "sm_90".to_owned();
    assert!(holds(&h100, 64 * 2048, 512) && !holds(&h100, 64 * 2048 + 1, 512), "the records of 64 work-groups");
    assert!(holds(&h100, 35 * 512, 128) && !holds(&h100, 35 * 512 + 1, 128), "five pieces of records for each work-item");
    let shape = |rows| {
        let tuning = Tuning::lookup(Database::shipped(), &h100, Dialect::OpenClC);
        tuning.held_shapes(DType::F64, rows).next().map(|shape| (shape.items, shape.each, shape.width()))
    };
    assert_eq!([4096, 16_384, 32_768].map(shape), [Some((128, 1, 32)), Some((256, 1, 32)), Some((512, 1, 32))]);
    assert_eq!([32_769, 65_537, 131_073].map(shape), [Some((512, 2, 16)), Some((512, 4, 8)), None], "narrower panels of more rows");
    h100.compute_units = Some(108);
    assert!(holds(&h100, 54 * 2048, 512) && !holds(&h100, 54 * 2048 + 1, 512), "half of the multiprocessors for each queue");
    h100.queues = 1;
    assert!(!holds(&h100, 1025, 256), "a queue of an application");
    let tuning = Tuning::lookup(Database::shipped(), &h100, Dialect::Wgsl);
    assert_eq!(tuning.groups(Family::HeldRows, DType::F64, 4096).next(), None);
}

/// The work-items of a work-group solve for whole columns, and the elements of L of all rows fit the local memory.
#[test]
fn held_rows_fit_a_work_group_and_its_local_memory() {
    let mut gpu = device(DeviceKind::Gpu, 1024, 48);
    let runs = |facts: &DeviceFacts, items| {
        let kernel = Kernel::new("held_rows", &[("items", items)]).unwrap();
        [DType::F32, DType::F64].map(|dtype| check(kernel, dtype, facts, Dialect::OpenClC).is_ok())
    };
    assert_eq!(
        [16, 32, 48, 128, 256].map(|items| runs(&gpu, items)),
        [[false; 2], [true; 2], [false; 2], [true; 2], [true, false]]
    );
    // a text with PTX may use the local memory of a multiprocessor
    gpu.identity.architecture = "sm_90".to_owned();
    assert_eq!([256, 512, 1024].map(|items| runs(&gpu, items)), [[true; 2], [true; 2], [true, false]]);
}

/// Of two entries with the same kernel, the one that applies to the sizes is named.
#[test]
fn the_origin_is_that_of_the_entry_for_the_sizes() {
    let tile = "mwg=8 nwg=8 kwg=4 mr=2 nr=2 vwm=1 stages=1";
    let mut database = Database::default();
    database.add("text", &format!("gemm_tile groups>=100 {tile} # large\ngemm_tile {tile} # all"));
    let gpu = device(DeviceKind::Gpu, 1024, 48);
    let tuning = Tuning::lookup(&database, &gpu, Dialect::OpenClC);
    let origin = |n| tuning.origin(DType::F64, [n; 3], tuning.products(DType::F64, [n; 3]).next().unwrap());
    assert_eq!([origin(8), origin(800)], [Some("text:2: all"), Some("text:1: large")]);
}
