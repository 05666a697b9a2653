//! Every deliberate fault is caught, by the property that is there for it: the
//! properties are not vacuous.

use crate::scope;
use crate::wrong::Fault::{self, *};
use crate::wrong::Wrong;
use lapidary_conformance::Failure;
use lapidary_conformance::suite::properties;
use lapidary_core::Scalar;

/// Each fault and the verdicts that catch it: entry of the suite, property.
const EXPECTED: &[(Fault, &str, &str)] = &[
    (LowPrecision, "gemm: precision", "gemm: precision"),
    (LowPrecision, "gemm: random", "gemm: componentwise"),
    (LowPrecision, "gemm: large", "gemm: checksum"),
    (TileEdge, "gemm: integers", "gemm: exact integers"),
    (ReadsOldC, "gemm: random", "gemm: class"),
    (ReadsUnderZeroAlpha, "gemm: random", "gemm: class"),
    (SkipsZeros, "gemm: non-finite", "gemm: class"),
    (Flushes, "gemm: subnormal", "gemm: componentwise"),
    (WritesGap, "gemm: random", "memory: canaries"),
    (WritesA, "gemm: random", "memory: read-only operand"),
    (DropsLastRow, "gemm: integers", "gemm: exact integers"),
    (IgnoresOp, "gemm: integers", "gemm: exact integers"),
    (RoundsBeta, "gemm: random", "gemm: componentwise"),
    (WritesBeforeCheck, "gemm: errors", "errors: wrong arguments"),
    (ReadsOppositeTriangle, "trsm: substitution", "trsm: class"),
    (ReadsOppositeTriangle, "trsm: inverted", "trsm: class"),
    (ReadsUnitDiagonal, "trsm: substitution", "trsm: class"),
    (Reciprocals, "trsm: pivots", "trsm: class"),
    (WrongPivot, "getrf: random", "getrf: multipliers"),
    (WrongPivot, "getrf: exact", "getrf: pivots"),
    (LastOfTies, "getrf: exact", "getrf: pivots"),
    (LosesInfo, "getrf: singular", "getrf: info"),
    (LastInfo, "getrf: classics", "getrf: info"),
    (StopsAtZero, "getrf: singular", "getrf: pivots"),
    (StaleColumn, "getrf: random", "getrf: residual"),
    (SolvesUntransposed, "solve: random", "solve: residual"),
    (AlwaysForward, "laswp: random", "laswp: rows"),
];

fn verdict<T: Scalar>(fault: Fault, name: &str) -> Result<(), Failure> {
    let list = properties::<Wrong, T>();
    let property = list.iter().find(|property| property.name == name).expect("the suite has the property");
    (property.check)(&Wrong(fault), &scope(300))
}

fn caught<T: Scalar>() {
    for &(fault, name, expected) in EXPECTED {
        match verdict::<T>(fault, name) {
            Ok(()) => panic!("{fault:?} passes {name}"),
            Err(failure) => {
                assert_eq!(failure.property, expected, "{fault:?} is caught for another reason: {failure}");
            }
        }
    }
}

#[test]
fn faults_are_caught_in_single_precision() {
    caught::<f32>();
}

#[test]
fn faults_are_caught_in_double_precision() {
    caught::<f64>();
}
