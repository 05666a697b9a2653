//! Plain loops agree with themselves, and with no deliberate fault.

use crate::naive::Naive;
use crate::scope;
use crate::wrong::Fault::{self, *};
use crate::wrong::Wrong;
use lapidary_conformance::properties::agreement::{Closeness, Pair};
use lapidary_conformance::suite::agreements;
use lapidary_conformance::{Failure, Subject};
use lapidary_core::Scalar;

/// Each fault and the comparison that catches it: entry of the list, property.
const EXPECTED: &[(Fault, &str, &str)] = &[
    (AlwaysForward, "laswp: random", "agreement: laswp"),
    (TileEdge, "gemm: integers", "agreement: gemm"),
    (LowPrecision, "gemm: random", "agreement: gemm"),
    (RoundsBeta, "gemm: random", "agreement: gemm"),
    (SkipsZeros, "gemm: non-finite", "agreement: gemm"),
    (LastPlaceOfX, "trsm: integers", "agreement: trsm"),
    (FixedPoint, "trsm: substitution", "agreement: trsm"),
    (ReadsOppositeTriangle, "trsm: substitution", "agreement: trsm"),
    (RoughInverse, "trsm: inverted", "agreement: trsm"),
    (LosesInfo, "getrf: exact", "agreement: getrf"),
    (LastOfTies, "getrf: exact", "agreement: getrf"),
    (LastPlaceOfU, "getrf: exact", "agreement: getrf"),
    (StaleColumn, "getrf: random", "agreement: getrf"),
    (DropsNan, "getrf: random", "agreement: getrf"),
    (SolvesUntransposed, "solve: random", "agreement: solve"),
];

/// Faults that the bounds allow in an entry of the list.
const ALLOWED: &[(Fault, &str)] =
    &[(LastPlaceOfX, "trsm: substitution"), (LastPlaceOfU, "getrf: random"), (RoughEquation, "solve: random")];

fn compare<R: Subject, S: Subject, T: Scalar>(one: &R, other: &S, closeness: Closeness, name: &str) -> Result<(), Failure> {
    let list = agreements::<R, S, T>();
    let (_, compare) = list.iter().find(|entry| entry.0 == name).expect("the list has the entry");
    compare(&Pair { one, other, closeness }, &scope(300))
}

/// Every fault is caught, whether it is in the one or in the other.
fn caught<T: Scalar>() {
    for &(fault, name, expected) in EXPECTED {
        let (bounds, wrong) = (Closeness::Bounds, Wrong(fault));
        for verdict in [compare::<_, _, T>(&Naive, &wrong, bounds, name), compare::<_, _, T>(&wrong, &Naive, bounds, name)] {
            let failure = verdict.expect_err(&format!("{fault:?} agrees in {name}"));
            assert_eq!(failure.property, expected, "{fault:?} is caught for another reason: {failure}");
        }
    }
}

fn bits<T: Scalar>() {
    for (name, _) in agreements::<Naive, Naive, T>() {
        compare::<_, _, T>(&Naive, &Naive, Closeness::Bits, name).unwrap();
    }
    for &(fault, name) in ALLOWED {
        compare::<_, _, T>(&Naive, &Wrong(fault), Closeness::Bounds, name).unwrap();
        let failure = compare::<_, _, T>(&Naive, &Wrong(fault), Closeness::Bits, name).expect_err(name);
        assert!(failure.property.starts_with("agreement"), "{failure}");
    }
}

#[test]
fn faults_are_seen_in_single_precision() {
    caught::<f32>();
}

#[test]
fn faults_are_seen_in_double_precision() {
    caught::<f64>();
}

#[test]
fn bit_for_bit_one_agrees_with_itself_and_not_with_what_the_bounds_allow() {
    bits::<f32>();
    bits::<f64>();
}
