//! Repeated timings, ours and the peer's in turn.

use std::time::Instant;

use lapidary::{Machine, Scalar, TraceEvent};
use lapidary_host::rest;
use serde_json::{Value, json};

use super::peer::Peer;
use super::problem::{Check, Problem};
use crate::failure::Result;
use crate::progress::Progress;
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
    /// Number of timed calls, ours and the peer's, before which the threads of this process did not become idle.
    pub unrested: usize,
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

/// Runs our routine and the peer's once to warm up, then `reps` times in alternation, so that drifting
/// clock rates affect both alike. The results of the first and the last run are checked. `progress`
/// advances by one for each repetition.
pub fn measure<T: Scalar>(
    problem: &mut Problem<'_, T>,
    peer: Option<&Peer<T>>,
    machine: &Machine,
    reps: usize,
    progress: &Progress,
) -> Result<Measured> {
    problem.reset()?;
    problem.ours()?;
    let mut check = problem.check_ours()?;
    let mut peer_check = None;
    if let Some(peer) = peer {
        problem.reset()?;
        problem.peer(peer)?;
        peer_check = Some(problem.check());
    }
    progress.done();
    let (mut ours, mut theirs, mut events, mut unrested) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..reps {
        unrested += prepare(problem, peer.is_some())?;
        machine.take_trace();
        ours.push(timed(|| problem.ours())?);
        events = machine.take_trace();
        if ours.len() == reps {
            check = check.worse(problem.check_ours()?);
        }
        if let Some(peer) = peer {
            unrested += prepare(problem, true)?;
            theirs.push(timed(|| problem.peer(peer))?);
        }
        progress.done();
    }
    let peer_check = peer_check.map(|first| first.worse(problem.check()));
    let flops = problem.shape().flops();
    let samples = |seconds| Samples { seconds, flops };
    let peer = peer_check.map(|check| (samples(theirs), check));
    Ok(Measured { ours: (samples(ours), check), peer, events, unrested })
}

/// Resets the operands before a timed call. With a peer it also waits until the threads of this process
/// are idle, because the threads of a BLAS spin for tens of milliseconds after a call. Returns 1 if they
/// did not become idle, else 0.
fn prepare<T: Scalar>(problem: &mut Problem<'_, T>, has_peer: bool) -> Result<usize> {
    problem.reset()?;
    Ok(usize::from(has_peer && !rest()))
}

/// Seconds of one run.
fn timed(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    run()?;
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
