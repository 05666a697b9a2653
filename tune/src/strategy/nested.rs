//! Nested search, after the program GATLAS.
//!
//! The search is nested in two ways. First, it separates the structural axes from the others. A *structure* is a combination of
//! values of the structural axes. The search holds one structure, and finds good values of the other axes. It then measures, in
//! each other structure, the point that is the nearest to the fastest point, and holds the fastest structure that it has not held.
//! Second, the search probes points of a structure with one run each, and measures only the fastest of them again with more runs.
//!
//! The search probes a structure in batches. Most points of a batch are the nearest to the fastest points of the structure, and the
//! others are random. The search leaves a structure after [`PATIENCE`] batches without a faster point. When the search has held
//! every structure, it begins again with the points that it has not probed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::{Outcome, RUNS, Ranked, Request, Strategy, compare, faster, in_order, shuffled, take_sample};
use crate::space::Space;

/// Number of points that the search measures before it holds a structure.
const FIRST: usize = 12;
/// Number of points in a batch.
const BATCH: usize = 8;
/// Number of points in a batch that are near the leaders.
const NEAR: usize = 6;
/// Number of leaders: the fastest points of a structure.
const LEADERS: usize = 2;
/// Number of consecutive batches without a faster point after which the search leaves a structure.
const PATIENCE: usize = 4;
/// Number of probed points of a structure that the search measures again.
const FINALISTS: usize = 5;

/// Nested search.
pub struct Nested<'a> {
    space: &'a Space,
    rng: fastrand::Rng,
    stage: Stage,
    queue: VecDeque<usize>,
    /// The held structure.
    structure: Vec<usize>,
    /// The points of the held structure that have not been measured, in a random order.
    rest: Vec<usize>,
    /// The fastest point of the held structure when the last batch was queued.
    fastest: Option<Ranked>,
    /// Number of consecutive batches without a faster point.
    batches_without_gain: usize,
    /// Outcomes of all measured points.
    outcomes: HashMap<usize, Outcome>,
    /// The points that were measured with [`RUNS`] runs.
    settled: HashSet<usize>,
    /// The structures that have been held.
    held: HashSet<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// Measures the points that are known to be good, and random points.
    First,
    /// Probes points of the held structure.
    Probe,
    /// Measures the fastest of the probed points again.
    Finalists,
    /// Measures the point of each other structure that is the nearest to the fastest point.
    Structures,
}

impl<'a> Nested<'a> {
    /// Starts with the points of `first` and with random points, and then holds the structure of the fastest of them.
    pub fn new(space: &'a Space, first: &[usize], mut rng: fastrand::Rng) -> Self {
        let known = in_order(space, first, None).len();
        let queue = shuffled(space, first, &mut rng).into_iter().take(known.max(FIRST)).collect();
        Nested {
            space,
            rng,
            stage: Stage::First,
            queue,
            structure: Vec::new(),
            rest: Vec::new(),
            fastest: None,
            batches_without_gain: 0,
            outcomes: HashMap::new(),
            settled: HashSet::new(),
            held: HashSet::new(),
        }
    }

    /// Queues the points of the next stage. Returns false if the search has ended.
    fn step(&mut self) -> bool {
        match self.stage {
            Stage::First | Stage::Structures => return self.hold_structure(),
            Stage::Probe => self.probe(),
            Stage::Finalists => self.vary_structure(),
        }
        true
    }

    /// Holds the next structure. Returns false if every point has been measured.
    fn hold_structure(&mut self) -> bool {
        let Some(structure) = self.next_structure() else { return false };
        self.rest = self.unmeasured().filter(|&point| self.space.part(point, true) == structure).collect();
        self.rng.shuffle(&mut self.rest);
        self.held.insert(structure.clone());
        self.structure = structure;
        (self.fastest, self.batches_without_gain) = (None, 0);
        self.enqueue(Stage::Probe, Vec::new());
        true
    }

    /// Queues the next batch, or the finalists if the search leaves the structure.
    fn probe(&mut self) {
        let ranking = self.ranking();
        let fastest = ranking.first().copied();
        let is_faster = fastest != self.fastest;
        self.batches_without_gain = if is_faster { 0 } else { self.batches_without_gain + 1 };
        self.fastest = fastest;
        if self.rest.is_empty() || self.batches_without_gain >= PATIENCE {
            let probed = ranking.iter().map(|(_, point)| *point).filter(|point| !self.settled.contains(point));
            let finalists = probed.take(FINALISTS).collect();
            self.enqueue(Stage::Finalists, finalists);
        } else {
            let leaders = &ranking[..ranking.len().min(LEADERS)];
            let batch = take_sample(self.space, leaders, &mut self.rest, [NEAR, BATCH]);
            self.enqueue(Stage::Probe, batch);
        }
    }

