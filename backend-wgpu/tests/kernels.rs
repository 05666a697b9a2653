//! Tests every instruction on all wgpu adapters of the system.

use std::sync::Arc;

use lapidary_backend_wgpu::{WgpuDevice, list};
use lapidary_conformance::Instructions;
use lapidary_core::{BufferRect, Device, HostRect, Instruction, Op, Operand, ProgramCache, Scalar};
use lapidary_kernels::{BlockParams, Product};

/// Opens every adapter as a device, and applies `make` to the device. If `LAPIDARY_REQUIRE_WGPU` is set and there is no adapter,
/// the function panics.
fn devices(make: impl Fn(WgpuDevice) -> WgpuDevice) -> Vec<(bool, WgpuDevice)> {
    devices_within(None, make)
}

/// Opens every adapter as the function `devices` does, with a memory limit of `memory` bytes for each device.
fn devices_within(memory: Option<usize>, make: impl Fn(WgpuDevice) -> WgpuDevice) -> Vec<(bool, WgpuDevice)> {
    let listing = list();
    let required = std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_some();
    assert!(!listing.devices.is_empty() || !required, "no adapter: {:?}", listing.notes);
    let open = |index| WgpuDevice::open(index, memory, Arc::new(ProgramCache::new(None))).unwrap();
    listing.devices.iter().enumerate().map(|(index, found)| (found.f64, make(open(index)))).collect()
}

/// Makes the device prefer the kernels that `entries` names, and returns the device.
fn preferring<D: Device>(device: D, entries: &str) -> D {
    device.prefer_kernels(entries).expect("the device looks up kernels").unwrap();
    device
}

#[test]
fn every_instruction() {
    for (f64, device) in devices(|device| device) {
        Instructions(&device).all::<f32>();
        if f64 {
            Instructions(&device).all::<f64>();
        }
    }
}

/// Tests instructions under a small memory limit. The memory limit leaves so little scratch memory that products, triangular
/// solves and panels are computed in many parts.
#[test]
fn with_little_scratch_memory() {
    for (f64, device) in devices_within(Some(32 << 10), |device| device) {
        Instructions(&device).all::<f32>();
        if f64 {
            let device = device.with_tiles().unwrap();
            Instructions(&device).products::<f64>();
            Instructions(&device).panels::<f64>();
        }
    }
}

#[test]
fn with_workgroup_memory() {
    for (f64, device) in devices(|device| device.with_tiles().unwrap()) {
        Instructions(&device).products::<f32>();
        Instructions(&device).wide_products::<f32>();
        Instructions(&device).triangles::<f32>();
        Instructions(&device).panels::<f32>();
        Instructions(&device).batches::<f32>();
        if f64 {
            Instructions(&device).products::<f64>();
            Instructions(&device).wide_products::<f64>();
            Instructions(&device).triangles::<f64>();
            Instructions(&device).panels::<f64>();
            Instructions(&device).batches::<f64>();
        }
    }
}

/// Tests thresholds that are so small that matrices of a few rows cross them.
#[test]
fn with_unusual_thresholds() {
    let panels = "lu_block columns=3\nlu_panel columns=5\nlu_columns rows=30\nlu_strips strips=2\nstrip_rows rows=4\nstrip_elements elements=8\n";
    let others =
        "exchange items=8\nexchange_groups groups=2\ntrsm_block unknowns=32\nbatched_lu order=6\nbatched_gemm kibiproducts=0";
    for (_, device) in devices(|device| preferring(device.with_tiles().unwrap(), &[panels, others].concat())) {
        Instructions(&device).panels::<f32>();
        Instructions(&device).batches::<f32>();
    }
}

/// Tests triangular solves with inverted blocks on devices whose database names blocks for small triangles.
#[test]
fn with_inverted_blocks() {
    for (f64, device) in devices(|device| preferring(device.with_tiles().unwrap(), "inverted_block unknowns=512")) {
        Instructions(&device).triangles::<f32>();
        Instructions(&device).ill_conditioned_triangles::<f32>(77, 32, 128);
        // the order of the blocks of large triangles in the shipped entries
        Instructions(&device).ill_conditioned_triangles::<f32>(4100, 512, 1);
        if f64 {
            Instructions(&device).ill_conditioned_triangles::<f64>(77, 32, 128);
            Instructions(&device).choice_of_inverses(77, 32);
            Instructions(&device).choice_of_inverses(1100, 128);
            Instructions(&device).ill_conditioned_triangles::<f64>(1100, 128, 16);
        }
    }
}

