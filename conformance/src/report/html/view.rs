//! The contents of the HTML page as texts, in the order of the page.

use serde::Serialize;

use super::matrix::{self, Table};
use super::plot::{self, Plots};
use super::text;
use crate::report::{EXACT, Figure, Grade, Identity, Report, TrialReport, Verdict};

/// All values that the template of the HTML page uses.
#[derive(Serialize)]
pub struct Page<'a> {
    style: &'static str,
    title: String,
    subjects: Vec<Subject<'a>>,
    overview: Table,
    grades: Vec<GradeRow<'a>>,
    /// Names of the grades whose verdict is "exact" in every report.
    exact: Vec<&'a str>,
    failures: Vec<Failed<'a>>,
    known: Vec<Failed<'a>>,
    flags: Vec<Table>,
    plots: Vec<Plots>,
    properties: Vec<Table>,
    trials: Vec<Trials<'a>>,
}

/// A subject, the settings of its run, and the verdict of the run.
#[derive(Serialize)]
struct Subject<'a> {
    letter: String,
    identity: &'a Identity,
    class: &'static str,
    verdict: String,
    counts: String,
    suite: &'a str,
    mode: String,
    seed: String,
    filter: &'a str,
    settings: String,
    seconds: String,
    command: String,
}

/// One grade, with its values in all reports.
#[derive(Serialize)]
struct GradeRow<'a> {
    name: &'a str,
    explanation: &'a str,
    grades: Vec<Option<&'a Grade>>,
}

impl GradeRow<'_> {
    fn is_exact(&self) -> bool {
        self.grades.iter().all(|grade| grade.is_some_and(|grade| grade.verdict == EXACT))
    }
}

/// A failed trial.
#[derive(Serialize)]
struct Failed<'a> {
    letter: String,
    trial: &'a str,
    about: &'a str,
    sign: &'static str,
    word: &'static str,
    why: &'a str,
    /// Details of the failure. `None` if the trial passed although a failure was expected.
    seen: Option<Seen<'a>>,
    command: String,
}

/// The details of a failure.
#[derive(Serialize)]
struct Seen<'a> {
    check: &'a str,
    bound: String,
    detail: &'a str,
    at: String,
    ratio: String,
    limit: String,
    case: &'a str,
}

/// The trials of one report.
#[derive(Serialize)]
struct Trials<'a> {
    letter: String,
    name: &'a str,
    trials: Vec<Trial<'a>>,
}

/// A trial of a report, with its figures.
#[derive(Serialize)]
struct Trial<'a> {
    name: &'a str,
    about: &'a str,
    why: &'a str,
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    cases: usize,
    seconds: String,
    figures: Vec<Row<'a>>,
}

/// The worst figure of a check for one combination of flags.
#[derive(Serialize)]
struct Row<'a> {
    check: &'a str,
    bound: u32,
    flags: &'a str,
    size: usize,
    ratio: String,
    limit: String,
    used: String,
    over: bool,
}

/// A column or row of the tables, which stands for one precision of one report.
pub struct Column {
    /// Index of the report.
    pub report: usize,
    /// Name of the precision.
    pub dtype: String,
    /// Heading of the column or row of a table.
    pub label: String,
    /// Explanation of the heading.
    pub title: String,
}

/// The letter that names report number `report` on a page with several reports.
pub fn letter(report: usize) -> String {
    u8::try_from(report).ok().filter(|&r| r < 26).map_or_else(|| format!("#{}", report + 1), |r| char::from(b'A' + r).to_string())
}

impl<'a> Page<'a> {
    /// Converts reports into the contents of the HTML page.
    pub fn new(reports: &'a [Report]) -> Result<Self, minijinja::Error> {
        let letter = |report: usize| if reports.len() > 1 { letter(report) } else { String::new() };
        let columns = columns(reports);
        let title = match reports {
            [report] => format!("Conformance of {}", report.subject.name),
            _ => format!("Conformance of {} subjects", reports.len()),
        };
        let (exact, grades) = grades(reports).into_iter().partition::<Vec<_>, _>(GradeRow::is_exact);
        Ok(Page {
            style: include_str!("style.css"),
            title,
            subjects: reports.iter().enumerate().map(|(i, report)| Subject::new(letter(i), report)).collect(),
            overview: matrix::overview(reports, &columns),
            grades,
            exact: exact.iter().map(|row| row.name).collect(),
            failures: failed(reports, &letter, Verdict::is_bad),
            known: failed(reports, &letter, |verdict| verdict == Verdict::Expected),
            flags: matrix::by_flags(reports, &columns),
            plots: plot::plots(reports, &columns)?,
            properties: matrix::by_property(reports, &columns),
            trials: reports
                .iter()
                .enumerate()
                .map(|(i, report)| Trials {
                    letter: letter(i),
                    name: &report.subject.name,
                    trials: report.trials.iter().map(Trial::new).collect(),
                })
                .collect(),
        })
    }
}

/// The precisions of every report, in the order of the trials.
fn columns(reports: &[Report]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for (report, of) in reports.iter().enumerate() {
        for TrialReport { dtype, .. } in &of.trials {
            if columns.iter().any(|column| column.report == report && column.dtype == *dtype) {
                continue;
            }
            let label = if reports.len() > 1 { format!("{} {dtype}", letter(report)) } else { dtype.clone() };
            let title = format!("{} in {dtype}", of.subject.name);
            columns.push(Column { report, dtype: dtype.clone(), label, title });
        }
    }
    columns
}