    fn vary_structure(&mut self) {
        let mut nearest: BTreeMap<Vec<usize>, (usize, usize)> = BTreeMap::new();
        if let Some((_, best)) = self.timed().reduce(faster) {
            for point in 0..self.space.len() {
                let near = (self.space.distance(best, point), point);
                nearest.entry(self.space.part(point, true)).and_modify(|other| *other = near.min(*other)).or_insert(near);
            }
        }
        let points = nearest.into_values().map(|(_, point)| point).filter(|point| !self.outcomes.contains_key(point)).collect();
        self.enqueue(Stage::Structures, points);
    }

    fn enqueue(&mut self, stage: Stage, points: Vec<usize>) {
        (self.stage, self.queue) = (stage, points.into());
    }

    /// Returns the structure of the fastest point, among the structures that have not been held and that have points to probe. If no
    /// point of these structures has succeeded, returns the largest of them. Returns `None` if every point has been measured.
    fn next_structure(&mut self) -> Option<Vec<usize>> {
        let mut counts = BTreeMap::new();
        for point in self.unmeasured() {
            *counts.entry(self.space.part(point, true)).or_insert(0_usize) += 1;
        }
        if counts.keys().all(|structure| self.held.contains(structure)) {
            self.held.clear();
        }
        counts.retain(|structure, _| !self.held.contains(structure));
        let is_open = |(_, point): &Ranked| counts.contains_key(&self.space.part(*point, true));
        match self.timed().filter(is_open).reduce(faster) {
            Some((_, point)) => Some(self.space.part(point, true)),
            None => counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(structure, _)| structure),
        }
    }

    /// Returns the points of the held structure that have a time, from the fastest to the slowest.
    fn ranking(&self) -> Vec<Ranked> {
        let is_held = |(_, point): &Ranked| self.space.part(*point, true) == self.structure;
        let mut ranking: Vec<Ranked> = self.timed().filter(is_held).collect();
        ranking.sort_unstable_by(compare);
        ranking
    }

    fn unmeasured(&self) -> impl Iterator<Item = usize> {
        (0..self.space.len()).filter(|point| !self.outcomes.contains_key(point))
    }

    fn timed(&self) -> impl Iterator<Item = Ranked> {
        self.outcomes.iter().filter_map(|(&point, outcome)| match outcome {
            Outcome::Seconds(seconds) => Some((*seconds, point)),
            Outcome::Failed => None,
        })
    }
}

impl Strategy for Nested<'_> {
    fn next(&mut self) -> Option<Request> {
        while self.queue.is_empty() && self.step() {}
        let runs = if self.stage == Stage::Probe { 1 } else { RUNS };
        self.queue.pop_front().map(|point| Request { point, runs })
    }

    fn tell(&mut self, point: usize, outcome: Outcome) {
        self.outcomes.insert(point, outcome);
        if self.stage != Stage::Probe {
            self.settled.insert(point);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, FIRST, Nested, Outcome, PATIENCE, RUNS, Strategy};
    use crate::{Axis, Space};

    fn space() -> Space {
        let axis = |name: &str, len, structural| Axis { name: name.to_owned(), values: (0..len).collect(), structural };
        Space::new(vec![axis("a", 100, false), axis("s", 3, true), axis("b", 2, false)], |_| Ok(()))
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
        let first = [space().find(&[9, 1, 0]).unwrap()];
        let cost =
            |v: &[usize]| Outcome::Seconds(1.0 + (v[0] as f64 - 9.0).abs() + (if v[1] == 2 { 0.5 } else { 1.0 }) + v[2] as f64);
        let requests = requests(&first, cost);
        assert_eq!(requests[0], (vec![9, 1, 0], RUNS));
        assert!(requests[1..FIRST].iter().all(|(_, runs)| *runs == RUNS));
        // No point of structure 1 is faster than the first point.
        let probes = &requests[FIRST..FIRST + PATIENCE * BATCH];
        assert!(probes.iter().all(|(values, runs)| values[1] == 1 && *runs == 1));
        let rest = &requests[FIRST + probes.len()..];
        let finalists = rest.iter().take_while(|(values, runs)| values[1] == 1 && *runs == RUNS).count();
        assert!((1..=5).contains(&finalists), "{finalists}");
        // The nearest points of the other structures follow, and then the faster structure 2 is probed.
        assert_eq!(rest[finalists..][..2], [(vec![9, 0, 0], RUNS), (vec![9, 2, 0], RUNS)]);
        assert!(rest[finalists + 2..][..PATIENCE * BATCH].iter().all(|(values, runs)| values[1] == 2 && *runs == 1));
    }

    #[test]
    fn a_structure_that_fails_is_left() {
        let only = [42, 0, 1];
        let requests = requests(&[], |values| if values == only { Outcome::Seconds(1.0) } else { Outcome::Failed });
        assert!(requests[..FIRST].iter().all(|(values, _)| *values != only));
        assert!(requests.iter().any(|(values, runs)| *values == only && *runs == RUNS));
    }
}
