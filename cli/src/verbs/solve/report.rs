//! The lines and figures that `solve` reports about a system and its solution.

use lapidary::{Equilibration, Rounding, Scalar};
use serde_json::{Value, json};

use super::Job;
use crate::dense::{Dense, largest};
use crate::io;
use crate::options::{computing, describe, names};
use crate::report::{Report, counted, fixed, note, seconds};
use crate::residual::LU_THRESHOLD;
use crate::system::{Solved, System};

/// Largest number of elements of X with which the program prints all of X.
const SMALL: usize = 10;

/// Reports the matrices of a linear system A·X = B, the devices that compute X, and the powers of two that scale A.
pub fn problem<T: Scalar>(report: &mut Report, job: &Job<'_>, system: &System<impl Scalar>) {
    let (n, nrhs) = (system.b.rows(), system.b.cols());
    let devices = || computing(job.machine, T::DTYPE);
    report.line("A", format!("{n} × {n}, {}, {}", T::DTYPE, job.args.a.display()));
    report.line("b", format!("{n} × {nrhs}, {}", job.args.b.display()));
    report.line("device", names(devices()));
    report.figure("n", n).figure("nrhs", nrhs).figure("dtype", T::DTYPE.to_string());
    report.figure("devices", describe(devices())).figure("info", 0).figure("singular", false);
    scales(report, &system.scales);
}

fn scales(report: &mut Report, scales: &Equilibration) {
    let ends = |exponents: &[i32]| [exponents.iter().min(), exponents.iter().max()].map(|e| e.copied().unwrap_or(0));
    let (rows, cols) = (ends(scales.rows()), ends(scales.cols()));
    if scales.is_needed() {
        let range = |[least, most]: [i32; 2]| if least == most { format!("2^{least}") } else { format!("2^{least} … 2^{most}") };
        report.line("scaling", format!("A is badly scaled: equilibrated, rows by {}, columns by {}", range(rows), range(cols)));
    }
    report.figure("equilibrated", scales.is_needed());
    report.figure("row_scales_log2", json!(rows)).figure("column_scales_log2", json!(cols));
}

/// Reports the times of all steps and the speed of the factorisation.
pub fn speed<T: Scalar>(report: &mut Report, job: &Job<'_>, b: &Dense<impl Scalar>, solved: &Solved<T>) {
    let (n, nrhs) = (b.rows() as f64, b.cols() as f64);
    let (read, factor, solve) = (job.read_seconds, solved.factor_seconds, solved.solve_seconds);
    let check = solved.check_seconds;
    let gflops = (2.0 / 3.0 * n.powi(3) + 2.0 * n * n * nrhs) / (factor + solve) / 1e9;
    let each = [read, factor, solve, check].map(seconds);
    report.line("time", format!("read {}, factor {}, solve {}, check {}", each[0], each[1], each[2], each[3]));
    report.line("speed", format!("{} GFLOP/s", fixed(gflops, 3)));
    report.figure("read_seconds", read).figure("factor_seconds", factor);
    report.figure("solve_seconds", solve).figure("check_seconds", check).figure("gflops", gflops);
}

/// Reports the error measures of the solution X.
pub fn quality<T: Scalar>(report: &mut Report, solved: &Solved<T>, passed: bool) {
    let Solved { backward_error: error, rcond, error_bound, refinement_steps: steps, .. } = *solved;
    rounding(report, solved);
    let verdict = if passed { "right" } else { "WRONG" };
    let digits = trusted_digits::<T>(error_bound);
    report.line("backward error", format!("{}, must be below {LU_THRESHOLD}: {verdict}", fixed(error, 3)));
    report.line("condition", format!("rcond {rcond:.2e}"));
    report.line("error of X", format!("at most about {error_bound:.1e}: {digits} digits of X can be trusted"));
    if let Some(steps) = steps {
        report.line("refinement", counted(steps, "step"));
    }
    report.figure("refinement_steps", steps).figure("rcond", rcond);
    report.figure("error_bound", error_bound).figure("trusted_digits", digits);
    report.figure("backward_error", error).figure("backward_error_threshold", LU_THRESHOLD);
    report.figure("passed", passed);
}

