//! Strategies: the order in which a search measures the points of a space.

mod descent;
mod exhaustive;
mod halving;
mod method;
mod nested;
mod random;

use std::collections::HashSet;

use crate::space::Space;

pub use method::{Method, UnknownMethod};

/// Number of timed runs whose median is a reliable time of a point.
pub const RUNS: usize = 5;

/// A request of a strategy to measure a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Index of the point in the space.
    pub point: usize,
    /// Number of timed runs.
    pub runs: usize,
}

/// Outcome of the measurement of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// Median of the times of the runs, in seconds.
    Seconds(f64),
    /// The kernel was not compiled, did not run or computed a wrong result.
    Failed,
}

/// Chooses the points that a search measures.
///
/// The search calls [`next`](Strategy::next), measures the point, and passes the outcome to [`tell`](Strategy::tell) before it
/// calls `next` again. If a measurement is abandoned, the search calls `next` without `tell`.
pub trait Strategy {
    /// Returns the next measurement, or `None` if the strategy has ended. A strategy does not return a point that has failed.
    fn next(&mut self) -> Option<Request>;

    /// Informs the strategy about the outcome of the measurement that `next` returned last.
    fn tell(&mut self, point: usize, outcome: Outcome);
}

/// Returns the points of `first` and then the points of `rest`, each point once. Points that the space does not have are left out.
fn in_order(space: &Space, first: &[usize], rest: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut seen = HashSet::new();
    let points = first.iter().copied().chain(rest);
    points.filter(|&point| point < space.len() && seen.insert(point)).collect()
}

/// Returns all points in a random order, except that the points of `first` come first.
fn shuffled(space: &Space, first: &[usize], rng: &mut fastrand::Rng) -> Vec<usize> {
    let mut rest: Vec<usize> = (0..space.len()).collect();
    rng.shuffle(&mut rest);
    in_order(space, first, rest)
}

/// Takes a sample out of `rest`: `near` points that are the nearest to the leaders, each leader in turn, and then the first points of
/// `rest`, up to `size` points in all. Without leaders, all points of the sample are the first ones of `rest`.
fn take_sample(space: &Space, leaders: &[Ranked], rest: &mut Vec<usize>, [near, size]: [usize; 2]) -> Vec<usize> {
    let mut sample = Vec::new();
    for (_, leader) in leaders.iter().cycle().take(near) {
        let nearest = (0..rest.len()).min_by_key(|&at| space.distance(*leader, rest[at]));
        sample.extend(nearest.map(|at| rest.swap_remove(at)));
    }
    let others = (size - sample.len()).min(rest.len());
    sample.extend(rest.drain(..others));
    sample
}

/// A point and its measured time, for rankings.
type Ranked = (f64, usize);

/// Returns the faster of two points. Points with equal times are ordered by their indices.
fn faster(a: Ranked, b: Ranked) -> Ranked {
    if compare(&b, &a).is_lt() { b } else { a }
}

fn compare(a: &Ranked, b: &Ranked) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}