/// Tests products with kernel parameters that Lapidary chooses for no device, and that differ greatly from one another.
#[test]
fn with_unusual_products() {
    let ways = [
        "gemm_tile mwg=8 nwg=4 kwg=4 mr=4 nr=1 vwm=2 stages=1",
        "gemm_tile mwg=8 nwg=4 kwg=4 mr=4 nr=1 vwm=4 stages=2",
        "gemm_panel mv=1 vw=2 nr=3 group=2 kc=24 mc=16 nc=12",
        // the block of C of the entries for CPUs
        "gemm_panel mv=8 vw=2 nr=12 group=8 kc=24 mc=40 nc=50",
    ];
    for (_, device) in devices(|device| device) {
        for entry in ways {
            prefer(&device, entry);
            Instructions(&device).products::<f32>();
        }
    }
}

#[test]
fn kernels_are_timed_if_the_device_records_times() {
    let a = [1.0_f32; 1600];
    for (_, device) in devices(|device| device) {
        assert!(device.take_kernel_times().is_none());
        let device = device.with_kernel_times().unwrap();
        (0..3).for_each(|_| drop(product(&device, 40, [Op::NoTrans; 2], [&a, &a], 0.0)));
        let times = device.take_kernel_times().expect("the device records times").unwrap();
        assert!(times.len() >= 3 && times.iter().all(|time| time.operation == "gemm" && time.start < time.end), "{times:?}");
        assert!(times[0].start == 0.0 && times.is_sorted_by(|one, next| one.start <= next.start), "{times:?}");
        assert_eq!(device.take_kernel_times().unwrap().unwrap(), []);
    }
}

/// Computes op(A)·op(B) + β·A for matrices of order `n`.
fn product<T: Scalar>(device: &WgpuDevice, n: usize, [op_a, op_b]: [Op; 2], [a, b]: [&[T]; 2], beta: T) -> Vec<T> {
    let (mut c, buffers) = (vec![T::ZERO; n * n], [0, 1, 2].map(|_| device.alloc(n * n * size_of::<T>()).unwrap()));
    let operand = |i: usize| Operand::packed(&buffers[i], n, n, T::DTYPE);
    let (alpha, beta) = (T::ONE.into(), beta.into());
    let product = Instruction::Gemm { alpha, op_a, a: operand(0), op_b, b: operand(1), beta, c: operand(2) };
    // SAFETY: the rectangles are vectors of this function, the buffers hold n² elements each, and nothing else accesses them.
    unsafe {
        device.write(HostRect::packed(&mut a.to_vec(), n), BufferRect::packed(&buffers[0], n)).unwrap();
        device.write(HostRect::packed(&mut b.to_vec(), n), BufferRect::packed(&buffers[1], n)).unwrap();
        device.write(HostRect::packed(&mut a.to_vec(), n), BufferRect::packed(&buffers[2], n)).unwrap();
        device.launch(&product).unwrap();
        device.read(BufferRect::packed(&buffers[2], n), HostRect::packed(&mut c, n)).unwrap();
    }
    c
}

/// Makes a device compute products with one kernel only.
fn prefer(device: &WgpuDevice, entry: &str) {
    device.prefer_kernels(&format!("{entry}\nstop gemm")).expect("the kernels have parameters").unwrap();
}

/// Computes a product with each set of parameters of `gemm_block`, for the given transpositions and sizes.
fn products_by_blocks(device: &WgpuDevice, f64: bool, cases: &[([Op; 2], [usize; 3], BlockParams)]) {
    for &(ops, sizes, params) in cases {
        prefer(device, &Product::Block(params).to_string());
        Instructions(device).product::<f32>(ops, sizes);
        if f64 {
            Instructions(device).product::<f64>(ops, sizes);
        }
    }
}

