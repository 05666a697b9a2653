//! Tests of every instruction, with matrices so small that an OpenCL interpreter runs the tests on one thread.
//! `cargo xtask test oclgrind` runs these tests, except five, under oclgrind, which detects data races and reads of uninitialised
//! memory.

use std::sync::Arc;

use lapidary_backend_opencl::{OpenClDevice, list};
use lapidary_conformance::Instructions;
use lapidary_core::{
    BufferRect, Conditions, DType, Device, HostRect, Instruction, Op, Operand, PanelShape, ProgramCache, Scalar, Value, Work,
};
use lapidary_kernels::{BlockParams, MmaParams, Product};

/// Opens the first OpenCL device with double precision, once for each function in `make`, and applies the function to the opened
/// device. The result is empty if no device has double precision.
fn devices<const N: usize>(make: [fn(OpenClDevice) -> OpenClDevice; N]) -> Vec<OpenClDevice> {
    let listing = list();
    let Some(first) = listing.devices.iter().position(|found| found.facts.computes(DType::F64)) else {
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no OpenCL device: {:?}", listing.notes);
        eprintln!("not run: {:?}", listing.notes);
        return Vec::new();
    };
    let open = || OpenClDevice::open(first, None, Arc::new(ProgramCache::new(None))).unwrap();
    make.into_iter().map(|make| make(open())).collect()
}

#[test]
fn every_instruction() {
    for device in devices([|device| device]) {
        Instructions(&device).all::<f64>();
        Instructions(&device).all::<f32>();
    }
}

/// Tests products in one precision only, because drivers for CPUs take seconds to compile each program.
#[test]
fn with_local_memory() {
    for device in devices([|device| device.with_tiles().unwrap()]) {
        // first, because oclgrind counts scratch memory as unwritten that takes the place of freed matrices
        Instructions(&device).triangles::<f64>();
        Instructions(&device).products::<f64>();
        Instructions(&device).panels::<f64>();
        Instructions(&device).panels::<f32>();
        Instructions(&device).batches::<f64>();
    }
}

/// Tests kernel parameters that are never chosen by default for a CPU: the tiles for small products on GPUs, and some unusual
/// tiles.
#[test]
fn with_unusual_products() {
    let ways = [
        "gemm_tile mwg=32 nwg=32 kwg=16 mr=4 nr=4 vwm=1 stages=2",
        "gemm_tile mwg=16 nwg=16 kwg=32 mr=2 nr=2 vwm=1 stages=2",
        "gemm_tile mwg=8 nwg=4 kwg=4 mr=4 nr=1 vwm=2 stages=1",
        "gemm_tile mwg=8 nwg=4 kwg=4 mr=4 nr=1 vwm=4 stages=2",
        "gemm_panel mv=1 vw=2 nr=3 group=2 kc=24 mc=16 nc=12",
    ];
    for device in devices([|device| device]) {
        for entry in ways {
            prefer(&device, entry);
            Instructions(&device).products::<f64>();
        }
    }
}

/// Tests thresholds that are so small that matrices of a few rows cross them.
#[test]
fn with_unusual_thresholds() {
    let panels = "lu_block columns=3\nlu_panel columns=5\nlu_columns rows=30\nlu_strips strips=2\nstrip_rows rows=4\nstrip_elements elements=8\n";
    let others =
        "exchange items=8\nexchange_groups groups=2\ntrsm_block unknowns=32\nbatched_lu order=6\nbatched_gemm kibiproducts=0";
    for device in devices([|device| device, |device| device.with_tiles().unwrap()]) {
        device.prefer_kernels(&[panels, others].concat()).expect("the kernels have parameters").unwrap();
        Instructions(&device).panels::<f64>();
        Instructions(&device).batches::<f64>();
    }
}

/// Tests triangular solves in which work-groups wait for one another. The device runs one work-group, which has all tasks, because devices
/// that are no GPUs do not promise to run several at the same time.
#[test]
fn with_triangles_that_wait() {
    for device in devices([|device| device]) {
        device.prefer_kernels("trsv items=64").expect("the kernel has parameters").unwrap();
        Instructions(&device).triangles_of::<f64>(66, 1);
    }
}

