//! Properties of memory, which all routines must have, and properties of row exchanges.

use lapidary_core::{Scalar, TrsmMode};
use proptest::strategy::Strategy;

use super::{Entry, search};
use crate::cases::{Fill, GemmCase, GetrfCase, LaswpCase, Shape, SolveCase, Storage, TrsmCase};
use crate::properties::{far, gemm, getrf, laswp, memory, solve, trsm};
use crate::{Failure, Scope, Subject, Trial};

pub(super) fn storage<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![
        ("gaps_untouched", "The rows between m and ld, and what surrounds a sub-view, are never written.", |trial| {
            every_routine::<S, T>(trial, |storage| Storage { gap: 1 + storage.gap, skip: (1, 2), ..storage })
        }),
        (
            "ends_untouched",
            "Nothing is written past the end of a packed buffer; operands that are read stay bit-identical.",
            |trial| every_routine::<S, T>(trial, |storage| Storage { gap: 0, skip: (0, 0), ..storage }),
        ),
    ]
}

pub(super) fn stale<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![("stale_nan_does_not_leak", "NaN left in workspace or padding by one call is not seen by the next.", stale_nan::<S, T>)]
}

pub(super) fn far<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![("offsets_beyond_32_bits", "Columns that lie more than 2^31 elements apart.", far::check_far::<S, T>)]
}

pub(super) fn exchanges<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![
        ("wrong_arguments_are_refused", "Rows that do not exist are an error, and A stays.", memory::laswp_errors::<S, T>),
        ("rows_move", "Rows stand where a plain loop puts them, bit for bit, in order and back.", |trial| {
            search(trial.scope, LaswpCase::any(trial.scope), |case| laswp::check_laswp::<S, T>(trial, case))
        }),
    ]
}

/// A function that changes the storage of an operand.
type Change = fn(Storage) -> Storage;

/// Runs random calls of every routine. `stored` changes the storage of the operands of each call.
fn every_routine<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, stored: Change) -> Result<(), Failure> {
    let scope = &trial.scope.part(4);
    search(scope, gemms(scope, stored), |case| gemm::check_gemm::<S, T>(trial, case))?;
    search(scope, trsms(scope, stored), |case| trsm::check_trsm::<S, T>(trial, case))?;
    search(scope, getrfs(scope, stored), |case| getrf::check_getrf::<S, T>(trial, case))?;
    search(scope, solves(scope, stored), |case| solve::check_solve::<S, T>(trial, case))
}

fn gemms(scope: &Scope, stored: Change) -> impl Strategy<Value = GemmCase> + use<> {
    GemmCase::any(scope, &[Fill::Uniform]).prop_map(move |case| GemmCase { storage: case.storage.map(stored), ..case })
}

fn trsms(scope: &Scope, stored: Change) -> impl Strategy<Value = TrsmCase> + use<> {
    let cases = TrsmCase::any(scope, TrsmMode::Substitution, &[Fill::Uniform]);
    cases.prop_map(move |case| TrsmCase { storage: case.storage.map(stored), ..case })
}

fn getrfs(scope: &Scope, stored: Change) -> impl Strategy<Value = GetrfCase> + use<> {
    GetrfCase::any(scope, &[Shape::Random]).prop_map(move |case| GetrfCase { storage: stored(case.storage), ..case })
}

fn solves(scope: &Scope, stored: Change) -> impl Strategy<Value = SolveCase> + use<> {
    SolveCase::any(scope).prop_map(move |case| SolveCase { storage: case.storage.map(stored), ..case })
}

/// Tests a product whose operands contain only NaN, and then a product of integers with the same sizes.
fn stale_nan<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let scope = &trial.scope.part(2);
    search(scope, GemmCase::any(scope, &[Fill::Poison]), |poison| {
        let clean = GemmCase { fill: Fill::Integers, alpha: 1.0, beta: 0.0, ..*poison };
        gemm::check_gemm::<S, T>(trial, poison)?;
        gemm::check_gemm::<S, T>(trial, &clean).map_err(|failure| failure.after(poison))
    })
}
