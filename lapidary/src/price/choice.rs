//! The choice among sets of devices by their prices.

/// Minimum number of run times whose median does not depend on a single disturbed run.
pub(super) const ENOUGH_RUNS: usize = 3;
/// A single device that has run fewer than [`ENOUGH_RUNS`] times at a size is tried if its price is at most this many times the
/// lowest price.
const WORTH_A_TRY: f64 = 1.5;
/// Maximum price in seconds at which one disturbance may have slowed down all the few runs of a device, since a disturbance lasts
/// for milliseconds. A device that has run fewer than [`ENOUGH_RUNS`] times at a size and has at most this price is also tried if
/// the estimate from its measured speeds is at most [`WORTH_A_TRY`] times the lowest price.
const DISTURBANCE: f64 = 0.05;
/// A set of devices is also tried if its price minus the lowest price is at most this fraction of the total time of the calls of
/// the same size that other sets have run since the set last ran such a call. The price of a set of devices may be too high, since
/// another program may have slowed down its runs.
const LOSS_ALLOWED: f64 = 0.02;
/// A set of devices is called far off if its price is more than this many times the lowest price. Users notice even a single call
/// on a set of devices that is far off.
const FAR_OFF: f64 = 4.0;
/// The value that replaces [`LOSS_ALLOWED`] for a set of devices that is far off (see [`FAR_OFF`]). For a set of devices that has
/// run at least once but fewer than [`ENOUGH_RUNS`] times, [`LOSS_ALLOWED`] still applies, since a disturbance may have slowed down
/// all runs of the set.
const LOSS_ALLOWED_FAR_OFF: f64 = 0.002;
/// For comparisons, the price of several devices that have not run together at a size is multiplied by this number, since the price
/// comes from a simulation that includes no disturbance.
const OPTIMISM: f64 = 1.25;

/// The price of a set of devices for a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Price {
    pub devices: Vec<usize>,
    /// Seconds estimated from the measured speeds.
    pub estimate: f64,
    /// Expected seconds: the estimate, corrected by the times of earlier calls.
    pub seconds: f64,
    /// Number of recorded calls of about the same size on this set of devices.
    pub runs: usize,
    /// Total seconds of the calls of about the same size that other sets of devices have run since this set last ran such a call.
    pub seconds_on_other_sets: f64,
}

impl Price {
    /// Returns the seconds by which sets of devices are compared.
    fn compared(&self) -> f64 {
        if self.runs == 0 && self.devices.len() > 1 { OPTIMISM * self.seconds } else { self.seconds }
    }

    /// Whether this set of devices has a lower price than the set `other`, as [`Self::compared`] compares prices.
    pub fn is_cheaper_than(&self, other: &Price) -> bool {
        self.compared() < other.compared()
    }

    /// Whether the machine would run a call on this set of devices only to measure it, although `lowest` is the lowest price, after
    /// other sets of devices have run calls for `more` further seconds.
    fn is_tried(&self, lowest: f64, more: f64) -> bool {
        let has_few_runs = (1..ENOUGH_RUNS).contains(&self.runs);
        let is_doubtful = has_few_runs && self.seconds <= DISTURBANCE;
        let promised = if is_doubtful { self.seconds.min(self.estimate) } else { self.seconds };
        let is_new = self.runs < ENOUGH_RUNS && self.devices.len() == 1 && promised <= WORTH_A_TRY * lowest;
        let is_far_off = self.seconds > FAR_OFF * lowest && !has_few_runs;
        let allowed = if is_far_off { LOSS_ALLOWED_FAR_OFF } else { LOSS_ALLOWED };
        let is_due = self.compared() - lowest <= allowed * (self.seconds_on_other_sets + more);
        is_new || is_due
    }
}

/// Sorts prices: the set of devices that is to run the call comes first, then the other sets by price. If several sets of devices
/// are to be tried, the set with the fewest runs comes first, so that one disturbance does not slow down all runs of a set.
pub(super) fn sort(prices: &mut [Price]) {
    prices.sort_by(|a, b| a.compared().total_cmp(&b.compared()));
    let Some(lowest) = prices.first().map(Price::compared) else { return };
    let tried = (1..prices.len()).filter(|&at| prices[at].is_tried(lowest, 0.0));
    if let Some(tried) = tried.min_by_key(|&at| prices[at].runs) {
        prices[..=tried].rotate_right(1);
    }
}

