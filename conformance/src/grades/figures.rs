//! Grades that are computed from the figures of the trials.

use std::collections::BTreeMap;

use lapidary_core::DType;

use super::grade;
use crate::bounds;
use crate::properties::growth::exponent;
use crate::report::{EXACT, Figure, Grade, TrialReport, Verdict};

/// For each check, the largest ratio of an error to its bound in all trials. Known failures do not count.
pub fn worst_of_each_check(dtype: DType, trials: &[&TrialReport]) -> Vec<Grade> {
    let mut worst: BTreeMap<&str, &Figure> = BTreeMap::new();
    let explained = |trial: &&&TrialReport| trial.verdict == Verdict::Expected;
    for figure in trials.iter().filter(|trial| !explained(trial)).flat_map(|trial| &trial.figures) {
        let entry = worst.entry(&figure.check).or_insert(figure);
        if figure.used() > entry.used() {
            *entry = figure;
        }
    }
    let told = |(check, figure): (&str, &Figure)| {
        let Figure { bound, ratio, limit, size, flags, .. } = figure;
        let (value, verdict) = match *limit {
            _ if figure.is_exact() => (format!("no difference, at size {size} and others"), EXACT.to_owned()),
            0.0 => (format!("a difference at size {size} {flags}"), "not exact".to_owned()),
            _ => (format!("{ratio:.3e} of {limit:.3e} at size {size} {flags}"), format!("{:.3} of bound {bound}", figure.used())),
        };
        grade(
            dtype,
            &format!("worst {check}"),
            value.trim_end(),
            verdict,
            "The largest ratio of all trials, without known failures, to what the bound allows.",
        )
    };
    worst.into_iter().map(told).collect()
}

/// Exponent with which the error of a product grows with k from 16 to 1024, computed as a slope in logarithms.
pub fn error_growth(dtype: DType, trials: &[&TrialReport]) -> Option<Grade> {
    let trial = trials.iter().find(|trial| trial.routine == "gemm" && trial.property == "error_growth")?;
    let slope = exponent(&trial.figures)?;
    let letter = if slope <= bounds::gemm_growth().limit { "A" } else { "not A" };
    let about = "Bound 1: the worst error over |α||A||B| + |β||C| grows at most linearly in k (Demmel et al. 2024). Ordinary sums \
                 give about 0.5, fixed-point or Strassen-like products more than 1.";
    Some(grade(dtype, "growth of the error with k", format!("k^{slope:.2}"), letter, about))
}

/// Whether NaN and infinity appear in the results of all routines where they must appear.
pub fn nan(dtype: DType, trials: &[&TrialReport]) -> Option<Grade> {
    const NAMES: [&str; 4] = ["nan_propagates", "zero_times_infinity_is_nan", "nan_leaves_a_trace", "nan_pivot_divides"];
    let is_asked = |trial: &&&TrialReport| trial.verdict != Verdict::Skipped && NAMES.contains(&trial.property.as_str());
    let asked: Vec<_> = trials.iter().filter(is_asked).collect();
    let is_wrong = |trial: &&&&TrialReport| matches!(trial.verdict, Verdict::Failed | Verdict::Expected);
    let wrong: Vec<&str> = asked.iter().filter(is_wrong).map(|trial| trial.name.as_str()).collect();
    let value = if wrong.is_empty() { "as in the plain loops".to_owned() } else { wrong.join(", ") };
    let verdict = if wrong.is_empty() { "kept" } else { "lost" };
    let about = "NaN and Inf in operands show in the results; 0·Inf is NaN.";
    (!asked.is_empty()).then(|| grade(dtype, "NaN and Inf", value, verdict, about))
}
