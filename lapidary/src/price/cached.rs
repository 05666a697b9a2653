//! A cache of choices of devices. Pricing a call takes 1.3 µs in a series of calls. After a pause and a call on another device,
//! pricing takes 20 to 30 µs, since the run times have left the CPU caches (`bench/results/2026-11-25-pricing.txt`). 20 to 30 µs
//! are a tenth of the time of a product of order 300.

use std::collections::VecDeque;

use lapidary_core::Instant;
use lapidary_core::algorithms::Problem;

use super::choice::{self, Price};
use super::runs::{Bucket, RUNS_KEPT};
use super::{Priced, Run};

/// Number of calls that reuse a cached choice of devices, before a call of the same problem is priced again.
const CALLS: u32 = 8;
/// Maximum price in seconds of a call whose choice of devices is cached. Compared with the time of a longer call, the time of
/// pricing is negligible.
const SHORT: f64 = 5e-3;
/// Maximum number of cached choices. If the cache is full, a new choice replaces the oldest choice.
const KEPT: usize = 8;

#[derive(Debug)]
struct Choice {
    problem: Problem,
    /// The devices that could run the call when the choice was made.
    capable: Vec<usize>,
    price: Price,
    bucket: Bucket,
    /// Number of calls that may still reuse the choice.
    calls: u32,
}

/// A cache of choices of devices.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The cached choices, in order from the newest to the oldest.
    choices: VecDeque<Choice>,
    /// Completed calls that reused a choice, with their times in seconds. The next call that is priced adds these times to the run
    /// times of the sets of devices.
    pub ended: Vec<(Run, f64)>,
}

impl Cache {
    /// Returns the devices that are cached for a problem, with the price that they had when they were chosen.
    pub fn price(&self, problem: &Problem, capable: &[usize]) -> Option<&Price> {
        self.position(problem, capable).map(|at| &self.choices[at].price)
    }

    fn position(&self, problem: &Problem, capable: &[usize]) -> Option<usize> {
        self.choices.iter().position(|choice| choice.problem == *problem && choice.capable == capable)
    }

    /// Starts a call on the devices that are cached for the problem. Returns `None` if no choice is cached for the problem.
    pub fn begin(&mut self, problem: &Problem, capable: &[usize]) -> Option<Run> {
        let at = self.position(problem, capable)?;
        let Choice { price: Price { devices, estimate, .. }, bucket, calls, .. } = &mut self.choices[at];
        let run = Run { devices: devices.clone(), bucket: *bucket, estimate: *estimate, start: Instant::now(), is_cached: true };
        *calls -= 1;
        if *calls == 0 {
            self.choices.remove(at);
        }
        Some(run)
    }

    /// Caches a choice of devices if enough runs correct its price, and if the machine would choose no other set of devices, even
    /// to measure it, during the calls that would reuse the choice.
    pub fn add(&mut self, problem: &Problem, capable: &[usize], Priced { prices, bucket }: &Priced) {
        let Some(first) = prices.first().filter(|first| first.runs == RUNS_KEPT && first.seconds <= SHORT) else { return };
        if !choice::is_settled(prices, f64::from(CALLS) * first.seconds) || self.position(problem, capable).is_some() {
            return;
        }
        let (capable, price) = (capable.to_vec(), first.clone());
        self.choices.push_front(Choice { problem: *problem, capable, price, bucket: *bucket, calls: CALLS });
        self.choices.truncate(KEPT);
    }

    /// Removes all choices from the cache.
    pub fn clear(&mut self) {
        self.choices.clear();
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::{DType, Side, algorithms::laswp};

    use super::super::choice::ENOUGH_RUNS;
    use super::*;

    fn problem(n: usize) -> Problem {
        Problem::Laswp(laswp::Problem { m: 8, n, pivots: 8, side: Side::Left, forward: true, dtype: DType::F64 })
    }

    /// Returns prices of devices 0 and 1 with the given seconds and numbers of runs. Since the last call on device 1, other sets of
    /// devices have run calls for `seconds_on_other_sets` seconds.
    fn priced(seconds: [f64; 2], runs: [usize; 2], seconds_on_other_sets: f64) -> Priced {
        let price = |device, seconds_on_other_sets| Price {
            devices: vec![device],
            estimate: 1.0,
            seconds: seconds[device],
            runs: runs[device],
            seconds_on_other_sets,
        };
        Priced { prices: vec![price(0, 0.0), price(1, seconds_on_other_sets)], bucket: Bucket::of(&problem(8)) }
    }

    #[test]
    fn a_settled_choice_is_reused_for_some_calls_of_the_problem() {
        let mut cache = Cache::default();
        let settled = priced([1e-3, 2e-3], [RUNS_KEPT, ENOUGH_RUNS], 0.0);
        (0..2).for_each(|_| cache.add(&problem(8), &[0, 1], &settled));
        for (n, capable) in [(9, [0, 1]), (8, [0, 2])] {
            assert!(cache.begin(&problem(n), &capable).is_none(), "n = {n}, capable {capable:?}");
        }
        assert_eq!(cache.price(&problem(8), &[0, 1]), settled.prices.first());
        let reused = std::iter::from_fn(|| cache.begin(&problem(8), &[0, 1]));
        assert_eq!(reused.filter(|run| run.devices == [0]).count(), CALLS as usize);
        cache.add(&problem(8), &[0, 1], &settled);
        cache.clear();
        assert!(cache.begin(&problem(8), &[0, 1]).is_none());
    }

    #[test]
    fn a_choice_that_may_change_is_not_cached() {
        let enough = [RUNS_KEPT, ENOUGH_RUNS];
        for (seconds, runs, seconds_on_other_sets, is_cached) in [
            ([1e-3, 2e-3], enough, 0.0, true),
            ([1e-3, 2e-3], [RUNS_KEPT - 1, ENOUGH_RUNS], 0.0, false),
            ([1e-3, 1.4e-3], [RUNS_KEPT, ENOUGH_RUNS - 1], 0.0, false),
            ([6e-3, 2e-2], enough, 0.0, false),
            // device 0 comes first only to be measured, although its price is higher
            ([2e-3, 1e-3], enough, 0.0, false),
            // device 1 is to be measured after 50 ms of calls on device 0; eight calls take 8 ms
            ([1e-3, 2e-3], enough, 41e-3, true),
            ([1e-3, 2e-3], enough, 43e-3, false),
        ] {
            let mut cache = Cache::default();
            cache.add(&problem(8), &[0, 1], &priced(seconds, runs, seconds_on_other_sets));
            assert_eq!(cache.begin(&problem(8), &[0, 1]).is_some(), is_cached, "{seconds:?}, {runs:?}, {seconds_on_other_sets}");
        }
    }

    #[test]
    fn the_latest_choices_are_kept() {
        let mut cache = Cache::default();
        let settled = priced([1e-3, 2e-3], [RUNS_KEPT, ENOUGH_RUNS], 0.0);
        (0..=KEPT).for_each(|n| cache.add(&problem(n), &[0, 1], &settled));
        assert_eq!([0, 1, KEPT].map(|n| cache.begin(&problem(n), &[0, 1]).is_some()), [false, true, true]);
    }
}
