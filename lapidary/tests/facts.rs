//! Tests that each device of this computer fills in all its facts, and that the answer to a wrong name lists the devices.

use lapidary::{Backend, DType, ErrorKind, Machine, Select};

/// Whether the environment requires that the backend has a device.
fn is_required(kind: Backend) -> bool {
    kind == Backend::Cpu || std::env::var_os(format!("LAPIDARY_REQUIRE_{}", kind.to_string().to_uppercase())).is_some()
}

#[test]
fn the_facts_of_every_device_are_filled_in() {
    for kind in Backend::of_this_build() {
        let machine = match Machine::open(&Select::of(kind, ..)) {
            Ok(machine) => machine,
            Err(error) => {
                assert!(error.kind() == ErrorKind::NoSuchDevice && !is_required(kind), "{error}");
                eprintln!("not run on {kind}: {error}");
                continue;
            }
        };
        for (index, facts) in machine.devices().enumerate() {
            println!("{facts:?}");
            assert_eq!(facts.name, if kind == Backend::Cpu { "cpu".to_owned() } else { format!("{kind}:{index}") });
            let (identity, limits) = (&facts.identity, &facts.limits);
            // the vendor of the CPU is known only on x86-64 computers with Linux
            let has_vendor = kind != Backend::Cpu || cfg!(all(target_arch = "x86_64", target_os = "linux"));
            let texts = [&facts.description, &identity.model, &identity.driver];
            assert!(texts.iter().all(|text| !text.is_empty()) && (!has_vendor || !identity.vendor.is_empty()), "{facts:?}");
            assert!(facts.computes(DType::F32) && !facts.computes(DType::I32), "{facts:?}");
            let sizes = [limits.work_group, limits.groups, limits.buffer, limits.loop_iterations, facts.vector_bits, facts.queues];
            assert!(sizes.iter().all(|&size| size > 0) && facts.compute_units != Some(0), "{facts:?}");
            // the CPU backend has no work-groups
            assert!(kind == Backend::Cpu || limits.local_memory > 0, "{facts:?}");
            assert_ne!(facts.memory, Some(0));
            assert!(facts.rates.flops > 0.0 && facts.rates.bandwidth > 0.0, "{facts:?}");
        }
    }
}

#[cfg(feature = "opencl")]
#[test]
fn a_device_that_is_not_there_is_answered_by_those_that_are() {
    let error = Machine::open(&"opencl:77".parse().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchDevice);
    let there = lapidary::opencl::list().devices.first().map(|found| found.facts.identity.model.clone()).unwrap_or_default();
    assert!(error.to_string().contains("there is no opencl:77") && error.to_string().contains(&there), "{error}");
}