/// Tests more triangular solves in which work-groups wait for one another: with several right-hand sides, with more blocks, and in several
/// launches with products between them. The last solve has so many right-hand sides that a launch solves for 64 unknowns of each.
/// `cargo xtask test` does not run this test under oclgrind, because it takes too long there.
#[test]
fn with_large_triangles_that_wait() {
    for device in devices([|device| device]) {
        let prefer = |entry| device.prefer_kernels(entry).expect("the kernel has parameters").unwrap();
        prefer("trsv items=64");
        Instructions(&device).triangles::<f64>();
        Instructions(&device).triangles::<f32>();
        Instructions(&device).triangles_of::<f64>(150, 1);
        Instructions(&device).ill_conditioned_triangles::<f64>(77, 32, 4);
        prefer("trsv items=128");
        Instructions(&device).triangles_of::<f32>(130, 3);
        prefer("trsv items=64\ntrsv_sides sides=1000\ntrsm_terms terms=40");
        Instructions(&device).triangles_of::<f64>(130, 600);
    }
}

/// Tests triangular solves with inverted blocks, where the database names blocks for small triangles.
#[test]
fn with_inverted_blocks() {
    for device in devices([|device| device]) {
        device.prefer_kernels("inverted_block unknowns=32\ntrsv_sides sides=0").expect("the threshold has a value").unwrap();
        Instructions(&device).ill_conditioned_triangles::<f64>(45, 32, 16);
        Instructions(&device).ill_conditioned_triangles::<f32>(45, 32, 16);
    }
}

/// Tests more triangles with inverted blocks, and blocks with more unknowns than a work-group of the kernel for substitution has work-items. The
/// test takes too long for an interpreter, so that `cargo xtask test` does not run this test under oclgrind.
#[test]
fn with_large_inverted_blocks() {
    for device in devices([|device| device, |device| device.with_tiles().unwrap()]) {
        device.prefer_kernels("inverted_block unknowns=512\ntrsv_sides sides=0").expect("the threshold has a value").unwrap();
        Instructions(&device).triangles::<f64>();
        Instructions(&device).ill_conditioned_triangles::<f64>(77, 32, 128);
        Instructions(&device).ill_conditioned_triangles::<f32>(77, 32, 128);
        Instructions(&device).choice_of_inverses(77, 32);
        Instructions(&device).choice_of_inverses(1100, 128);
        Instructions(&device).ill_conditioned_triangles::<f64>(1100, 128, 16);
    }
}

/// Makes a device compute products with one kernel only, so that a kernel which the driver refuses is an error.
fn prefer(device: &OpenClDevice, entry: &str) {
    device.prefer_kernels(&format!("{entry}\nstop gemm")).expect("the kernels have parameters").unwrap();
}

/// Computes a product with each set of parameters of `gemm_block`, for the given transpositions and sizes.
fn products_by_blocks<T: Scalar>(device: &OpenClDevice, cases: &[([Op; 2], [usize; 3], BlockParams)]) {
    for &(ops, sizes, params) in cases {
        prefer(device, &Product::Block(params).to_string());
        Instructions(device).product::<T>(ops, sizes);
    }
}