/// Tests products with each model of memory. Odd sizes cut the tiles at every edge.
#[test]
fn with_each_model_of_memory() {
    let (plain, odd) = (BlockParams::PLAIN, [37, 29, 53]);
    let local = BlockParams { kwg: 4, memory: 1, ..plain };
    let staged = BlockParams { memory: 4, ..local };
    let (n, t) = (Op::NoTrans, Op::Trans);
    let cases = [
        ([n, n], odd, BlockParams { vw: 4, raster: 4, ..plain }),
        ([t, t], odd, BlockParams { memory: 3, vw: 2, order: 1, inline: 1, ..plain }),
        ([t, n], odd, BlockParams { stages: 2, vw: 2, pad: 1, indexing: 1, raster: 4, ..local }),
        ([n, t], odd, BlockParams { memory: 2, stages: 2, order: 1, ..local }),
        ([t, n], odd, BlockParams { memory: 5, vw: 4, pad: 1, ..local }),
        ([t, t], odd, BlockParams { kwg: 3, kr: 1, stages: 2, vw: 2, order: 1, inline: 1, raster: 2, ..staged }),
        ([t, n], odd, BlockParams { mwg: 32, nwg: 16, kwg: 16, vw: 2, swizzle: true, stages: 2, ..local }),
        ([t, n], odd, BlockParams { mwg: 16, nwg: 16, kwg: 8, swizzle: true, order: 1, ..staged }),
        ([n, t], [64, 64, 64], BlockParams { vw: 4, pad: 1, ..staged }),
        ([n, n], [1, 1, 1], BlockParams { vw: 4, indexing: 1, ..staged }),
    ];
    for (f64, device) in devices(|device| device) {
        products_by_blocks(&device, f64, &cases);
    }
}

/// Tests products whose terms are divided into parts: with equal and with unequal numbers of slices, with fewer terms than parts, with one
/// row, and with one column.
#[test]
fn with_terms_in_parts() {
    let (plain, odd) = (BlockParams::PLAIN, [37, 29, 53]);
    let local = BlockParams { kwg: 4, memory: 1, ..plain };
    let staged = BlockParams { memory: 4, ..local };
    let (n, t) = (Op::NoTrans, Op::Trans);
    let cases = [
        ([n, n], odd, BlockParams { split: 4, vw: 2, raster: 4, ..plain }),
        ([t, n], [1, 29, 200], BlockParams { split: 8, kwg: 16, memory: 5, stages: 2, ..local }),
        ([n, t], [37, 1, 203], BlockParams { split: 5, memory: 3, indexing: 1, ..plain }),
        ([t, t], odd, BlockParams { split: 32, stages: 2, vw: 4, pad: 1, inline: 1, ..staged }),
        ([n, t], [37, 29, 7], BlockParams { split: 32, indexing: 1, raster: 2, ..staged }),
        ([n, n], [8, 4, 3], BlockParams { split: 2, ..local }),
    ];
    for (f64, device) in devices(|device| device) {
        products_by_blocks(&device, f64, &cases);
    }
}

/// Tests products of matrices whose columns consist of whole vectors. The kernel therefore reads the operands without a copy, and
/// transposes the vectors of B itself. In `f64` the test uses the large tile, which Lapidary does not choose for small products.
#[test]
fn with_operands_in_vectors() {
    let entries = "gemm_vector f32 mwg=64 nwg=64 kwg=16 mr=4 nr=8 lanes_n=4 zigzag=1 ahead=0\n\
                   gemm_vector f64 mwg=128 nwg=128 kwg=8 mr=8 nr=8 lanes_n=8 zigzag=1 ahead=1\n";
    for (f64, device) in devices(|device| preferring(device.with_tiles().unwrap(), entries)) {
        in_vectors::<f32>(&device);
        if f64 {
            in_vectors::<f64>(&device);
        }
    }
}

/// Tests products of matrices of small integers. The results of products of small integers are exact.
fn in_vectors<T: Scalar>(device: &WgpuDevice) {
    const N: usize = 144;
    let integers = |seed: usize| (0..N * N).map(|e| T::from_f64(((e * seed + e / 5) % 13) as f64 - 6.0)).collect::<Vec<T>>();
    let (a, b) = (integers(7), integers(11));
    let at = |op: Op, x: &[T], i: usize, j: usize| x[if op.is_trans() { j + i * N } else { i + j * N }].to_f64();
    for ops @ [op_a, op_b] in [[Op::NoTrans; 2], [Op::Trans, Op::NoTrans], [Op::NoTrans, Op::Trans], [Op::Trans; 2]] {
        for (e, x) in product(device, N, ops, [&a, &b], T::from_f64(-2.0)).into_iter().enumerate() {
            let (i, j) = (e % N, e / N);
            let expected = (0..N).map(|k| at(op_a, &a, i, k) * at(op_b, &b, k, j)).sum::<f64>() - 2.0 * a[e].to_f64();
            assert!(x.to_f64() == expected, "{}: {op_a}{op_b} ({i}, {j}): {x:?} in place of {expected}", T::DTYPE);
        }
    }
}
