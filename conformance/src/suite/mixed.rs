//! Properties of the solution of a system in double precision with factors in single precision.

use super::{Entry, search};
use crate::Subject;
use crate::cases::SolveCase;
use crate::properties::mixed;

/// The properties, which are all in double precision.
pub(super) fn entries<S: Subject + ?Sized>() -> Vec<Entry<S>> {
    vec![
        ("well_conditioned", "Factors in single precision suffice, and X keeps bounds 8, 9 and 14.", |trial| {
            search(trial.scope, SolveCase::any(trial.scope), |case| mixed::check_well_conditioned(trial, case))
        }),
        (
            "ill_conditioned",
            "A Hilbert matrix is factored in double precision, and X keeps bounds 8 and 9.",
            mixed::check_ill_conditioned,
        ),
        (
            "beyond_single_precision",
            "A matrix that no scale brings into the range of single precision is factored in double precision, and X keeps bounds 8 and 9.",
            mixed::check_overflow,
        ),
        ("singular_is_an_error", "The error names the first zero pivot, and X stays.", mixed::check_singular),
        ("nan_stays_in_its_column", "NaN in a column of B reaches this column of X only. NaN in A reaches X.", mixed::check_nan),
    ]
}
