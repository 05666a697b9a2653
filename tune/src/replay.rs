//! Replays: a search on recorded times, with a simulated clock.

use std::cell::Cell;
use std::collections::HashSet;
use std::convert::Infallible;

use crate::recording::Recording;
use crate::search::{Progress, Search, run};
use crate::space::Space;
use crate::strategy::{Method, Outcome, Request};

/// A search to replay.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Strategy of the search.
    pub method: Method,
    /// Points that the search measures first.
    pub first: &'a [usize],
    /// Seed of the random choices of the strategy.
    pub seed: u64,
    /// Budget of the search in simulated seconds.
    pub budget_seconds: f64,
}

/// Runs a search on the times of a recording. Returns each improvement of the search: the simulated time of the improvement, and
/// the time of a run of the fastest point, both in seconds.
///
/// The first measurement of a point takes the setup time of the point, one run to warm up, and the requested runs. Later
/// measurements take only the requested runs. A point that failed takes its setup time. A point that the recording lacks fails and
/// takes no time.
#[must_use]
pub fn replay(space: &Space, recording: &Recording, trial: &Trial<'_>) -> Vec<(f64, f64)> {
    let clock = Cell::new(0.0);
    let mut measured = HashSet::new();
    let measure = |Request { point, runs }: Request| {
        let Some(row) = recording.get(space.point(point)) else { return Ok::<_, Infallible>(Outcome::Failed) };
        let is_first = measured.insert(point);
        let setup_seconds = if is_first { row.setup_seconds } else { 0.0 };
        let run_seconds = row.result.as_ref().map_or(0.0, |seconds| seconds * (runs + usize::from(is_first)) as f64);
        clock.set(clock.get() + setup_seconds + run_seconds);
        Ok(row.result.as_ref().map_or(Outcome::Failed, |seconds| Outcome::Seconds(*seconds)))
    };
    let mut improvements: Vec<(f64, f64)> = Vec::new();
    let observe = |progress: &Progress| {
        let Some(best) = progress.best else { return };
        if improvements.last().is_none_or(|(_, seconds)| best.seconds < *seconds) {
            improvements.push((progress.elapsed_seconds, best.seconds));
        }
    };
    let mut search = Search::new(trial.method.start(space, trial.first, trial.seed));
    let Ok(_) = run(&mut search, trial.budget_seconds, || clock.get(), measure, observe);
    improvements
}
