//! Exhaustive search: every point once, in the order of the space.

use super::{Outcome, RUNS, Request, Strategy, in_order};
use crate::space::Space;

/// Asks for each point of a list once.
pub struct Exhaustive {
    points: std::vec::IntoIter<usize>,
}

impl Exhaustive {
    /// Starts a search over the points of `first`, and then over all other points in the order of the space.
    pub fn new(space: &Space, first: &[usize]) -> Self {
        Exhaustive::of_list(in_order(space, first, 0..space.len()))
    }

    /// Starts a search over `points`, which contains each point at most once.
    pub fn of_list(points: Vec<usize>) -> Self {
        Exhaustive { points: points.into_iter() }
    }
}

impl Strategy for Exhaustive {
    fn next(&mut self) -> Option<Request> {
        self.points.next().map(|point| Request { point, runs: RUNS })
    }

    fn tell(&mut self, _: usize, _: Outcome) {}
}
