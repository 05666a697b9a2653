//! Tests of wgpu devices with lower limits and fewer features than their adapters have.
//!
//! If there is no adapter, a test prints a message and passes, unless `LAPIDARY_REQUIRE_WGPU` is set. `cargo xtask test` sets
//! `LAPIDARY_REQUIRE_WGPU`.
#![cfg(feature = "wgpu")]

#[path = "support/adapters.rs"]
mod adapters;
#[path = "support/agree.rs"]
mod agree;
#[path = "support/grade.rs"]
mod grade;
#[path = "support/graded.rs"]
mod graded;
#[path = "support/settings.rs"]
mod settings;

use std::sync::Arc;

use adapters::{adapters, few, first};
use agree::agree;
use grade::grade;
use graded::Graded;
use lapidary::backend::Device;
use lapidary::wgpu::{WgpuDevice, required_limits, wgpu};
use lapidary::{ErrorKind, Gemm, Getrf, Machine, MatMut, MatRef};
use lapidary_conformance::Scope;
use lapidary_conformance::properties::agreement::Closeness;
use settings::{limited, settings};

/// A function that lowers a limit below the required value.
type Lower = fn(&mut wgpu::Limits);

/// Sets all limits to the lowest values that Lapidary supports.
fn least(limits: &mut wgpu::Limits) {
    limits.max_buffer_size = 4 << 20;
    limits.max_bind_groups = 1;
    limits.max_bindings_per_bind_group = 5;
    limits.max_storage_buffers_per_shader_stage = 4;
    limits.max_uniform_buffers_per_shader_stage = 1;
    limits.max_dynamic_uniform_buffers_per_pipeline_layout = 1;
    limits.max_uniform_buffer_binding_size = 256;
    limits.max_compute_workgroups_per_dimension = 65_535;
    limits.max_compute_invocations_per_workgroup = 64;
    limits.max_compute_workgroup_size_x = 64;
    limits.max_compute_workgroup_size_y = 8;
    limits.max_compute_workgroup_storage_size = 8 << 10;
    limits.max_storage_buffer_binding_size = 64 << 10;
    // a larger alignment is also a restriction: arguments of consecutive kernels lie further apart
    limits.min_uniform_buffer_offset_alignment = 1024;
}

#[test]
fn the_least_limits_suffice_and_lower_ones_are_refused_by_name() {
    let Some((index, found)) = first() else { return };
    let made = |change: Lower| {
        let mut limits = required_limits(&found.adapter);
        least(&mut limits);
        change(&mut limits);
        WgpuDevice::with_limits(&found, index, limits, limited(1 << 20).memory_limit, Arc::new(settings().program_cache()))
    };
    let own = |device| Machine::from_wgpu(vec![device], &settings()).unwrap();
    let plain = Graded::open(&format!("wgpu:{index}"), &settings());
    agree::<f32>(&plain, &Graded("least".to_owned(), own(made(|_| {}).unwrap())), Closeness::Bounds, &few());
    let device = made(|_| {}).unwrap();
    for (way, device) in [("least", device), ("least, shared", made(|_| {}).unwrap().with_tiles().unwrap())] {
        grade::<f64>(&Graded(way.to_owned(), own(device)), &few());
    }
    let lower: [(&str, Lower); 13] = [
        ("max_buffer_size 4194303", |limits| limits.max_buffer_size -= 1),
        ("max_bind_groups 0", |limits| limits.max_bind_groups = 0),
        ("max_bindings_per_bind_group 4", |limits| limits.max_bindings_per_bind_group -= 1),
        ("max_storage_buffers_per_shader_stage 3", |limits| limits.max_storage_buffers_per_shader_stage -= 1),
        ("max_uniform_buffers_per_shader_stage 0", |limits| limits.max_uniform_buffers_per_shader_stage = 0),
        ("max_dynamic_uniform_buffers_per_pipeline_layout 0", |limits| limits.max_dynamic_uniform_buffers_per_pipeline_layout = 0),
        ("max_uniform_buffer_binding_size 255", |limits| limits.max_uniform_buffer_binding_size -= 1),
        ("max_compute_workgroups_per_dimension 65534", |limits| limits.max_compute_workgroups_per_dimension -= 1),
        ("max_compute_invocations_per_workgroup 63", |limits| limits.max_compute_invocations_per_workgroup -= 1),
        ("max_compute_workgroup_size_x 63", |limits| limits.max_compute_workgroup_size_x -= 1),
        ("max_compute_workgroup_size_y 7", |limits| limits.max_compute_workgroup_size_y -= 1),
        ("max_compute_workgroup_storage_size 8191", |limits| limits.max_compute_workgroup_storage_size -= 1),
        ("max_storage_buffer_binding_size 65532", |limits| limits.max_storage_buffer_binding_size -= 4),
    ];
    for (named, change) in lower {
        let error = made(change).err().unwrap_or_else(|| panic!("{named} is enough"));
        assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains(named), "{named}: {error}");
    }
}

/// Grades the first adapter with double precision under the limits that every browser grants, such as 16 KiB of workgroup memory and 256
/// invocations in a workgroup. SwiftShader is not graded here: Chromium runs the page of the folder `web` on it under the same limits, in
/// the step `browser` of `cargo xtask test`.
#[test]
fn under_the_limits_of_a_browser() {
    let Some((index, found)) = first() else { return };
    let settings = settings();
    let cache = Arc::new(settings.program_cache());
    let device = WgpuDevice::with_limits(&found, index, wgpu::Limits::defaults(), None, cache).unwrap().with_tiles().unwrap();
    let capped = Graded("capped".to_owned(), Machine::from_wgpu(vec![device], &settings).unwrap());
    grade::<f32>(&capped, &few());
    grade::<f64>(&capped, &Scope { cases: 4, ..few() });
}

