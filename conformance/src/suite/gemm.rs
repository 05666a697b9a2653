//! Properties of the matrix product.

use lapidary_core::{Layout, Scalar};
use proptest::strategy::Strategy;

use super::{Entry, search};
use crate::cases::{Fill, GemmCase, Storage};
use crate::properties::memory::completed;
use crate::properties::{gemm, growth, memory};
use crate::{Failure, Flushing, Subject, Trial};

pub(super) fn entries<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![
        ("wrong_shapes_are_refused", "Extents that do not agree are an error, and C stays.", memory::gemm_errors::<S, T>),
        (
            "precision",
            "1 + 2^-25 (f64) and 1 + 2^-12 (f32) keep their last digits: no lower precision is hidden.",
            gemm::check_precision::<S, T>,
        ),
        ("integers_are_exact", "Integers whose sums stay exact give the oracle's bits, in any order of summation.", |trial| {
            random::<S, T>(trial, &[Fill::Integers], |case| case)
        }),
        ("tile_edges", "Extents one less, equal and one more than a tile give exact integers.", tile_edges::<S, T>),
        ("empty_sizes", "m, n or k = 0: nothing happens, or C is scaled by β.", |trial| {
            few::<S, T>(trial, &[Fill::Uniform], empty)
        }),
        ("random", "Random numbers of even and of uneven magnitude keep bounds 1, 2 and 3.", |trial| {
            random::<S, T>(trial, &[Fill::Uniform, Fill::Graded], |case| case)
        }),
        ("beta_zero_ignores_nan", "β = 0 never reads C: NaN and Inf in it vanish.", |trial| {
            few::<S, T>(trial, &[Fill::Uniform], |case| GemmCase { beta: 0.0, ..case })
        }),
        (
            "alpha_zero_reads_nothing",
            "α = 0 never reads A or B: NaN and Inf in them do not matter, and with β = 0 C becomes zero.",
            |trial| few::<S, T>(trial, &[Fill::Uniform, Fill::NonFinite], without_product),
        ),
        ("nan_propagates", "NaN and Inf in the operands come out where the plain triple loop has them.", |trial| {
            random::<S, T>(trial, &[Fill::NonFinite], |case| case)
        }),
        ("zero_times_infinity_is_nan", "Zeros are multiplied like any other number.", |trial| {
            few::<S, T>(trial, &[Fill::Zeros, Fill::Infinities], |case| GemmCase { alpha: 1.0, same: false, ..case })
        }),
        ("wide_exponents", "Magnitudes over two fifths of the exponents keep the bounds.", |trial| {
            random::<S, T>(trial, &[Fill::Wide], |case| case)
        }),
        ("near_overflow", "Products near the largest number keep the bounds.", |trial| {
            few::<S, T>(trial, &[Fill::Huge], |case| case)
        }),
        ("keeps_subnormals", "Subnormal operands and results are numbers like others.", subnormal::<S, T>),
        ("beside_subnormals", "What is not subnormal is right, whether or not the device flushes what is.", |trial| {
            let lenient = completed("gemm: completes", Flushing::if_seen::<T>(trial.subject))?;
            subnormal::<_, T>(&trial.of(&lenient))
        }),
        ("views_and_layouts_mix", "Sub-matrices with offsets, row- and column-major in one call.", |trial| {
            few::<S, T>(trial, &[Fill::Integers], mixed)
        }),
        ("a_and_b_may_be_one_matrix", "A and B are the same memory.", |trial| {
            few::<S, T>(trial, &[Fill::Uniform, Fill::Integers], GemmCase::of_one_matrix)
        }),
        (
            "no_fast_products",
            "Large beside small elements in sizes that halve: products with fewer multiplications fail bound 1 (Demmel's grade A).",
            halving::<S, T>,
        ),
        ("error_growth", "The error grows at most linearly in k = 16 … 1024.", error_growth::<S, T>),
        ("skinny", "One extent of 8 beside long ones, by checksum.", skinny::<S, T>),
        ("powers_of_two", "Sizes that are powers of two, by checksum.", powers_of_two::<S, T>),
        ("large", "Sizes beyond every tile, by checksum; each transposition at the smallest.", large::<S, T>),
    ]
}

