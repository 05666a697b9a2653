//! Replays of searches on synthetic recordings.

use crate::surfaces::{Surface, lowest, record, rugged, separable, small_space, space};
use lapidary_tune::{Axis, Method, RUNS, Recording, Row, Space, Trial, replay};

fn trial(method: Method, seed: u64) -> Trial<'static> {
    Trial { method, first: &[], seed, budget_seconds: f64::INFINITY }
}

/// Returns the time to measure every point of a recording with [`RUNS`] runs and one run to warm up.
fn sweep_seconds(recording: &Recording) -> f64 {
    recording
        .rows()
        .map(|(_, row)| row.setup_seconds + row.result.as_ref().map_or(0.0, |seconds| seconds * (RUNS + 1) as f64))
        .sum()
}

/// Returns the median, over 20 seeds, of the best time that a search finds within `budget_seconds`.
fn median_best(space: &Space, recording: &Recording, method: Method, budget_seconds: f64) -> f64 {
    let best = |seed| {
        let improvements = replay(space, recording, &Trial { budget_seconds, ..trial(method, seed) });
        improvements.last().map_or(f64::INFINITY, |(_, seconds)| *seconds)
    };
    let mut best: Vec<f64> = (0..20).map(best).collect();
    best.sort_by(f64::total_cmp);
    best[10]
}

/// Checks that the median search finds a point with 90 % of the best speed within a fraction of the time of a complete sweep.
fn check_budgets(surface: Surface, budgets: &[(Method, f64)]) {
    let space = space();
    check_budgets_on(&space, &record(&space, surface), budgets);
}

fn check_budgets_on(space: &Space, recording: &Recording, budgets: &[(Method, f64)]) {
    let times = recording.rows().filter_map(|(_, row)| row.result.as_ref().ok().copied());
    let lowest = times.min_by(f64::total_cmp).unwrap();
    for &(method, fraction) in budgets {
        let best = median_best(space, recording, method, fraction * sweep_seconds(recording));
        assert!(best <= lowest / 0.9, "{method}: {best} instead of {lowest}");
    }
}

#[test]
fn a_fraction_of_a_sweep_finds_the_minimum_of_a_separable_surface() {
    check_budgets(separable, &[(Method::Nested, 0.03), (Method::Descent, 0.01), (Method::Halving, 0.03)]);
}

#[test]
fn a_fraction_of_a_sweep_finds_the_minimum_of_a_rugged_surface() {
    check_budgets(rugged, &[(Method::Nested, 0.03), (Method::Descent, 0.02), (Method::Halving, 0.03)]);
}

/// A search by a random strategy that was stopped early has recorded few points of each line.
#[test]
fn a_fraction_of_a_sweep_finds_the_minimum_of_scattered_points() {
    let all = record(&space(), separable);
    let mut scattered = Recording::new(all.axes());
    let mut rng = fastrand::Rng::with_seed(1);
    all.rows().filter(|_| rng.u8(..10) == 0).for_each(|(values, row)| scattered.insert(values.to_vec(), row.clone()));
    let space = scattered.space(|axis| ["stages", "layout"].contains(&axis)).unwrap();
    check_budgets_on(&space, &scattered, &[(Method::Nested, 0.15), (Method::Descent, 0.15), (Method::Halving, 0.15)]);
}

#[test]
fn the_seed_determines_a_replay() {
    let space = small_space();
    let recording = record(&space, rugged);
    for method in Method::ALL {
        let run = |seed| replay(&space, &recording, &trial(method, seed));
        assert_eq!(run(7), run(7), "{method}");
        assert_eq!(run(7) == run(8), method == Method::Exhaustive, "{method}");
    }
}

#[test]
fn improvements_take_time_and_reach_the_minimum() {
    let space = small_space();
    let recording = record(&space, rugged);
    for method in [Method::Exhaustive, Method::Random, Method::Descent, Method::Halving] {
        let improvements = replay(&space, &recording, &trial(method, 1));
        assert!(improvements.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1), "{method}");
        assert_eq!(improvements.last().map(|(_, seconds)| *seconds), Some(lowest(&space, rugged)), "{method}");
    }
}

#[test]
fn the_clock_counts_setup_warm_up_and_runs() {
    let axis = Axis { name: "a".to_owned(), values: vec![0, 1, 2, 3], structural: false };
    let space = Space::new(vec![axis], |_| Ok(()));
    let mut recording = Recording::new(["a"]);
    recording.insert(vec![0], Row { setup_seconds: 8.0, result: Err("wrong result".to_owned()) });
    recording.insert(vec![1], Row { setup_seconds: 1.0, result: Ok(0.5) });
    // The recording lacks the point 2.
    recording.insert(vec![3], Row { setup_seconds: 2.0, result: Ok(0.25) });
    let exhaustive = replay(&space, &recording, &trial(Method::Exhaustive, 0));
    assert_eq!(exhaustive, [(8.0 + 1.0 + 6.0 * 0.5, 0.5), (12.0 + 2.0 + 6.0 * 0.25, 0.25)]);
    // One run of the point 1, then 5 runs because the point is the reference. The point 3 follows with one run.
    let halving = replay(&space, &recording, &Trial { first: &[1, 3], ..trial(Method::Halving, 0) });
    assert_eq!(halving, [(1.0 + 2.0 * 0.5, 0.5), (2.0 + 5.0 * 0.5 + 2.0 + 2.0 * 0.25, 0.25)]);
    let short = replay(&space, &recording, &Trial { budget_seconds: 12.0, ..trial(Method::Exhaustive, 0) });
    assert_eq!(short, exhaustive[..1]);
}
