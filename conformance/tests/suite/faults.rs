//! Every deliberate fault is caught, by the property that is there for it: the
//! properties are not vacuous.

use crate::naive::Naive;
use crate::scope;
use crate::wrong::Fault::{self, *};
use crate::wrong::Wrong;
use lapidary_conformance::suite::properties;
use lapidary_conformance::{Failure, Flushing, Subject, flushes};
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

fn verdict<T: Scalar>(subject: &impl Subject, name: &str) -> Result<(), Failure> {
    let list = properties::<_, T>();
    let property = list.iter().find(|property| property.name == name).expect("the suite has the property");
    (property.check)(subject, &scope(300))
}

fn caught<T: Scalar>() {
    for &(fault, name, expected) in EXPECTED {
        match verdict::<T>(&Wrong(fault), name) {
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

/// Where subnormal numbers may be zero, what is wrong beside them is still wrong.
fn flushing<T: Scalar>() {
    let name = "gemm: subnormal";
    verdict::<T>(&Flushing(&Wrong(Flushes)), name).expect("results below the smallest normal number are zero");
    for fault in [LowPrecision, TileEdge, DropsLastRow, IgnoresOp, RoundsBeta, WritesGap, ReadsOldC] {
        let failure = verdict::<T>(&Flushing(&Wrong(fault)), name).expect_err("a fault");
        assert!(failure.property != "gemm: completes", "{fault:?}: {failure}");
    }
}

#[test]
fn flushing_excuses_no_other_fault() {
    flushing::<f32>();
    flushing::<f64>();
    assert!(!flushes::<_, f32>(&Naive).unwrap() && !flushes::<_, f64>(&Naive).unwrap());
    let failure = verdict::<f64>(&Flushing(&Naive), "trsm: pivots").unwrap_err();
    assert_eq!(failure.property, "trsm: class", "0/0 is owed where both are taken for zero: {failure}");
}