fn random<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    fills: &'static [Fill],
    change: fn(GemmCase) -> GemmCase,
) -> Result<(), Failure> {
    search(trial.scope, GemmCase::any(trial.scope, fills).prop_map(change), |case| gemm::check_gemm::<S, T>(trial, case))
}

/// Tests random products as [`random`] does, but with a third of the cases, since each case tests the same requirement.
fn few<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    fills: &'static [Fill],
    change: fn(GemmCase) -> GemmCase,
) -> Result<(), Failure> {
    random::<S, T>(&trial.within(&trial.scope.part(3)), fills, change)
}

fn subnormal<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    random::<S, T>(&trial.within(&trial.scope.short()), &[Fill::Tiny, Fill::Rising], |case| case)
}

fn without_product(case: GemmCase) -> GemmCase {
    let beta = if case.seed.is_multiple_of(2) { 0.0 } else { case.beta };
    GemmCase { alpha: 0.0, beta, ..case }
}

fn empty(case: GemmCase) -> GemmCase {
    let case = GemmCase { same: false, ..case };
    match case.seed % 3 {
        0 => GemmCase { m: 0, ..case },
        1 => GemmCase { n: 0, ..case },
        _ => GemmCase { k: 0, ..case },
    }
}

fn mixed(case: GemmCase) -> GemmCase {
    let stored = |storage: Storage, layout| Storage { layout, skip: (1 + storage.gap, 2), ..storage };
    let [a, b, c] = case.storage;
    let layouts = [a.layout, a.layout.flip(), if case.seed.is_multiple_of(2) { Layout::ColMajor } else { Layout::RowMajor }];
    GemmCase { same: false, storage: [stored(a, layouts[0]), stored(b, layouts[1]), stored(c, layouts[2])], ..case }
}

fn tile_edges<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for (at, [m, n, k]) in trial.scope.edges().into_iter().enumerate() {
        let case = GemmCase { fill: Fill::Integers, ..GemmCase::packed([m, n, k], trial.scope.seed) };
        gemm::check_gemm::<S, T>(trial, &case.all_ops()[at % 4])?;
    }
    Ok(())
}

fn halving<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let sizes = (2..).map(|power| 1 << power).take_while(|&n| n <= trial.scope.max.max(64));
    let case = |n, seed| GemmCase { fill: Fill::Graded, beta: 0.0, ..GemmCase::packed([n, n, n], seed) };
    let cases = sizes.flat_map(|n| (0..2).map(move |seed| case(n, seed)));
    cases.flat_map(GemmCase::all_ops).try_for_each(|case| gemm::check_gemm::<S, T>(trial, &case))
}

fn error_growth<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let case = |k, seed| GemmCase { fill: Fill::Positive, beta: 0.0, ..GemmCase::packed([24, 24, k], seed) };
    let mut cases = (4..=10).flat_map(|power| (0..4).map(move |seed| case(1 << power, seed)));
    cases.try_for_each(|case| gemm::check_gemm::<S, T>(trial, &case))?;
    growth::check_growth(trial)
}

fn checksums<S: Subject + ?Sized, T: Scalar>(
    trial: &Trial<'_, S>,
    extents: impl IntoIterator<Item = [usize; 3]>,
) -> Result<(), Failure> {
    let mut cases = extents.into_iter().map(|extents| GemmCase::packed(extents, trial.scope.seed));
    cases.try_for_each(|case| gemm::check_checksum::<S, T>(trial, &case))
}

fn skinny<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    // with `--full` the long extents are 3600
    let n = 3 * trial.scope.large.iter().copied().max().unwrap_or(trial.scope.max);
    checksums::<S, T>(trial, [[8, n, n], [n, 8, n], [n, n, 8]])
}

fn powers_of_two<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let largest = trial.scope.large.iter().copied().max().unwrap_or(64);
    checksums::<S, T>(trial, (6..).map(|power| 1 << power).take_while(|&n| n <= largest).map(|n| [n, n, n]))
}

/// Tests the first size with all transpositions of A and B, and each following size with one of these transpositions in turn.
fn large<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for (at, &n) in trial.scope.large.iter().enumerate() {
        let ops = GemmCase::packed([n, n - 1, n], trial.scope.seed).all_ops();
        let cases = if at == 0 { &ops[..] } else { std::slice::from_ref(&ops[at % 4]) };
        cases.iter().try_for_each(|case| gemm::check_checksum::<S, T>(trial, case))?;
    }
    Ok(())
}
