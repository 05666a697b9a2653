//! The subject of plain loops must agree with itself, and must not agree with a subject that has a fault.

use crate::naive::Naive;
use crate::wrong::Fault::{self, *};
use crate::wrong::Wrong;
use crate::{find, outcome, scope};
use lapidary_conformance::properties::agreement::{Closeness, Pair};
use lapidary_conformance::suite::agreements;
use lapidary_conformance::{Failure, Subject};
use lapidary_core::Scalar;

/// Each fault, the property of a pair of subjects that catches the fault, and the check that fails.
const EXPECTED: &[(Fault, &str, &str)] = &[
    (AlwaysForward, "agreement::laswp", "agreement: laswp"),
    (TileEdge, "agreement::gemm_integers", "agreement: gemm"),
    (LowPrecision, "agreement::gemm_random", "agreement: gemm"),
    (RoundsBeta, "agreement::gemm_random", "agreement: gemm"),
    (SkipsZeros, "agreement::gemm_nan", "agreement: gemm"),
    (LastPlaceOfX, "agreement::trsm_integers", "agreement: trsm"),
    (FixedPoint, "agreement::trsm_substitution", "agreement: trsm"),
    (ReadsOppositeTriangle, "agreement::trsm_substitution", "agreement: trsm"),
    (RoughInverse, "agreement::trsm_inverted", "agreement: trsm"),
    (LosesInfo, "agreement::getrf_exact", "agreement: getrf"),
    (LastOfTies, "agreement::getrf_exact", "agreement: getrf"),
    (LastPlaceOfU, "agreement::getrf_exact", "agreement: getrf"),
    (StaleColumn, "agreement::getrf_random", "agreement: getrf"),
    (DropsNan, "agreement::getrf_random", "agreement: getrf"),
    (SolvesUntransposed, "agreement::solve", "agreement: solve"),
];

/// Each fault that the bounds allow, with a property of a pair of subjects that holds although one subject has the fault.
const ALLOWED: &[(Fault, &str)] = &[
    (LastPlaceOfX, "agreement::trsm_substitution"),
    (LastPlaceOfU, "agreement::getrf_random"),
    (RoughEquation, "agreement::solve"),
];

fn compare<R: Subject, S: Subject, T: Scalar>(one: &R, other: &S, closeness: Closeness, name: &str) -> Result<(), Failure> {
    outcome(&Pair { one, other, closeness }, find(&agreements::<R, S, T>(), name), &scope(300))
}

/// Tests that each fault is caught, whether the first or the second subject has it.
fn caught<T: Scalar>() {
    for &(fault, name, expected) in EXPECTED {
        let (bounds, wrong) = (Closeness::Bounds, Wrong(fault));
        for verdict in [compare::<_, _, T>(&Naive, &wrong, bounds, name), compare::<_, _, T>(&wrong, &Naive, bounds, name)] {
            let failure = verdict.expect_err(&format!("{fault:?} agrees in {name}"));
            assert_eq!(failure.check, expected, "{fault:?} is caught for another reason: {failure}");
        }
    }
}

fn bits<T: Scalar>() {
    for property in agreements::<Naive, Naive, T>() {
        let pair = Pair { one: &Naive, other: &Naive, closeness: Closeness::Bits };
        outcome(&pair, &property, &scope(300)).unwrap();
    }
    for &(fault, name) in ALLOWED {
        compare::<_, _, T>(&Naive, &Wrong(fault), Closeness::Bounds, name).unwrap();
        let failure = compare::<_, _, T>(&Naive, &Wrong(fault), Closeness::Bits, name).expect_err(name);
        assert!(failure.check.starts_with("agreement"), "{failure}");
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