/// Tests products with each model of memory, in tiles that a compiler for a CPU unrolls in seconds. Odd sizes cut the tiles at every
/// edge. Each case computes one product only, because drivers for CPUs take about a second to compile each program.
#[test]
fn with_each_model_of_memory() {
    let (plain, odd) = (BlockParams::PLAIN, [37, 29, 53]);
    let local = BlockParams { kwg: 4, memory: 1, ..plain };
    let staged = BlockParams { memory: 4, ..local };
    let (n, t) = (Op::NoTrans, Op::Trans);
    let single = [
        ([n, n], odd, BlockParams { vw: 4, indexing: 1, raster: 4, ..plain }),
        ([n, t], odd, BlockParams { memory: 3, vw: 2, order: 1, inline: 1, ..plain }),
        ([t, n], odd, BlockParams { vw: 2, pad: 1, raster: 4, ..local }),
        ([t, n], odd, BlockParams { mwg: 32, nwg: 16, kwg: 16, vw: 2, swizzle: true, stages: 2, ..local }),
        ([n, t], [64, 64, 64], BlockParams { stages: 2, vw: 4, ..staged }),
        ([n, n], [1, 1, 1], BlockParams { vw: 4, ..staged }),
    ];
    let double = [
        ([t, t], odd, BlockParams { vw: 4, order: 1, ..plain }),
        ([n, t], odd, BlockParams { stages: 2, order: 1, ..local }),
        ([t, n], odd, BlockParams { memory: 2, stages: 2, vw: 4, pad: 1, indexing: 1, ..local }),
        ([n, t], odd, BlockParams { memory: 5, vw: 2, order: 1, ..local }),
        ([t, t], odd, BlockParams { kwg: 3, kr: 1, stages: 2, vw: 2, order: 1, inline: 1, raster: 2, ..staged }),
        ([n, n], odd, BlockParams { pad: 1, indexing: 1, ..staged }),
        ([t, n], odd, BlockParams { mwg: 16, nwg: 16, kwg: 8, swizzle: true, order: 1, ..staged }),
    ];
    for device in devices([|device| device]) {
        products_by_blocks::<f32>(&device, &single);
        products_by_blocks::<f64>(&device, &double);
    }
}

/// Parameters of the kernel for matrix units, with its instructions replaced by their definition and small tiles.
const SMALL_MMA: MmaParams = MmaParams {
    mwg: 32,
    nwg: 32,
    kwg: 16,
    mw: 16,
    nw: 16,
    stages: 2,
    raster: 2,
    split: 1,
    unit: 8,
    guarded: true,
    aligned: false,
    ptx: false,
};

/// Computes products by the kernel for matrix units. Each case computes one product only, as in [`with_each_model_of_memory`]. Matrices
/// with an even number of rows lie on whole pairs of elements, and in single precision, if the number of rows is a multiple of four, on whole
/// vectors. If the number of rows is 64 too, the kernel also computes the product on other positions.
fn products_by_matrix_units<T: Scalar>(cases: &[([Op; 2], [usize; 3], MmaParams)]) {
    let vector = if T::DTYPE == DType::F64 { 2 } else { 4 };
    for device in devices([|device| device]) {
        for &(ops, sizes, params) in cases {
            prefer(&device, &Product::Mma(params).to_string());
            let instructions = Instructions(&device);
            if sizes[0] % vector == 0 {
                instructions.product_in_vectors::<T>(ops, sizes);
            }
            if sizes[0] % vector != 0 || (params.guarded && !params.aligned && sizes[0] == 64) {
                instructions.product::<T>(ops, sizes);
            }
        }
    }
}

/// Tests whole tiles and edges, aligned and odd matrices, and terms in parts, for all transpositions.
#[test]
fn with_the_order_of_matrix_units() {
    let (n, t, small) = (Op::NoTrans, Op::Trans, SMALL_MMA);
    products_by_matrix_units::<f64>(&[
        // first, because oclgrind counts scratch memory as unwritten that takes the place of freed matrices
        ([n, n], [37, 29, 53], MmaParams { split: 4, ..small }),
        ([t, t], [64, 32, 128], MmaParams { split: 2, ..small }),
        ([n, n], [64, 96, 48], MmaParams { guarded: false, ..small }),
        ([n, n], [64, 32, 32], small),
        ([t, n], [64, 32, 32], small),
        ([n, t], [64, 32, 80], MmaParams { mwg: 64, mw: 32, raster: 1, ..small }),
        ([t, t], [64, 64, 16], small),
        ([n, n], [37, 29, 53], small),
        ([t, n], [38, 30, 54], small),
        ([n, t], [1, 1, 1], small),
        ([t, t], [70, 31, 19], MmaParams { stages: 3, ..small }),
    ]);
}

