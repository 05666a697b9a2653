//! The results of a run, as data. The printed lines, the JSON file and the HTML page are made from this data alone.
//!
//! The report contains every number that decided a verdict. A reader can check each verdict without the device and without
//! the suite.

mod command;
pub mod html;
mod json;
mod number;

use std::fmt;

use serde::{Deserialize, Serialize};

/// Version of the format of report files. Files of other versions are refused.
pub const FORMAT: u32 = 1;

/// Value of [`Report::begun`] while the grades are measured. No trial is called `grades`.
pub const GRADES: &str = "grades";

/// Verdict of a [`Grade`] whose check allows no difference and found none.
pub const EXACT: &str = "exact";

/// The results of a run of the suite, which may be incomplete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The [format](FORMAT) of the file.
    pub format: u32,
    /// Version of the suite.
    pub suite: String,
    /// Hash of the program that ran the suite, which changes with every change of the program. The text is empty in files of
    /// earlier versions.
    #[serde(default)]
    pub build: String,
    /// Identity of the subject.
    pub subject: Identity,
    /// Extent of the run: [quick](Mode::Quick) or [full](Mode::Full).
    pub mode: Mode,
    /// Seed of the random cases.
    pub seed: u64,
    /// The filter that selected the trials. `None` means that all trials were selected.
    pub filter: Option<String>,
    /// Settings of the devices. Files of earlier versions lack this field.
    #[serde(default)]
    pub settings: Settings,
    /// Name of the trial that has begun but not ended, or [`GRADES`] while the grades are measured. `None` if everything that began
    /// has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
    /// Number of runs in which the trial or the measurement in `begun` has begun.
    #[serde(default)]
    pub beginnings: usize,
    /// Reports of the trials, in the order of the suite.
    pub trials: Vec<TrialReport>,
    /// Grades of the subject. The list is empty until the last trial has ended.
    pub grades: Vec<Grade>,
}

/// The properties by which a subject identifies itself. A property that the subject does not report is an empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Name by which a user selects the subject, for example `opencl:0`.
    pub name: String,
    /// Model of the device.
    pub device: String,
    /// Driver and its version.
    pub driver: String,
    /// The interface or library through which the subject is called.
    pub api: String,
    /// Operating system and architecture.
    pub os: String,
}

/// Settings that change how devices compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Memory limit of each device in bytes. `None` means that a device may use all of its memory.
    pub memory_limit: Option<usize>,
    /// Number of columns of a panel in a factorisation. `None` means that each device chooses the number.
    pub nb: Option<usize>,
    /// Whether calls compute the same bits on any number of devices of one model.
    #[serde(default)]
    pub reproducible: bool,
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory_limit.map(|bytes| format!("{bytes} bytes of memory"));
        let said: Vec<String> = memory
            .into_iter()
            .chain(self.nb.map(|nb| format!("nb = {nb}")))
            .chain(self.reproducible.then(|| "reproducible".to_owned()))
            .collect();
        f.write_str(if said.is_empty() { "those of the devices" } else { "" })?;
        f.write_str(&said.join(", "))
    }
}

/// Name of the check that fails if the process of the trials ends during a trial.
pub const ENDS: &str = "suite: ends";

/// Extent of a run of the suite: quick or full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A run of every property, with so few cases that the run takes about a minute.
    Quick,
    /// A run with more cases and larger sizes than the quick run.
    Full,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Quick => "quick",
            Mode::Full => "full",
        })
    }
}

/// The report of one trial: one property in one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialReport {
    /// Precision, routine and property, for example `f64::gemm::beta_zero_ignores_nan`.
    pub name: String,
    /// Name of the precision, `f32` or `f64`.
    pub dtype: String,
    /// The routine under test, or another group of properties, such as `memory`, `transfer`, `ordering`, `program`,
    /// `faults`.
    pub routine: String,
    /// Name of the property.
    pub property: String,
    /// The requirement that the property states, in one sentence.
    pub about: String,
    /// The verdict of the trial.
    pub verdict: Verdict,
    /// Why the trial was skipped or was expected to fail. The text is empty for other verdicts.
    pub why: String,
    /// Wall-clock time of the trial.
    pub seconds: f64,
    /// Number of cases that were run, including those of the search for a shorter failing case.
    pub cases: usize,
    /// The worst figure of each check for each combination of flags and size.
    pub figures: Vec<Figure>,
    /// The failure of the shortest failing case that was found.
    pub failure: Option<FailureReport>,
}

/// The verdict of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The subject has the property.
    Passed,
    /// The subject lacks the property, and no expectation explains why.
    Failed,
    /// The subject lacks the property, for the reason that an expectation states.
    Expected,
    /// The subject has the property although an expectation says that the subject lacks it. The expectation must be removed.
    UnexpectedlyPassed,
    /// The property does not apply to the subject.
    Skipped,
}

impl Verdict {
    /// Whether the run counts as failed because of this verdict.
    #[must_use]
    pub fn is_bad(self) -> bool {
        matches!(self, Verdict::Failed | Verdict::UnexpectedlyPassed)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "FAILED",
            Verdict::Expected => "expected to fail",
            Verdict::UnexpectedlyPassed => "PASSED UNEXPECTEDLY",
            Verdict::Skipped => "skipped",
        })
    }
}

