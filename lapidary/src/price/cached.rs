//! A cache of choices of devices. To price a call takes 1.3 µs in a series of calls, but 20 to 30 µs after a rest and a call on
//! another device, since the data that it reads has left the processor's caches. That is a tenth of the time of a product of order 300.

use std::collections::VecDeque;
use std::time::Instant;

use lapidary_core::algorithms::Problem;

use super::choice::{self, Price};
use super::runs::{Bucket, RUNS_KEPT};
use super::{Priced, Run};

/// Number of calls that reuse a choice. The call after them is priced again.
const CALLS: u32 = 8;
/// A choice is cached only if the price of the call is at most this many seconds. For a longer call the time to price it is
/// negligible.
const SHORT: f64 = 5e-3;
/// Maximum number of cached choices. A new one replaces the oldest.
const KEPT: usize = 8;

#[derive(Debug)]
struct Choice {
    problem: Problem,
    /// The devices that could run the call when the choice was made.
    capable: Vec<usize>,
    price: Price,
    bucket: Bucket,
    /// Number of calls that may still reuse it.
    calls: u32,
}

/// The cached choices.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The newest choice comes first.
    choices: VecDeque<Choice>,
    /// Completed calls that reused a choice, with their times in seconds. The next call that is priced moves them to the records.
    pub ended: Vec<(Run, f64)>,
}

impl Cache {
    /// The devices that are cached for a problem, with their price when they were chosen.
    pub fn price(&self, problem: &Problem, capable: &[usize]) -> Option<&Price> {
        self.position(problem, capable).map(|at| &self.choices[at].price)
    }

    fn position(&self, problem: &Problem, capable: &[usize]) -> Option<usize> {
        self.choices.iter().position(|choice| choice.problem == *problem && choice.capable == capable)
    }

    /// Begins a call on the devices that are cached for its problem; `None` if there are none.
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

    /// Caches a choice if its price comes from enough runs, and no other set of devices is to be tried during the calls that would
    /// reuse it.
    pub fn add(&mut self, problem: &Problem, capable: &[usize], Priced { prices, bucket }: &Priced) {
        let Some(first) = prices.first().filter(|first| first.runs == RUNS_KEPT && first.seconds <= SHORT) else { return };
        if !choice::is_settled(prices, f64::from(CALLS) * first.seconds) || self.position(problem, capable).is_some() {
            return;
        }
        let (capable, price) = (capable.to_vec(), first.clone());
        self.choices.push_front(Choice { problem: *problem, capable, price, bucket: *bucket, calls: CALLS });
        self.choices.truncate(KEPT);
    }

    /// Forgets all choices.
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

    /// Devices 0 and 1 with these seconds and numbers of runs, after 1 was passed over for so many seconds.
    fn priced(seconds: [f64; 2], runs: [usize; 2], passed_over: f64) -> Priced {
        let price = |device, passed_over| Price {
            devices: vec![device],
            estimate: 1.0,
            seconds: seconds[device],
            runs: runs[device],
            passed_over,
        };
        Priced { prices: vec![price(0, 0.0), price(1, passed_over)], bucket: Bucket::of(&problem(8)) }
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
        for (seconds, runs, passed_over, is_cached) in [
            ([1e-3, 2e-3], enough, 0.0, true),
            ([1e-3, 2e-3], [RUNS_KEPT - 1, ENOUGH_RUNS], 0.0, false),
            ([1e-3, 1.4e-3], [RUNS_KEPT, ENOUGH_RUNS - 1], 0.0, false),
            ([6e-3, 2e-2], enough, 0.0, false),
            // first in spite of its price
            ([2e-3, 1e-3], enough, 0.0, false),
            // tried again after 50 ms, within eight calls
            ([1e-3, 2e-3], enough, 41e-3, true),
            ([1e-3, 2e-3], enough, 43e-3, false),
        ] {
            let mut cache = Cache::default();
            cache.add(&problem(8), &[0, 1], &priced(seconds, runs, passed_over));
            assert_eq!(cache.begin(&problem(8), &[0, 1]).is_some(), is_cached, "{seconds:?}, {runs:?}, {passed_over}");
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
