//! Tests that the facts of a device determine the choice of kernels.

use lapidary_core::{DeviceKind, Identity};

use super::*;

/// Returns a device of `kind` with work-groups of at most `work_group` work-items and `kibibytes` KiB of local memory.
fn device(kind: DeviceKind, work_group: usize, kibibytes: usize) -> DeviceFacts {
    let limits = Limits { work_group, local_memory: kibibytes << 10, ..Limits::default() };
    DeviceFacts { identity: Identity { kind, ..Identity::default() }, limits, ..DeviceFacts::new("test:0") }
}

#[test]
fn groups_solve_and_exchange_as_many_rows_as_the_limits_allow() {
    for (name, work_group, kibibytes, trsm_group_size, laswp_group_size) in [
        ("a GPU", 1024, 48, [128, 128], 256),
        ("a browser", 256, 16, [64, 32], 128),
        ("little memory", 256, 4, [16, 0], 32),
        ("groups of eight", 8, 16, [0, 0], 8),
    ] {
        let choices = Choices::choose(&device(DeviceKind::Gpu, work_group, kibibytes), Dialect::OpenClC);
        assert_eq!((choices.trsm_group_size, choices.laswp_group_size), (trsm_group_size, laswp_group_size), "{name}");
    }
}

#[test]
fn a_gpu_shares_local_memory_in_both_dialects() {
    let features = vec![Feature::GroupsMayWait];
    let gpu = DeviceFacts { compute_units: Some(132), features, ..device(DeviceKind::Gpu, 1024, 48) };
    let [opencl, wgsl] = [Dialect::OpenClC, Dialect::Wgsl].map(|dialect| Choices::choose(&gpu, dialect));
    for choices in [opencl, wgsl] {
        assert!(matches!(choices.products, [Products::Vector(_), Products::Vector(_)]), "{choices:?}");
    }
    assert_eq!(
        (opencl.strip_group_size, opencl.pivot_search_group_size, opencl.units, opencl.groups_may_wait),
        (STRIP, SEARCHERS, 132, false)
    );
    assert!(
        wgsl.groups_may_wait
            && !Choices::choose(&DeviceFacts { features: Vec::new(), ..gpu.clone() }, Dialect::Wgsl).groups_may_wait
    );
    // a driver that does not report the number of multiprocessors
    let unknown = DeviceFacts { compute_units: None, ..device(DeviceKind::Other, 1024, 48) };
    assert_eq!(Choices::choose(&unknown, Dialect::OpenClC), Choices { units: 1, ..opencl });
}

#[test]
fn a_processor_goes_without_barriers_in_vectors_of_its_width_and_with_groups_where_loops_are_short() {
    let processor = DeviceFacts { vector_bits: 512, ..device(DeviceKind::Cpu, 4096, 512) };
    let [opencl, wgsl] = [Dialect::OpenClC, Dialect::Wgsl].map(|dialect| Choices::choose(&processor, dialect));
    for (choices, bits) in [(opencl, 512), (wgsl, 128)] {
        assert_eq!(choices.product(DType::F64), Products::Panel(PanelParams::choose(DType::F64, bits)));
        assert_eq!(
            (choices.pivot_search_group_size, choices.strip_group_size, choices.laswp_group_size, choices.trsm_group_size),
            (1, 0, 0, [0; 2])
        );
    }
    let limits = Limits { loop_iterations: 60_000, ..processor.limits };
    let short = Choices::choose(&DeviceFacts { limits, ..processor }, Dialect::OpenClC);
    assert_eq!(short, Choices { pivot_search_group_size: SEARCHERS, ..opencl });
}

#[test]
fn a_device_without_local_memory_goes_without_barriers() {
    for dialect in [Dialect::OpenClC, Dialect::Wgsl] {
        let gpu = device(DeviceKind::Gpu, 256, 0);
        assert!(Choices::shared(&gpu, dialect).unwrap_err().contains("local memory"));
        assert_eq!(Choices::choose(&gpu, dialect), Choices::choose(&device(DeviceKind::Cpu, 256, 0), dialect));
    }
}
