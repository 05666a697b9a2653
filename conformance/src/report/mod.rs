//! What a run of the suite found, as data: the one source of the printed lines, of
//! the file of figures and of the page.
//!
//! Every number that decided a verdict is here, so that a reader needs neither the
//! device nor the suite to judge it.

mod command;
pub mod html;
mod json;
mod number;

use std::fmt;

use serde::{Deserialize, Serialize};

/// The format of the file; another one is refused.
pub const FORMAT: u32 = 1;

/// What [`Report::begun`] calls the grades, which no trial is called.
pub const GRADES: &str = "grades";

/// Verdict of a [`Grade`] where nothing may differ, and nothing did.
pub const EXACT: &str = "exact";

/// A run of the suite, whole or under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The [format](FORMAT) of the file.
    pub format: u32,
    /// Version of the suite.
    pub suite: String,
    /// The program that ran it, by a number that changes with every change of it; empty where a
    /// file is older.
    #[serde(default)]
    pub build: String,
    /// What was graded.
    pub subject: Identity,
    /// How much was tried.
    pub mode: Mode,
    /// Seed of the random cases.
    pub seed: u64,
    /// The trials that were asked for; all if none is given.
    pub filter: Option<String>,
    /// What the subject was told beside the calls; nothing where a file is older.
    #[serde(default)]
    pub settings: Settings,
    /// What was begun last, while it has not ended: a trial, or the [grades](GRADES).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
    /// How many runs have begun it.
    #[serde(default)]
    pub beginnings: usize,
    /// Every trial in the order of the suite.
    pub trials: Vec<TrialReport>,
    /// The grades of the subject; empty before the last trial is done.
    pub grades: Vec<Grade>,
}

/// What was graded, as far as it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// How it is selected, for example `opencl:0`.
    pub name: String,
    /// Model of the device.
    pub device: String,
    /// Driver and its version.
    pub driver: String,
    /// The interface or library through which it is used.
    pub api: String,
    /// Operating system and architecture.
    pub os: String,
}

/// Settings that change how devices compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Bytes of memory that each device may use; all if none is given.
    pub memory_limit: Option<usize>,
    /// Width of the panels of a factorisation; the device's own if none is given.
    pub nb: Option<usize>,
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory_limit.map(|bytes| format!("{bytes} bytes of memory"));
        let said: Vec<String> = memory.into_iter().chain(self.nb.map(|nb| format!("nb = {nb}"))).collect();
        f.write_str(if said.is_empty() { "those of the devices" } else { "" })?;
        f.write_str(&said.join(", "))
    }
}

/// Name of the check that fails if the process of the trials ends during a trial.
pub const ENDS: &str = "suite: ends";

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every property, in cases that take a minute together.
    Quick,
    /// More and larger cases.
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

/// One property in one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialReport {
    /// Precision, routine and property, for example `f64::gemm::beta_zero_ignores_nan`.
    pub name: String,
    /// `f32` or `f64`.
    pub dtype: String,
    /// What is tried: a routine, or `memory`, `transfer`, `ordering`, `program`, `faults`.
    pub routine: String,
    /// The property's name.
    pub property: String,
    /// What the property says, in one sentence.
    pub about: String,
    /// How it went.
    pub verdict: Verdict,
    /// Why it was skipped or was expected to fail; empty otherwise.
    pub why: String,
    /// Wall-clock time.
    pub seconds: f64,
    /// Cases that were run, those of a search for a shorter failure included.
    pub cases: usize,
    /// The worst figure of each check, by flags and size.
    pub figures: Vec<Figure>,
    /// The shortest failure that was found.
    pub failure: Option<FailureReport>,
}

/// How a trial went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The subject has the property.
    Passed,
    /// It has not.
    Failed,
    /// The subject lacks the property, for the reason that an expectation states.
    Expected,
    /// The subject has the property although an expectation says that it lacks it. The expectation must be removed.
    UnexpectedlyPassed,
    /// The property does not apply.
    Skipped,
}

