//! Nested search, after the program GATLAS.
//!
//! The search is nested in two ways. First, it separates the structural axes from the others. A *structure* is a combination of
//! values of the structural axes. The search holds one structure, and finds the best values of the other axes. It then holds these
//! values, and finds the best structure. If the best structure differs from those that were held before, the search repeats both
//! steps with this structure. Second, the search probes all points of a structure with one run each, and measures only the fastest
//! of them again with more runs.
//!
//! The points of a structure are probed in a random order. If the budget ends the search early, the probed points are therefore a
//! random sample of the structure.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::{Outcome, RUNS, Ranked, Request, Strategy, compare, faster, in_order};
use crate::space::Space;

/// The search measures one out of this many probed points again.
const PROBES_PER_FINALIST: usize = 10;
/// Number of probed points that the search measures again even if there are few probed points.
const MIN_FINALISTS: usize = 5;

/// Nested search.
pub struct Nested<'a> {
    space: &'a Space,
    rng: fastrand::Rng,
    stage: Stage,
    queue: VecDeque<usize>,
    /// Times of the points that were probed in the held structure.
    probed: Vec<Ranked>,
    /// Outcomes of the points that need no further measurement: points that failed, and points measured with [`RUNS`] runs.
    settled: HashMap<usize, Outcome>,
    /// The structures that have been held.
    held: HashSet<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// Measures the points that are known to be good.
    First,
    /// Probes the points of the held structure.
    Probe,
    /// Measures the fastest of the probed points again.
    Finalists,
    /// Measures the other structures with the best values of the other axes.
    Structures,
}

impl<'a> Nested<'a> {
    /// Starts with the points of `first`, and then holds the structure of the fastest of them. If `first` is empty, the search
    /// holds the structure with the most points.
    pub fn new(space: &'a Space, first: &[usize], rng: fastrand::Rng) -> Self {
        let queue = in_order(space, first, None).into();
        Nested { space, rng, stage: Stage::First, queue, probed: Vec::new(), settled: HashMap::new(), held: HashSet::new() }
    }

    /// Queues the points of the next stage. Returns false if the search has ended.
    fn step(&mut self) -> bool {
        match self.stage {
            Stage::First | Stage::Structures => {
                let Some(structure) = self.next_structure() else { return false };
                self.probe(&structure);
                self.held.insert(structure);
            }
            Stage::Probe => self.measure_finalists(),
            Stage::Finalists => self.vary_structure(),
        }
        true
    }

    fn probe(&mut self, structure: &[usize]) {
        let mut points: Vec<usize> = self.unsettled(structure, true).collect();
        self.rng.shuffle(&mut points);
        self.probed.clear();
        self.enqueue(Stage::Probe, points);
    }

    fn measure_finalists(&mut self) {
        self.probed.sort_unstable_by(compare);
        let count = self.probed.len().div_ceil(PROBES_PER_FINALIST).max(MIN_FINALISTS);
        let points = self.probed.iter().take(count).map(|(_, point)| *point).collect();
        self.enqueue(Stage::Finalists, points);
    }

    fn vary_structure(&mut self) {
        let others = self.best().map(|(_, point)| self.space.part(point, false));
        let points = others.map_or_else(Vec::new, |others| self.unsettled(&others, false).collect());
        self.enqueue(Stage::Structures, points);
    }

    fn enqueue(&mut self, stage: Stage, points: Vec<usize>) {
        (self.stage, self.queue) = (stage, points.into());
    }

    /// Returns the structure of the fastest point. As long as no point has succeeded, returns the largest structure that has not
    /// been held. Returns `None` if the structure has been held before, or if there is none.
    fn next_structure(&self) -> Option<Vec<usize>> {
        match self.best() {
            Some((_, point)) => Some(self.space.part(point, true)).filter(|structure| !self.held.contains(structure)),
            None => self.largest_structure(),
        }
    }

