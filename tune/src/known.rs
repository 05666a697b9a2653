//! Outcomes of candidates, as a journal stores them.

use crate::space::Space;
use crate::strategy::{Outcome, Request};

/// The outcome of one measurement of an earlier search.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Values of the candidate, one for each axis.
    pub values: Vec<usize>,
    /// The measured times, or the reason of the failure.
    pub result: Result<Timing, String>,
}

/// Times of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Time to compile and verify the kernel, in seconds.
    pub setup_seconds: f64,
    /// Number of timed runs.
    pub runs: usize,
    /// Median of the times of the runs, in seconds.
    pub seconds: f64,
}

impl Known {
    /// Returns the measurement in the form that [`Search::restore`](crate::Search::restore) takes. Returns `None` if `space` has no
    /// point with the values of the candidate.
    #[must_use]
    pub fn measurement(&self, space: &Space) -> Option<(Request, Outcome)> {
        let point = space.find(&self.values)?;
        Some(match &self.result {
            Ok(timing) => (Request { point, runs: timing.runs }, Outcome::Seconds(timing.seconds)),
            Err(_) => (Request { point, runs: 0 }, Outcome::Failed),
        })
    }
}
