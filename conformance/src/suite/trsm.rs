//! Properties of the triangular solve.

use lapidary_core::{Diag, Scalar, TrsmMode, TrsmMode::Inverted, TrsmMode::Substitution};
use proptest::strategy::Strategy;

use super::{Entry, search};
use crate::cases::{Fill, Pivot, TrsmCase};
use crate::properties::memory::completed;
use crate::properties::{memory, trsm};
use crate::{Failure, Flushing, Subject, Trial};

pub(super) fn entries<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![
        (
            "wrong_shapes_are_refused",
            "A matrix that is not square or of another order is an error, and B stays.",
            memory::trsm_errors::<S, T>,
        ),
        ("integers_are_exact", "Integer solutions through powers of two come out exactly.", |trial| {
            random::<S, T>(trial, Substitution, &[Fill::Integers], |case| case)
        }),
        ("tile_edges", "Orders one less, equal and one more than a tile.", tile_edges::<S, T>),
        ("skinny", "Few equations beside many right-hand sides, and many beside few.", skinny::<S, T>),
        ("empty_sizes", "No equations or no right-hand sides: nothing happens.", |trial| {
            few::<S, T>(trial, &[Fill::Uniform], empty)
        }),
        ("substitution", "Substitution keeps bound 7, element by element, also for equations of unlike scales.", |trial| {
            random::<S, T>(trial, Substitution, &[Fill::Uniform, Fill::Graded], |case| case)
        }),
        ("unit_diagonal_is_not_read", "A unit diagonal is one, whatever stands there.", |trial| {
            few::<S, T>(trial, &[Fill::Uniform], |case| with_diag(case, Diag::Unit))
        }),
        ("opposite_triangle_is_not_read", "The other triangle, full of NaN, does not matter.", |trial| {
            few::<S, T>(trial, &[Fill::Uniform], |case| with_diag(case, Diag::NonUnit))
        }),
        ("alpha_zero_reads_nothing", "α = 0 never reads A, and gives zeros.", |trial| {
            few::<S, T>(trial, &[Fill::Uniform], |case| TrsmCase { alpha: 0.0, ..case })
        }),
        ("nan_propagates", "NaN and Inf come out where plain substitution has them.", |trial| {
            random::<S, T>(trial, Substitution, &[Fill::NonFinite], |case| case)
        }),
        ("keeps_subnormals", "Subnormal operands and results are numbers like others.", subnormal::<S, T>),
        ("beside_subnormals", "What is not subnormal is right, whether or not the device flushes what is.", |trial| {
            let lenient = completed("trsm: completes", Flushing::if_seen::<T>(trial.subject))?;
            subnormal::<_, T>(&trial.of(&lenient))
        }),
        ("zero_pivots_divide", "Division by a zero pivot is IEEE division.", zero_pivots::<S, T>),
        (
            "negative_zero_pivots_divide",
            "Division by a pivot −0 is IEEE division: it gives the other infinity.",
            negative_zero_pivots::<S, T>,
        ),
        (
            "subnormal_pivots_divide",
            "Division by a subnormal pivot is IEEE division: its reciprocal overflows, the quotient does not.",
            subnormal_pivots::<S, T>,
        ),
        ("beside_subnormal_pivots", "As before; a device that flushes solves 0·x = 0.", |trial| {
            let lenient = completed("trsm: completes", Flushing::if_seen::<T>(trial.subject))?;
            subnormal_pivots::<_, T>(&trial.of(&lenient))
        }),
        (
            "inverted_blocks",
            "With inverted diagonal blocks the norm-wise part of bound 7 holds, and a NaN stays in its column.",
            inverted_blocks::<S, T>,
        ),
    ]
}

fn random<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    mode: TrsmMode,
    fills: &'static [Fill],
    change: fn(TrsmCase) -> TrsmCase,
) -> Result<(), Failure> {
    let cases = TrsmCase::any(trial.scope, mode, fills).prop_map(change);
    search(trial.scope, cases, |case| trsm::check_trsm::<S, T>(trial, case))
}

/// Tests substitution as [`random`] does, but with a third of the cases, since each case tests the same requirement.
fn few<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    fills: &'static [Fill],
    change: fn(TrsmCase) -> TrsmCase,
) -> Result<(), Failure> {
    random::<S, T>(&trial.within(&trial.scope.part(3)), Substitution, fills, change)
}

fn with_diag(case: TrsmCase, diag: Diag) -> TrsmCase {
    let (side, uplo, op, _) = case.flags;
    TrsmCase { flags: (side, uplo, op, diag), ..case }
}

fn empty(case: TrsmCase) -> TrsmCase {
    if case.seed.is_multiple_of(2) { TrsmCase { order: 0, ..case } } else { TrsmCase { nrhs: 0, ..case } }
}

fn tile_edges<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for [order, nrhs, _] in trial.scope.edges() {
        for case in TrsmCase::regular(order) {
            trsm::check_trsm::<S, T>(trial, &TrsmCase { nrhs, ..case })?;
        }
    }
    Ok(())
}

fn skinny<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let long = 2 * trial.scope.max;
    for (order, nrhs) in [(8, long), (long, 8), (long, 1)] {
        for case in TrsmCase::regular(order) {
            trsm::check_trsm::<S, T>(trial, &TrsmCase { nrhs, ..case })?;
        }
    }
    Ok(())
}

fn subnormal<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    random::<S, T>(&trial.within(&trial.scope.short()), Substitution, &[Fill::Tiny, Fill::Rising], |case| case)
}

fn with_pivot<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, pivot: Pivot) -> Result<(), Failure> {
    let mut cases = [1, 2, 7, trial.scope.max].into_iter().flat_map(TrsmCase::regular);
    cases.try_for_each(|case| trsm::check_trsm::<S, T>(trial, &TrsmCase { pivot, ..case }))
}

fn inverted_blocks<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    random::<S, T>(trial, Inverted, &[Fill::Uniform, Fill::Graded, Fill::NonFinite], |case| case)?;
    let mut cases = TrsmCase::regular(trial.scope.max)
        .into_iter()
        .flat_map(|case| [Pivot::Zero, Pivot::NegativeZero].map(|pivot| (case, pivot)));
    cases.try_for_each(|(case, pivot)| trsm::check_trsm::<S, T>(trial, &TrsmCase { mode: Inverted, pivot, ..case }))
}

fn zero_pivots<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    with_pivot::<S, T>(trial, Pivot::Zero)
}

fn negative_zero_pivots<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    with_pivot::<S, T>(trial, Pivot::NegativeZero)
}

fn subnormal_pivots<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    with_pivot::<S, T>(trial, Pivot::Subnormal)
}
