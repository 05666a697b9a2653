//! Tests of the wgpu adapters in configurations that `suite.rs` does not cover: one adapter opened twice, wgpu devices together
//! with other backends, tight memory limits, and run-time checks of memory accesses.
//!
//! If there is no adapter, a test prints a message and passes, unless `LAPIDARY_REQUIRE_WGPU` is set. `cargo xtask test` sets
//! `LAPIDARY_REQUIRE_WGPU`.
#![cfg(feature = "wgpu")]

#[path = "support/adapters.rs"]
mod adapters;
#[path = "support/agree.rs"]
mod agree;
#[path = "support/exchanges.rs"]
mod exchanges;
#[path = "support/factors.rs"]
mod factors;
#[path = "support/grade.rs"]
mod grade;
#[path = "support/graded.rs"]
mod graded;
#[path = "support/resident.rs"]
mod resident;
#[path = "support/settings.rs"]
mod settings;
#[path = "support/tall.rs"]
mod tall;

use std::sync::Arc;

use adapters::{adapters, few, first};
use agree::agree;
use exchanges::{endless_exchanges, many_exchanges};
use factors::solves_with_kept_factors;
use grade::{grade, grade_some};
use graded::Graded;
use lapidary::backend::Device;
use lapidary::wgpu::{Found, WgpuDevice, list, required_limits, wgpu};
use lapidary::{DType, ErrorKind, Gemm, Getrf, Machine, MatMut, MatRef, Settings};
use lapidary_conformance::Scope;
use lapidary_conformance::properties::agreement::Closeness;
use resident::Resident;
use settings::{limited, settings};
use tall::{nan_pivot, panels, subnormal_pivot};

fn open(indices: &[usize], settings: &Settings) -> Graded {
    let indices: Vec<String> = indices.iter().map(ToString::to_string).collect();
    Graded::open(&format!("wgpu:{}", indices.join(",")), settings)
}

/// Makes a machine of N devices of one adapter, each modified by `change`.
fn made<const N: usize>(name: &str, index: usize, settings: &Settings, change: impl Fn(WgpuDevice) -> WgpuDevice) -> Graded {
    let cache = Arc::new(settings.program_cache());
    let device = || change(WgpuDevice::open(index, settings.memory_limit, Arc::clone(&cache)).unwrap());
    let devices = (0..N).map(|_| device()).collect();
    Graded(name.to_owned(), Machine::from_wgpu(devices, settings).unwrap())
}

/// Makes the device prefer the kernels that `entries` names, and returns the device.
fn preferring(device: WgpuDevice, entries: &str) -> WgpuDevice {
    device.prefer_kernels(entries).expect("the device looks up kernels").unwrap();
    device
}

#[test]
fn tall_and_wide_panels() {
    for (index, found) in adapters("", |_| true) {
        let graded = open(&[index], &settings());
        panels::<f32>(&graded);
        endless_exchanges::<f32>(&graded);
        if found.f64 {
            panels::<f64>(&graded);
        }
    }
}

#[test]
fn one_adapter_opened_twice_and_out_of_core() {
    if let Some((index, _)) = first() {
        let settings = limited(128 << 10);
        grade::<f64>(&made::<2>("two", index, &settings, |device| device), &few());
        grade::<f32>(&made::<1>("pieces", index, &settings, |device| device.in_pieces(1 << 10)), &few());
        // pieces of 128 bytes: pivots are transferred in one piece or in several pieces
        grade::<f32>(&Resident::new(made::<1>("small pieces", index, &self::settings(), |device| device.in_pieces(128))), &few());
    }
}

#[test]
fn matrices_are_copied_on_one_device_and_between_two() {
    let Some((index, _)) = first() else { return };
    let settings = settings();
    let cache = Arc::new(settings.program_cache());
    let open = || WgpuDevice::open(index, None, Arc::clone(&cache)).unwrap();
    let devices = vec![open(), open()];
    let buffers = [0, 0, 1].map(|device: usize| devices[device].alloc(24).unwrap());
    let copied_directly = |peer: usize| devices[0].copy_from(&devices[peer], &buffers[2 * peer], &buffers[1], 24).is_some();
    assert_eq!([0, 1].map(copied_directly), [true, false]);
    drop(buffers);
    let machine = Machine::from_wgpu(devices, &settings).unwrap();
    let a: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let host = MatRef::col_major(&a, 2, 3).unwrap();
    for (from, to) in [(0, 0), (0, 1)] {
        let original = machine.upload_to(from, host).unwrap();
        let mut copy = machine.upload_to(to, MatRef::col_major(&[9.0; 6], 2, 3).unwrap()).unwrap();
        copy.copy_from(&original).unwrap();
        let mut copied = [0.0; 6];
        copy.download(MatMut::col_major(&mut copied, 2, 3).unwrap()).unwrap();
        assert_eq!(copied, a[..], "from device {from} to device {to}");
    }
}

