//! Choices that stand for several calls. To price a call takes 1.3 µs where calls come in a row, but 20 to 30 after a rest and a call
//! of another device, when the caches have lost what it reads: a tenth of a product of order 300.

use std::collections::VecDeque;
use std::time::Instant;

use lapidary_core::algorithms::Problem;

use super::choice::{self, Price};
use super::runs::{Bucket, RUNS_KEPT};
use super::{Priced, Run};

/// Calls for which a choice stands. Then the call is priced again.
const CALLS: u32 = 8;
/// The longest call, in seconds by its price, whose choice stands. Others take so long that pricing them does not show.
const SHORT: f64 = 5e-3;
/// Choices that are kept, the latest ones.
const KEPT: usize = 8;

#[derive(Debug)]
struct Choice {
    problem: Problem,
    /// The devices that could take part.
    able: Vec<usize>,
    devices: Vec<usize>,
    bucket: Bucket,
    estimate: f64,
    /// Calls for which it still stands.
    calls: u32,
}

/// Choices that stand.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// The most recent first.
    choices: VecDeque<Choice>,
    /// Calls that ran by them, with their seconds, and are not in the records yet.
    pub ended: Vec<(Run, f64)>,
}

impl Standing {
    /// The devices of a choice that stands for such calls.
    pub fn devices(&self, problem: &Problem, able: &[usize]) -> Option<&[usize]> {
        self.position(problem, able).map(|at| &self.choices[at].devices[..])
    }

    fn position(&self, problem: &Problem, able: &[usize]) -> Option<usize> {
        self.choices.iter().position(|choice| choice.problem == *problem && choice.able == able)
    }

    /// The beginning of a call on the devices that were chosen for such calls, if that choice stands.
    pub fn begin(&mut self, problem: &Problem, able: &[usize]) -> Option<Run> {
        let at = self.position(problem, able)?;
        let Choice { devices, bucket, estimate, calls, .. } = &mut self.choices[at];
        let run = Run { devices: devices.clone(), bucket: *bucket, estimate: *estimate, start: Instant::now(), is_priced: false };
        *calls -= 1;
        if *calls == 0 {
            self.choices.remove(at);
        }
        Some(run)
    }

    /// Lets a choice stand, if enough runs have settled it and no set is to be tried within the calls for which it would stand.
    pub fn add(&mut self, problem: &Problem, able: &[usize], Priced { prices, bucket }: &Priced) {
        let Some(first) = prices.first().filter(|first| first.runs == RUNS_KEPT && first.seconds <= SHORT) else { return };
        if !choice::is_settled(prices, f64::from(CALLS) * first.seconds) || self.position(problem, able).is_some() {
            return;
        }
        let Price { devices, estimate, .. } = first.clone();
        let (problem, able, bucket) = (*problem, able.to_vec(), *bucket);
        self.choices.push_front(Choice { problem, able, devices, bucket, estimate, calls: CALLS });
        self.choices.truncate(KEPT);
    }

    /// No choice stands any more.
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
    fn a_settled_choice_stands_for_some_calls_of_the_problem() {
        let mut standing = Standing::default();
        let settled = priced([1e-3, 2e-3], [RUNS_KEPT, ENOUGH_RUNS], 0.0);
        (0..2).for_each(|_| standing.add(&problem(8), &[0, 1], &settled));
        for (n, able) in [(9, [0, 1]), (8, [0, 2])] {
            assert!(standing.begin(&problem(n), &able).is_none(), "n = {n}, able {able:?}");
        }
        assert_eq!(standing.devices(&problem(8), &[0, 1]), Some(&[0][..]));
        let stands = std::iter::from_fn(|| standing.begin(&problem(8), &[0, 1]));
        assert_eq!(stands.filter(|run| run.devices == [0]).count(), CALLS as usize);
        standing.add(&problem(8), &[0, 1], &settled);
        standing.clear();
        assert!(standing.begin(&problem(8), &[0, 1]).is_none());
    }

    #[test]
    fn a_choice_that_may_change_does_not_stand() {
        let enough = [RUNS_KEPT, ENOUGH_RUNS];
        for (seconds, runs, passed_over, stands) in [
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
            let mut standing = Standing::default();
            standing.add(&problem(8), &[0, 1], &priced(seconds, runs, passed_over));
            assert_eq!(standing.begin(&problem(8), &[0, 1]).is_some(), stands, "{seconds:?}, {runs:?}, {passed_over}");
        }
    }

    #[test]
    fn the_latest_choices_are_kept() {
        let mut standing = Standing::default();
        let settled = priced([1e-3, 2e-3], [RUNS_KEPT, ENOUGH_RUNS], 0.0);
        (0..=KEPT).for_each(|n| standing.add(&problem(n), &[0, 1], &settled));
        assert_eq!([0, 1, KEPT].map(|n| standing.begin(&problem(n), &[0, 1]).is_some()), [false, true, true]);
    }
}
