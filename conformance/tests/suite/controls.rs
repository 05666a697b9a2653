//! Tests with devices and products that have one deliberate fault each. In a quick run, each fault must be caught by the property
//! that the tables below name.

use std::collections::BTreeMap;

use crate::faults::{EXPECTED, LARGE};
use crate::faulty_lu::FaultyLu;
use crate::faulty_lu::LuFault::{self, *};
use crate::mixed;
use crate::subtle::Subtle;
use crate::subtle::Way::{self, *};
use crate::wrong::Wrong;
use crate::wrong_device::DeviceFault::{self, *};
use crate::wrong_device::WrongDevice;
use crate::{find, outcome, quick};
use lapidary_backend_cpu::CpuDevice;
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{OnDevice, Scope, Subject};
use lapidary_core::Scalar;

/// Each fault of a device, a property that catches the fault, and the check that fails.
pub const DEVICES: &[(DeviceFault, &str, &str)] = &[
    (StaleLocalMemory, "program::products", "program: gemm"),
    (StaleLocalMemory, "gemm::integers_are_exact", "gemm: exact integers"),
    (OneCommandReordered, "ordering::commands_run_in_order", "ordering: values"),
    (EndsEarly, "ordering::queues_and_tokens", "ordering: queues"),
    (IgnoresOtherQueues, "ordering::queues_and_tokens", "ordering: queues"),
    (DropsLastRowOfTransfer, "transfer::round_trip", "transfer: elements"),
    (WritesBesideTransfer, "transfer::round_trip", "memory: canaries"),
    (WritesBesideTransfer, "memory::gaps_untouched", "memory: canaries"),
    (IgnoresPlaceInBuffer, "transfer::round_trip", "transfer: surroundings"),
    (SwallowsErrors, "faults::too_much_memory_is_refused", "faults: too much memory"),
    (LosesInfoOfPanel, "program::info_names_the_zero_pivot", "program: getrf info"),
    (LosesInfoOfPanel, "getrf::singular_completes", "getrf: info"),
    (AlwaysPivots, "program::panels_without_pivoting", "program: getrf pivots"),
    (IgnoresOffsetOfPivots, "program::panels", "memory: canaries"),
    (EndsInNan, "program::panels", "program: getrf"),
    (EndsInNan, "program::triangles", "program: trsm inverted"),
    (KeepsInaccurateInverses, "program::ill_conditioned_triangles", "program: trsm inverted"),
    (CanonicalisesNan, "transfer::bits_are_kept", "transfer: elements"),
    (ReadsNewMemory, "program::new_memory_is_not_read", "program: gemm"),
    (RoundsIndices, "transfer::indices", "transfer: elements"),
    (CopiesTooLittle, "program::scale_and_copy", "program: copy"),
    (LeavesTermInNorm, "program::products_in_norm", "program: gemm"),
    (WrapsInBuffer, "large::matrix_in_one_buffer", "large: exact integers"),
    (LeavesLastOfBatch, "program::batched_products", "program: gemm_batched"),
    (SolvesBatchUntransposed, "program::batched_systems", "program: getrs_batched"),
];

/// Each fault of a device that shows only in double precision, with its property and its check.
pub const DEVICES_IN_DOUBLE: &[(DeviceFault, &str, &str)] = &[
    (NarrowsUnscaled, "program::scale_and_copy", "program: narrow"),
    (RoundsTransfers, "transfer::round_trip", "transfer: elements"),
    (SharesStaging, "ordering::threads_at_once", "ordering: values"),
];

/// Each fault of products, a property that catches the fault, and the check that fails.
pub const WAYS: &[(Way, &str, &str)] = &[
    (StrassenLike, "gemm::no_fast_products", "gemm: componentwise"),
    (RightBelow512, "gemm::error_growth", "gemm: componentwise"),
    (GrowsAsSquare, "gemm::error_growth", "gemm: growth"),
    (WrapsOffsets, "memory::offsets_beyond_32_bits", "memory: far elements"),
    (Crowded, "faults::threads_share_the_subject", "gemm: exact integers"),
    (WrapsIndices, "large::matrix_in_host_memory", "large: exact integers"),
    (KeepsNan, "memory::stale_nan_does_not_leak", "gemm: class"),
];

/// Each fault of products that shows only in large matrices. In single precision, rounding errors hide such a fault from the
/// rounded checksum, so that the exact checksum must catch it.
pub const LARGE_WAYS: &[(Way, &str, &str)] = &[(StaleColumnBeyond256, "gemm::large", "gemm: exact checksum")];

/// Each fault of products that shows only in double precision, with its property and its check.
pub const WAYS_IN_DOUBLE: &[(Way, &str, &str)] = &[(SumsInSinglePrecision, "gemm::random", "gemm: componentwise")];

