//! A search: a strategy, the outcomes of its measurements, and the loop that measures.
//!
//! # Drift
//! A device becomes slower while it heats up. Without a correction, the points that are measured first would look best. The search
//! therefore has a *reference*: the first point that succeeds, which is the incumbent if the strategy starts with the incumbent.
//! The search measures the reference again after every [`RETIME_INTERVAL`] other measurements. The *slowdown* is the ratio of the
//! most recent time of the reference to its first time. The search divides the time of every point by the slowdown. All times that
//! a search reports are therefore comparable: they are times on the device as it was at the beginning.

use std::collections::{BTreeMap, BTreeSet};

use crate::strategy::{Outcome, RUNS, Request, Strategy};

/// Number of measurements after which the search measures the reference again.
pub const RETIME_INTERVAL: usize = 16;

/// The estimated time of a point: the corrected median of the measurement with the most runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Index of the point in the space.
    pub point: usize,
    /// Number of runs of the measurement.
    pub runs: usize,
    /// Estimated time of a run in seconds, divided by the slowdown of the device.
    pub seconds: f64,
}

/// The point that the search measures repeatedly to detect a drift.
#[derive(Clone, Copy, Debug)]
struct Reference {
    point: usize,
    /// First time of the reference with at least [`RUNS`] runs, divided by the slowdown. `None` before this measurement.
    seconds: Option<f64>,
}

/// A search that runs a strategy and keeps the outcomes.
pub struct Search<'a> {
    strategy: Box<dyn Strategy + 'a>,
    estimates: BTreeMap<usize, Estimate>,
    failed: BTreeSet<usize>,
    best: Option<Estimate>,
    reference: Option<Reference>,
    /// Ratio of the most recent time of the reference to its first time.
    slowdown: f64,
    since_retiming: usize,
    /// Whether the current request measures the reference again, and so does not come from the strategy.
    is_retiming: bool,
}

/// State of a search after a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The request that was measured.
    pub request: Request,
    /// Outcome of the measurement. A time is divided by the slowdown.
    pub outcome: Outcome,
    /// Whether the measurement only served to detect a drift.
    pub is_retiming: bool,
    /// Ratio of the most recent time of the reference to its first time.
    pub slowdown: f64,
    /// The fastest point so far.
    pub best: Option<Estimate>,
    /// Number of points that have a time.
    pub timed: usize,
    /// Number of points that have failed.
    pub failed: usize,
    /// Seconds since the beginning of the search.
    pub elapsed_seconds: f64,
}

/// The reason for which [`run`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The strategy has ended.
    Complete,
    /// The budget is spent.
    BudgetSpent,
}

impl<'a> Search<'a> {
    /// Makes a search that has no outcomes.
    #[must_use]
    pub fn new(strategy: Box<dyn Strategy + 'a>) -> Self {
        Search {
            strategy,
            estimates: BTreeMap::new(),
            failed: BTreeSet::new(),
            best: None,
            reference: None,
            slowdown: 1.0,
            since_retiming: 0,
            is_retiming: false,
        }
    }

    /// Adds an outcome of an earlier search, whose time is not corrected. The caller adds the outcomes in the order of their
    /// measurements, before the first request. The search does not measure a point again that was measured with enough runs, or
    /// that has failed. It first measures the reference, because the speed of the device may have changed since the earlier search.
    pub fn restore(&mut self, request: Request, outcome: Outcome) {
        self.record(request, outcome);
        self.since_retiming = RETIME_INTERVAL;
    }

    /// Returns the next measurement, or `None` if the strategy has ended.
    pub fn next_request(&mut self) -> Option<Request> {
        loop {
            let retiming = self.retiming();
            self.is_retiming = retiming.is_some();
            if retiming.is_some() {
                return retiming;
            }
            let request = self.strategy.next()?;
            match self.known_outcome(request) {
                Some(outcome) => self.strategy.tell(request.point, outcome),
                None => return Some(request),
            }
        }
    }

    /// Adds the outcome of the measurement that [`next_request`](Search::next_request) returned last, and returns the outcome with
    /// its time divided by the slowdown. A time that is not positive and finite counts as a failure.
    pub fn tell(&mut self, request: Request, outcome: Outcome) -> Outcome {
        let outcome = self.record(request, outcome);
        if !self.is_retiming {
            self.strategy.tell(request.point, outcome);
        }
        outcome
    }

    /// Returns the fastest point: the lowest estimate of all points, or `None` if no point has a time. An estimate from few runs
    /// is less reliable than one from many runs.
    #[must_use]
    pub fn best(&self) -> Option<Estimate> {
        self.best
    }

