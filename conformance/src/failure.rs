//! A failed check: its name, the bound, the worst element and the case.

use std::fmt;

use lapidary_core::Error;

use crate::bounds::Bound;
use crate::cases::Case;
use crate::report::FailureReport;

/// A check that the subject did not pass, with the evidence for the failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Name of the check, for example `gemm: componentwise`.
    pub check: &'static str,
    /// The bound that was exceeded. `None` if the check compares no ratio with a bound.
    pub bound: Option<Bound>,
    /// Row and column of the worst element.
    pub at: Option<(usize, usize)>,
    /// The ratio that the check computed and compared with the limit of `bound`.
    pub ratio: f64,
    /// Description of the failure.
    pub detail: String,
    /// The case in which the check failed. `None` if the check has no case.
    pub case: Option<Box<InCase>>,
    /// Whether a call failed for lack of memory, so that no results were compared.
    pub lacks_memory: bool,
}

/// The case in which a check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InCase {
    /// The case as its `Display` implementation prints it.
    pub text: String,
    /// Flags of the case, in the same form as in a `Figure`.
    pub flags: String,
}

impl Failure {
    /// Creates the failure of a check that compares no ratio with a bound.
    pub fn new(check: &'static str, detail: impl fmt::Display) -> Self {
        Failure { check, bound: None, at: None, ratio: f64::NAN, detail: detail.to_string(), case: None, lacks_memory: false }
    }

    /// Creates the failure of a call that returned an error.
    #[must_use]
    pub fn of_call(check: &'static str, error: &Error) -> Self {
        Failure { lacks_memory: error.kind().is_out_of_memory(), ..Failure::new(check, error) }
    }

    /// Records the row and column of the worst element.
    #[must_use]
    pub fn at(self, at: (usize, usize)) -> Self {
        Failure { at: Some(at), ..self }
    }

    /// Records the bound and the ratio that exceeds it.
    #[must_use]
    pub fn exceeds(self, bound: Bound, ratio: f64) -> Self {
        Failure { bound: Some(bound), ratio, ..self }
    }

    /// Records the case in which the check failed.
    #[must_use]
    pub fn in_case(self, case: &impl Case) -> Self {
        Failure { case: Some(Box::new(InCase { text: case.to_string(), flags: case.flags() })), ..self }
    }

    /// Adds the name of the device to the description.
    #[must_use]
    pub fn on(self, device: &str) -> Self {
        Failure { detail: format!("{device}: {}", self.detail), ..self }
    }

    /// Adds the case of the preceding call to the description.
    #[must_use]
    pub fn after(self, before: &impl Case) -> Self {
        Failure { detail: format!("{}, after {before}", self.detail), ..self }
    }

    /// Whether a call returned an error, so that no results were compared. A check that a call returns no error has a name that
    /// ends in `: completes`.
    #[must_use]
    pub fn is_of_a_call(&self) -> bool {
        self.check.ends_with(": completes")
    }

    /// Whether a call or the whole trial ended early, so that no result was found wrong.
    #[must_use]
    pub(crate) fn compares_nothing(&self) -> bool {
        self.is_of_a_call() || ["suite: no panic", "suite: repeatable", "faults: no panic"].contains(&self.check)
    }

    /// Returns the failure in the form in which a report stores it.
    #[must_use]
    pub fn report(&self) -> FailureReport {
        FailureReport {
            check: self.check.to_owned(),
            bound: self.bound.map(|bound| bound.number),
            detail: self.detail.clone(),
            at: self.at,
            ratio: self.ratio,
            limit: self.bound.map_or(f64::NAN, |bound| bound.limit),
            case: self.case.as_ref().map_or_else(String::new, |case| case.text.clone()),
            flags: self.case.as_ref().map_or_else(String::new, |case| case.flags.clone()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report().fmt(f)
    }
}

impl std::error::Error for Failure {}

/// The largest of several ratios, with the row and column of the element that has this ratio.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst {
    ratio: f64,
    at: Option<(usize, usize)>,
}

impl Worst {
    /// Replaces the largest ratio by `ratio` if `ratio` is larger. A ratio that is NaN counts as infinity.
    pub fn record(&mut self, ratio: f64, at: (usize, usize)) {
        let ratio = if ratio.is_nan() { f64::INFINITY } else { ratio };
        if self.at.is_none() || ratio > self.ratio {
            *self = Worst { ratio, at: Some(at) };
        }
    }

    /// The largest ratio that was recorded. Returns zero if no ratio was recorded.
    #[must_use]
    pub fn ratio(self) -> f64 {
        self.ratio
    }

    /// Compares the largest ratio with the limit of `bound`.
    ///
    /// # Errors
    /// The largest ratio exceeds the bound. The failure names the row and column of this ratio.
    pub fn within(self, check: &'static str, bound: Bound) -> Result<(), Failure> {
        match self.at {
            Some(at) if self.ratio > bound.limit => Err(Failure::new(check, "error too large").at(at).exceeds(bound, self.ratio)),
            _ => Ok(()),
        }
    }
}

/// Returns `error / scale`. If the error is zero, the function returns zero, even if the scale is zero.
#[must_use]
pub fn ratio(error: f64, scale: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / scale }
}

/// Compares `ratio` with the limit of `bound`.
///
/// # Errors
/// The ratio exceeds the bound or is NaN.
pub fn within(check: &'static str, bound: Bound, ratio: f64) -> Result<(), Failure> {
    if ratio <= bound.limit { Ok(()) } else { Err(Failure::new(check, "residual too large").exceeds(bound, ratio)) }
}
