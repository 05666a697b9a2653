//! Finds the adapters of this computer, and sets the scope of their tests.

use lapidary::wgpu::{Found, list};
use lapidary_conformance::Scope;

/// Returns the adapters that meet a condition, with their indices. If no adapter meets the condition, the test passes with a
/// message, or fails if `LAPIDARY_REQUIRE_WGPU` is set.
pub fn adapters(what: &str, condition: impl Fn(&Found) -> bool) -> Vec<(usize, Found)> {
    let listing = list();
    let found: Vec<_> = listing.devices.into_iter().enumerate().filter(|(_, found)| condition(found)).collect();
    if found.is_empty() {
        let missing = format!("an adapter {what} is needed: {:?}", listing.notes);
        assert!(std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_none(), "{missing}");
        eprintln!("not run: {missing}");
    }
    found
}

/// Returns the first adapter with double precision.
pub fn first() -> Option<(usize, Found)> {
    adapters("with double precision", |found| found.f64).into_iter().next()
}

/// A scope with very few cases, for adapters that are a CPU.
pub fn few() -> Scope {
    Scope { blocks: vec![16, 32], min: 0, max: 70, cases: 10, large: vec![130], elements: 1 << 16, seed: 22 }
}
