//! Times a routine of Lapidary and the same routine of a peer library in turn.

use std::time::Instant;

use lapidary::{Machine, Precision, Scalar, TraceEvent};
use lapidary_host::rest;
use serde_json::{Map, Value, json};

use super::kernels::Profile;
use super::peer::Rival;
use super::placement::Placement;
use super::problem::{Check, Problem};
use crate::failure::Result;
use crate::progress::Progress;
use crate::report::number;
use crate::shape::Shape;

/// Returns the median of times: the middle one, or the mean of the two middle ones. Without times the median is 0.
pub fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    match seconds.len() {
        0 => 0.0,
        n => f64::midpoint(seconds[(n - 1) / 2], seconds[n / 2]),
    }
}

/// The times of all repetitions of one routine, in seconds.
#[derive(Clone, Debug)]
pub struct Samples {
    seconds: Vec<f64>,
    flops: Option<f64>,
}

impl Samples {
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The median of the times: the middle value, or the mean of the two middle values.
    pub fn median(&self) -> f64 {
        median(self.seconds.clone())
    }

    /// The shortest of the times, in seconds.
    pub fn min(&self) -> f64 {
        self.sorted()[0]
    }

    /// The longest of the times, in seconds.
    pub fn max(&self) -> f64 {
        self.sorted()[self.seconds.len() - 1]
    }

    /// Speed at the median time, in GFLOP/s. `None` for a routine without floating-point operations.
    pub fn gflops(&self) -> Option<f64> {
        Some(self.flops? / self.median() / 1e9)
    }

    /// The timings and the check as JSON.
    pub fn to_json(&self, check: &Check) -> Value {
        json!({
            "median_seconds": self.median(), "min_seconds": self.min(), "max_seconds": self.max(),
            "samples_seconds": self.seconds, "gflops": self.gflops(),
            "check": { "what": check.what, "ratio": number(check.ratio), "threshold": check.threshold, "passed": check.passed() },
        })
    }
}

/// Timings and checks of one call by Lapidary and by a peer library.
pub struct Measured {
    /// The routine and the sizes of the call.
    pub shape: Shape,
    /// The memory in which the matrices of Lapidary's call lie. The matrices of the peer library lie in host memory.
    pub placement: Placement,
    /// Timings of Lapidary, and the check of its result.
    pub ours: (Samples, Check),
    /// Timings of the peer library, and the check of its result.
    pub peer: Option<(Samples, Check)>,
    /// The precision that the last call of `gesv_mixed` used. `None` for all other routines.
    pub precision: Option<Precision>,
    /// Trace of the machine in the last repetition. The trace is empty if the machine is not traced.
    pub events: Vec<TraceEvent>,
    /// Times of the kernels of one more run. `None` if kernels are not timed.
    pub kernels: Option<Profile>,
    /// Number of timed calls, by Lapidary and by the peer library, before which the threads of this process did not become idle.
    pub unrested: usize,
}

impl Measured {
    /// The peer library's median time divided by Lapidary's. A ratio above 1 means that Lapidary is faster.
    pub fn speed_ratio(&self) -> Option<f64> {
        self.peer.as_ref().map(|(peer, _)| peer.median() / self.ours.0.median())
    }

    /// The longer one of the median times of Lapidary and of the peer library, in seconds.
    pub fn slowest(&self) -> f64 {
        self.peer.iter().map(|(peer, _)| peer.median()).fold(self.ours.0.median(), f64::max)
    }

    /// The sizes, the placement, the timings and the checks as JSON.
    pub fn to_json(&self) -> Value {
        let sizes: Map<String, Value> = self.shape.sizes().into_iter().map(|(name, size)| (name.to_owned(), json!(size))).collect();
        let (ours, check) = &self.ours;
        json!({
            "sizes": sizes, "memory": self.placement.name(), "flops": self.shape.flops(), "ours": ours.to_json(check),
            "peer": self.peer.as_ref().map(|(peer, check)| peer.to_json(check)),
            "speed_ratio_of_medians": self.speed_ratio(), "precision": self.precision.map(|precision| precision.to_string()),
            "kernels": self.kernels.as_ref().map(Profile::to_json),
        })
    }

    /// Whether the results of Lapidary and of the peer library passed their checks.
    pub fn passed(&self) -> bool {
        self.ours.1.passed() && self.peer.as_ref().is_none_or(|(_, check)| check.passed())
    }
}

/// The peer library that is timed in turn with Lapidary.
struct Beside<'a, T: Scalar> {
    /// Calls the routine of the peer library.
    call: &'a dyn Fn(&mut Problem<'_, T>) -> Result<()>,
    /// Waits until the threads of this process are idle. Returns false if they stay busy.
    rest: &'a dyn Fn() -> bool,
}

