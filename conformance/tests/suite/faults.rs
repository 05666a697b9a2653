//! Every deliberate fault is caught, by the property that is there for it: the
//! properties are not vacuous.

use crate::naive::Naive;
use crate::wrong::Fault::{self, *};
use crate::wrong::Wrong;
use crate::{find, outcome, quick, scope};
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{Failure, Flushing, Subject, flushes};
use lapidary_core::Scalar;

/// Each fault and the verdicts that catch it: entry of the suite, property.
pub const EXPECTED: &[(Fault, &str, &str)] = &[
    (LowPrecision, "gemm::precision", "gemm: precision"),
    (LowPrecision, "gemm::random", "gemm: componentwise"),
    (LowPrecision, "gemm::large", "gemm: checksum"),
    (TileEdge, "gemm::integers_are_exact", "gemm: exact integers"),
    (TileEdge, "gemm::tile_edges", "gemm: exact integers"),
    (ReadsOldC, "gemm::beta_zero_ignores_nan", "gemm: class"),
    (ReadsUnderZeroAlpha, "gemm::alpha_zero_reads_nothing", "gemm: class"),
    (SkipsZeros, "gemm::nan_propagates", "gemm: class"),
    (SkipsZeros, "gemm::zero_times_infinity_is_nan", "gemm: class"),
    (Flushes, "gemm::keeps_subnormals", "gemm: componentwise"),
    (WritesGap, "memory::gaps_untouched", "memory: canaries"),
    (WritesA, "memory::ends_untouched", "memory: read-only operand"),
    (DropsLastRow, "gemm::tile_edges", "gemm: exact integers"),
    (DropsLastRow, "gemm::beta_zero_ignores_nan", "gemm: class"),
    (IgnoresOp, "gemm::integers_are_exact", "gemm: exact integers"),
    (RoundsBeta, "gemm::random", "gemm: componentwise"),
    (WritesBeforeCheck, "gemm::wrong_shapes_are_refused", "errors: wrong arguments"),
    (ReadsOppositeTriangle, "trsm::opposite_triangle_is_not_read", "trsm: class"),
    (ReadsOppositeTriangle, "trsm::inverted_blocks", "trsm: class"),
    (ReadsUnitDiagonal, "trsm::unit_diagonal_is_not_read", "trsm: class"),
    (Reciprocals, "trsm::subnormal_pivots_divide", "trsm: class"),
    (FixedPoint, "trsm::substitution", "trsm: componentwise"),
    (RoughInverse, "trsm::inverted_blocks", "trsm: norm-wise"),
    (LastPlaceOfX, "trsm::integers_are_exact", "trsm: exact integers"),
    (WritesPastPivots, "getrf::random", "memory: canaries"),
    (WritesPastPivots, "solve::random", "memory: canaries"),
    (WrongPivot, "getrf::random", "getrf: multipliers"),
    (WrongPivot, "getrf::exact_factors", "getrf: pivots"),
    (LastOfTies, "getrf::ties_keep_the_first_row", "getrf: pivots"),
    (LosesInfo, "getrf::singular_completes", "getrf: info"),
    (LastInfo, "solve::singular_is_no_error", "getrf: info"),
    (StopsAtZero, "getrf::singular_completes", "getrf: pivots"),
    (StaleColumn, "getrf::random", "getrf: residual"),
    (LastPlaceOfU, "getrf::exact_factors", "getrf: exact factors"),
    (LastPlaceOfU, "getrf::singular_completes", "getrf: exact factors"),
    // "getrf: growth" has no fault of its own. It looks at Wilkinson's matrix after
    // "getrf: exact factors" has passed, when the factors are the oracle's: it is
    // the oracle that it checks. What a subject does wrong there is caught before.
    (LastPlaceOfU, "getrf::growth", "getrf: exact factors"),
    (DropsNan, "getrf::nan_leaves_a_trace", "getrf: NaN"),
    (SolvesUntransposed, "solve::random", "solve: residual"),
    (RoughEquation, "solve::random", "solve: HPL"),
    (AlwaysForward, "laswp::rows_move", "laswp: rows"),
];

/// Faults that one property alone catches.
const ALONE: &[Fault] = &[FixedPoint, RoughInverse, LastPlaceOfX, LastPlaceOfU, DropsNan, RoughEquation];

fn verdict<T: Scalar>(subject: &impl Subject, name: &str) -> Result<(), Failure> {
    outcome(subject, find(&properties_in::<_, T>(), name), &quick())
}

fn caught<T: Scalar>() {
    let missed = EXPECTED.iter().filter_map(|&(fault, name, expected)| match verdict::<T>(&Wrong(fault), name) {
        Ok(()) => Some(format!("{fault:?} passes {name}")),
        Err(failure) if failure.check != expected => Some(format!("{fault:?} is caught for another reason: {failure}")),
        Err(_) => None,
    });
    let missed: Vec<String> = missed.collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

fn caught_alone<T: Scalar>() {
    for &fault in ALONE {
        let (.., expected) = EXPECTED.iter().find(|row| row.0 == fault).expect("the fault is in the table");
        // what is large is tried in all routines at once
        for property in properties_in::<Wrong, T>().iter().filter(|property| property.routine != "large") {
            if let Err(failure) = outcome(&Wrong(fault), property, &scope(60)) {
                assert_eq!(failure.check, *expected, "{fault:?} is caught by another property too: {failure}");
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

/// With more cases than a quick run has: each of these faults shows in few of them.
fn thorough<T: Scalar>(subject: &impl Subject, name: &str) -> Result<(), Failure> {
    outcome(subject, find(&properties_in::<_, T>(), name), &scope(300))
}

/// Where subnormal numbers may be zero, what is wrong beside them is still wrong.
fn flushing<T: Scalar>() {
    let name = "gemm::keeps_subnormals";
    thorough::<T>(&Flushing::of(&Wrong(Flushes)), name).expect("results below the smallest normal number are zero");
    for fault in [LowPrecision, TileEdge, DropsLastRow, IgnoresOp, RoundsBeta, WritesGap, ReadsOldC] {
        let failure = thorough::<T>(&Flushing::of(&Wrong(fault)), name).expect_err("a fault");
        assert!(failure.check != "gemm: completes", "{fault:?}: {failure}");
    }
}

#[test]
fn flushing_excuses_no_other_fault() {
    flushing::<f32>();
    flushing::<f64>();
    assert!(!flushes::<_, f32>(&Naive).unwrap() && !flushes::<_, f64>(&Naive).unwrap());
    let failure = thorough::<f64>(&Flushing::of(&Naive), "trsm::subnormal_pivots_divide").unwrap_err();
    assert_eq!(failure.check, "trsm: class", "0/0 is owed where both are taken for zero: {failure}");
}