/// Whether the first of the sorted prices stays the choice while further calls run for `more` seconds. Returns `false` if another
/// set of devices has a lower price.
pub(super) fn is_settled(prices: &[Price], more: f64) -> bool {
    let [first, others @ ..] = prices else { return false };
    others.iter().all(|other| !other.is_tried(first.compared(), more))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(devices: &[usize], seconds: f64, runs: usize) -> Price {
        Price { devices: devices.to_vec(), estimate: seconds, seconds, runs, seconds_on_other_sets: 0.0 }
    }

    /// Returns the sets of devices in the order of the sorted prices.
    fn sorted(mut prices: Vec<Price>) -> Vec<Vec<usize>> {
        sort(&mut prices);
        prices.into_iter().map(|price| price.devices).collect()
    }

    #[test]
    fn the_lowest_price_decides() {
        let prices = vec![price(&[0], 3.0, ENOUGH_RUNS), price(&[1], 1.0, ENOUGH_RUNS), price(&[0, 1], 2.0, ENOUGH_RUNS)];
        assert_eq!(sorted(prices), [vec![1], vec![0, 1], vec![0]]);
        assert!(sorted(Vec::new()).is_empty());
    }

    #[test]
    fn a_device_that_has_hardly_run_is_tried_if_it_may_be_the_fastest() {
        let with = |seconds, runs| sorted(vec![price(&[0], 1.0, ENOUGH_RUNS), price(&[1], seconds, runs)])[0][0];
        assert_eq!([with(1.4, 0), with(1.4, ENOUGH_RUNS - 1), with(1.4, ENOUGH_RUNS), with(1.6, 0)], [1, 1, 0, 0]);
    }

    #[test]
    fn devices_that_have_not_run_together_must_win_by_far() {
        let with = |seconds| sorted(vec![price(&[0], 1.0, ENOUGH_RUNS), price(&[0, 1], seconds, 0)])[0].len();
        assert_eq!([with(0.7), with(0.9), with(1.1)], [2, 1, 1]);
        let known = vec![price(&[0], 1.0, ENOUGH_RUNS), price(&[0, 1], 0.9, 1)];
        assert_eq!(sorted(known)[0], [0, 1], "a run needs no allowance");
    }

    #[test]
    fn a_set_is_tried_again_when_the_loss_is_small_beside_what_calls_took() {
        let with = |seconds, runs, seconds_on_other_sets| {
            let other = Price { seconds_on_other_sets, ..price(&[1], seconds, runs) };
            sorted(vec![price(&[0], 1.0, ENOUGH_RUNS), other])[0][0]
        };
        assert_eq!([with(2.0, ENOUGH_RUNS, 40.0), with(2.0, ENOUGH_RUNS, 60.0)], [0, 1]);
        // device 1 is far off: its price is 10 s above the lowest price
        for (runs, seconds_on_other_sets) in [(1, [400.0, 600.0]), (ENOUGH_RUNS, [4000.0, 6000.0]), (0, [4000.0, 6000.0])] {
            assert_eq!(
                seconds_on_other_sets.map(|seconds_on_other_sets| with(11.0, runs, seconds_on_other_sets)),
                [0, 1],
                "{runs} runs"
            );
        }
    }

    /// Sets of devices that are not tried stay in the order of their prices.
    #[test]
    fn of_several_to_be_tried_the_one_with_the_fewest_runs_and_then_the_cheapest_is() {
        let with = |runs| sorted(vec![price(&[2], 1.3, 0), price(&[1], 1.2, runs), price(&[0], 1.0, 0)]);
        assert_eq!(with(0), [vec![1], vec![0], vec![2]]);
        assert_eq!(with(1), [vec![2], vec![0], vec![1]]);
    }

    #[test]
    fn a_device_whose_few_short_runs_were_slow_is_tried_if_its_speeds_promise_more() {
        let with = |seconds, estimate, runs| {
            let slow = Price { estimate, ..price(&[1], seconds, runs) };
            sorted(vec![price(&[0], 1e-3, ENOUGH_RUNS), slow])[0][0]
        };
        assert_eq!([with(0.01, 1e-3, 1), with(0.01, 1e-3, 0), with(0.01, 1e-3, ENOUGH_RUNS)], [1, 0, 0]);
        assert_eq!([with(0.01, 2e-3, 1), with(0.1, 1e-3, 1)], [0, 0]);
    }
}