/// The worst ratio that one check computed among cases with the same flags and about the same size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Number of the bound in `docs/numerics.md`.
    pub bound: u32,
    /// Name of the check, for example `gemm: componentwise`.
    pub check: String,
    /// The size on which the bound depends, in the worst of these cases: k of a product, the order of a triangular matrix or of a
    /// system, or n of a factorisation.
    pub size: usize,
    /// The flags in the letters of the BLAS interface, for example `NT` or `LUNN`. The text is empty if the case has no
    /// flags.
    pub flags: String,
    /// The ratio that the check computed.
    #[serde(with = "number")]
    pub ratio: f64,
    /// The largest ratio with which the check passes.
    #[serde(with = "number")]
    pub limit: f64,
}

impl Figure {
    /// Whether the limit and the ratio are both zero: the check allows no difference, and found none.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.limit == 0.0 && self.ratio == 0.0
    }

    /// The ratio as a multiple of the limit. The check failed if the returned value exceeds one. If the ratio is NaN, the function
    /// returns infinity, so that the check counts as failed.
    #[must_use]
    pub fn used(&self) -> f64 {
        let used = crate::failure::ratio(self.ratio, self.limit);
        if used.is_nan() { f64::INFINITY } else { used }
    }
}

/// A failure of a check, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureReport {
    /// Name of the check that failed.
    pub check: String,
    /// Number of the bound in `docs/numerics.md`. `None` if the check has no bound.
    pub bound: Option<u32>,
    /// Description of the failure.
    pub detail: String,
    /// Row and column of the worst element.
    pub at: Option<(usize, usize)>,
    /// The ratio that the check computed. The value is NaN if the check has no bound.
    #[serde(with = "number")]
    pub ratio: f64,
    /// The largest ratio with which the check passes. The value is NaN if the check has no bound.
    #[serde(with = "number")]
    pub limit: f64,
    /// The case of the failure, in the form in which a case file contains it. The text is empty if the trial draws no random cases.
    pub case: String,
    /// Flags of the case in which the check failed.
    pub flags: String,
}

impl fmt::Display for FailureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.detail)?;
        if let Some((i, j)) = self.at {
            write!(f, " at ({i}, {j})")?;
        }
        if let Some(bound) = self.bound {
            write!(f, ", ratio {:.3e} exceeds {:.3e} by docs/numerics.md, bound {bound}", self.ratio, self.limit)?;
        }
        if self.case.is_empty() { Ok(()) } else { write!(f, " [{}]", self.case) }
    }
}

/// A summary of several figures, or a quantity that was measured after the trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grade {
    /// Precision and quantity, for example `f64: growth of the error with k`.
    pub name: String,
    /// The measured value of the quantity, with its unit.
    pub value: String,
    /// Verdict of the grade: a letter or a word.
    pub verdict: String,
    /// Explanation of the quantity.
    pub explanation: String,
    /// Whether the grade shows that the subject is wrong. The value is false in files of earlier versions.
    #[serde(default)]
    pub failed: bool,
}

impl Report {
    /// Records that a trial or the measurement of the grades begins, and counts how many runs have begun it.
    pub fn begin(&mut self, what: &str) {
        let before = if self.begun.as_deref() == Some(what) { self.beginnings } else { 0 };
        (self.begun, self.beginnings) = (Some(what.to_owned()), before + 1);
    }

    /// Records that the trial or the measurement in `begun` has ended.
    pub fn end(&mut self) {
        (self.begun, self.beginnings) = (None, 0);
    }

    /// The trial (or [`GRADES`]) during which two runs were cut off, so that no run may begin it a third time. One run may have
    /// been cut off by a user or a power failure. If two runs were cut off during the same trial, a third run would probably be cut
    /// off there too.
    #[must_use]
    pub fn given_up(&self) -> Option<&str> {
        self.begun.as_deref().filter(|_| self.beginnings > 1)
    }

    /// Number of trials whose verdict is `verdict`.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.trials.iter().filter(|trial| trial.verdict == verdict).count()
    }

    /// Names of the trials whose process ended early, or was ended because the trial took too long.
    #[must_use]
    pub fn unended(&self) -> Vec<&str> {
        let has_not_ended = |trial: &&TrialReport| trial.failure.as_ref().is_some_and(|failure| failure.check == ENDS);
        self.trials.iter().filter(has_not_ended).map(|trial| trial.name.as_str()).collect()
    }

    /// Whether no trial applies to the subject. A run in which no trial applies shows nothing about the subject.
    #[must_use]
    pub fn nothing_applied(&self) -> bool {
        self.count(Verdict::Skipped) == self.trials.len()
    }

    /// Whether the run was cut off. The grades are measured after the last trial, so that a run without grades is
    /// incomplete.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.grades.is_empty() && !self.nothing_applied()
    }

    /// Whether the run counts as passed: an expectation explains each failure, and no grade failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.trials.iter().all(|trial| !trial.verdict.is_bad()) && !self.grades.iter().any(|grade| grade.failed)
    }
}
