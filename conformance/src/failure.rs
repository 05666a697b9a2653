//! What a failed check says: its name, the bound, the worst place, the case.

use std::fmt;

use lapidary_core::Error;

use crate::bounds::Bound;
use crate::cases::Case;
use crate::report::FailureReport;

/// A check that a subject does not pass, with the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The check, for example `gemm: componentwise`.
    pub check: &'static str,
    /// The bound that was exceeded; none where the check is a plain yes or no.
    pub bound: Option<Bound>,
    /// Row and column of the worst element.
    pub at: Option<(usize, usize)>,
    /// Observed ratio, to be compared with the bound's limit.
    pub ratio: f64,
    /// What was seen, in words.
    pub detail: String,
    /// The case, if there is one.
    pub case: Option<Box<InCase>>,
    /// Whether a call was refused for lack of memory, so that nothing was compared.
    pub lacks_memory: bool,
}

/// Where a check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InCase {
    /// The case, as it prints.
    pub text: String,
    /// Its flags, as in the figures.
    pub flags: String,
}

impl Failure {
    /// A plain yes-or-no check that does not hold.
    pub fn new(check: &'static str, detail: impl fmt::Display) -> Self {
        Failure { check, bound: None, at: None, ratio: f64::NAN, detail: detail.to_string(), case: None, lacks_memory: false }
    }

    /// A call that did not complete.
    #[must_use]
    pub fn of_call(check: &'static str, error: &Error) -> Self {
        Failure { lacks_memory: error.kind().is_out_of_memory(), ..Failure::new(check, error) }
    }

    /// Names the worst element.
    #[must_use]
    pub fn at(self, at: (usize, usize)) -> Self {
        Failure { at: Some(at), ..self }
    }

    /// Names the bound and the ratio that exceeds it.
    #[must_use]
    pub fn exceeds(self, bound: Bound, ratio: f64) -> Self {
        Failure { bound: Some(bound), ratio, ..self }
    }

    /// Names the case.
    #[must_use]
    pub fn in_case(self, case: &impl Case) -> Self {
        Failure { case: Some(Box::new(InCase { text: case.to_string(), flags: case.flags() })), ..self }
    }

    /// Names the device.
    #[must_use]
    pub fn on(self, device: &str) -> Self {
        Failure { detail: format!("{device}: {}", self.detail), ..self }
    }

    /// Says which case came before, where that matters.
    #[must_use]
    pub fn after(self, before: &impl Case) -> Self {
        Failure { detail: format!("{}, after {before}", self.detail), ..self }
    }

    /// Whether a call ended in an error, so that nothing was compared: the checks of calls are
    /// named so.
    #[must_use]
    pub fn is_of_a_call(&self) -> bool {
        self.check.ends_with(": completes")
    }

    /// Whether a call or the trial broke off, so that no result was found wrong.
    #[must_use]
    pub(crate) fn compares_nothing(&self) -> bool {
        self.is_of_a_call() || ["suite: no panic", "suite: repeatable", "faults: no panic"].contains(&self.check)
    }

    /// The failure as data.
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

/// The worst ratio seen so far and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst {
    ratio: f64,
    at: Option<(usize, usize)>,
}

impl Worst {
    /// Takes another ratio into account; NaN is worse than any number.
    pub fn see(&mut self, ratio: f64, at: (usize, usize)) {
        let ratio = if ratio.is_nan() { f64::INFINITY } else { ratio };
        if self.at.is_none() || ratio > self.ratio {
            *self = Worst { ratio, at: Some(at) };
        }
    }

    /// The worst ratio; zero if there was none.
    #[must_use]
    pub fn ratio(self) -> f64 {
        self.ratio
    }

    /// Whether the worst ratio is within the bound.
    ///
    /// # Errors
    /// It is not; the failure names the place.
    pub fn within(self, check: &'static str, bound: Bound) -> Result<(), Failure> {
        match self.at {
            Some(at) if self.ratio > bound.limit => Err(Failure::new(check, "error too large").at(at).exceeds(bound, self.ratio)),
            _ => Ok(()),
        }
    }
}

/// `error / scale`, with zero error always within any bound.
#[must_use]
pub fn ratio(error: f64, scale: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / scale }
}

/// Whether one number is within a bound.
///
/// # Errors
/// It is not, or it is NaN.
pub fn within(check: &'static str, bound: Bound, ratio: f64) -> Result<(), Failure> {
    if ratio <= bound.limit { Ok(()) } else { Err(Failure::new(check, "residual too large").exceeds(bound, ratio)) }
}
