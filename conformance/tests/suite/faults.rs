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
    (FixedPoint, "trsm: substitution", "trsm: componentwise"),
    (RoughInverse, "trsm: inverted", "trsm: norm-wise"),
    (LastPlaceOfX, "trsm: integers", "trsm: exact integers"),
    (WrongPivot, "getrf: random", "getrf: multipliers"),
    (WrongPivot, "getrf: exact", "getrf: pivots"),
    (LastOfTies, "getrf: exact", "getrf: pivots"),
    (LosesInfo, "getrf: singular", "getrf: info"),
    (LastInfo, "getrf: classics", "getrf: info"),
    (StopsAtZero, "getrf: singular", "getrf: pivots"),
    (StaleColumn, "getrf: random", "getrf: residual"),
    (LastPlaceOfU, "getrf: exact", "getrf: exact factors"),
    (LastPlaceOfU, "getrf: singular", "getrf: exact factors"),
    // "getrf: growth" has no fault of its own. It looks at Wilkinson's matrix after
    // "getrf: exact factors" has passed, when the factors are the oracle's: it is
    // the oracle that it checks. What a subject does wrong there is caught before.
    (LastPlaceOfU, "getrf: classics", "getrf: exact factors"),
    (DropsNan, "getrf: random", "getrf: NaN"),
    (SolvesUntransposed, "solve: random", "solve: residual"),
    (RoughEquation, "solve: random", "solve: HPL"),
    (AlwaysForward, "laswp: random", "laswp: rows"),
];

/// Faults that one property alone catches.
const ALONE: &[Fault] = &[FixedPoint, RoughInverse, LastPlaceOfX, LastPlaceOfU, DropsNan, RoughEquation];

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

fn caught_alone<T: Scalar>() {
    for &fault in ALONE {
        let (.., expected) = EXPECTED.iter().find(|row| row.0 == fault).expect("the fault is in the table");
        for property in properties::<Wrong, T>() {
            if let Err(failure) = (property.check)(&Wrong(fault), &scope(150)) {
                assert_eq!(failure.property, *expected, "{fault:?} is caught by another property too: {failure}");
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

#[test]
fn faults_of_one_property_are_caught_by_no_other() {
    caught_alone::<f32>();
    caught_alone::<f64>();
}
