//! Shows the progress of the factorisation: the share of its operations that are done, the present speed and the predicted speed.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use lapidary::{Machine, RunProgress};

use crate::progress::Progress;
use crate::report::fixed;

/// Shortest time between two texts. The present speed is the mean over such a time.
const INTERVAL: Duration = Duration::from_millis(500);

/// The state of the display during one factorisation.
#[derive(Debug)]
struct Speed {
    /// Number of operations that the benchmark counts.
    operations: f64,
    begin: Instant,
    /// Time and number of operations at the last text.
    last: (Instant, f64),
}

impl Speed {
    fn new(operations: f64, now: Instant) -> Self {
        Speed { operations, begin: now, last: (now, 0.0) }
    }

    /// The text for the time `now`. `None` if the last text is recent, or if nothing is done yet.
    fn text(&mut self, run: &RunDone, now: Instant) -> Option<String> {
        let (since, before) = self.last;
        let interval = now.duration_since(since);
        if interval < INTERVAL || run.done <= 0.0 {
            return None;
        }
        self.last = (now, run.done);
        let share = run.done / run.plan;
        let present = (run.done - before) / interval.as_secs_f64();
        let predicted = self.operations * share / now.duration_since(self.begin).as_secs_f64();
        let [present, predicted] = [present, predicted].map(|speed| fixed(speed / 1e9, 1));
        Some(format!("factor: {:.0} %, now {present} GFLOP/s, predicted {predicted} GFLOP/s", 100.0 * share))
    }
}

/// The operations of a run.
#[derive(Clone, Copy, Debug)]
struct RunDone {
    done: f64,
    plan: f64,
}

/// Makes a machine show the speed of its factorisations in the display, as long as the display exists. `operations` is the number of
/// operations that the benchmark counts, from which the predicted speed is computed.
pub fn shown(machine: Machine, progress: &Arc<Progress>, operations: f64) -> Machine {
    let display: Weak<Progress> = Arc::downgrade(progress);
    let speed = Mutex::new(Speed::new(operations, Instant::now()));
    machine.with_progress(move |run: RunProgress| {
        if run.operation != "getrf" {
            return;
        }
        let mut speed = speed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if run.done_flops == 0.0 {
            *speed = Speed::new(operations, now);
        }
        let text = speed.text(&RunDone { done: run.done_flops, plan: run.plan_flops }, now);
        if let (Some(text), Some(display)) = (text, display.upgrade()) {
            display.state(&text);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_states_the_share_and_the_present_and_the_predicted_speed() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs_f64(seconds);
        let mut speed = Speed::new(40e9, begin);
        let mut text = |done, seconds| speed.text(&RunDone { done, plan: 32e9 }, after(seconds));
        assert_eq!([text(0.0, 1.0), text(8e9, 0.1)], [None, None]);
        assert_eq!(text(8e9, 2.0).unwrap(), "factor: 25 %, now 4.0 GFLOP/s, predicted 5.0 GFLOP/s");
        assert_eq!(text(9e9, 2.1), None);
        assert_eq!(text(24e9, 4.0).unwrap(), "factor: 75 %, now 8.0 GFLOP/s, predicted 7.5 GFLOP/s");
    }
}
