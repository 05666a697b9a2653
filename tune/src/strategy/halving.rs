//! Successive halving of random samples.
//!
//! The strategy measures a random sample of the points with one run each. It measures the faster half of the sample again with
//! twice the runs, then the faster half of this half, until one point is left or the number of runs reaches [`MAX_RUNS`]. The
//! strategy then takes a sample of twice the size from the remaining points, until it has sampled every point.

use std::collections::VecDeque;

use super::{Outcome, Ranked, Request, Strategy, compare, shuffled};
use crate::space::Space;

/// Number of points in the first sample.
const FIRST_SAMPLE: usize = 64;
/// Maximum number of runs of a measurement.
const MAX_RUNS: usize = 16;

/// Successive halving of random samples.
pub struct Halving {
    /// Points that no sample has contained yet.
    rest: VecDeque<usize>,
    /// Size of the next sample.
    sample: usize,
    queue: VecDeque<usize>,
    runs: usize,
    /// The points that were measured with `runs` runs, and their times.
    measured: Vec<Ranked>,
}

impl Halving {
    /// Starts with a sample that contains the points of `first`.
    pub fn new(space: &Space, first: &[usize], rng: &mut fastrand::Rng) -> Self {
        let rest = shuffled(space, first, rng).into();
        Halving { rest, sample: FIRST_SAMPLE, queue: VecDeque::new(), runs: 1, measured: Vec::new() }
    }

    /// Queues the faster half of the measured points, or the next sample if the current sample has been halved often enough.
    fn step(&mut self) {
        let mut measured = std::mem::take(&mut self.measured);
        let kept = measured.len() / 2;
        if kept > 0 && 2 * self.runs <= MAX_RUNS {
            measured.sort_unstable_by(compare);
            self.queue.extend(measured[..kept].iter().map(|(_, point)| point));
            self.runs *= 2;
        } else {
            let size = self.sample.min(self.rest.len());
            self.queue.extend(self.rest.drain(..size));
            self.sample *= 2;
            self.runs = 1;
        }
    }
}

impl Strategy for Halving {
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
    use super::{FIRST_SAMPLE, Halving, Outcome, Strategy};
    use crate::{Axis, Space};

    #[test]
    fn the_faster_half_gets_twice_the_runs() {
        let axis = Axis { name: "a".to_owned(), values: (0..100).collect(), structural: false };
        let space = Space::new(vec![axis], |_| Ok(()));
        let mut halving = Halving::new(&space, &[7], &mut fastrand::Rng::with_seed(1));
        let mut counts = [0; 5];
        let mut sample = Vec::new();
        for _ in 0..FIRST_SAMPLE + 32 + 16 + 8 + 4 {
            let request = halving.next().unwrap();
            counts[request.runs.ilog2() as usize] += 1;
            if request.runs == 1 {
                sample.push(request.point);
            } else if request.runs == 16 {
                let faster = sample.iter().filter(|&&other| other < request.point).count();
                assert!(faster < 4, "{} has {faster} faster points in its sample", request.point);
            }
            halving.tell(request.point, Outcome::Seconds(request.point as f64));
        }
        assert_eq!((counts, sample[0]), ([64, 32, 16, 8, 4], 7));
        assert_eq!(halving.next().map(|request| request.runs), Some(1));
    }
}