#[test]
fn a_buffer_of_another_device_is_not_wrapped() {
    let Some((_, found)) = first() else { return };
    let open = || pollster::block_on(found.adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
    let [(device, queue), (other, _)] = [open(), open()];
    let settings = settings();
    let ours = WgpuDevice::from_parts(device.clone(), queue, Arc::new(settings.program_cache())).unwrap();
    let machine = Machine::from_wgpu(vec![ours], &settings).unwrap();
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let descriptor = wgpu::BufferDescriptor { label: None, size: 64, usage, mapped_at_creation: false };
    machine.wrap_wgpu::<f32>(&device.create_buffer(&descriptor), 4, 4).unwrap();
    let error = machine.wrap_wgpu::<f32>(&other.create_buffer(&descriptor), 4, 4).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("another device's"), "{error}");
}

#[test]
fn one_device_and_several_kinds_agree() {
    let Some((index, _)) = first() else { return };
    let one = open(&[index], &settings());
    let mut others = vec![format!("wgpu:{index}+cpu")];
    if cfg!(feature = "opencl") && lapidary::opencl::list().devices.iter().any(|found| found.facts.computes(DType::F64)) {
        others.push(format!("wgpu:{index}+opencl+cpu"));
    }
    for other in others {
        let several = Graded::open(&other, &limited(256 << 10));
        agree::<f32>(&one, &several, Closeness::Bounds, &few());
        agree::<f64>(&one, &several, Closeness::Bounds, &few());
    }
}

#[test]
fn products_through_workgroup_memory() {
    if let Some((index, _)) = first() {
        let tiled = made::<1>("tiles", index, &settings(), |device| device.with_tiles().unwrap());
        grade::<f64>(&tiled, &few());
        grade::<f32>(&tiled, &few());
        // calls with more row exchanges than a kernel prepares at a time
        many_exchanges::<f32>(&tiled);
        many_exchanges::<f64>(&tiled);
        // each routine runs as one instruction on resident matrices
        let resident = Resident::new(tiled);
        grade::<f64>(&resident, &few());
        grade::<f32>(&resident, &few());
        panels::<f32>(&resident);
        panels::<f64>(&resident);
        // the test matrices are so narrow that many of them have a single column
        let narrow = Scope { blocks: vec![1, 2], min: 0, max: 5, cases: 40, large: vec![9], ..few() };
        grade::<f32>(&resident.with_columns_on_host(), &narrow);
    }
}

#[test]
fn panels_column_by_column_and_by_strips_of_every_shape() {
    let Some((index, _)) = first() else { return };
    for strips in ["stop strips", "strips items=4"] {
        let way = |device: WgpuDevice| preferring(device.with_tiles().unwrap(), strips);
        let resident = Resident::new(made::<1>(strips, index, &settings(), way));
        grade_some::<f64>(&resident, &few(), "::getrf::");
        grade_some::<f32>(&resident, &few(), "::program::panels");
        nan_pivot::<f32>(&resident);
        subnormal_pivot(&resident);
    }
}

/// Compares strips whose workgroups wait for one another with strips that are launched one by one. All variants must compute the
/// same bits, also with a run-time check of every memory access. The test runs only with drivers that are known to let all
/// started workgroups make progress.
#[test]
fn strips_that_wait() {
    let bears = |found: &Found| ["NVIDIA", "SwiftShader driver"].contains(&found.info.driver.as_str());
    for (index, _) in adapters("that bears waits", bears) {
        let way = |waits| {
            move |device: WgpuDevice| preferring(device.with_tiles().unwrap(), "strips items=16").with_waits(waits).unwrap()
        };
        let [waiting, launched] = [true, false].map(|waits| made::<1>("strips", index, &settings(), way(waits)));
        let checked = made::<1>("checked", index, &settings(), |device| way(true)(device).with_checks());
        for (m, n) in [(500, 150), (77, 77), (300, 5), (40, 90)] {
            let a: Vec<f32> = (0..m * n).map(|e| ((e * 7919 + e / 13) % 1009) as f32 / 1009.0 - 0.5).collect();
            let [waiting, launched, checked] = [&waiting, &launched, &checked].map(|graded| {
                let (mut lu, mut ipiv) = (a.clone(), vec![0; m.min(n)]);
                let info = graded.1.getrf_into(Getrf::new(MatMut::col_major(&mut lu, m, n).unwrap(), &mut ipiv)).unwrap().get();
                (info, ipiv, lu.into_iter().map(f32::to_bits).collect::<Vec<_>>())
            });
            for (name, other) in [("launched", launched), ("checked", checked)] {
                assert_eq!((waiting.0, &waiting.1), (other.0, &other.1), "{m} by {n}, {name}");
                let first = waiting.2.iter().zip(&other.2).position(|(x, y)| x != y);
                assert_eq!(first, None, "{m} by {n}, {name}: the first element that differs");
            }
        }
        grade_some::<f32>(&waiting, &few(), "::getrf::");
        nan_pivot::<f32>(&waiting);
    }
}