/// A product beside a panel of another queue has the same bits as a product without one, although its work-groups compute several tiles each, and
/// another launch computes the rest.
#[test]
fn products_beside_a_panel_have_the_same_bits() {
    for device in devices([|device| device]) {
        // three tiles for each multiprocessor, of which each work-group computes one or two
        let units = device.facts().compute_units.unwrap_or(1);
        let [m, n, k] = [SMALL_MMA.mwg + 5, 3 * units * SMALL_MMA.nwg, 20];
        let entry = format!("{}\nstop gemm\nbeside_panel tiles=2", Product::Mma(SMALL_MMA));
        device.prefer_kernels(&entry).expect("the kernels have parameters").unwrap();
        let data: Vec<f64> = (0..m * k + k * n + m * n).map(|i| ((i * i + 7 * i) % 1013) as f64 / 97.0).collect();
        let product = |beside_panel: Option<PanelShape>| {
            let buffer = device.alloc(size_of_val(data.as_slice())).unwrap();
            let at = |offset, rows, cols| Operand { offset, ..Operand::packed(&buffer, rows, cols, DType::F64) };
            let [a, b, c] = [at(0, m, k), at(m * k, k, n), at(m * k + k * n, m, n)];
            let [alpha, beta] = [-1.0, 1.0].map(Value::F64);
            let instruction = Instruction::Gemm { alpha, op_a: Op::NoTrans, a, op_b: Op::NoTrans, b, beta, c };
            let mut result = data.clone();
            let all = |data: &mut [f64]| HostRect::packed(data, data.len());
            // SAFETY: the operands lie in the buffer, and the device has finished before the next call and before the data is dropped.
            unsafe {
                device.write(all(&mut result), BufferRect::packed(&buffer, data.len())).unwrap();
                let work = Work::Run {
                    instruction: &instruction,
                    queue: 0,
                    conditions: Conditions { beside_panel, ..Conditions::default() },
                };
                device.submit(work, &[]).unwrap().wait().unwrap();
                device.read(BufferRect::packed(&buffer, data.len()), all(&mut result)).unwrap();
            }
            result
        };
        let alone = product(None);
        let beside = product(Some(PanelShape { rows: 1000, cols: 100 }));
        assert!(beside == alone, "beside a panel");
        assert!(alone != data, "the product is computed");
    }
}

/// Tests slices of 32 terms and three stages, which need more local memory than oclgrind has.
#[test]
fn with_large_slices_of_matrix_units() {
    let (n, t, small) = (Op::NoTrans, Op::Trans, SMALL_MMA);
    products_by_matrix_units::<f64>(&[
        ([t, n], [64, 32, 96], MmaParams { stages: 3, ..small }),
        ([t, t], [64, 64, 48], MmaParams { kwg: 32, mwg: 64, nwg: 64, ..small }),
        ([n, n], [37, 29, 53], MmaParams { kwg: 32, mwg: 64, nwg: 64, ..small }),
        // whole tiles of this size are read by loads in OpenCL C
        ([n, n], [128, 128, 48], MmaParams { mwg: 128, nwg: 128, mw: 64, nw: 32, guarded: false, ..small }),
    ]);
}

/// Parameters of the kernel for matrix units in single precision, in which the work-items multiply, with its PTX instructions replaced by
/// their definition and small tiles.
const SMALL_FMA: MmaParams = MmaParams { mwg: 32, nwg: 32, kwg: 16, mw: 32, nw: 16, unit: 1, ..SMALL_MMA };