/// Calls the routine of Lapidary and that of the peer library once without timing. Then the function calls the two routines `reps`
/// times in alternation, so that a change of the clock rate affects both libraries. The function checks the results of the untimed
/// calls and of the last calls. `progress` advances by one for each repetition.
pub fn measure<T: Scalar>(
    problem: &mut Problem<'_, T>,
    peer: Option<&Rival<T>>,
    machine: &Machine,
    reps: usize,
    progress: &Progress,
) -> Result<Measured> {
    let call = |problem: &mut Problem<'_, T>| peer.map_or(Ok(()), |peer| problem.rival(peer));
    let beside = Beside { call: &call, rest: &rest };
    take_turns(problem, peer.map(|_| &beside), machine, reps, progress)
}

fn take_turns<T: Scalar>(
    problem: &mut Problem<'_, T>,
    beside: Option<&Beside<'_, T>>,
    machine: &Machine,
    reps: usize,
    progress: &Progress,
) -> Result<Measured> {
    problem.reset()?;
    problem.ours()?;
    let mut check = problem.check_ours()?;
    let mut peer_check = None;
    if let Some(peer) = beside {
        problem.reset()?;
        (peer.call)(problem)?;
        peer_check = Some(problem.check());
    }
    progress.done();
    let (mut ours, mut theirs, mut events, mut unrested) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..reps {
        unrested += prepare(problem, beside)?;
        machine.take_trace();
        ours.push(timed(|| problem.ours())?);
        events = machine.take_trace();
        if ours.len() == reps {
            check = check.worse(problem.check_ours()?);
        }
        if let Some(peer) = beside {
            unrested += prepare(problem, beside)?;
            theirs.push(timed(|| (peer.call)(problem))?);
        }
        progress.done();
    }
    let peer_check = peer_check.map(|first| first.worse(problem.check()));
    let (shape, placement) = (*problem.shape(), problem.placement());
    let flops = shape.flops();
    let samples = |seconds| Samples { seconds, flops };
    let peer = peer_check.map(|check| (samples(theirs), check));
    let precision = problem.precision();
    Ok(Measured { shape, placement, ours: (samples(ours), check), peer, precision, events, kernels: None, unrested })
}

/// Restores the operands before a timed call. With a peer library, the function also waits until the threads of this process are
/// idle, because the threads of a BLAS spin for tens of milliseconds after a call. Returns 1 if the threads did not become idle,
/// else 0.
fn prepare<T: Scalar>(problem: &mut Problem<'_, T>, beside: Option<&Beside<'_, T>>) -> Result<usize> {
    problem.reset()?;
    Ok(beside.map_or(0, |peer| usize::from(!(peer.rest)())))
}

/// Measures the seconds that `run` takes.
fn timed(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use lapidary::{Diag, Machine, Op, Routine, Select, Side, TrsmMode, Uplo};

    use super::{Beside, Placement, Problem, Samples, Shape, median, take_turns};
    use crate::progress::Progress;
    use crate::residual::Triangle;

    #[test]
    fn beside_a_peer_each_timed_call_of_either_side_waits_for_rest() {
        let machine = Machine::open(&"cpu:0".parse::<Select>().unwrap()).unwrap();
        let a = Triangle { side: Side::Left, uplo: Uplo::Lower, op: Op::NoTrans, diag: Diag::NonUnit };
        let shape = Shape { routine: Routine::Gemm, m: 3, n: 3, k: 3, nrhs: 1, op_b: Op::NoTrans, a, mode: TrsmMode::default() };
        let mut problem = Problem::<f64>::new(shape, 1, &machine, Placement::Host).unwrap();
        let log = RefCell::new(String::new());
        let call = |problem: &mut Problem<'_, f64>| {
            log.borrow_mut().push('p');
            problem.ours()
        };
        let rest = || {
            log.borrow_mut().push('r');
            false
        };
        let beside = Beside { call: &call, rest: &rest };
        let measured = take_turns(&mut problem, Some(&beside), &machine, 2, &Progress::new(3)).unwrap();
        assert!(measured.passed() && measured.unrested == 4);
        // In each repetition the log contains the wait before Lapidary's call (r), the wait before the peer library's call (r), and
        // that call (p). Lapidary's call is not logged.
        assert_eq!(*log.borrow(), "prrprrp");
        log.take();
        assert_eq!(take_turns(&mut problem, None, &machine, 2, &Progress::new(3)).unwrap().unrested, 0);
        assert_eq!(*log.borrow(), "");
    }

    #[test]
    fn the_median_is_the_middle_time_or_the_mean_of_two() {
        for (times, middle) in
            [(&[][..], 0.0), (&[3.0], 3.0), (&[9.0, 1.0], 5.0), (&[7.0, 1.0, 2.0], 2.0), (&[8.0, 1.0, 2.0, 4.0], 3.0)]
        {
            assert_eq!(median(times.to_vec()).to_bits(), f64::to_bits(middle), "{times:?}");
        }
        let samples = |seconds: &[f64]| Samples { seconds: seconds.to_vec(), flops: Some(4e9) };
        assert_eq!(samples(&[4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        let one = samples(&[2.0]);
        assert_eq!([Some(one.min()), Some(one.max()), one.gflops()], [Some(2.0); 3]);
    }
}
