//! Coordinate descent with random restarts.
//!
//! A descent measures all points of the line through its position along one axis, and moves to the fastest of these points. The
//! descent then takes the next axis. A descent ends in a local minimum: on each axis, no point of the line is faster. The strategy
//! then starts another descent from a random point that has not been measured. The strategy measures no point twice.

use std::collections::{HashMap, VecDeque};

use super::{Outcome, RUNS, Ranked, Request, Strategy, faster, shuffled, take_sample};
use crate::space::Space;

/// Coordinate descent with random restarts.
pub struct Descent<'a> {
    space: &'a Space,
    /// Points from which no descent has started, in a random order.
    starts: Vec<usize>,
    /// Whether the last descent started near the fastest point.
    is_near: bool,
    outcomes: HashMap<usize, Outcome>,
    /// Points of the current line that have not been measured.
    queue: VecDeque<usize>,
    position: Option<Position>,
}

/// Position of a descent: the line that the descent measures.
struct Position {
    point: usize,
    axis: usize,
    /// Number of consecutive axes on whose lines no point was faster.
    axes_without_gain: usize,
}

impl<'a> Descent<'a> {
    /// Starts with descents from the points of `first`. Later descents start from random points.
    pub fn new(space: &'a Space, first: &[usize], rng: &mut fastrand::Rng) -> Self {
        let starts = shuffled(space, first, rng);
        Descent { space, starts, is_near: true, outcomes: HashMap::new(), queue: VecDeque::new(), position: None }
    }

    /// Queues the points for the next step. Returns false if the strategy has ended.
    fn step(&mut self) -> bool {
        match self.position.take() {
            Some(position) => self.position = self.next_line(&position),
            None => {
                let Some(point) = self.next_start() else { return false };
                self.position = Some(Position { point, axis: 0, axes_without_gain: 0 });
                self.queue.push_back(point);
            }
        }
        if let Some(Position { point, axis, .. }) = self.position {
            let is_new = |other: &usize| *other != point && !self.outcomes.contains_key(other);
            self.queue.extend(self.line(point, axis).into_iter().filter(is_new));
        }
        true
    }

    /// Returns the starting point of the next descent. Returns `None` if every point has been measured.
    fn next_start(&mut self) -> Option<usize> {
        self.starts.retain(|point| !self.outcomes.contains_key(point));
        self.is_near = !self.is_near;
        let timed = self.outcomes.keys().filter_map(|&point| self.timed(point));
        let fastest = timed.reduce(faster).filter(|_| self.is_near);
        take_sample(self.space, fastest.as_slice(), &mut self.starts, [1, 1]).pop()
    }

    /// Moves to the fastest point of the measured line, and takes the next axis. Returns `None` if the descent has ended.
    fn next_line(&self, position: &Position) -> Option<Position> {
        let line = self.line(position.point, position.axis);
        let (_, point) = line.into_iter().filter_map(|point| self.timed(point)).reduce(faster)?;
        // No other point of this line is faster than the new position, so the axis of the line is one without gain.
        let axes_without_gain = if point == position.point { position.axes_without_gain + 1 } else { 1 };
        let axes = self.space.axes().len();
        (axes_without_gain < axes).then(|| Position { point, axis: (position.axis + 1) % axes, axes_without_gain })
    }

    fn timed(&self, point: usize) -> Option<Ranked> {
        match self.outcomes.get(&point)? {
            Outcome::Seconds(seconds) => Some((*seconds, point)),
            Outcome::Failed => None,
        }
    }

    /// Returns the points of a line. The only line of a space without axes is its only point.
    fn line(&self, point: usize, axis: usize) -> Vec<usize> {
        if self.space.axes().is_empty() { vec![point] } else { self.space.line(point, axis) }
    }
}

impl Strategy for Descent<'_> {
    fn next(&mut self) -> Option<Request> {
        while self.queue.is_empty() && self.step() {}
        self.queue.pop_front().map(|point| Request { point, runs: RUNS })
    }

    fn tell(&mut self, point: usize, outcome: Outcome) {
        self.outcomes.insert(point, outcome);
    }
}
