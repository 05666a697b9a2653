//! Runs the conformance suite on the example device. Each trial is one test.

use std::process::ExitCode;

use foreign_backend::LoopDevice;
use lapidary_conformance::{OnDevice, Scope, harness};

fn main() -> ExitCode {
    harness::conclude(harness::tests(
        "loops:0",
        || OnDevice(LoopDevice::new(0, 1 << 30)),
        Scope { max: 60, cases: 10, large: vec![130], ..Scope::quick(1) },
    ))
}