impl Verdict {
    /// Whether the run is to be counted as failed.
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

/// The worst ratio that a check saw among cases with the same flags and about the same
/// size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Number of the bound in `docs/numerics.md`.
    pub bound: u32,
    /// The check, for example `gemm: componentwise`.
    pub check: String,
    /// The size on which the bound depends: k of a product, the order of a triangle or of
    /// a system, n of a factorisation. That of the worst case.
    pub size: usize,
    /// The flags in the letters of the BLAS interface, for example `NT` or `LUNN`; empty if
    /// there are none.
    pub flags: String,
    /// The ratio that the check computed.
    #[serde(with = "number")]
    pub ratio: f64,
    /// The largest ratio that passes.
    #[serde(with = "number")]
    pub limit: f64,
}

impl Figure {
    /// Whether the limit and the ratio are both zero: no difference is allowed, and none was found.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.limit == 0.0 && self.ratio == 0.0
    }

    /// The ratio as a multiple of the limit; the check failed if it exceeds one. NaN becomes infinity, so that it counts as a
    /// failure.
    #[must_use]
    pub fn used(&self) -> f64 {
        let used = crate::failure::ratio(self.ratio, self.limit);
        if used.is_nan() { f64::INFINITY } else { used }
    }
}

/// A failure, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureReport {
    /// The check that failed.
    pub check: String,
    /// Number of the bound in `docs/numerics.md`; none for a plain yes or no.
    pub bound: Option<u32>,
    /// What was seen, in words.
    pub detail: String,
    /// Row and column of the worst element.
    pub at: Option<(usize, usize)>,
    /// Observed ratio, where there is a bound.
    #[serde(with = "number")]
    pub ratio: f64,
    /// The largest ratio that passes.
    #[serde(with = "number")]
    pub limit: f64,
    /// The case, in the form in which it is pinned; empty if the trial draws no random cases.
    pub case: String,
    /// Its flags.
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

/// What the figures of several cases say together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grade {
    /// Precision and quantity, for example `f64: growth of the error with k`.
    pub name: String,
    /// What was measured, with its unit.
    pub value: String,
    /// A letter or a word.
    pub verdict: String,
    /// What it means.
    pub explanation: String,
    /// Whether it shows that the subject is wrong; no where a file is older.
    #[serde(default)]
    pub failed: bool,
}

impl Report {
    /// Records that a trial or the grades begin, and counts the runs that have begun them.
    pub fn begin(&mut self, what: &str) {
        let before = if self.begun.as_deref() == Some(what) { self.beginnings } else { 0 };
        (self.begun, self.beginnings) = (Some(what.to_owned()), before + 1);
    }

    /// Records that the trial or the grades begun last have ended.
    pub fn end(&mut self) {
        (self.begun, self.beginnings) = (None, 0);
    }

    /// The trial, or the grades, in which two runs were cut off: it is not begun a third time. A person or a power cut may stop
    /// one run. Two runs that end in the same place probably have a cause that would stop a third.
    #[must_use]
    pub fn given_up(&self) -> Option<&str> {
        self.begun.as_deref().filter(|_| self.beginnings > 1)
    }

    /// Trials with a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.trials.iter().filter(|trial| trial.verdict == verdict).count()
    }

    /// The trials in which the process of the trials ended, or was ended since it hung.
    #[must_use]
    pub fn unended(&self) -> Vec<&str> {
        let has_not_ended = |trial: &&TrialReport| trial.failure.as_ref().is_some_and(|failure| failure.check == ENDS);
        self.trials.iter().filter(has_not_ended).map(|trial| trial.name.as_str()).collect()
    }

    /// Whether no trial applies to the subject: then nothing is shown of it, neither good nor bad.
    #[must_use]
    pub fn nothing_applied(&self) -> bool {
        self.count(Verdict::Skipped) == self.trials.len()
    }

    /// Whether the run was cut off: the grades are measured when all trials are done.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.grades.is_empty() && !self.nothing_applied()
    }

    /// Whether nothing failed, except what an expectation explains.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.trials.iter().all(|trial| !trial.verdict.is_bad()) && !self.grades.iter().any(|grade| grade.failed)
    }
}
