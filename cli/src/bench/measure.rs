//! Repeated timings, ours and the peer's in turn.

use std::time::Instant;

use lapidary::{Machine, Scalar, TraceEvent};
use serde_json::{Value, json};

use super::peer::Peer;
use super::problem::{Check, Problem};
use crate::failure::Result;
use crate::report::number;

/// The seconds of the repetitions of one routine.
#[derive(Clone, Debug)]
pub struct Samples {
    seconds: Vec<f64>,
    flops: f64,
}

impl Samples {
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The middle one, or the mean of the middle two.
    pub fn median(&self) -> f64 {
        let (sorted, n) = (self.sorted(), self.seconds.len());
        (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
    }

    /// The shortest.
    pub fn min(&self) -> f64 {
        self.sorted()[0]
    }

    /// The longest.
    pub fn max(&self) -> f64 {
        self.sorted()[self.seconds.len() - 1]
    }

    /// Speed at the median.
    pub fn gflops(&self) -> f64 {
        self.flops / self.median() / 1e9
    }

    /// The figures as data.
    pub fn to_json(&self, check: &Check) -> Value {
        json!({
            "median_seconds": self.median(), "min_seconds": self.min(), "max_seconds": self.max(),
            "samples_seconds": self.seconds, "gflops": self.gflops(),
            "check": { "what": check.what, "ratio": number(check.ratio), "threshold": check.threshold, "passed": check.passed() },
        })
    }
}

/// Timings and checks of one problem.
pub struct Measured {
    /// Our timings and what the check of our result said.
    pub ours: (Samples, Check),
    /// The same of the peer.
    pub peer: Option<(Samples, Check)>,
    /// What our devices did in the last repetition, if they are traced.
    pub events: Vec<TraceEvent>,
}

impl Measured {
    /// How many times as fast as the peer we are, by the medians.
    pub fn speed_ratio(&self) -> Option<f64> {
        self.peer.as_ref().map(|(peer, _)| peer.median() / self.ours.0.median())
    }

    /// Whether every result was right.
    pub fn passed(&self) -> bool {
        self.ours.1.passed() && self.peer.as_ref().is_none_or(|(_, check)| check.passed())
    }
}

/// Runs each once to warm up and to check, then `reps` times in turn, so that
/// drifting clocks and temperatures meet both alike.
pub fn measure<T: Scalar>(
    problem: &mut Problem<'_, T>,
    peer: Option<&Peer<T>>,
    machine: &Machine,
    reps: usize,
) -> Result<Measured> {
    problem.ours()?;
    let check = problem.check_ours()?;
    let peer_check = peer.map(|peer| problem.peer(peer).and_then(|()| problem.check())).transpose()?;
    let (mut ours, mut theirs, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..reps {
        machine.take_trace();
        ours.push(timed(problem, Problem::ours)?);
        events = machine.take_trace();
        if let Some(peer) = peer {
            theirs.push(timed(problem, |p| p.peer(peer))?);
        }
    }
    let flops = problem.shape().flops();
    let samples = |seconds| Samples { seconds, flops };
    Ok(Measured { ours: (samples(ours), check), peer: peer_check.map(|check| (samples(theirs), check)), events })
}

/// Seconds of one run; restoring the operands is not counted.
fn timed<'m, T: Scalar>(problem: &mut Problem<'m, T>, run: impl FnOnce(&mut Problem<'m, T>) -> Result<()>) -> Result<f64> {
    problem.reset()?;
    let start = Instant::now();
    run(problem)?;
    Ok(start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn medians() {
        let samples = |seconds: &[f64]| Samples { seconds: seconds.to_vec(), flops: 4e9 };
        assert_eq!([samples(&[3.0, 1.0, 2.0]).median(), samples(&[4.0, 1.0, 2.0, 3.0]).median()], [2.0, 2.5]);
        let one = samples(&[2.0]);
        assert_eq!([one.min(), one.max(), one.gflops()], [2.0, 2.0, 2.0]);
    }
}