/// Tests the kernel for matrix units in single precision: whole tiles and edges, aligned and odd matrices, and terms in parts, for all
/// transpositions.
#[test]
fn with_copies_in_single_precision() {
    let (n, t, small) = (Op::NoTrans, Op::Trans, SMALL_FMA);
    products_by_matrix_units::<f32>(&[
        // first, because oclgrind counts scratch memory as unwritten that takes the place of freed matrices
        ([n, n], [37, 29, 53], MmaParams { split: 4, ..small }),
        ([t, t], [64, 32, 64], MmaParams { split: 2, ..small }),
        ([n, n], [64, 96, 48], MmaParams { guarded: false, ..small }),
        ([n, n], [64, 32, 32], small),
        ([t, n], [64, 32, 32], small),
        ([n, t], [64, 32, 48], MmaParams { mwg: 64, raster: 1, ..small }),
        ([t, t], [64, 64, 16], small),
        ([n, n], [37, 29, 53], small),
        ([t, n], [38, 30, 54], MmaParams { stages: 3, ..small }),
        ([n, t], [1, 1, 1], small),
        ([t, t], [70, 31, 19], MmaParams { nwg: 16, ..small }),
        ([n, n], [44, 19, 21], MmaParams { kwg: 8, stages: 4, ..small }),
        ([t, t], [36, 35, 18], small),
    ]);
}

/// Parameters of the kernel for matrix units in single precision, whose factors have two parts, with its PTX instructions replaced by their
/// definition and small tiles.
const SMALL_SPLIT: MmaParams = MmaParams { mwg: 128, nwg: 64, kwg: 32, mw: 32, nw: 32, unit: 16, ..SMALL_MMA };

/// Tests products by matrix units in single precision, which are accurate in norm: whole tiles and edges, terms in parts, and work-groups that
/// compute several tiles beside a panel.
#[test]
fn with_factors_in_two_parts() {
    let (n, t, small) = (Op::NoTrans, Op::Trans, SMALL_SPLIT);
    let panel = Some(PanelShape { rows: 1000, cols: 100 });
    let cases = [
        ([n, n], [37, 29, 73], MmaParams { split: 2, ..small }, None),
        ([n, n], [128, 64, 64], MmaParams { guarded: false, aligned: true, ..small }, None),
        ([t, n], [37, 29, 41], small, None),
        ([n, t], [64, 64, 96], MmaParams { mwg: 64, aligned: true, stages: 3, ..small }, None),
        ([t, t], [130, 31, 40], small, None),
        ([n, n], [130, 64 * 7, 40], small, panel),
    ];
    for device in devices([|device| device]) {
        for (ops, sizes, params, beside_panel) in cases {
            prefer(&device, &format!("{}\nbeside_panel tiles=2", Product::Mma(params)));
            Instructions(&device).product_in_norm::<f32>(ops, sizes, beside_panel);
        }
    }
}

/// Tests long products whose error is bounded in norm, which are sums of shorter products. The terms of the last one are fewer.
#[test]
fn with_long_products_in_norm() {
    let (n, t) = (Op::NoTrans, Op::Trans);
    for device in devices([|device| device]) {
        [[n, n], [n, t], [t, n], [t, t]]
            .into_iter()
            .for_each(|ops| Instructions(&device).product_in_norm::<f32>(ops, [9, 7, 9000], None));
    }
}

/// Tests that the kernel for matrix units reads no element outside the matrices, whose neighbours are NaN, and that it treats NaN and
/// infinite elements as a plain loop does.
#[test]
fn with_copies_beside_elements_that_are_no_numbers() {
    let (n, t) = (Op::NoTrans, Op::Trans);
    for device in devices([|device| device]) {
        for ops in [[n, n], [t, n], [n, t], [t, t]] {
            prefer(&device, &Product::Mma(SMALL_FMA).to_string());
            Instructions(&device).product_beside_nan::<f32>(ops, [37, 19, 21]);
        }
        prefer(&device, &Product::Mma(SMALL_MMA).to_string());
        Instructions(&device).product_beside_nan::<f64>([n, n], [37, 19, 21]);
    }
}