/// A call on a matrix larger than one binding is divided into tiles.
#[test]
fn a_matrix_larger_than_a_binding_passes_in_tiles() {
    let Some((index, found)) = first() else { return };
    let limits = wgpu::Limits { max_storage_buffer_binding_size: 64 << 10, ..required_limits(&found.adapter) };
    let settings = settings();
    let cache = Arc::new(settings.program_cache());
    let device = WgpuDevice::with_limits(&found, index, limits, None, cache).unwrap();
    let machine = Machine::from_wgpu(vec![device], &settings).unwrap();
    let n = 300;
    let a = vec![1.0_f64; n * n];
    let error = machine.upload(MatRef::col_major(&a, n, n).unwrap()).unwrap_err();
    assert!(error.kind() == ErrorKind::OutOfMemory && error.to_string().contains("65536"), "{error}");
    grade::<f64>(&Graded("narrow".to_owned(), machine), &Scope { large: vec![n], ..few() });
}

/// Returns the number of bytes that are allocated on the only device of a machine, and the maximum of this number so far.
fn allocated(machine: &Machine) -> (usize, usize) {
    let mut allocated = None;
    machine.visit_devices(&mut |device| allocated = device.downcast().map(WgpuDevice::allocated));
    allocated.unwrap()
}

/// The memory limit covers registers, resident matrices and scratch memory.
#[test]
fn a_memory_limit_holds_for_all_that_a_device_holds_and_nothing_of_it_is_kept_when_asked() {
    const N: usize = 300;
    const LIMIT: usize = 1 << 20;
    let Some((index, _)) = first() else { return };
    let a: Vec<f64> = (0..N * N).map(|e| ((e * 7919 + e / 13) % 1009) as f64 / 1009.0).collect();
    for (limit, tiles) in [(Some(LIMIT), false), (Some(LIMIT), true), (None, false), (None, true)] {
        let settings = settings().memory_limit(limit);
        let device = WgpuDevice::open(index, limit, Arc::new(settings.program_cache())).unwrap();
        let device = if tiles { device.with_tiles().unwrap() } else { device };
        let machine = Machine::from_wgpu(vec![device], &settings).unwrap();
        let (mut c, mut ipiv) = (a.clone(), vec![0; N]);
        // each product needs more scratch memory than the previous one
        for n in [100, N] {
            let part = || MatRef::col_major(&a, N, N).unwrap().sub(0..n, 0..n);
            machine.gemm(Gemm::new(part(), part(), MatMut::col_major(&mut c, N, N).unwrap().sub(0..n, 0..n))).unwrap();
        }
        let _ = machine.getrf_into(Getrf::new(MatMut::col_major(&mut c, N, N).unwrap(), &mut ipiv)).unwrap();
        let (now, most) = allocated(&machine);
        assert!(now > 0 && limit.is_none_or(|limit| most <= limit), "{now} and at most {most} bytes, {limit:?}, tiles: {tiles}");
        machine.trim();
        assert_eq!(allocated(&machine).0, 0, "{limit:?}, tiles: {tiles}");
        // kernels on resident matrices also need scratch memory
        let (x, mut y) = (machine.upload(MatRef::col_major(&a[..100 * 100], 100, 100).unwrap()).unwrap(), a[..100 * 100].to_vec());
        let mut z = machine.upload(MatRef::col_major(&y, 100, 100).unwrap()).unwrap();
        machine.gemm(Gemm::new(x.view(), x.view(), z.view_mut())).unwrap();
        z.download(MatMut::col_major(&mut y, 100, 100).unwrap()).unwrap();
        assert!(limit.is_none_or(|limit| allocated(&machine).1 <= limit));
        machine.trim();
        assert_eq!(allocated(&machine).0, 2 * 100 * 100 * size_of::<f64>(), "matrices stay");
    }
    let settings = limited(LIMIT);
    let machine = Machine::with_settings(&format!("wgpu:{index}").parse().unwrap(), &settings).unwrap();
    let error = machine.upload(MatRef::col_major(&vec![0.0; LIMIT / 8], LIMIT / 8, 1).unwrap()).unwrap_err();
    assert!(error.kind() == ErrorKind::OutOfMemory && error.to_string().contains(&(LIMIT / 8 * 7).to_string()), "{error}");
}

#[test]
fn an_adapter_without_double_precision_refuses_it() {
    for (index, _) in adapters("without double precision", |found| !found.f64) {
        let machine = Machine::open(&format!("wgpu:{index}").parse().unwrap()).unwrap();
        let (a, mut c) = ([1.0; 4], [7.0; 4]);
        let view = || MatRef::col_major(&a, 2, 2).unwrap();
        let error = machine.gemm(Gemm::new(view(), view(), MatMut::col_major(&mut c, 2, 2).unwrap())).unwrap_err();
        assert_eq!((error.kind(), c), (ErrorKind::Unsupported, [7.0; 4]));
        assert!(error.to_string().contains("f32"), "{error}");
    }
}

#[test]
fn groups_that_hold_no_strip_and_waits_that_see_nothing_are_refused() {
    let Some((index, found)) = first() else { return };
    let cache = || Arc::new(settings().program_cache());
    for items in [6, 1 << 20] {
        let error =
            WgpuDevice::open(index, None, cache()).unwrap().prefer_kernels(&format!("strips items={items}")).unwrap().unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(&items.to_string()), "{error}");
    }
    let (device, queue) = pollster::block_on(found.adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
    let error = WgpuDevice::from_parts(device, queue, cache()).unwrap().with_waits(true).err().unwrap();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("COHERENT"), "{error}");
}
