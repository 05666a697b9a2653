//! Grades: summaries of the figures, and quantities that are measured by further calls after the trials. A report contains the
//! grades in addition to the verdicts of the trials.

mod agreement;
mod figures;
mod format;
mod order;
mod probe;

pub use agreement::one_and_several;
use lapidary_core::{DType, Error, ErrorKind, Scalar};

use crate::Subject;
use crate::grader::too_little_memory;
use crate::report::{Grade, TrialReport};

/// Measures all grades of a subject after its trials.
#[must_use]
pub fn grades<S: Subject>(subject: &S, trials: &[TrialReport]) -> Vec<Grade> {
    [graded_in::<S, f32>(subject, trials), graded_in::<S, f64>(subject, trials)].concat()
}

/// A list with one entry, which replaces the grades if their measurement began but did not end. `value` describes how the suite
/// noticed that the measurement did not end. `failed` states whether this shows that the subject is wrong.
#[must_use]
pub fn unended(value: &str, failed: bool) -> Vec<Grade> {
    vec![Grade {
        name: "grades".to_owned(),
        value: value.to_owned(),
        verdict: if failed { "failed" } else { NOT_MEASURED }.to_owned(),
        explanation: "Grades are measured after the trials.".to_owned(),
        failed,
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
        ("precision", format::precision::<S, T>(subject)),
        ("subnormal numbers", probe::flushing::<S, T>(subject)),
        ("growth of a random LU", probe::growth::<S, T>(subject)),
        ("reproducible", probe::reproducible::<S, T>(subject)),
        ("order of summation", order::fingerprint::<S, T>(subject)),
    ];
    all.extend(measured.into_iter().map(|(name, grade)| grade.unwrap_or_else(|error| not_given(subject, dtype, name, &error))));
    all.extend(subject.one_and_several().into_iter().flat_map(|both| one_and_several::<S, T>(&both)));
    all
}

fn grade(dtype: DType, name: &str, value: impl Into<String>, verdict: impl Into<String>, explanation: &str) -> Grade {
    let (name, value, verdict) = (format!("{dtype}: {name}"), value.into(), verdict.into());
    Grade { name, value, verdict, explanation: explanation.to_owned(), failed: false }
}

/// Verdict of a grade whose quantity could not be measured.
const NOT_MEASURED: &str = "not measured";

/// Replaces a grade whose call returned an error. The replacement counts as failed unless the host has too little memory or the
/// subject lacks the routine.
fn not_given<S: Subject>(subject: &S, dtype: DType, name: &str, error: &Error) -> Grade {
    let lacks_memory = error.kind().is_out_of_memory() && too_little_memory(subject.memory_limit()).is_some();
    let failed = error.kind() != ErrorKind::Unsupported && !lacks_memory;
    let verdict = if failed { "failed" } else { NOT_MEASURED };
    let told = grade(dtype, name, error.to_string(), verdict, "A call that the grade needs ended in an error.");
    Grade { failed, ..told }
}
