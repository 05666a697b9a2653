//! Tests of the strategies on small spaces, which the strategies search completely.

use std::collections::{HashMap, HashSet};

use crate::surfaces::{Surface, lowest, outcome, rugged, separable, small_space};
use lapidary_tune::{Method, Outcome, RUNS, Request, Search, Space};

const SURFACES: [Surface; 2] = [separable, rugged];

/// Runs a strategy to its end, and returns its requests.
fn requests(space: &Space, method: Method, first: &[usize], seed: u64, surface: Surface) -> Vec<Request> {
    let mut strategy = method.start(space, first, seed);
    let mut requests = Vec::new();
    while let Some(request) = strategy.next() {
        assert!(requests.len() < 10 * space.len(), "{method} does not end");
        requests.push(request);
        strategy.tell(request.point, outcome(surface(space.point(request.point))));
    }
    requests
}

/// Calls `test` with each method, surface and some seeds, and with the requests of the method.
fn for_each_run(test: impl Fn(Method, Surface, &[Request])) {
    let space = small_space();
    for method in Method::ALL {
        for surface in SURFACES {
            for seed in 0..10 {
                test(method, surface, &requests(&space, method, &[], seed, surface));
            }
        }
    }
}

#[test]
fn a_failed_point_is_not_requested_again() {
    let space = small_space();
    assert!(space.points().any(|values| rugged(values).is_none()));
    for_each_run(|method, surface, requests| {
        let failures = requests.iter().filter(|request| surface(space.point(request.point)).is_none());
        let mut seen = HashSet::new();
        assert!(failures.map(|request| request.point).all(|point| seen.insert(point)), "{method}");
    });
}

#[test]
fn every_method_reaches_every_point() {
    let space = small_space();
    for_each_run(|method, _, requests| {
        let points: HashSet<usize> = requests.iter().map(|request| request.point).collect();
        assert_eq!(points.len(), space.len(), "{method}");
    });
}

#[test]
fn exhaustive_random_and_descent_measure_each_point_once() {
    let space = small_space();
    for_each_run(|method, _, requests| match method {
        Method::Exhaustive | Method::Random | Method::Descent => {
            assert_eq!(requests.len(), space.len(), "{method}");
            assert!(requests.iter().all(|request| request.runs == RUNS));
        }
        Method::Nested | Method::Halving => {}
    });
    let ordered = requests(&space, Method::Exhaustive, &[], 0, separable);
    assert!(ordered.iter().map(|request| request.point).eq(0..space.len()));
}

/// Whether each measurement of a point has more runs than the measurements of the point before.
fn runs_increase(requests: &[Request]) -> bool {
    let mut runs = HashMap::new();
    requests.iter().all(|request| runs.insert(request.point, request.runs).is_none_or(|before| before < request.runs))
}

#[test]
fn a_point_is_measured_again_only_with_more_runs() {
    for_each_run(|method, _, requests| assert!(runs_increase(requests), "{method}"));
}

#[test]
fn first_points_are_measured_first() {
    let space = small_space();
    // The list has a repeated point and a point outside the space.
    let first = [30, 11, 30, space.len()];
    for method in Method::ALL {
        let requests = requests(&space, method, &first, 5, rugged);
        assert_eq!(requests[0].point, 30, "{method}");
        assert!(runs_increase(&requests) && requests.iter().all(|request| request.point < space.len()), "{method}");
        let second = requests.iter().position(|request| request.point == 11);
        assert!(second.is_some_and(|at| at == 1 || method == Method::Descent), "{method}");
    }
}

#[test]
fn the_seed_determines_the_requests() {
    let space = small_space();
    for method in Method::ALL {
        let run = |seed| requests(&space, method, &[], seed, rugged);
        assert_eq!(run(1), run(1), "{method}");
        assert_eq!(run(1) == run(2), method == Method::Exhaustive, "{method}");
    }
}

#[test]
fn the_fastest_point_of_a_separable_surface_is_found() {
    let space = small_space();
    for method in Method::ALL {
        let mut search = Search::new(method.start(&space, &[], 3));
        while let Some(request) = search.next_request() {
            search.tell(request, outcome(separable(space.point(request.point))));
        }
        assert_eq!(search.best().map(|best| best.seconds), Some(lowest(&space, separable)), "{method}");
    }
}

#[test]
fn descent_follows_lines_to_the_minimum() {
    let space = small_space();
    let requests = requests(&space, Method::Descent, &[40], 0, separable);
    // The lines of the three axes have 6, 2 and 7 points. Consecutive lines share one point.
    let walk = &requests[..6 + 1 + 6];
    let lowest = lowest(&space, separable);
    assert!(walk.iter().any(|request| separable(space.point(request.point)) == Some(lowest)));
}

#[test]
fn empty_and_single_spaces_end() {
    let empty = Space::new(Vec::new(), |_| Err("none".to_owned()));
    let single = Space::new(Vec::new(), |_| Ok(()));
    for method in Method::ALL {
        assert_eq!(requests(&empty, method, &[0], 0, separable), []);
        assert!(requests(&single, method, &[], 0, separable).iter().all(|request| request.point == 0));
        assert!(!requests(&single, method, &[], 0, separable).is_empty());
    }
}

#[test]
fn an_abandoned_measurement_does_not_stop_a_strategy() {
    let space = small_space();
    for method in Method::ALL {
        let mut strategy = method.start(&space, &[], 0);
        strategy.next();
        let mut count = 0;
        while let Some(request) = strategy.next() {
            strategy.tell(request.point, Outcome::Seconds(1.0));
            count += 1;
        }
        assert!(count > 10, "{method}");
    }
}
