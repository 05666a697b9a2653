//! Properties of the LU factorisation.

use lapidary_core::Scalar;
use proptest::strategy::Strategy;

use super::{Entry, search};
use crate::cases::{GetrfCase, Shape};
use crate::properties::{getrf, memory};
use crate::{Failure, Subject, Trial};

pub(super) fn entries<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![
        (
            "wrong_arguments_are_refused",
            "Room for another number of exchanges is an error, and A stays.",
            memory::getrf_errors::<S, T>,
        ),
        ("exact_factors", "Where no step rounds, pivots and factors are the oracle's (bounds 5 and 11).", |trial| {
            random::<S, T>(trial, &[Shape::Exact], |case| case)
        }),
        ("ties_keep_the_first_row", "Of candidates of equal magnitude the first is the pivot.", |trial| {
            few::<S, T>(trial, &[Shape::Ties], |case| case)
        }),
        ("ties_below_the_diagonal", "Of equal candidates below a smaller diagonal the first is the pivot.", ties_below::<S, T>),
        ("permuted_identity", "A permutation factors into itself.", |trial| few::<S, T>(trial, &[Shape::Permuted], |case| case)),
        ("tile_edges", "Orders one less, equal and one more than a tile; fewer columns than a panel.", tile_edges::<S, T>),
        ("empty_and_one_by_one", "No rows, no columns, and a single element.", smallest::<S, T>),
        ("singular_completes", "info is the first zero pivot, and the factorisation goes on.", |trial| {
            few::<S, T>(trial, &[Shape::Singular], |case| case)
        }),
        ("zero_column", "A column of zeros is a zero pivot, not an error.", |trial| {
            few::<S, T>(trial, &[Shape::ZeroColumn], |case| case)
        }),
        ("nan_leaves_a_trace", "A NaN neither hangs the search for a pivot nor is lost.", |trial| {
            few::<S, T>(trial, &[Shape::Nan], |case| case)
        }),
        ("nan_pivot_divides", "What is below a pivot that is NaN becomes NaN.", |trial| {
            few::<S, T>(trial, &[Shape::NanPivot], |case| case)
        }),
        ("random", "The residual keeps bound 8, and no multiplier is larger than one.", |trial| {
            random::<S, T>(trial, &[Shape::Random, Shape::Graded], |case| case)
        }),
        ("tall", "More rows than columns.", |trial| few::<S, T>(trial, &[Shape::Random, Shape::Exact], tall)),
        ("wide", "More columns than rows.", |trial| few::<S, T>(trial, &[Shape::Random, Shape::Exact], wide)),
        ("without_pivoting", "No row moves where none is to, and the residual keeps bound 8.", |trial| {
            few::<S, T>(trial, &[Shape::Dominant], |case| case)
        }),
        ("growth", "Wilkinson's matrix grows by 2^(n−1), exactly.", |trial| {
            square::<S, T>(trial, &[1, 2, 12, 20], Shape::Wilkinson)
        }),
        ("hilbert", "Hilbert's matrix keeps bound 8.", |trial| square::<S, T>(trial, &[2, 5, 12], Shape::Hilbert)),
        (
            "large",
            "Sizes beyond every tile: by checksum, and where the factors are known by each of their elements.",
            large::<S, T>,
        ),
    ]
}

fn random<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    shapes: &'static [Shape],
    change: fn(GetrfCase) -> GetrfCase,
) -> Result<(), Failure> {
    let cases = GetrfCase::any(trial.scope, shapes).prop_map(change);
    search(trial.scope, cases, |case| getrf::check_getrf::<S, T>(trial, case))
}

/// Tests random factorisations as [`random`] does, but with a third of the cases, since each case tests the same requirement.
fn few<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    shapes: &'static [Shape],
    change: fn(GetrfCase) -> GetrfCase,
) -> Result<(), Failure> {
    random::<S, T>(&trial.within(&trial.scope.part(3)), shapes, change)
}

fn tall(case: GetrfCase) -> GetrfCase {
    GetrfCase { m: case.m + case.n + 1, ..case }
}

fn wide(case: GetrfCase) -> GetrfCase {
    GetrfCase { n: case.m + case.n + 1, ..case }
}

fn each<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, cases: impl IntoIterator<Item = GetrfCase>) -> Result<(), Failure> {
    cases.into_iter().try_for_each(|case| getrf::check_getrf::<S, T>(trial, &case))
}

fn square<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, orders: &[usize], shape: Shape) -> Result<(), Failure> {
    each::<S, T>(trial, orders.iter().map(|&n| GetrfCase::square(n, shape)))
}

fn tile_edges<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let edges = trial.scope.edges().into_iter();
    each::<S, T>(trial, edges.map(|[m, n, _]| GetrfCase { m, ..GetrfCase::square(n, Shape::Exact) }))
}

/// Tests candidates for a pivot that have equal magnitudes and lie below the diagonal: first in random cases, then in tall
/// matrices. The tall matrices have so many rows that each work-item of a large work-group compares several equal candidates.
fn ties_below<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    few::<S, T>(trial, &[Shape::TiesBelow], |case| case)?;
    let mut tall = trial.scope.large.iter().map(|&n| GetrfCase { m: n * 5 / 2, ..GetrfCase::square(65, Shape::TiesBelow) });
    tall.try_for_each(|case| getrf::check_large_exact::<S, T>(trial, &case))
}

fn smallest<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let extents = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 5), (5, 1)];
    each::<S, T>(trial, extents.map(|(m, n)| GetrfCase { m, ..GetrfCase::square(n, Shape::Random) }))?;
    square::<S, T>(trial, &[1], Shape::Singular)
}

fn large<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let mut cases = trial.scope.large.iter().map(|&n| GetrfCase { n: n - 1, ..GetrfCase::square(n, Shape::Random) });
    cases.try_for_each(|case| getrf::check_large::<S, T>(trial, &case))?;
    let mut exact = trial.scope.large.iter().map(|&n| GetrfCase::square(n, Shape::Exact));
    exact.try_for_each(|case| getrf::check_large_exact::<S, T>(trial, &case))
}
