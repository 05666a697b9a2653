//! Tests of the search: estimates, the correction of a drift, and earlier outcomes.

use std::cell::Cell;
use std::convert::Infallible;

use crate::surfaces::{lowest, outcome, rugged, separable, small_space, space};
use lapidary_tune::{End, Known, Method, Outcome, Progress, RETIME_INTERVAL, RUNS, Request, Search, Strategy, Timing, run};

/// Asks for the requests of a list.
struct Script(std::vec::IntoIter<Request>);

impl Strategy for Script {
    fn next(&mut self) -> Option<Request> {
        self.0.next()
    }

    fn tell(&mut self, _: usize, _: Outcome) {}
}

fn search(requests: &[(usize, usize)]) -> Search<'static> {
    let requests: Vec<Request> = requests.iter().map(|&(point, runs)| Request { point, runs }).collect();
    Search::new(Box::new(Script(requests.into_iter())))
}

/// Completes `search` with the given times, and returns the measured points.
fn complete(search: &mut Search<'_>, seconds: impl Fn(Request) -> f64) -> Vec<usize> {
    let mut points = Vec::new();
    while let Some(request) = search.next_request() {
        points.push(request.point);
        search.tell(request, Outcome::Seconds(seconds(request)));
    }
    points
}

#[test]
fn the_measurement_with_the_most_runs_counts() {
    let mut search = search(&[(0, RUNS), (1, 1), (1, 8), (2, 1)]);
    complete(&mut search, |request| match (request.point, request.runs) {
        (1, 1) => 0.5,
        (1, _) => 2.0,
        _ => 1.5,
    });
    let best = search.best().unwrap();
    assert_eq!((best.point, best.seconds), (0, 1.5));
    assert_eq!(search.estimates().map(|estimate| (estimate.seconds, estimate.runs)).nth(1), Some((2.0, 8)));
}

#[test]
fn an_impossible_time_is_a_failure() {
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut search = search(&[(0, RUNS), (1, RUNS), (1, RUNS)]);
        let points = complete(&mut search, |request| if request.point == 1 { seconds } else { 1.0 });
        assert_eq!(points, [0, 1], "a failed point is not measured again");
        assert_eq!(search.failed().collect::<Vec<_>>(), [1]);
        assert_eq!(search.best().map(|best| best.point), Some(0));
    }
}

#[test]
fn a_reference_with_few_runs_is_measured_again_at_once() {
    let mut search = search(&[(4, 1), (5, 1)]);
    assert_eq!(complete(&mut search, |_| 1.0), [4, 4, 5]);
}

#[test]
fn a_reference_that_fails_is_replaced() {
    let requests: Vec<_> = (0..2 * RETIME_INTERVAL).map(|point| (point, RUNS)).collect();
    let (mut search, mut first) = (search(&requests), true);
    while let Some(request) = search.next_request() {
        let fails = request.point == 0 && !std::mem::take(&mut first);
        search.tell(request, if fails { Outcome::Failed } else { Outcome::Seconds(1.0 + request.point as f64) });
    }
    assert_eq!(search.failed().collect::<Vec<_>>(), [0]);
    assert_eq!(search.best().map(|best| best.point), Some(1));
    assert_eq!(search.estimates().len(), 2 * RETIME_INTERVAL - 1);
}

/// Runs an exhaustive search on a device that becomes slower by one percent with each measurement.
fn run_on_drifting_device(observe: impl FnMut(&Progress)) -> usize {
    let space = space();
    let slowdown = Cell::new(1.0);
    let measure = |request: Request| {
        slowdown.set(slowdown.get() * 1.01);
        Ok::<_, Infallible>(outcome(separable(space.point(request.point)).map(|seconds| seconds * slowdown.get())))
    };
    let mut search = Search::new(Method::Random.start(&space, &[], 1));
    run(&mut search, f64::INFINITY, || 0.0, measure, observe).unwrap();
    search.best().unwrap().point
}

#[test]
fn a_drift_does_not_favour_early_points() {
    let space = space();
    let (mut corrected, mut fastest) = (true, f64::INFINITY);
    let best = run_on_drifting_device(|progress| {
        let expected = separable(space.point(progress.request.point)).unwrap();
        fastest = fastest.min(expected);
        let Outcome::Seconds(seconds) = progress.outcome else { return };
        corrected &= (seconds / expected / 1.01).ln().abs() <= 1.01_f64.ln() * (RETIME_INTERVAL + 1) as f64;
    });
    assert!(corrected);
    assert!(separable(space.point(best)).unwrap() <= 1.2 * fastest);
}

#[test]
fn a_budget_ends_the_run() {
    let space = small_space();
    let clock = Cell::new(100.0);
    let measure = |request: Request| {
        clock.set(clock.get() + 1.0);
        Ok::<_, Infallible>(outcome(separable(space.point(request.point))))
    };
    let mut search = Search::new(Method::Exhaustive.start(&space, &[], 0));
    let mut elapsed = Vec::new();
    let end = run(&mut search, 2.5, || clock.get(), measure, |progress| elapsed.push(progress.elapsed_seconds));
    assert_eq!((end, elapsed), (Ok(End::BudgetSpent), vec![1.0, 2.0, 3.0]));
    assert_eq!(run(&mut search, f64::INFINITY, || clock.get(), measure, |_| {}), Ok(End::Complete));
    assert_eq!(search.estimates().len(), space.len());
    let mut search = Search::new(Method::Exhaustive.start(&space, &[], 0));
    assert_eq!(run(&mut search, 1.0, || 0.0, |_| Err("disk full"), |_| {}), Err("disk full"));
}

#[test]
fn a_search_continues_with_the_outcomes_of_an_earlier_one() {
    let space = small_space();
    let mut known = Vec::new();
    let mut earlier = Search::new(Method::Exhaustive.start(&space, &[], 0));
    for _ in 0..40 {
        let request = earlier.next_request().unwrap();
        let values = space.point(request.point).to_vec();
        let result = rugged(&values).map(|seconds| Timing { setup_seconds: 0.1, runs: request.runs, seconds });
        earlier.tell(request, outcome(rugged(&values)));
        known.push(Known { values, result: result.ok_or_else(|| "wrong result".to_owned()) });
    }
    let mut search = Search::new(Method::Random.start(&space, &[], 1));
    for (request, outcome) in known.iter().filter_map(|known| known.measurement(&space)) {
        search.restore(request, outcome);
    }
    assert_eq!(search.best(), earlier.best());
    // The device is twice as slow as in the earlier search.
    let mut points = Vec::new();
    while let Some(request) = search.next_request() {
        points.push(request.point);
        search.tell(request, outcome(rugged(space.point(request.point)).map(|seconds| 2.0 * seconds)));
    }
    let reference = points[0];
    let is_known = |point: &&usize| known.iter().any(|known| known.values == space.point(**point));
    assert!(points.iter().filter(is_known).all(|point| *point == reference));
    assert!(rugged(space.point(reference)).is_some());
    assert_eq!(search.estimates().len() + search.failed().len(), space.len());
    assert!((search.best().unwrap().seconds / lowest(&space, rugged) - 1.0).abs() < 1e-12);
}
