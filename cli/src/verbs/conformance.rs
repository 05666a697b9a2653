//! `lapidary conformance`: proves a device right, or shows where it is not, and grades it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lapidary_conformance::cases::Pinned;
use lapidary_conformance::expectation;
use lapidary_conformance::foreign::Library;
use lapidary_conformance::grades::grades;
use lapidary_conformance::report::{FORMAT, Figure, GRADES, Mode, Report, Settings, TrialReport, Verdict};
use lapidary_conformance::suite::{Property, properties, selects};
use lapidary_conformance::{Grader, Guarded, Scope, Subject};

use crate::conformance::{Graded, files, resume};
use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::options::DeviceOptions;
use crate::progress::Progress;
use crate::report::{counted, out, seconds};

/// Flags of the verb.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    device: DeviceOptions,
    /// A shared library of BLAS and LAPACK to try in place of devices: blas:PATH[,PATH…][#fortran][#lp64|#ilp64]
    #[arg(long, value_name = "blas:PATH", conflicts_with_all = ["device", "memory_limit"])]
    subject: Option<String>,
    /// Every property, in about a minute on a device that a processor stands in for (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// More cases, and sizes beyond the tiles of a graphics card
    #[arg(long)]
    full: bool,
    /// Only trials that have this in their name, or with * and ? are called so
    #[arg(long, value_name = "QUERY")]
    filter: Option<String>,
    /// Seed of the random cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the trials and their worst figures here, after each trial; - is standard output, at the end
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with plots here
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Go on where the run that wrote the --json file was cut off
    #[arg(long, requires = "json")]
    resume: bool,
    /// Run nothing, and put reports that runs have written by --json side by side on the page
    #[arg(long, value_name = "FILE.json", num_args = 1.., requires = "report", conflicts_with_all = RUNS)]
    compare: Vec<PathBuf>,
    /// List the trials, those of --filter or all, without running them
    #[arg(long, conflicts_with_all = LISTS_NOTHING)]
    list: bool,
}

/// Flags that say what to run.
const RUNS: &[&str] = &["device", "memory_limit", "subject", "quick", "full", "filter", "seed", "json", "resume", "list"];

/// Flags that change nothing in the list of the trials.
const LISTS_NOTHING: &[&str] = &["device", "memory_limit", "subject", "quick", "full", "seed", "json", "report", "resume"];

const HELP: &str = "\
Each trial is one property in one precision: f64::gemm::nan_propagates. A run depends on nothing but
the seed. The exit status is 1 if a trial fails that is not known to, and 2 if none applies
(docs/conformance.md).

Examples:
  lapidary conformance --device opencl:0 --json opencl.json --report opencl.html
  lapidary conformance --device wgpu:0 --full --json wgpu.json --resume
  lapidary conformance --device cpu:0 --filter 'f64::gemm::*'
  lapidary conformance --subject blas:libopenblas.so.0 --json openblas.json
  lapidary conformance --compare opencl.json openblas.json --report both.html";

impl Args {
    fn mode(&self) -> Mode {
        if self.full { Mode::Full } else { Mode::Quick }
    }

    fn scope(&self) -> Scope {
        match self.mode() {
            Mode::Quick => Scope::quick(self.seed),
            Mode::Full => Scope::full(self.seed),
        }
    }

    fn selected<S: Subject>(&self) -> Result<Vec<Property<S>>> {
        let query = self.filter.as_deref().unwrap_or_default();
        let selected: Vec<_> = properties::<S>().into_iter().filter(|property| selects(query, &property.full_name())).collect();
        let nothing = || Failure::usage(format!("no trial is called `{query}`; --list shows all"));
        if selected.is_empty() { Err(nothing()) } else { Ok(selected) }
    }
}

/// Tries what is asked for.
pub fn run(args: &Args) -> Result<()> {
    args.json.iter().chain(&args.report).try_for_each(|path| atomic::check_folder(path))?;
    io::check_distinct(&[("--json", args.json.as_ref()), ("--report", args.report.as_ref())])?;
    if args.resume && args.json.as_deref().is_some_and(atomic::is_stdout) {
        return Err(Failure::usage("--resume goes on with a file; --json names standard output"));
    }
    if args.list {
        args.selected::<Guarded<Graded>>()?
            .iter()
            .for_each(|property| out(&format!("{:44}  {}", property.full_name(), property.about)));
        return Ok(());
    }
    if !args.compare.is_empty() {
        return files::compare(&args.compare, args.report.as_deref());
    }
    args.report.iter().try_for_each(|path| files::check_page(path))?;
    match &args.subject {
        Some(name) => examine(args, &Guarded(Library::open(name)?), Settings::default()),
        None => {
            let settings = args.device.settings()?;
            let graded = Graded::open(args.device.selection()?, &settings).map_err(|error| args.device.told(error))?;
            examine(args, &Guarded(graded), Settings { memory_limit: settings.memory_limit, nb: settings.nb })
        }
    }
}

