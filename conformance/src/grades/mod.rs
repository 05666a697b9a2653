//! What the figures say together, and what a subject tells about itself when it is asked
//! for single numbers: grades, beside the verdicts of the trials.

mod agreement;
mod figures;
mod format;
mod order;
mod probe;

use lapidary_core::{DType, Scalar};

use crate::Subject;
use crate::report::{Grade, TrialReport};

/// Everything that can be said about a subject after its trials.
#[must_use]
pub fn grades<S: Subject>(subject: &S, trials: &[TrialReport]) -> Vec<Grade> {
    [graded_in::<S, f32>(subject, trials), graded_in::<S, f64>(subject, trials)].concat()
}

/// What is said in place of the grades when two runs have begun them, and never ended.
#[must_use]
pub fn unended() -> Vec<Grade> {
    vec![Grade {
        name: "grades".to_owned(),
        value: "two runs were cut off while they were measured: a call crashes, hangs or was stopped".to_owned(),
        verdict: "failed".to_owned(),
        explanation: "Grades are measured after the trials.".to_owned(),
        failed: true,
    }]
}

fn graded_in<S: Subject, T: Scalar>(subject: &S, trials: &[TrialReport]) -> Vec<Grade> {
    let dtype = T::DTYPE;
    let own: Vec<&TrialReport> = trials.iter().filter(|trial| trial.dtype == dtype.to_string()).collect();
    if own.is_empty() || !subject.computes(dtype) {
        return Vec::new();
    }
    let mut all = figures::worst_of_each_check(dtype, &own);
    all.extend(figures::error_growth(dtype, &own));
    all.extend(figures::nan(dtype, &own));
    let measured = [
        format::precision::<S, T>(subject),
        probe::flushing::<S, T>(subject),
        probe::growth::<S, T>(subject),
        probe::reproducible::<S, T>(subject),
        order::fingerprint::<S, T>(subject),
    ];
    all.extend(measured.into_iter().map(|grade| grade.unwrap_or_else(|error| failed(dtype, &error))));
    all.extend(subject.one_and_several().into_iter().flat_map(|both| agreement::agreement::<S, T>(&both)));
    all
}

fn grade(dtype: DType, name: &str, value: impl Into<String>, verdict: impl Into<String>, explanation: &str) -> Grade {
    let (name, value, verdict) = (format!("{dtype}: {name}"), value.into(), verdict.into());
    Grade { name, value, verdict, explanation: explanation.to_owned(), failed: false }
}

/// A grade that could not be given, since a call failed.
fn failed(dtype: DType, error: &lapidary_core::Error) -> Grade {
    let told = grade(dtype, "a measurement", error.to_string(), "failed", "A call that a grade needs ended in an error.");
    Grade { failed: true, ..told }
}
