//! Each deliberate fault must be caught by the property that is meant for it. The tests of this file show that the properties can
//! fail.

use crate::naive::Naive;
use crate::wrong::Fault::{self, *};
use crate::wrong::Wrong;
use crate::{find, outcome, quick, scope};
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{Failure, Flushing, Subject, flushes};
use lapidary_core::Scalar;

/// Each fault, a property that catches the fault, and the check that fails. If different cases fail in different checks, the names
/// of these checks are joined by "or".
pub const EXPECTED: &[(Fault, &str, &str)] = &[
    (LowPrecision, "gemm::precision", "gemm: precision"),
    (LowPrecision, "gemm::random", "gemm: componentwise"),
    (LowPrecision, "gemm::large", "gemm: checksum"),
    (LowPrecision, "gemm::skinny", "gemm: checksum"),
    (LowPrecision, "gemm::powers_of_two", "gemm: checksum"),
    (LowPrecision, "gemm::beside_subnormals", "gemm: componentwise"),
    (TileEdge, "gemm::integers_are_exact", "gemm: exact integers"),
    (TileEdge, "gemm::tile_edges", "gemm: exact integers"),
    (TileEdge, "cases::gemm_drops_the_last_product", "gemm: exact integers"),
    (ReadsOldC, "gemm::beta_zero_ignores_nan", "gemm: class"),
    (ReadsUnderZeroAlpha, "gemm::alpha_zero_reads_nothing", "gemm: class"),
    (ReadsUnderZeroAlpha, "trsm::alpha_zero_reads_nothing", "trsm: class"),
    (KeepsUnderZeroFactors, "gemm::alpha_zero_reads_nothing", "gemm: class or gemm: componentwise"),
    (SkipsZeros, "gemm::nan_propagates", "gemm: class"),
    (SkipsZeros, "gemm::zero_times_infinity_is_nan", "gemm: class"),
    (Flushes, "gemm::keeps_subnormals", "gemm: componentwise"),
    (Flushes, "trsm::keeps_subnormals", "trsm: componentwise or trsm: class"),
    (WritesGap, "gemm::views_and_layouts_mix", "memory: canaries"),
    (WritesGap, "memory::gaps_untouched", "memory: canaries"),
    (WritesA, "memory::ends_untouched", "memory: read-only operand"),
    (WritesA, "gemm::a_and_b_may_be_one_matrix", "memory: read-only operand"),
    (DropsLastRow, "cases::gemm_last_row_is_stale", "gemm: exact integers"),
    (DropsLastRow, "gemm::tile_edges", "gemm: exact integers"),
    (DropsLastRow, "gemm::beta_zero_ignores_nan", "gemm: class"),
    (IgnoresOp, "gemm::integers_are_exact", "gemm: exact integers"),
    (RoundsBeta, "gemm::random", "gemm: componentwise"),
    (WritesBeforeCheck, "gemm::wrong_shapes_are_refused", "errors: wrong arguments"),
    (WritesBeforeCheck, "trsm::wrong_shapes_are_refused", "errors: wrong arguments"),
    (WritesBeforeCheck, "getrf::wrong_arguments_are_refused", "errors: wrong arguments"),
    (WritesBeforeCheck, "solve::wrong_arguments_are_refused", "errors: wrong arguments"),
    (WritesBeforeCheck, "laswp::wrong_arguments_are_refused", "errors: wrong arguments"),
    (RefusesAsFailed, "faults::a_refused_call_leaves_no_trace", "errors: wrong arguments"),
    (SkipsEmptySums, "gemm::empty_sizes", "gemm: class or gemm: componentwise"),
    (WritesWhenEmpty, "trsm::empty_sizes", "memory: canaries"),
    (WritesWhenEmpty, "getrf::empty_and_one_by_one", "memory: canaries"),
    (NarrowExponents, "gemm::wide_exponents", "gemm: class"),
    (NarrowExponents, "gemm::near_overflow", "gemm: class"),
    (ReadsOppositeTriangle, "cases::trsm_opposite_triangle", "trsm: class"),
    (ReadsOppositeTriangle, "trsm::opposite_triangle_is_not_read", "trsm: class"),
    (ReadsOppositeTriangle, "trsm::inverted_blocks", "trsm: class"),
    (ReadsUnitDiagonal, "trsm::unit_diagonal_is_not_read", "trsm: class"),
    (Reciprocals, "trsm::subnormal_pivots_divide", "trsm: class"),
    (Reciprocals, "trsm::beside_subnormal_pivots", "trsm: class"),
    (DoublesLastUnknown, "trsm::tile_edges", "trsm: componentwise"),
    (ZeroPivotSpoils, "trsm::zero_pivots_divide", "trsm: class"),
    (LosesSignOfZero, "trsm::negative_zero_pivots_divide", "trsm: class"),
    (FixedPoint, "trsm::beside_subnormals", "trsm: componentwise"),
    (FixedPoint, "trsm::skinny", "trsm: componentwise"),
    (FixedPoint, "trsm::substitution", "trsm: componentwise"),
    (RoughInverse, "trsm::inverted_blocks", "trsm: norm-wise"),
    (LastPlaceOfX, "trsm::integers_are_exact", "trsm: exact integers"),
    (WritesPastPivots, "getrf::random", "memory: canaries"),
    (WritesPastPivots, "solve::random", "memory: canaries"),
    (WrongPivot, "getrf::random", "getrf: multipliers"),
    (WrongPivot, "getrf::exact_factors", "getrf: pivots"),
    (WrongPivot, "getrf::tall", "getrf: multipliers or getrf: pivots"),
    (LastOfTies, "cases::getrf_second_of_equal_pivots", "getrf: pivots"),
    (LastOfTies, "getrf::ties_keep_the_first_row", "getrf: pivots"),
    (LastOfTiesBelow, "getrf::ties_below_the_diagonal", "getrf: pivots"),
    (LosesInfo, "getrf::zero_column", "getrf: info"),
    (LosesInfo, "getrf::singular_completes", "getrf: info"),
    (LastInfo, "solve::singular_is_no_error", "getrf: info"),
    (StopsAtZero, "getrf::singular_completes", "getrf: pivots"),
    (StaleColumn, "getrf::random", "getrf: residual"),
    (StaleColumn, "getrf::without_pivoting", "getrf: residual"),
    (StaleColumn, "getrf::wide", "getrf: residual or getrf: exact factors"),
    (StaleColumn, "getrf::tile_edges", "getrf: exact factors"),
    (StaleColumn, "getrf::hilbert", "getrf: residual"),
    (StaleColumn, "solve::large", "solve: residual"),
    (StaleColumn, "cases::getrf_last_column_of_a_tile", "getrf: residual"),
    (LastPlaceOfU, "getrf::exact_factors", "getrf: exact factors"),
    (LastPlaceOfU, "getrf::permuted_identity", "getrf: exact factors"),
    (LastPlaceOfU, "getrf::singular_completes", "getrf: exact factors"),
    // No fault in this list fails the check "getrf: growth". The check examines Wilkinson's matrix only after "getrf: exact
    // factors" has passed, when the factors equal those of the oracle, so that it tests the oracle. An error of a subject in
    // Wilkinson's matrix fails "getrf: exact factors".
    (LastPlaceOfU, "getrf::growth", "getrf: exact factors"),
    (DropsNan, "trsm::nan_propagates", "trsm: class"),
    (DropsNan, "getrf::nan_leaves_a_trace", "getrf: NaN"),
    (DropsNan, "getrf::nan_pivot_divides", "getrf: NaN"),
    (SkipsNanPivots, "getrf::nan_pivot_divides", "getrf: NaN pivot"),
    (SolvesUntransposed, "solve::random", "solve: residual"),
    (RoughEquation, "solve::random", "solve: HPL"),
    (AlwaysForward, "cases::laswp_backward", "laswp: rows"),
    (AlwaysForward, "laswp::rows_move", "laswp: rows"),
    (WritesGapOfBatch, "batched::products", "memory: canaries"),
    (DropsLastOfBatch, "batched::products", "batched: componentwise"),
    (DropsLastOfBatch, "batched::integers_are_exact", "batched: exact integers"),
    (DropsLastOfBatch, "batched::none_and_one", "batched: class or batched: componentwise"),
    (LowPrecision, "batched::large", "batched: componentwise"),
    (ReadsOldC, "batched::beta_zero_ignores_nan", "batched: class"),
    (RepeatsInfoOfBatch, "batched::factors", "batched: info"),
    (WrongPivot, "batched::factors", "batched: multipliers"),
    (StaleColumn, "batched::factors", "batched: getrf"),
    (LastOfTies, "batched::ties_keep_the_first_row", "batched: exact factors"),
    (LastPlaceOfU, "batched::ties_keep_the_first_row", "batched: exact factors"),
    (DropsNan, "batched::nan_stays_in_its_matrix", "batched: NaN"),
    (LeaksIntoNextOfBatch, "batched::nan_stays_in_its_matrix", "batched: NaN"),
    (RepeatsPivotsOfBatch, "batched::solutions", "batched: getrs"),
    (SolvesUntransposed, "batched::solutions", "batched: getrs"),
];

