//! Tables of verdicts: by routine and precision, by flags, and by property.

use std::collections::BTreeMap;

use lapidary_core::Routine;
use serde::Serialize;

use super::text;
use super::view::Column;
use crate::report::{Figure, Report, TrialReport, Verdict};
use crate::suite::group_of;

/// Largest number of columns with which a table fits on a printed page.
const COLUMNS: usize = 16;

/// A table with a verdict in every cell.
#[derive(Serialize)]
pub struct Table {
    /// Name of the routine.
    pub routine: String,
    /// Headings of the columns.
    pub head: Vec<String>,
    /// Rows of the table: heading, explanation and cells.
    pub rows: Vec<(String, String, Vec<Cell>)>,
}

/// A cell of a table.
#[derive(Clone, Serialize)]
pub struct Cell {
    /// Style class of this cell on the HTML page.
    pub class: &'static str,
    /// Sign of the verdict.
    pub sign: &'static str,
    /// Text of the cell beside the sign.
    pub text: String,
    /// Full description of the cell, which the page shows as a tooltip.
    pub title: String,
}

impl Cell {
    fn empty() -> Self {
        Cell { class: "none", sign: "", text: String::new(), title: "not tried".into() }
    }
}

/// The gravest verdict and the worst figure among trials that one cell of a table sums up.
struct CellSummary<'a> {
    verdict: Verdict,
    worst: Option<&'a Figure>,
    failure: String,
}

impl<'a> CellSummary<'a> {
    fn see(&mut self, verdict: Verdict, figure: Option<&'a Figure>, failure: &str) {
        if gravity(verdict) > gravity(self.verdict) {
            self.verdict = verdict;
            failure.clone_into(&mut self.failure);
        }
        // a check with limit zero allows no difference, so that its figure has no ratio to the limit
        let figure = figure.filter(|figure| figure.limit > 0.0);
        if figure.is_some_and(|figure| self.worst.is_none_or(|worst| figure.used() > worst.used())) {
            self.worst = figure;
        }
    }

    fn cell(&self) -> Cell {
        let (sign, word) = text::verdict(self.verdict);
        let used = self.worst.map_or(String::new(), |worst| text::share(worst.used()));
        let parts = [self.failure.clone(), self.worst.map_or(String::new(), text::figure)];
        let said: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Cell { class: text::class(self.verdict), sign, text: used, title: format!("{word}. {}", said.join(". ")) }
    }
}

fn gravity(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Skipped => 0,
        Verdict::Passed => 1,
        Verdict::Expected => 2,
        Verdict::UnexpectedlyPassed => 3,
        Verdict::Failed => 4,
    }
}

/// The first table of the page: routines against the precisions of each report. Each cell shows the gravest verdict, the number of
/// trials with this verdict, and the worst figure.
pub fn overview(reports: &[Report], columns: &[Column]) -> Table {
    let cell = |routine: &str, column: &Column| {
        let trials = reports[column.report].trials.iter();
        let trials: Vec<&TrialReport> = trials.filter(|t| t.routine == routine && t.dtype == column.dtype).collect();
        let count = |verdict| trials.iter().filter(|trial| trial.verdict == verdict).count();
        let Some(gravest) = trials.iter().map(|trial| trial.verdict).max_by_key(|&verdict| gravity(verdict)) else {
            return Cell::empty();
        };
        let figures = trials.iter().flat_map(|trial| &trial.figures).filter(|figure| figure.limit > 0.0);
        let worst = figures.max_by(|a, b| a.used().total_cmp(&b.used()));
        let all = [Verdict::Failed, Verdict::UnexpectedlyPassed, Verdict::Expected, Verdict::Passed, Verdict::Skipped];
        let counts = all.into_iter().filter(|&verdict| count(verdict) > 0).map(|verdict| text::counted(count(verdict), verdict));
        Cell {
            class: text::class(gravest),
            sign: text::verdict(gravest).0,
            text: format!("{}{}", count(gravest), worst.map_or(String::new(), |worst| format!(", {}", text::share(worst.used())))),
            title: counts.chain(worst.map(text::figure)).collect::<Vec<_>>().join(". "),
        }
    };
    let row = |routine: &str| (routine.to_owned(), String::new(), columns.iter().map(|column| cell(routine, column)).collect());
    Table {
        routine: "Routines and precisions: number of trials with the gravest verdict, largest part of a bound that was used"
            .to_owned(),
        head: columns.iter().map(|column| column.label.clone()).collect(),
        rows: routines(reports).into_iter().map(row).collect(),
    }
}

/// Creates one table for each routine. A row is a precision of a report, and a column is a combination of flags.
pub fn by_flags(reports: &[Report], columns: &[Column]) -> Vec<Table> {
    routines(reports).iter().flat_map(|routine| flags_of(routine, reports, columns)).collect()
}