impl<'a> Subject<'a> {
    fn new(letter: String, report: &'a Report) -> Self {
        let bad = report.count(Verdict::Failed) + report.count(Verdict::UnexpectedlyPassed);
        let (class, verdict) = match bad {
            _ if report.trials.is_empty() => ("none", "– nothing was tried".to_owned()),
            _ if report.nothing_applied() => ("none", "– nothing applied".to_owned()),
            0 if report.is_cut_off() => ("none", format!("– cut off after {} trials", report.trials.len())),
            0 if report.passed() => ("good", "✔ conforms".to_owned()),
            0 => ("bad", "✘ a grade failed".to_owned()),
            _ => {
                let after = if report.is_cut_off() { format!(", cut off after {}", report.trials.len()) } else { String::new() };
                let lost = match report.unended().len() {
                    0 => String::new(),
                    count => format!(", of which {count} ended the process"),
                };
                ("bad", format!("✘ {bad} trial{} went wrong{lost}{after}", if bad == 1 { "" } else { "s" }))
            }
        };
        let all = [Verdict::Passed, Verdict::Failed, Verdict::UnexpectedlyPassed, Verdict::Expected, Verdict::Skipped];
        let some = all.into_iter().filter(|&verdict| report.count(verdict) > 0);
        let counts: Vec<String> = some.map(|verdict| text::counted(report.count(verdict), verdict)).collect();
        Subject {
            letter,
            identity: &report.subject,
            class,
            verdict,
            counts: counts.join(", "),
            suite: &report.suite,
            mode: report.mode.to_string(),
            seed: report.seed.to_string(),
            filter: report.filter.as_deref().unwrap_or("all trials"),
            settings: report.settings.to_string(),
            seconds: format!("{:.1} s", report.trials.iter().map(|trial| trial.seconds).sum::<f64>()),
            command: report.command(report.filter.as_deref()),
        }
    }
}

fn grades(reports: &[Report]) -> Vec<GradeRow<'_>> {
    let mut rows: Vec<GradeRow<'_>> = Vec::new();
    for grade in reports.iter().flat_map(|report| &report.grades) {
        if !rows.iter().any(|row| row.name == grade.name) {
            let grades = reports.iter().map(|report| report.grades.iter().find(|other| other.name == grade.name)).collect();
            rows.push(GradeRow { name: &grade.name, explanation: &grade.explanation, grades });
        }
    }
    rows
}

fn failed<'a>(reports: &'a [Report], letter: &dyn Fn(usize) -> String, which: fn(Verdict) -> bool) -> Vec<Failed<'a>> {
    let trials = reports.iter().enumerate().flat_map(|(i, report)| report.trials.iter().map(move |trial| (i, report, trial)));
    let failed = trials.filter(|(.., trial)| which(trial.verdict));
    failed.map(|(i, report, trial)| Failed::new(letter(i), report, trial)).collect()
}

impl<'a> Failed<'a> {
    fn new(letter: String, report: &Report, trial: &'a TrialReport) -> Self {
        let (sign, word) = text::verdict(trial.verdict);
        let seen = trial.failure.as_ref().map(|failure| Seen {
            check: &failure.check,
            bound: failure.bound.map_or(String::new(), |bound| format!("bound {bound}")),
            detail: &failure.detail,
            at: failure.at.map_or(String::new(), |(i, j)| format!("row {i}, column {j}")),
            ratio: text::number(failure.ratio),
            limit: text::number(failure.limit),
            case: &failure.case,
        });
        let command = report.command(Some(&trial.name));
        Failed { letter, trial: &trial.name, about: &trial.about, sign, word, why: &trial.why, seen, command }
    }
}

impl<'a> Trial<'a> {
    fn new(trial: &'a TrialReport) -> Self {
        let (sign, word) = text::verdict(trial.verdict);
        Trial {
            name: &trial.name,
            about: &trial.about,
            why: &trial.why,
            class: text::class(trial.verdict),
            sign,
            word,
            cases: trial.cases,
            seconds: format!("{:.2} s", trial.seconds),
            figures: worst(&trial.figures).into_iter().map(Row::new).collect(),
        }
    }
}

/// The worst figure of each check for each combination of flags, in the order of `figures`.
fn worst(figures: &[Figure]) -> Vec<&Figure> {
    let mut worst: Vec<&Figure> = Vec::new();
    for figure in figures {
        match worst.iter_mut().find(|other| other.check == figure.check && other.flags == figure.flags) {
            Some(other) if figure.used() > other.used() => *other = figure,
            Some(_) => {}
            None => worst.push(figure),
        }
    }
    worst
}

impl<'a> Row<'a> {
    fn new(figure: &'a Figure) -> Self {
        let Figure { bound, check, size, flags, ratio, limit } = figure;
        let (ratio, limit) = (text::number(*ratio), text::number(*limit));
        let used = if figure.is_exact() { EXACT.to_owned() } else { text::share(figure.used()) };
        let over = text::over(figure);
        Row { check, bound: *bound, flags, size: *size, ratio, limit, used, over }
    }
}
