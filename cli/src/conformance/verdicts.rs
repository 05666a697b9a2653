//! Prints the outcome of a run of the suite: a line for each trial, the grades and the overall verdict.

use std::collections::BTreeMap;
use std::path::Path;

use lapidary_conformance::cases::Pinned;
use lapidary_conformance::report::{EXACT, Figure, Grade, Report, TrialReport, Verdict};

use super::files;
use crate::failure::{Failure, Result};
use crate::report::{counted, out, seconds};

/// The lines that are printed for a trial: its verdict, and the way to reproduce a failure.
pub fn lines(report: &Report, trial: &TrialReport) -> Vec<String> {
    let TrialReport { name, verdict, why, .. } = trial;
    if *verdict == Verdict::Skipped {
        // The program counts skipped trials at the end of the run and prints no lines for them, since a missing precision skips
        // many trials.
        return Vec::new();
    }
    let worst = trial.figures.iter().map(Figure::used).fold(0.0, f64::max);
    let used = match &trial.figures[..] {
        [] => String::new(),
        figures if figures.iter().all(Figure::is_exact) => "exact".to_owned(),
        _ => format!("{:3.0} % of the bounds", 100.0 * worst),
    };
    let remark = if why.is_empty() { used } else { why.clone() };
    let mut lines = vec![format!("{verdict:20}  {name:44}  {:>9}  {remark}", seconds(trial.seconds)).trim_end().to_owned()];
    if let (true, Some(failure)) = (verdict.is_bad(), &trial.failure) {
        lines.push(format!("  {failure}"));
        lines.push(format!("  again: {}", report.command(Some(name))));
        // Some cases, such as the cases of transfers, cannot be written to a case file.
        if failure.case.parse::<Pinned>().is_ok() {
            lines.push("  pin it: put the text in brackets into conformance/cases/NAME.case".to_owned());
        }
    }
    lines
}

/// Number of skipped trials for each reason.
fn skipped(report: &Report) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    let skipped = report.trials.iter().filter(|trial| trial.verdict == Verdict::Skipped);
    skipped.for_each(|trial| *reasons.entry(trial.why.as_str()).or_insert(0) += 1);
    reasons
}

/// Prints the grades, writes the HTML page, and returns the overall verdict of the run.
pub fn conclude(page: Option<&Path>, report: &Report) -> Result<()> {
    skipped(report).iter().for_each(|(why, count)| out(&format!("{} skipped: {why}", counted(*count, "trial"))));
    let (exact, grades): (Vec<&Grade>, Vec<&Grade>) = report.grades.iter().partition(|grade| grade.verdict == EXACT);
    if !exact.is_empty() {
        out(&format!("{}: no difference where none is allowed", counted(exact.len(), "exact check")));
    }
    let width = grades.iter().map(|grade| grade.name.chars().count()).max().unwrap_or(0);
    for grade in grades {
        out(&format!("{:width$}  {:24}  {}", grade.name, grade.verdict, grade.value));
    }
    if let Some(path) = page {
        files::write_page(path, std::slice::from_ref(report))?;
    }
    let count = |verdict| report.count(verdict);
    let [passed, failed, unexpected] = [Verdict::Passed, Verdict::Failed, Verdict::UnexpectedlyPassed].map(count);
    let [expected, skipped] = [Verdict::Expected, Verdict::Skipped].map(count);
    out(&format!(
        "{passed} passed, {failed} failed, {expected} failed as expected, {unexpected} passed unexpectedly, {skipped} skipped"
    ));
    let unended = report.unended();
    if !unended.is_empty() {
        out(&format!("the process of the trials was lost in {}: {}", counted(unended.len(), "trial"), unended.join(", ")));
    }
    match report.passed() {
        // If no trial applied to the subject, the subject is neither right nor wrong, so the exit status is that of wrong usage.
        _ if report.nothing_applied() => Err(Failure::usage("nothing applied: every trial that was asked for was skipped")),
        true => Ok(()),
        false => {
            let grades = report.grades.iter().filter(|grade| grade.failed).count();
            Err(Failure::check(format!(
                "not as they should be: {} and {}",
                counted(failed + unexpected, "trial"),
                counted(grades, "grade")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapidary_conformance::report::{FailureReport, Grade};

    fn report(verdict: Verdict) -> Report {
        let json = r#"{"format": 1, "suite": "0", "subject": {"name": "cpu:0", "device": "", "driver": "", "api": "", "os": ""},
            "mode": "full", "seed": 7, "filter": null, "trials": [], "grades": []}"#;
        let failure = FailureReport {
            check: "gemm: class".to_owned(),
            bound: None,
            detail: "expected 1, got NaN".to_owned(),
            at: Some((2, 3)),
            ratio: f64::INFINITY,
            limit: f64::INFINITY,
            case: "gemm NN m=1 n=1 k=1 α=1 β=0 A:col B:col C:col uniform seed=0x1".to_owned(),
            flags: "NN".to_owned(),
        };
        let trial = TrialReport {
            name: "f64::gemm::random".to_owned(),
            dtype: "f64".to_owned(),
            routine: "gemm".to_owned(),
            property: "random".to_owned(),
            about: String::new(),
            verdict,
            why: String::new(),
            seconds: 1.0,
            cases: 1,
            figures: Vec::new(),
            failure: Some(failure),
        };
        Report { trials: vec![trial], ..Report::from_json(json).unwrap() }
    }

    #[test]
    fn a_failure_names_the_case_and_the_command_that_repeats_it() {
        let report = report(Verdict::Failed);
        let lines = lines(&report, &report.trials[0]).join("\n");
        for part in [
            "FAILED",
            "gemm: class: expected 1, got NaN at (2, 3) [gemm NN m=1 n=1 k=1 α=1",
            "--filter f64::gemm::random",
            "--seed 7",
            "pin it",
        ] {
            assert!(lines.contains(part), "{part} is not in {lines}");
        }
    }

    #[test]
    fn only_what_can_be_read_back_is_to_be_pinned() {
        let mut report = report(Verdict::Failed);
        report.trials[0].failure.as_mut().unwrap().case = "transfer 3×4".to_owned();
        let lines = lines(&report, &report.trials[0]).join("\n");
        assert!(lines.contains("[transfer 3×4]") && lines.contains("again:") && !lines.contains("pin it"), "{lines}");
    }

    #[test]
    fn a_grade_that_shows_a_wrong_subject_is_a_failed_check_and_other_grades_are_not() {
        let grade =
            |failed| Grade { name: "f64: x".into(), value: "1".into(), verdict: "y".into(), explanation: String::new(), failed };
        let graded = |failed| Report { grades: vec![grade(failed)], ..report(Verdict::Passed) };
        conclude(None, &graded(false)).unwrap();
        assert!(conclude(None, &graded(true)).unwrap_err().to_string().contains("not as they should be: 0 trials and 1 grade"));
    }

    #[test]
    fn what_is_not_as_it_should_be_is_a_failed_check_and_what_was_not_tried_is_told() {
        for (verdict, status) in [(Verdict::Failed, 1), (Verdict::UnexpectedlyPassed, 1), (Verdict::Skipped, 2)] {
            let failure = conclude(None, &report(verdict)).unwrap_err();
            assert_eq!(format!("{:?}", failure.exit_code()), format!("{:?}", std::process::ExitCode::from(status)));
        }
        for verdict in [Verdict::Passed, Verdict::Expected] {
            conclude(None, &report(verdict)).unwrap();
        }
    }
}