/// Tries a subject, trial by trial.
fn examine<S: Subject>(args: &Args, subject: &S, settings: Settings) -> Result<()> {
    let selected = args.selected::<S>()?;
    let mut report = begun(args, subject, settings, &selected)?;
    let grader = Grader::new(subject, &report.subject, args.scope(), &expectation::known());
    let progress = Progress::new(selected.len());
    progress.println(&format!("{}: {}, {} run, seed {}", report.subject.name, report.subject.device, report.mode, report.seed));
    for property in &selected {
        if report.trials.iter().all(|trial| trial.name != property.full_name()) {
            progress.begin(&property.full_name());
            // those of a file are of its trials
            report.grades.clear();
            report.begin(&property.full_name());
            save(args, &report)?;
            let trial = grader.try_on(subject, property);
            lines(&report, &trial).iter().for_each(|line| progress.println(line));
            report.trials.push(trial);
            report.end();
            save(args, &report)?;
        }
        progress.done();
    }
    if report.grades.is_empty() {
        report.begin(GRADES);
        save(args, &report)?;
        report.grades = grades(subject, &report.trials);
        report.end();
    }
    args.json.iter().try_for_each(|path| files::write(path, &report))?;
    drop(progress);
    conclude(args, &report)
}

/// An empty report, or the one that a run before has begun.
fn begun<S: Subject>(args: &Args, subject: &S, settings: Settings, selected: &[Property<S>]) -> Result<Report> {
    let empty = Report {
        format: FORMAT,
        suite: env!("CARGO_PKG_VERSION").to_owned(),
        build: resume::build(),
        subject: subject.identity(),
        mode: args.mode(),
        seed: args.seed,
        filter: args.filter.clone(),
        settings,
        begun: None,
        beginnings: 0,
        trials: Vec::new(),
        grades: Vec::new(),
    };
    match args.json.as_deref().filter(|path| args.resume && path.exists()) {
        None => Ok(empty),
        Some(path) => resume::go_on(path, empty, selected),
    }
}

/// Writes what there is so far; standard output takes one report, the last.
fn save(args: &Args, report: &Report) -> Result<()> {
    args.json.iter().filter(|path| !atomic::is_stdout(path)).try_for_each(|path| files::write(path, report))
}

/// What is said of a trial: one line, and what to do if it failed.
fn lines(report: &Report, trial: &TrialReport) -> Vec<String> {
    let TrialReport { name, verdict, why, .. } = trial;
    if *verdict == Verdict::Skipped {
        // told together at the end: where a precision is missing they are many
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
        // transfers and the like have cases too, of which no file can be made
        if failure.case.parse::<Pinned>().is_ok() {
            lines.push("  pin it: put the text in brackets into conformance/cases/NAME.case".to_owned());
        }
    }
    lines
}

/// How many trials were skipped for each reason.
fn skipped(report: &Report) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    let skipped = report.trials.iter().filter(|trial| trial.verdict == Verdict::Skipped);
    skipped.for_each(|trial| *reasons.entry(trial.why.as_str()).or_insert(0) += 1);
    reasons
}

/// The grades, the page, and the verdict on all.
fn conclude(args: &Args, report: &Report) -> Result<()> {
    skipped(report).iter().for_each(|(why, count)| out(&format!("{} skipped: {why}", counted(*count, "trial"))));
    let width = report.grades.iter().map(|grade| grade.name.chars().count()).max().unwrap_or(0);
    for grade in &report.grades {
        out(&format!("{:width$}  {:24}  {}", grade.name, grade.verdict, grade.value));
    }
    if let Some(path) = &args.report {
        files::write_page(path, std::slice::from_ref(report))?;
    }
    let count = |verdict| report.count(verdict);
    let [passed, failed, unexpected] = [Verdict::Passed, Verdict::Failed, Verdict::UnexpectedlyPassed].map(count);
    let [expected, skipped] = [Verdict::Expected, Verdict::Skipped].map(count);
    out(&format!(
        "{passed} passed, {failed} failed, {expected} failed as expected, {unexpected} passed unexpectedly, {skipped} skipped"
    ));
    match report.passed() {
        // success would say that the subject is right, a failed check that it is wrong
        _ if report.nothing_applied() => Err(Failure::usage("nothing applied: every trial that was asked for was skipped")),
        true => Ok(()),
        false => {
            let grades = report.grades.iter().filter(|grade| grade.failed).count();
            Err(Failure::check(format!("{} trials and {grades} grades are not as they should be", failed + unexpected)))
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

    fn args() -> Args {
        use clap::Parser;
        #[derive(Parser)]
        struct Cli {
            #[command(flatten)]
            args: Args,
        }
        Cli::parse_from(["conformance"]).args
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
        conclude(&args(), &graded(false)).unwrap();
        assert!(conclude(&args(), &graded(true)).unwrap_err().to_string().contains("0 trials and 1 grades"));
    }

    #[test]
    fn what_is_not_as_it_should_be_is_a_failed_check_and_what_was_not_tried_is_told() {
        for (verdict, status) in [(Verdict::Failed, 1), (Verdict::UnexpectedlyPassed, 1), (Verdict::Skipped, 2)] {
            let failure = conclude(&args(), &report(verdict)).unwrap_err();
            assert_eq!(format!("{:?}", failure.exit_code()), format!("{:?}", std::process::ExitCode::from(status)));
        }
        for verdict in [Verdict::Passed, Verdict::Expected] {
            conclude(&args(), &report(verdict)).unwrap();
        }
    }
}