/// The routine to which the flags of a check belong. The function takes it from the name of the check, because a trial of the group
/// `memory` calls several routines.
fn called<'a>(check: &'a str, trial: &'a TrialReport) -> &'a str {
    let before = check.split(':').next().unwrap_or_default();
    let is_routine = Routine::ALL.iter().any(|&routine| group_of(routine) == before);
    if is_routine { before } else { &trial.routine }
}

fn flags_of(routine: &str, reports: &[Report], columns: &[Column]) -> Vec<Table> {
    let rows: Vec<(&Column, BTreeMap<&str, CellSummary<'_>>)> =
        columns.iter().map(|column| (column, seen(routine, &reports[column.report], &column.dtype))).collect();
    let mut flags: Vec<&str> = rows.iter().flat_map(|(_, seen)| seen.keys().copied()).collect();
    flags.sort_unstable();
    flags.dedup();
    let table = |flags: &[&str]| Table {
        routine: routine.to_owned(),
        head: flags.iter().map(|&flags| flags.to_owned()).collect(),
        rows: rows
            .iter()
            .map(|(column, seen)| {
                let cells = flags.iter().map(|flags| seen.get(flags).map_or_else(Cell::empty, CellSummary::cell));
                (column.label.clone(), column.title.clone(), cells.collect())
            })
            .collect(),
    };
    flags.chunks(COLUMNS).map(table).collect()
}

/// The gravest verdict and the worst figure of a routine in one precision of a report, for each combination of flags.
fn seen<'a>(routine: &str, report: &'a Report, dtype: &str) -> BTreeMap<&'a str, CellSummary<'a>> {
    let mut seen: BTreeMap<&str, CellSummary<'_>> = BTreeMap::new();
    let mut see = |flags: &'a str, check: &'a str, trial: &'a TrialReport, verdict, figure: Option<&'a Figure>| {
        if !flags.is_empty() && called(check, trial) == routine {
            let passed = || CellSummary { verdict: Verdict::Passed, worst: None, failure: String::new() };
            seen.entry(flags).or_insert_with(passed).see(verdict, figure, &format!("{}: {check}", trial.property));
        }
    };
    for trial in report.trials.iter().filter(|trial| trial.dtype == dtype) {
        for figure in &trial.figures {
            let verdict = if text::over(figure) { trial.verdict } else { Verdict::Passed };
            see(&figure.flags, &figure.check, trial, verdict, Some(figure));
        }
        if let Some(failure) = &trial.failure {
            see(&failure.flags, &failure.check, trial, trial.verdict, None);
        }
    }
    seen
}

/// Creates one table for each routine. A row is a property, and a column is a precision of a report.
pub fn by_property(reports: &[Report], columns: &[Column]) -> Vec<Table> {
    routines(reports).into_iter().map(|routine| properties_of(routine, reports, columns)).collect()
}

fn properties_of(routine: &str, reports: &[Report], columns: &[Column]) -> Table {
    let mut properties: Vec<(&str, &str)> = Vec::new();
    for trial in reports.iter().flat_map(|report| &report.trials).filter(|trial| trial.routine == routine) {
        if !properties.iter().any(|&(property, _)| property == trial.property) {
            properties.push((&trial.property, &trial.about));
        }
    }
    let find = |property: &str, column: &Column| {
        let mut trials = reports[column.report].trials.iter();
        let found = trials.find(|t| t.routine == routine && t.property == property && t.dtype == column.dtype);
        found.map_or_else(Cell::empty, verdict_of)
    };
    let row = |&(property, about): &(&str, &str)| {
        (property.to_owned(), about.to_owned(), columns.iter().map(|column| find(property, column)).collect())
    };
    let head = columns.iter().map(|column| column.label.clone()).collect();
    Table { routine: routine.to_owned(), head, rows: properties.iter().map(row).collect() }
}

fn verdict_of(trial: &TrialReport) -> Cell {
    let (sign, word) = text::verdict(trial.verdict);
    let why = trial.failure.as_ref().map_or(trial.why.clone(), |failure| format!("{}: {}", failure.check, failure.detail));
    Cell { class: text::class(trial.verdict), sign, text: word.to_owned(), title: format!("{word}. {why}") }
}

/// The routines that the reports name, in the order of the suite.
fn routines(reports: &[Report]) -> Vec<&str> {
    let mut routines: Vec<&str> = Vec::new();
    for trial in reports.iter().flat_map(|report| &report.trials) {
        if !routines.contains(&&*trial.routine) {
            routines.push(&trial.routine);
        }
    }
    routines
}