    /// Returns the structure with the most points among those that have not been held.
    fn largest_structure(&self) -> Option<Vec<usize>> {
        let mut counts = BTreeMap::new();
        for point in 0..self.space.len() {
            *counts.entry(self.space.part(point, true)).or_insert(0_usize) += 1;
        }
        counts.retain(|structure, _| !self.held.contains(structure));
        counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(structure, _)| structure)
    }

    /// Returns the points that are not settled and that have the given values on the structural axes, or on the other axes.
    fn unsettled<'b>(&'b self, values: &'b [usize], structural: bool) -> impl Iterator<Item = usize> + 'b {
        let wanted = move |point: &usize| !self.settled.contains_key(point) && self.space.part(*point, structural) == values;
        (0..self.space.len()).filter(wanted)
    }

    /// Returns the fastest of the points that were measured with [`RUNS`] runs.
    fn best(&self) -> Option<Ranked> {
        let timed = |(&point, &outcome): (&usize, &Outcome)| match outcome {
            Outcome::Seconds(seconds) => Some((seconds, point)),
            Outcome::Failed => None,
        };
        self.settled.iter().filter_map(timed).reduce(faster)
    }
}

impl Strategy for Nested<'_> {
    fn next(&mut self) -> Option<Request> {
        while self.queue.is_empty() && self.step() {}
        let runs = if self.stage == Stage::Probe { 1 } else { RUNS };
        self.queue.pop_front().map(|point| Request { point, runs })
    }

    fn tell(&mut self, point: usize, outcome: Outcome) {
        match outcome {
            Outcome::Seconds(seconds) if self.stage == Stage::Probe => self.probed.push((seconds, point)),
            Outcome::Seconds(_) | Outcome::Failed => {
                self.settled.insert(point, outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Nested, Outcome, RUNS, Strategy};
    use crate::{Axis, Space};

    fn space() -> Space {
        let axis = |name: &str, len, structural| Axis { name: name.to_owned(), values: (0..len).collect(), structural };
        Space::new(vec![axis("a", 40, false), axis("s", 3, true), axis("b", 2, false)], |_| Ok(()))
    }

    /// Returns the requests of a search: the values of the points and the numbers of runs.
    fn requests(first: &[usize], cost: impl Fn(&[usize]) -> Outcome) -> Vec<(Vec<usize>, usize)> {
        let space = space();
        let mut nested = Nested::new(&space, first, fastrand::Rng::with_seed(3));
        let mut requests = Vec::new();
        while let Some(request) = nested.next() {
            let values = space.point(request.point);
            requests.push((values.to_vec(), request.runs));
            nested.tell(request.point, cost(values));
        }
        requests
    }

    #[test]
    fn structure_and_other_axes_take_turns() {
        let first = [space().find(&[0, 1, 0]).unwrap()];
        let cost =
            |v: &[usize]| Outcome::Seconds(1.0 + (v[0] as f64 - 9.0).abs() + (if v[1] == 2 { 0.5 } else { 1.0 }) + v[2] as f64);
        let requests = requests(&first, cost);
        assert_eq!(requests[0], (vec![0, 1, 0], RUNS));
        // One structure has 80 points. The first of them is known, and the fastest 8 of the others are measured again.
        assert!(requests[1..80].iter().all(|(values, runs)| values[1] == 1 && *runs == 1));
        assert!(requests[80..88].iter().all(|(values, runs)| values[1] == 1 && *runs == RUNS));
        assert_eq!(requests[80].0, [9, 1, 0]);
        assert_eq!(requests[88..90], [(vec![9, 0, 0], RUNS), (vec![9, 2, 0], RUNS)]);
        // The structure 2 is faster. It is probed in turn, and the search ends because the structure 2 stays the fastest.
        assert!(requests[90..169].iter().all(|(values, runs)| values[1] == 2 && *runs == 1));
        assert_eq!(requests.len(), 169 + 8);
    }

    #[test]
    fn a_structure_that_fails_is_left() {
        let requests = requests(&[], |values| if values[1] == 1 { Outcome::Seconds(1.0) } else { Outcome::Failed });
        assert!(requests.iter().any(|(values, runs)| values[1] == 1 && *runs == RUNS));
    }
}
