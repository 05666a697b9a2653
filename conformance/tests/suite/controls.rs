//! Devices and products with one deliberate fault each are caught, by the property that is
//! there for it, in what `--quick` tries.

use crate::on_device::OnDevice;
use crate::subtle::Subtle;
use crate::subtle::Way::{self, *};
use crate::wrong_device::DeviceFault::{self, *};
use crate::wrong_device::WrongDevice;
use crate::{find, outcome};
use lapidary_backend_cpu::CpuDevice;
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{Scope, Subject};
use lapidary_core::Scalar;

/// Each fault of a device, the properties that catch it, and the checks that say so.
pub const DEVICES: &[(DeviceFault, &str, &str)] = &[
    (StaleLocalMemory, "program::products", "program: gemm"),
    (StaleLocalMemory, "gemm::integers_are_exact", "gemm: exact integers"),
    (OneCommandReordered, "ordering::commands_run_in_order", "ordering: values"),
    (DropsLastRowOfTransfer, "transfer::round_trip", "transfer: elements"),
    (WritesBesideTransfer, "transfer::round_trip", "memory: canaries"),
    (WritesBesideTransfer, "memory::gaps_untouched", "memory: canaries"),
    (SwallowsErrors, "faults::too_much_memory_is_refused", "faults: too much memory"),
    (LosesInfoOfPanel, "program::info_names_the_zero_pivot", "program: getrf info"),
    (LosesInfoOfPanel, "getrf::singular_completes", "getrf: info"),
    (ReadsNewMemory, "program::new_memory_is_not_read", "program: gemm"),
];

/// Faults that only double precision shows.
pub const DEVICES_IN_DOUBLE: &[(DeviceFault, &str, &str)] = &[
    (RoundsTransfers, "transfer::round_trip", "transfer: elements"),
    (SharesStaging, "ordering::threads_at_once", "ordering: values"),
];

/// The same for products.
pub const WAYS: &[(Way, &str, &str)] = &[
    (StrassenLike, "gemm::no_fast_products", "gemm: componentwise"),
    (RightBelow512, "gemm::error_growth", "gemm: componentwise"),
    (KeepsNan, "memory::stale_nan_does_not_leak", "gemm: class"),
];

/// Faults of products that only double precision shows.
pub const WAYS_IN_DOUBLE: &[(Way, &str, &str)] = &[(SumsInSinglePrecision, "gemm::random", "gemm: componentwise")];

fn expect<T: Scalar>(subject: &impl Subject, (name, expected): (&str, &str)) {
    let failure = outcome(subject, find(&properties_in::<_, T>(), name), &Scope::quick(1));
    let failure = failure.expect_err(&format!("{} passes {name}", subject.name()));
    assert_eq!(failure.check, expected, "{} is caught for another reason: {failure}", subject.name());
}

#[test]
fn faults_of_devices_are_caught() {
    for &(fault, name, check) in DEVICES {
        expect::<f32>(&OnDevice(WrongDevice::new(fault)), (name, check));
    }
    for &(fault, name, check) in DEVICES.iter().chain(DEVICES_IN_DOUBLE) {
        expect::<f64>(&OnDevice(WrongDevice::new(fault)), (name, check));
    }
}

#[test]
fn subtle_products_are_caught() {
    for &(way, name, check) in WAYS {
        expect::<f32>(&Subtle::new(way), (name, check));
    }
    for &(way, name, check) in WAYS.iter().chain(WAYS_IN_DOUBLE) {
        expect::<f64>(&Subtle::new(way), (name, check));
    }
}

/// The device that the faults are put around has none.
#[test]
fn the_device_itself_has_every_property() {
    let subject = OnDevice(CpuDevice::new(0, Some(1 << 30)));
    for property in properties_in::<_, f64>().iter().filter(|property| property.name != "inverted_blocks") {
        outcome(&subject, property, &Scope::quick(1)).unwrap_or_else(|failure| panic!("{}: {failure}", property.full_name()));
    }
}

/// Strassen's products are good in norm: it takes the componentwise bound to tell them.
#[test]
fn a_norm_does_not_tell_strassen_from_others() {
    let list = properties_in::<Subtle, f64>();
    for name in ["gemm::integers_are_exact", "gemm::precision", "gemm::large", "gemm::tile_edges"] {
        outcome(&Subtle::new(StrassenLike), find(&list, name), &Scope::quick(1)).unwrap();
    }
}