    /// Returns the estimates of all points that have a time, in the order of the points.
    pub fn estimates(&self) -> impl ExactSizeIterator<Item = &Estimate> {
        self.estimates.values()
    }

    /// Returns the points that have failed, in the order of the points.
    pub fn failed(&self) -> impl ExactSizeIterator<Item = usize> {
        self.failed.iter().copied()
    }

    /// Returns the measurement of the reference if it is due.
    fn retiming(&self) -> Option<Request> {
        let reference = self.reference?;
        let due = reference.seconds.is_none() || self.since_retiming >= RETIME_INTERVAL;
        due.then_some(Request { point: reference.point, runs: RUNS })
    }

    /// Returns the outcome of a point that needs no measurement.
    fn known_outcome(&self, request: Request) -> Option<Outcome> {
        if self.failed.contains(&request.point) {
            return Some(Outcome::Failed);
        }
        let estimate = self.estimates.get(&request.point).filter(|estimate| estimate.runs >= request.runs)?;
        Some(Outcome::Seconds(estimate.seconds))
    }

    fn record(&mut self, request: Request, outcome: Outcome) -> Outcome {
        self.since_retiming += 1;
        match outcome {
            Outcome::Seconds(seconds) if seconds > 0.0 && seconds.is_finite() => {
                self.compare_with_reference(request, seconds);
                let seconds = seconds / self.slowdown;
                self.estimate(Estimate { point: request.point, runs: request.runs, seconds });
                Outcome::Seconds(seconds)
            }
            Outcome::Seconds(_) | Outcome::Failed => {
                self.fail(request.point);
                Outcome::Failed
            }
        }
    }

    /// Updates the slowdown if the point is the reference. The first point with a time becomes the reference.
    fn compare_with_reference(&mut self, Request { point, runs }: Request, seconds: f64) {
        let reference = self.reference.get_or_insert(Reference { point, seconds: None });
        if reference.point == point && runs >= RUNS {
            let first = *reference.seconds.get_or_insert(seconds / self.slowdown);
            self.slowdown = seconds / first;
            self.since_retiming = 0;
        }
    }

    fn estimate(&mut self, new: Estimate) {
        let old = self.estimates.get(&new.point);
        if old.is_some_and(|old| old.runs > new.runs) {
            return;
        }
        self.estimates.insert(new.point, new);
        let is_faster = self.best.is_none_or(|best| new.seconds < best.seconds);
        if is_faster {
            self.best = Some(new);
        } else if self.best.is_some_and(|best| best.point == new.point) {
            self.best = self.fastest();
        }
    }

    /// Removes a point that has failed. If the point was the reference, the fastest point becomes the reference.
    fn fail(&mut self, point: usize) {
        self.failed.insert(point);
        self.estimates.remove(&point);
        if self.best.is_some_and(|best| best.point == point) {
            self.best = self.fastest();
        }
        if self.reference.is_some_and(|reference| reference.point == point) {
            self.reference = self.best.map(|best| Reference { point: best.point, seconds: None });
        }
    }

    fn fastest(&self) -> Option<Estimate> {
        self.estimates.values().copied().min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    fn progress(&self, request: Request, outcome: Outcome, elapsed_seconds: f64) -> Progress {
        let (timed, failed) = (self.estimates.len(), self.failed.len());
        let Search { is_retiming, slowdown, best, .. } = *self;
        Progress { request, outcome, is_retiming, slowdown, best, timed, failed, elapsed_seconds }
    }
}

/// Runs a search until its strategy ends or until `budget_seconds` are spent. A measurement that begins within the budget is
/// completed.
///
/// `now` returns the time in seconds. `measure` measures a point with the requested number of runs. `observe` receives the state of
/// the search after each measurement. A simulated clock and recorded times in place of a device make the same loop a replay.
///
/// # Errors
/// `measure` returned an error, which ends the run. The outcomes up to the error remain in `search`.
pub fn run<E>(
    search: &mut Search<'_>,
    budget_seconds: f64,
    now: impl Fn() -> f64,
    mut measure: impl FnMut(Request) -> Result<Outcome, E>,
    mut observe: impl FnMut(&Progress),
) -> Result<End, E> {
    let start = now();
    while now() - start < budget_seconds {
        let Some(request) = search.next_request() else { return Ok(End::Complete) };
        let outcome = search.tell(request, measure(request)?);
        observe(&search.progress(request, outcome, now() - start));
    }
    Ok(End::BudgetSpent)
}