/// Each fault that shows only in large matrices, with its property and its check.
pub const LARGE: &[(Fault, &str, &str)] = &[(LastOfTiesFarBelow, "getrf::ties_below_the_diagonal", "getrf: pivots")];

/// Faults that are caught by only one property.
const ALONE: &[Fault] = &[FixedPoint, RoughInverse, LastPlaceOfX, LastPlaceOfU, DropsNan, RoughEquation];

fn verdict<T: Scalar>(subject: &(impl Subject + 'static), name: &str) -> Result<(), Failure> {
    outcome(subject, find(&properties_in::<_, T>(), name), &quick())
}

/// Whether `check` is one of the names in `expected`, which are joined by " or ".
fn is_among(check: &str, expected: &str) -> bool {
    expected.split(" or ").any(|expected| expected == check)
}

fn caught<T: Scalar>() {
    let missed = EXPECTED.iter().filter_map(|&(fault, name, expected)| match verdict::<T>(&Wrong(fault), name) {
        Ok(()) => Some(format!("{fault:?} passes {name}")),
        Err(failure) if !is_among(failure.check, expected) => Some(format!("{fault:?} is caught for another reason: {failure}")),
        Err(_) => None,
    });
    let missed: Vec<String> = missed.collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

fn caught_alone<T: Scalar>() {
    for &fault in ALONE {
        let expected: Vec<&str> = EXPECTED.iter().filter(|row| row.0 == fault).map(|row| row.2).collect();
        // the properties of the group `large` call several routines, so that they catch these faults too
        for property in properties_in::<Wrong, T>().iter().filter(|property| property.routine != "large") {
            if let Err(failure) = outcome(&Wrong(fault), property, &scope(60)) {
                let is_expected = expected.iter().any(|expected| is_among(failure.check, expected));
                assert!(is_expected, "{fault:?} is caught by another property too: {failure}");
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

/// Tests a property with more cases than a quick run has, since each of these faults shows in few cases.
fn thorough<T: Scalar>(subject: &(impl Subject + 'static), name: &str) -> Result<(), Failure> {
    outcome(subject, find(&properties_in::<_, T>(), name), &scope(300))
}

/// Even if a device is allowed to flush subnormal numbers to zero, the suite must find its other faults.
fn flushing<T: Scalar>() {
    let name = "gemm::keeps_subnormals";
    thorough::<T>(&Flushing::of(&Wrong(Flushes)), name).expect("results below the smallest normal number are zero");
    for fault in [LowPrecision, TileEdge, DropsLastRow, IgnoresOp, RoundsBeta, WritesGap, ReadsOldC] {
        let failure = thorough::<T>(&Flushing::of(Box::leak(Box::new(Wrong(fault)))), name).expect_err("a fault");
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