/// Tests panels whose rows one work-group holds. Other work-groups would have to run at the same time, which devices that are no GPUs do
/// not promise.
#[test]
fn with_held_rows() {
    for device in devices([|device| device]) {
        let prefer = |entry| device.prefer_kernels(entry).expect("the kernels have parameters").unwrap();
        prefer("held_rows items=64");
        Instructions(&device).panels::<f64>();
        Instructions(&device).panels::<f32>();
        prefer("held_block columns=64");
        Instructions(&device).panels::<f64>();
        // with more rows than work-items, each work-item holds several rows of narrower panels
        prefer("held_rows items=32");
        Instructions(&device).panels::<f64>();
    }
}

/// Tests products whose terms are divided into parts: with equal and with unequal numbers of slices, with fewer terms than parts, with one
/// row, and with one column. Each case computes one product only, as in [`with_each_model_of_memory`].
#[test]
fn with_terms_in_parts() {
    let (plain, odd) = (BlockParams::PLAIN, [37, 29, 53]);
    let local = BlockParams { kwg: 4, memory: 1, ..plain };
    let staged = BlockParams { memory: 4, ..local };
    let (n, t) = (Op::NoTrans, Op::Trans);
    let single = [
        ([n, n], odd, BlockParams { split: 4, vw: 2, raster: 4, ..plain }),
        ([t, n], [1, 29, 200], BlockParams { split: 8, kwg: 16, memory: 5, stages: 2, ..local }),
        ([n, t], [37, 1, 203], BlockParams { split: 5, memory: 3, indexing: 1, ..plain }),
    ];
    let double = [
        ([t, t], odd, BlockParams { split: 32, stages: 2, vw: 4, pad: 1, inline: 1, ..staged }),
        ([n, t], [37, 29, 7], BlockParams { split: 32, indexing: 1, raster: 2, ..staged }),
        ([n, n], [8, 4, 3], BlockParams { split: 2, ..local }),
    ];
    for device in devices([|device| device]) {
        products_by_blocks::<f32>(&device, &single);
        products_by_blocks::<f64>(&device, &double);
    }
}

/// Kernel for products by vector loads, with tiles that a compiler for a CPU unrolls in seconds.
const NARROW: &str = "gemm_vector mwg=32 nwg=32 kwg=4 mr=4 nr=8 lanes_n=4";

/// Opens a device whose products use vector loads. `flags` holds the last parameters of the kernel.
fn with_vectors(flags: &str) -> Option<OpenClDevice> {
    let device = devices([|device| device.with_tiles().unwrap()]).pop()?;
    let tile = "gemm_tile mwg=8 nwg=4 kwg=4 mr=4 nr=1 vwm=1 stages=1";
    device.prefer_kernels(&format!("{NARROW} {flags}\n{tile}\nstop gemm"))?.unwrap();
    Some(device)
}

/// Tests products whose operands lie in whole vectors, so that no operand is copied and the kernel itself transposes the vectors
/// of B.
#[test]
fn with_operands_in_vectors() {
    for flags in ["zigzag=1 ahead=0", "zigzag=0 ahead=1"] {
        let Some(device) = with_vectors(flags) else { return };
        Instructions(&device).products_in_vectors::<f64>();
        Instructions(&device).products_in_vectors::<f32>();
    }
}

/// Tests products of any size whose operands are copied into whole vectors first, a few terms at a time.
#[test]
fn with_few_terms_copied_to_vectors() {
    let Some(device) = with_vectors("zigzag=1 ahead=0") else { return };
    let entries = format!("{NARROW} zigzag=1 ahead=0\ncopy_operands extent=1\ncopied_terms terms=30");
    device.prefer_kernels(&entries).expect("the kernels have parameters").unwrap();
    Instructions(&device).products::<f64>();
    Instructions(&device).product::<f32>([Op::NoTrans, Op::Trans], [5, 40, 70]);
}

/// Tests products whose operands are copied into whole vectors first. Operands are copied from order 64 on, which takes minutes in
/// an interpreter, so that `cargo xtask test` does not run this test under oclgrind.
#[test]
fn with_operands_copied_to_vectors() {
    let Some(device) = with_vectors("zigzag=1 ahead=0") else { return };
    Instructions(&device).wide_products::<f64>();
    Instructions(&device).wide_products::<f32>();
}