/// Each fault of blocked factorisations, a property that catches the fault, and the check that fails.
pub const SLIPS: &[(LuFault, &str, &str)] = &[(InfoOfLastPanel, "solve::singular_is_no_error", "getrf: info")];

/// Each fault of factorisations that shows only in large matrices, with its property and its check.
pub const LARGE_SLIPS: &[(LuFault, &str, &str)] = &[(LastPlaceBeyond256, "getrf::large", "getrf: exact factors")];

/// The scope of a quick run with one order of large matrices.
fn large(size: usize) -> Scope {
    Scope { large: vec![size], ..Scope::quick(1) }
}

fn expect<T: Scalar>(subject: &(impl Subject + 'static), row: (&str, &str)) {
    expect_in::<T>(&quick(), subject, row);
}

fn expect_in<T: Scalar>(scope: &Scope, subject: &(impl Subject + 'static), (name, expected): (&str, &str)) {
    let failure = outcome(subject, find(&properties_in::<_, T>(), name), scope);
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
    for &(way, name, check) in LARGE_WAYS {
        expect_in::<f32>(&large(520), &Subtle::new(way), (name, check));
    }
    for &(way, name, check) in WAYS.iter().chain(WAYS_IN_DOUBLE) {
        expect::<f64>(&Subtle::new(way), (name, check));
    }
}

#[test]
fn slips_of_factorisations_are_caught() {
    for &(slip, name, check) in SLIPS {
        expect::<f32>(&FaultyLu(slip), (name, check));
        expect::<f64>(&FaultyLu(slip), (name, check));
    }
    for &(slip, name, check) in LARGE_SLIPS {
        expect_in::<f32>(&large(257), &FaultyLu(slip), (name, check));
        expect_in::<f64>(&large(257), &FaultyLu(slip), (name, check));
    }
}

#[test]
fn faults_of_large_calls_are_caught() {
    for &(fault, name, check) in LARGE {
        expect_in::<f32>(&large(257), &Wrong(fault), (name, check));
        expect_in::<f64>(&large(257), &Wrong(fault), (name, check));
    }
}

/// The CPU device from which the faulty devices are made must itself have every property.
#[test]
fn the_device_itself_has_every_property() {
    let subject = OnDevice(CpuDevice::new(0, Some(1 << 30)));
    for property in properties_in::<_, f64>().iter().filter(|property| property.name != "inverted_blocks") {
        outcome(&subject, property, &quick()).unwrap_or_else(|failure| panic!("{}: {failure}", property.full_name()));
    }
}

/// Strassen's algorithm has small errors in norm, so that only the componentwise bound 1 catches it.
#[test]
fn a_norm_does_not_tell_strassen_from_others() {
    let list = properties_in::<Subtle, f64>();
    for name in ["gemm::integers_are_exact", "gemm::precision", "gemm::large", "gemm::tile_edges"] {
        outcome(&Subtle::new(StrassenLike), find(&list, name), &quick()).unwrap();
    }
}

/// Each fault, with all properties that catch it.
fn table() -> BTreeMap<String, Vec<&'static str>> {
    let mut table: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let devices = DEVICES.iter().chain(DEVICES_IN_DOUBLE).map(|row| (format!("{:?}", row.0), row.1));
    let ways = WAYS.iter().chain(LARGE_WAYS).chain(WAYS_IN_DOUBLE).map(|row| (format!("{:?}", row.0), row.1));
    let faulty_lu = SLIPS.iter().chain(LARGE_SLIPS).map(|row| (format!("{:?}", row.0), row.1));
    let faults = EXPECTED.iter().chain(LARGE).map(|row| (format!("{:?}", row.0), row.1));
    let mixed = mixed::FAULTS.iter().map(|row| (format!("{:?}", row.0), row.1));
    for (fault, property) in faults.chain(devices).chain(ways).chain(faulty_lu).chain(mixed) {
        let properties = table.entry(fault).or_default();
        if !properties.contains(&property) {
            properties.push(property);
        }
    }
    table
}

/// For each property there must be a fault that the property catches, since a property that never fails shows nothing.
#[test]
fn every_property_has_a_fault_that_it_catches() {
    let caught: Vec<&str> = table().into_values().flatten().collect();
    let all = properties_in::<Subtle, f64>();
    let names = all.iter().map(|property| format!("{}::{}", property.routine, property.name));
    let missing: Vec<String> = names.filter(|name| !caught.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_table_in_the_documents_is_the_one_that_is_tested() {
    let text = include_str!("../../../docs/conformance.md");
    let rows = text.lines().skip_while(|line| !line.contains("checked by conformance/tests")).skip(3);
    let told = rows.take_while(|line| line.starts_with('|')).map(|row| {
        let words: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        (words[0].to_owned(), words[1..].iter().copied().filter(|word| word.contains("::")).collect::<Vec<_>>())
    });
    assert_eq!(told.collect::<BTreeMap<_, _>>(), table());
    assert!(table().len() >= 15);
}
