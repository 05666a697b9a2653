//! Properties of the batched routines, which work on many small matrices.

use lapidary_core::Scalar;

use super::Entry;
use crate::cases::Fill;
use crate::cases::batched::{BatchCase, SIZES};
use crate::properties::batched;
use crate::{Failure, Subject, Trial};

pub(super) fn entries<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![
        ("products", "Products of every small size keep bound 1, in every storage, and gaps are not written.", |trial| {
            each(trial, |case| batched::check_products::<S, T>(trial, case, [0.5, -2.0]))
        }),
        ("integers_are_exact", "Products of integers are exact (bound 5).", |trial| {
            each(trial, |case| {
                let case = BatchCase { fill: Fill::Integers, ..*case };
                batched::check_products::<S, T>(trial, &case, [1.0, 1.0])
            })
        }),
        ("beta_zero_ignores_nan", "With β = 0 no C is read, and NaN and Inf of a factor stay in their product.", |trial| {
            each(trial, |case| {
                let case = BatchCase { fill: Fill::NonFinite, ..*case };
                batched::check_products::<S, T>(trial, &case, [1.0, 0.0])
            })
        }),
        ("none_and_one", "No matrix, one, matrices without elements, and sums without terms.", none_and_one::<S, T>),
        ("factors", "Factors keep bound 8, and info names the zero pivot of a singular matrix in the middle.", |trial| {
            each(trial, |case| batched::check_factors::<S, T>(trial, case))
        }),
        ("ties_keep_the_first_row", "Of candidates of equal magnitude the first is the pivot.", |trial| {
            each(trial, |case| batched::check_exact_factors::<S, T>(trial, case))
        }),
        ("nan_stays_in_its_matrix", "A NaN in one matrix leaves the factors of the others as they are.", |trial| {
            let mut cases = SIZES.iter().map(|&n| BatchCase::square(n, 3, trial.scope.seed));
            cases.try_for_each(|case| batched::check_nan_stays::<S, T>(trial, &case))
        }),
        ("solutions", "Solutions of A·X = B and Aᵀ·X = B keep bound 8.", |trial| {
            each(trial, |case| batched::check_solutions::<S, T>(trial, case))
        }),
        ("large", "Matrices beyond the kernels for small ones.", large::<S, T>),
    ]
}

fn each<S: Subject + ?Sized>(trial: &Trial<'_, S>, check: impl Fn(&BatchCase) -> Result<(), Failure>) -> Result<(), Failure> {
    BatchCase::of_sizes(trial.scope.seed).iter().try_for_each(check)
}

fn none_and_one<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let case = |count, [m, n, k]: [usize; 3]| BatchCase { m, n, k, gaps: [1, 2], ..BatchCase::square(m, count, trial.scope.seed) };
    for (count, size) in [(0, [3, 3, 3]), (1, [5, 4, 3]), (3, [0, 4, 2]), (3, [4, 0, 2]), (3, [4, 3, 0])] {
        let case = case(count, size);
        batched::check_products::<S, T>(trial, &case, [0.5, -2.0])?;
        batched::check_factors::<S, T>(trial, &case)?;
        batched::check_solutions::<S, T>(trial, &case)?;
    }
    Ok(())
}

fn large<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let Some(n) = trial.scope.large.iter().copied().min() else { return Ok(()) };
    let case = BatchCase { k: 3, n: n + 1, ..BatchCase::square(n, 2, trial.scope.seed) };
    batched::check_products::<S, T>(trial, &case, [1.0, 0.0])?;
    batched::check_factors::<S, T>(trial, &case)?;
    batched::check_solutions::<S, T>(trial, &case)
}