/// Reports how many elements of A, B and X were rounded to the element type of the computation.
fn rounding<T: Scalar>(report: &mut Report, solved: &Solved<T>) {
    let named = || ["A", "b", "X"].into_iter().zip(&solved.rounding);
    let lost = |(name, rounding): (&str, &Rounding)| {
        let Rounding { inexact, underflowed, .. } = *rounding;
        (inexact > 0).then(|| format!("{name}: {} rounded, {underflowed} of them below its range", counted(inexact, "element")))
    };
    let lost: Vec<String> = named().filter_map(lost).collect();
    if !lost.is_empty() {
        report.line("rounding", format!("to {}: {}", T::DTYPE, lost.join("; ")));
    }
    let figures = |(name, r): (&str, &Rounding)| {
        let counts = json!({ "inexact": r.inexact, "underflowed": r.underflowed, "overflowed": r.overflowed });
        (name.to_lowercase(), counts)
    };
    report.figure("rounding", Value::Object(named().map(figures).collect()));
}

/// Number of decimal digits of the largest elements of X that are correct according to the error bound.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few digits, clamped")]
fn trusted_digits<T: Scalar>(error_bound: f64) -> u32 {
    (-error_bound.max(T::UNIT_ROUNDOFF).log10()).clamp(0.0, 15.0) as u32
}

/// Prints a warning in plain words if at most a third of the decimal digits of X are correct.
pub fn warn<T: Scalar>(solved: &Solved<T>) {
    warning::<T>(solved.rcond, solved.error_bound).iter().for_each(|text| note(text));
}

fn warning<T: Scalar>(rcond: f64, error_bound: f64) -> Option<String> {
    let (digits, all) = (trusted_digits::<T>(error_bound), trusted_digits::<T>(0.0));
    let trusted = if digits == 0 { "no digit".to_owned() } else { format!("only about {digits} of {all} digits") };
    let cause = match digits {
        0 if rcond < T::UNIT_ROUNDOFF => "A is singular to working precision; ",
        1.. if rcond < T::UNIT_ROUNDOFF.powf(2.0 / 3.0) => "A is ill-conditioned; ",
        _ => "",
    };
    (digits <= all / 3).then(|| format!("warning: {cause}{trusted} of X can be trusted"))
}

/// Reports all elements of X if X is small, else the sum, the range and the norm of X.
pub fn solution<T: Scalar>(report: &mut Report, x: &Dense<T>) {
    let values: Vec<f64> = x.data().iter().map(|value| value.to_f64()).collect();
    let fold = |f: fn(f64, f64) -> f64, from: f64| values.iter().copied().fold(from, f);
    let (min, max) = (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY));
    let norm = norm_frobenius(&values);
    if values.len() <= SMALL {
        let rows = (0..x.rows()).map(|i| (0..x.cols()).map(|j| io::number(x.view().at(i, j))).collect::<Vec<_>>().join(" "));
        report.line("X", rows.collect::<Vec<_>>().join("\n                "));
        report.figure("x", &values[..]);
    } else {
        report.line("X", format!("min {min:.6e}, max {max:.6e}, Frobenius norm {norm:.6e}"));
    }
    let sum: f64 = values.iter().sum();
    report.line("sum of X", fixed(sum, 10));
    report.figure("x_sum", sum).figure("x_min", min).figure("x_max", max).figure("x_norm_frobenius", norm);
}

/// The Frobenius norm of the values. The function divides all values by the largest one first, so that no square overflows.
fn norm_frobenius(values: &[f64]) -> f64 {
    let size = largest(&values.iter().map(|value| value.abs()).collect::<Vec<_>>());
    let over = if size > 0.0 && size.is_finite() { size } else { 1.0 };
    over * values.iter().map(|value| (value / over).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::warning;

    #[test]
    fn a_doubtful_x_is_told_and_a_is_blamed_only_where_it_is_to_blame() {
        let of = |rcond, error| warning::<f64>(rcond, error).unwrap_or_default();
        assert_eq!(of(1e-3, 1e-13), "");
        assert_eq!(of(1e-3, 1e-4), "warning: only about 4 of 15 digits of X can be trusted");
        assert_eq!(of(1e-12, 1e-4), "warning: A is ill-conditioned; only about 4 of 15 digits of X can be trusted");
        assert_eq!(of(1e-3, 1.0), "warning: no digit of X can be trusted");
        assert_eq!(of(1e-18, 1.0), "warning: A is singular to working precision; no digit of X can be trusted");
    }
}
