//! Properties of the solution of a system by getrf and getrs.

use lapidary_core::Scalar;

use super::{Entry, search};
use crate::cases::SolveCase;
use crate::properties::{memory, solve};
use crate::{Failure, Subject, Trial};

pub(super) fn entries<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![
        (
            "wrong_arguments_are_refused",
            "Wrong shapes and rows that do not exist are an error, and B stays.",
            memory::getrs_errors::<S, T>,
        ),
        ("random", "Solutions of A·X = B and Aᵀ·X = B keep bounds 8 and 9.", |trial| {
            search(trial.scope, SolveCase::any(trial.scope), |case| solve::check_solve::<S, T>(trial, case))
        }),
        (
            "singular_is_no_error",
            "Matrices of equal rows: info names the first zero pivot.",
            solve::check_singular_is_no_error::<S, T>,
        ),
        ("large", "Sizes beyond every tile with one right-hand side, as HPL solves them.", large::<S, T>),
    ]
}

fn large<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    trial.scope.large.iter().try_for_each(|&n| solve::check_solve::<S, T>(trial, &SolveCase::packed(n)))
}
