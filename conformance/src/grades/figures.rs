//! Grades from the figures of the trials.

use std::collections::BTreeMap;

use lapidary_core::DType;

use super::grade;
use crate::bounds::real;
use crate::report::{Figure, Grade, TrialReport, Verdict};

/// How much of each bound was used at most.
pub fn worst_of_each_check(dtype: DType, trials: &[&TrialReport]) -> Vec<Grade> {
    let mut worst: BTreeMap<&str, &Figure> = BTreeMap::new();
    for figure in trials.iter().flat_map(|trial| &trial.figures) {
        let entry = worst.entry(&figure.check).or_insert(figure);
        if figure.used() > entry.used() {
            *entry = figure;
        }
    }
    let told = |(check, figure): (&str, &Figure)| {
        let Figure { bound, ratio, limit, size, flags, .. } = figure;
        let value = format!("{ratio:.3e} of {limit:.3e} at size {size} {flags}");
        let verdict = format!("{:.3} of bound {bound}", figure.used());
        grade(
            dtype,
            &format!("worst {check}"),
            value.trim_end(),
            verdict,
            "The largest ratio of all trials to what the bound allows.",
        )
    };
    worst.into_iter().map(told).collect()
}

/// The slope of the error over k = 16 … 1024, both in logarithms.
pub fn error_growth(dtype: DType, trials: &[&TrialReport]) -> Option<Grade> {
    let trial = trials.iter().find(|trial| trial.routine == "gemm" && trial.property == "error_growth")?;
    let points: Vec<(f64, f64)> = trial
        .figures
        .iter()
        .filter(|figure| figure.check == "gemm: componentwise" && figure.ratio > 0.0)
        .map(|figure| (real(figure.size).log2(), figure.ratio.log2()))
        .collect();
    let slope = slope(&points)?;
    let letter = if slope <= 1.0 { "A" } else { "not A" };
    let about = "Bound 1: the worst error over |α||A||B| + |β||C| grows at most linearly in k (Demmel et al. 2024). Ordinary sums \
                 give about 0.5, fixed-point or Strassen-like products more than 1.";
    Some(grade(dtype, "growth of the error with k", format!("k^{slope:.2}"), letter, about))
}

/// The slope of the line through the points with the least squares; none through fewer than three.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = real(points.len());
    let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / count;
    let (x0, y0) = (mean(|p| p.0), mean(|p| p.1));
    let (above, below) =
        points.iter().fold((0.0, 0.0), |(above, below), (x, y)| (above + (x - x0) * (y - y0), below + (x - x0) * (x - x0)));
    (points.len() > 2 && below > 0.0).then(|| above / below)
}

/// Whether NaN and Inf come out where they must, in all routines.
pub fn nan(dtype: DType, trials: &[&TrialReport]) -> Option<Grade> {
    const NAMES: [&str; 3] = ["nan_propagates", "zero_times_infinity_is_nan", "nan_leaves_a_trace"];
    let asked: Vec<_> = trials.iter().filter(|trial| NAMES.contains(&trial.property.as_str())).collect();
    let is_wrong = |trial: &&&&TrialReport| matches!(trial.verdict, Verdict::Failed | Verdict::Expected);
    let wrong: Vec<&str> = asked.iter().filter(is_wrong).map(|trial| trial.name.as_str()).collect();
    let value = if wrong.is_empty() { "as in the plain loops".to_owned() } else { wrong.join(", ") };
    let verdict = if wrong.is_empty() { "kept" } else { "lost" };
    let about = "NaN and Inf in operands show in the results; 0·Inf is NaN.";
    (!asked.is_empty()).then(|| grade(dtype, "NaN and Inf", value, verdict, about))
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn powers_have_their_exponent_as_slope() {
        for exponent in [0.0, 0.5, 1.0, 2.0] {
            let points: Vec<(f64, f64)> = (4..=10).map(|x| (f64::from(x), -50.0 + exponent * f64::from(x))).collect();
            assert!((slope(&points).unwrap() - exponent).abs() < 1e-12);
        }
        assert_eq!((slope(&[]), slope(&[(1.0, 1.0), (2.0, 2.0)]), slope(&[(1.0, 1.0); 5])), (None, None, None));
    }
}
