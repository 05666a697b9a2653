//! Successive halving of samples.
//!
//! The strategy measures a random sample of the points with one run each. It measures the faster half of the sample again with
//! twice the runs, then the faster half of this half, until one point is left or the number of runs reaches [`MAX_RUNS`]. The
//! strategy then takes the next sample from the remaining points, until it has sampled every point. Most points of the next sample
//! are the nearest to the fastest points so far. The other points are random, so that the strategy leaves a local minimum.

use std::collections::VecDeque;

use super::{Outcome, Ranked, Request, Strategy, compare, shuffled, take_sample};
use crate::space::Space;

/// Number of points in a sample.
const SAMPLE: usize = 16;
/// Number of points in a sample, after the first sample, that are near the leaders.
const NEAR: usize = 12;
/// Number of leaders: the fastest points of all samples so far.
const LEADERS: usize = 3;
/// Maximum number of runs of a measurement.
const MAX_RUNS: usize = 16;

/// Successive halving of samples.
pub struct Halving<'a> {
    space: &'a Space,
    /// Points that no sample has contained yet, in a random order.
    rest: Vec<usize>,
    queue: VecDeque<usize>,
    runs: usize,
    /// The points that were measured with `runs` runs, and their times.
    measured: Vec<Ranked>,
    leaders: Vec<Ranked>,
}

impl<'a> Halving<'a> {
    /// Starts with a sample that contains the points of `first`.
    pub fn new(space: &'a Space, first: &[usize], rng: &mut fastrand::Rng) -> Self {
        let rest = shuffled(space, first, rng);
        Halving { space, rest, queue: VecDeque::new(), runs: 1, measured: Vec::new(), leaders: Vec::new() }
    }

    /// Queues the faster half of the measured points, or the next sample if the current sample has been halved often enough.
    fn step(&mut self) {
        let mut measured = std::mem::take(&mut self.measured);
        measured.sort_unstable_by(compare);
        let kept = measured.len() / 2;
        if kept > 0 && 2 * self.runs <= MAX_RUNS {
            self.queue.extend(measured[..kept].iter().map(|(_, point)| point));
            self.runs *= 2;
        } else {
            self.runs = 1;
            self.leaders.extend(measured);
            self.leaders.sort_unstable_by(compare);
            self.leaders.truncate(LEADERS);
            self.queue = take_sample(self.space, &self.leaders, &mut self.rest, [NEAR, SAMPLE]).into();
        }
    }
}

impl Strategy for Halving<'_> {
    fn next(&mut self) -> Option<Request> {
        while self.queue.is_empty() && !(self.measured.is_empty() && self.rest.is_empty()) {
            self.step();
        }
        self.queue.pop_front().map(|point| Request { point, runs: self.runs })
    }

    fn tell(&mut self, point: usize, outcome: Outcome) {
        if let Outcome::Seconds(seconds) = outcome {
            self.measured.push((seconds, point));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Halving, NEAR, Outcome, SAMPLE, Strategy};
    use crate::{Axis, Space};

    #[test]
    fn the_faster_half_gets_twice_the_runs_and_the_next_sample_is_near_the_fastest() {
        let axis = Axis { name: "a".to_owned(), values: (0..1000).collect(), structural: false };
        let space = Space::new(vec![axis], |_| Ok(()));
        let mut halving = Halving::new(&space, &[7], &mut fastrand::Rng::with_seed(1));
        let mut measure = || {
            let request = halving.next().unwrap();
            halving.tell(request.point, Outcome::Seconds(request.point as f64));
            request
        };
        let first: Vec<_> = (0..SAMPLE + 8 + 4 + 2 + 1).map(|_| measure()).collect();
        let count = |runs| first.iter().filter(|request| request.runs == runs).count();
        assert_eq!(([1, 2, 4, 8, 16].map(count), first[0].point), ([16, 8, 4, 2, 1], 7));
        assert_eq!(first[first.len() - 1].point, first.iter().map(|request| request.point).min().unwrap());
        let second: Vec<_> = (0..SAMPLE).map(|_| measure()).collect();
        assert!(second.iter().all(|request| request.runs == 1));
        assert!(second[..NEAR].iter().filter(|request| request.point < 20).count() >= NEAR / 3, "{second:?}");
    }
}