/// Tests small vector products that read operands ahead of use. By default, only products with large tiles read ahead.
#[test]
fn products_that_read_ahead() {
    let Some((index, _)) = first() else { return };
    let ahead = "gemm_vector f32 mwg=64 nwg=64 kwg=16 mr=4 nr=8 lanes_n=4 zigzag=0 ahead=1\n\
                 gemm_vector f64 mwg=64 nwg=64 kwg=8 mr=4 nr=8 lanes_n=4 zigzag=0 ahead=1\n\
                 gemm_tile mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=2 stages=1";
    let device = made::<1>("ahead", index, &settings(), |device| preferring(device.with_tiles().unwrap(), ahead));
    for name in ["::gemm::", "::getrf::"] {
        grade_some::<f64>(&device, &few(), name);
        grade_some::<f32>(&device, &few(), name);
    }
}

/// Every memory access stays within its buffer: results have the same bits if every access is checked.
#[test]
fn run_time_checks_change_no_bit() {
    if let Some((index, _)) = first() {
        for tiles in [false, true] {
            let way = |device: WgpuDevice| if tiles { device.with_tiles().unwrap() } else { device };
            let plain = made::<1>("plain", index, &limited(96 << 10), way);
            let checked = made::<1>("checked", index, &limited(96 << 10), |device| way(device).with_checks());
            agree::<f64>(&plain, &checked, Closeness::Bits, &few());
            agree::<f32>(&plain, &checked, Closeness::Bits, &few());
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_answered_by_those_that_are() {
    let error = Machine::open(&"wgpu:77".parse().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchDevice);
    let there = list().devices.first().map(|found| found.info.name.clone()).unwrap_or_default();
    assert!(error.to_string().contains("there is no wgpu:77") && error.to_string().contains(&there), "{error}");
}

/// A call that uses a lost device does not panic. The other devices of the machine complete this call and later calls.
#[test]
fn a_device_that_is_lost_leaves_its_work_to_the_others() {
    const N: usize = 96;
    let Some((_, found)) = first() else { return };
    let settings = limited(48 << 10);
    let wanted = wgpu::DeviceDescriptor { required_limits: required_limits(&found.adapter), ..Default::default() };
    let own = || {
        let (device, queue) = pollster::block_on(found.adapter.request_device(&wanted)).unwrap();
        let opened = WgpuDevice::from_parts(device.clone(), queue, Arc::new(settings.program_cache())).unwrap();
        (device, opened)
    };
    let ([(first, one), (second, other)], a) = ([own(), own()], vec![1.0_f32; N * N]);
    let machine = Machine::from_wgpu(vec![one, other], &settings).unwrap().traced();
    let product = || {
        let mut c = vec![7.0_f32; N * N];
        let view = || MatRef::col_major(&a, N, N).unwrap();
        machine.gemm(Gemm::new(view(), view(), MatMut::col_major(&mut c, N, N).unwrap())).map(|()| c)
    };
    assert!(product().unwrap().iter().all(|&x| x == N as f32));
    first.destroy();
    // Idle devices take the tasks of a call, so the lost device may take no task. The first call in which the lost device takes a
    // task detects the loss. Once the loss is detected, every call uses only `other`.
    let without_it = (0..100).any(|_| {
        machine.take_trace();
        assert!(product().unwrap().iter().all(|&x| x == N as f32));
        let trace = machine.take_trace();
        assert!(!trace.is_empty());
        trace.iter().all(|event| event.lane.device == 0)
    });
    assert!(without_it, "a device that is lost is still asked");
    second.destroy();
    assert_eq!(product().unwrap_err().kind(), ErrorKind::DeviceLost);
}

#[test]
fn a_device_keeps_the_factors_it_has_computed() {
    for (index, found) in adapters("", |_| true) {
        solves_with_kept_factors::<f32>(open(&[index], &settings()).1);
        if found.f64 {
            solves_with_kept_factors::<f64>(open(&[index], &settings()).1);
        }
    }
}
