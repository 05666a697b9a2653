//! Times calls of a routine size by size, and prints a row of a table for each call.

use lapidary::{Machine, Scalar};

use super::kernels::profile;
use super::measure::{Measured, measure};
use super::peer::Rival;
use super::placement::Placement;
use super::problem::Problem;
use super::table::{header, row, words};
use crate::failure::Result;
use crate::progress::Progress;
use crate::report::seconds;
use crate::shape::Shape;

/// The calls to time: each shape in each placement.
pub struct Timing<'a, T: Scalar> {
    /// The machine that computes.
    pub machine: &'a Machine,
    /// The shapes of one routine, at least one.
    pub shapes: &'a [Shape],
    /// The placements, at least one.
    pub placements: &'a [Placement],
    /// If a call of a shape takes longer than this number of seconds, the remaining shapes are left out.
    pub max_seconds: Option<f64>,
    /// Number of timed repetitions of each call.
    pub reps: usize,
    /// Seed of the random operands.
    pub seed: u64,
    /// The peer library, or `gesv` beside `gesv_mixed`. It is timed once for each shape, in turn with Lapidary in the first
    /// placement.
    pub peer: Option<&'a Rival<T>>,
    /// A machine with the same device, which records the times of kernels, if each call also runs there.
    pub timed: Option<&'a Machine>,
}

impl<T: Scalar> Timing<'_, T> {
    /// Times all calls. The function prints the lines `heading`, then the table. Calls `keep` with all results so far after each shape.
    pub fn run(&self, heading: &[String], mut keep: impl FnMut(&[Measured]) -> Result<()>) -> Result<Vec<Measured>> {
        // Each call takes one untimed round and `reps` timed rounds, and one more round if its kernels are timed.
        let rounds_of_call = self.reps.saturating_add(1 + usize::from(self.timed.is_some()));
        let rounds = self.shapes.len().saturating_mul(self.placements.len()).saturating_mul(rounds_of_call);
        let progress = Progress::new(rounds);
        heading.iter().for_each(|line| progress.println(line));
        progress.println(&header(&self.shapes[0], self.peer.map(Rival::name)));
        let mut results = Vec::new();
        for (at, shape) in self.shapes.iter().enumerate() {
            let first = results.len();
            for &placement in self.placements {
                results.push(self.time(shape, placement, &progress)?);
            }
            keep(&results)?;
            let slowest = results[first..].iter().map(Measured::slowest).fold(0.0, f64::max);
            if let Some(max) = self.max_seconds.filter(|max| slowest > *max && at + 1 < self.shapes.len()) {
                let [slowest, max] = [slowest, max].map(seconds);
                progress.note(&format!("note: the sweep ends at n={}: a call took {slowest}, more than {max}", shape.n));
                break;
            }
        }
        Ok(results)
    }

    /// Times one call and prints its row of the table.
    fn time(&self, shape: &Shape, placement: Placement, progress: &Progress) -> Result<Measured> {
        progress.begin(&format!("{} {} memory={}", shape.routine.name(), words(&shape.sizes()), placement.name()));
        let peer = self.peer.filter(|_| placement == self.placements[0]);
        let problem = Problem::<T>::new(*shape, self.seed, self.machine, placement)?;
        let mut problem = if matches!(peer, Some(Rival::Gesv)) { problem.mixed() } else { problem };
        let mut measured = measure(&mut problem, peer, self.machine, self.reps, progress)?;
        progress.println(&row(&measured));
        if let Some(precision) = measured.precision {
            progress.println(&format!("{:>9}: {precision}", "mixed"));
        }
        if measured.unrested > 0 {
            progress.note(&format!(
                "note: before {} of the timed calls threads of this process did not come to rest; the figures may be too low",
                measured.unrested
            ));
        }
        if let Some(timed) = self.timed {
            drop(problem);
            self.machine.trim();
            let profile = profile::<T>(*shape, self.seed, timed, placement)?;
            profile.table(measured.ours.0.median()).iter().for_each(|line| progress.println(line));
            progress.done();
            measured.kernels = Some(profile);
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use lapidary::{Diag, Op, Routine, Select, Side, TrsmMode, Uplo};

    use super::*;
    use crate::residual::Triangle;

    #[test]
    fn after_a_slow_size_the_remaining_sizes_are_left_out() {
        let machine = Machine::open(&"cpu:0".parse::<Select>().unwrap()).unwrap();
        let a = Triangle { side: Side::Left, uplo: Uplo::Lower, op: Op::NoTrans, diag: Diag::NonUnit };
        let shapes = [3, 4, 5].map(|n| Shape {
            routine: Routine::Gemm,
            m: n,
            n,
            k: n,
            nrhs: 1,
            op_b: Op::NoTrans,
            a,
            mode: TrsmMode::default(),
        });
        let sizes = |max_seconds| -> Vec<(usize, Placement)> {
            let placements = &[Placement::Host, Placement::Resident];
            let timing = Timing::<f64> {
                machine: &machine,
                shapes: &shapes,
                placements,
                max_seconds,
                reps: 1,
                seed: 1,
                peer: None,
                timed: None,
            };
            timing.run(&[], |_| Ok(())).unwrap().iter().map(|measured| (measured.shape.n, measured.placement)).collect()
        };
        assert_eq!(sizes(Some(0.0)), [(3, Placement::Host), (3, Placement::Resident)]);
        assert_eq!([sizes(None).len(), sizes(Some(1e9)).len()], [6, 6]);
        let (mut kept, placements) = (Vec::new(), &[Placement::Host]);
        let timing = Timing::<f64> {
            machine: &machine,
            shapes: &shapes,
            placements,
            max_seconds: None,
            reps: 1,
            seed: 1,
            peer: None,
            timed: None,
        };
        let keep = |results: &[Measured]| {
            kept.push(results.len());
            Ok(())
        };
        timing.run(&[], keep).unwrap();
        assert_eq!(kept, [1, 2, 3], "the results are kept after each size");
    }
}
