//! Runs trials one after the other in a worker process. If a trial ends the worker process, a new worker process runs the next
//! trial.

use std::path::PathBuf;
use std::time::Duration;

use lapidary_conformance::report::{FORMAT, GRADES, Identity, Mode, Report, Settings, TrialReport, Verdict};
use lapidary_conformance::suite::Property;
use lapidary_conformance::{grader, grades};

use super::message::{Job, Message};
use super::{files, resume, verdicts};
use crate::failure::{Failure, Result};
use crate::io::atomic;
use crate::progress::Progress;
use crate::worker::{Ended, Event, Worker};

/// A run of the conformance suite, as the user requests it.
pub struct Run<S> {
    /// Name of the subject.
    pub subject: String,
    /// Settings of the subject: its memory limit and the width of its panels.
    pub settings: Settings,
    /// Extent of the trials.
    pub mode: Mode,
    /// Seed of the random cases.
    pub seed: u64,
    /// The filter that selected the trials.
    pub filter: Option<String>,
    /// The properties that the filter selected.
    pub selected: Vec<Property<S>>,
    /// File that receives the report after each step.
    pub json: Option<PathBuf>,
    /// Whether the run continues from the report in `json`.
    pub resume: bool,
    /// Time limit for each trial, for opening the subject, and for the measurement of the grades.
    pub limit: Duration,
}

impl<S> Run<S> {
    /// Runs all trials. If a trial ends its worker process, this trial counts as failed, and a new worker process continues with
    /// the next trial.
    pub fn tried(&self) -> Result<Report> {
        let mut worker = Worker::start(self.limit)?;
        let mut report = self.begun(self.opened(&mut worker)?)?;
        let progress = Progress::new(self.selected.len());
        let Report { subject, mode, seed, .. } = &report;
        progress.println(&format!("{}: {}, {mode} run, seed {seed}", subject.name, subject.device));
        // a run that continues another run repeats only the failures of the other run
        for trial in &report.trials {
            match trial.verdict {
                Verdict::Failed | Verdict::UnexpectedlyPassed => print(&report, trial, &progress),
                Verdict::Passed | Verdict::Expected | Verdict::Skipped => progress.done(),
            }
        }
        loop {
            let trials = self.pending(&report);
            if trials.is_empty() && !report.grades.is_empty() {
                return Ok(report);
            }
            // The grades in a report that is resumed cover only the trials that the report contained.
            report.grades.clear();
            worker.give(&Job { trials, tried: report.trials.clone() });
            if let Some(ended) = self.follow(&mut worker, &mut report, &progress)? {
                self.record_end(&mut report, &ended, &progress);
                self.save(&report)?;
                if report.grades.is_empty() {
                    worker = Worker::start(self.limit)?;
                    self.opened(&mut worker)?;
                }
            } else {
                worker.finish();
                return Ok(report);
            }
        }
    }

    /// The identity of the subject that the worker process has opened.
    fn opened(&self, worker: &mut Worker<Message>) -> Result<Identity> {
        let named = &self.subject;
        match worker.next() {
            Event::Said(Message::Opened(identity)) => Ok(identity),
            Event::Said(Message::Refused { status, message }) => Err(Failure::with_status(Some(status), message)),
            Event::Said(other) => Err(Failure::check(format!("{named} is not opened, and the process says {other:?}"))),
            Event::Ended(Ended { how, .. }) => Err(Failure::check(format!("while it is opened, {named} {how}"))),
        }
    }

    /// Returns an empty report, or the report of an earlier run that this run continues.
    fn begun(&self, subject: Identity) -> Result<Report> {
        let empty = Report {
            format: FORMAT,
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            build: resume::build(),
            subject,
            mode: self.mode,
            seed: self.seed,
            filter: self.filter.clone(),
            settings: self.settings,
            begun: None,
            beginnings: 0,
            trials: Vec::new(),
            grades: Vec::new(),
        };
        match self.json.as_deref().filter(|path| self.resume && path.exists()) {
            None => Ok(empty),
            Some(path) => resume::resume_report(path, empty, &self.selected),
        }
    }

    /// Names of the selected trials that have no report yet.
    fn pending(&self, report: &Report) -> Vec<String> {
        let names = self.selected.iter().map(Property::full_name);
        names.filter(|name| report.trials.iter().all(|trial| trial.name != *name)).collect()
    }

    /// Adds the messages of the worker process to the report. Returns when the grades have been measured, or when the worker
    /// process has ended.
    fn follow(&self, worker: &mut Worker<Message>, report: &mut Report, progress: &Progress) -> Result<Option<Ended>> {
        loop {
            match worker.next() {
                Event::Said(Message::Began(what)) => {
                    report.begin(&what);
                    if what != GRADES {
                        progress.begin(&what);
                    }
                }
                Event::Said(Message::Tried(trial)) => take(report, *trial, progress),
                Event::Said(Message::Graded(grades)) => {
                    report.grades = grades;
                    report.end();
                    self.save(report)?;
                    return Ok(None);
                }
                Event::Said(Message::Opened(_) | Message::Refused { .. } | Message::Program(_)) => {}
                Event::Ended(ended) => return Ok(Some(ended)),
            }
            self.save(report)?;
        }
    }

    /// Records in the report which trial ended the worker process: the trial that had begun, or else the next trial. If all trials
    /// have ended, the measurement of the grades ended the process.
    fn record_end(&self, report: &mut Report, ended: &Ended, progress: &Progress) {
        let begun = report.begun.clone().or_else(|| self.pending(report).into_iter().next());
        match self.selected.iter().find(|property| begun == Some(property.full_name())) {
            Some(property) => take(report, unended(property, ended), progress),
            None => {
                let (lacks_memory, failed) = (ended.lacks_memory.as_ref(), ended.lacks_memory.is_none());
                report.grades = grades::unended(lacks_memory.unwrap_or(&ended.how), failed);
                report.end();
            }
        }
    }

    /// Writes the report to its file after a step. If the report goes to standard output, it is written only once, at the end of
    /// the run.
    fn save(&self, report: &Report) -> Result<()> {
        self.json.iter().filter(|path| !atomic::is_stdout(path)).try_for_each(|path| files::write(path, report))
    }
}

/// Adds the report of a trial to the report of the run, and prints the lines of the trial.
fn take(report: &mut Report, trial: TrialReport, progress: &Progress) {
    print(report, &trial, progress);
    report.trials.push(trial);
    report.end();
}

/// Prints the lines of a trial, which this run or the run that this run continues has tried.
fn print(report: &Report, trial: &TrialReport, progress: &Progress) {
    verdicts::lines(report, trial).iter().for_each(|line| progress.println(line));
    progress.done();
}

/// The report of a trial that ended its worker process.
fn unended<S>(property: &Property<S>, ended: &Ended) -> TrialReport {
    let failed = TrialReport { seconds: ended.seconds, ..grader::unended(property, &ended.how) };
    match &ended.lacks_memory {
        Some(why) => TrialReport { verdict: Verdict::Skipped, why: why.clone(), ..failed },
        None => failed,
    }
}
