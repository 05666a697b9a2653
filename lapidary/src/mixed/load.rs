//! LU in `f32` of a matrix in `f64` that a device loads meanwhile.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{self, Scope, ScopedJoinHandle};

use lapidary_core::{Accuracy, DType, Error, Getrf, InPlace, Instruction, MatRef, Result};

use super::convert::{Norms, power_for_f32};
use crate::equilibrate::times_power;
use crate::machine::Machine;
use crate::resident::DeviceMatrix;

/// The device loads and factors the columns of A in stages, which end after the n/8, n/4, n/2 and n columns on the left. At order 32768, an H200 waits
/// for 45 of 540 ms until a stage is loaded (bench/results/opencl/2026-11-29-h200-mixed.txt).
const STAGE_DIVISORS: [usize; 4] = [8, 4, 2, 1];
/// A stage ends at a multiple of this number of columns, so that the next stage begins at a multiple of all vectors and tiles of kernels.
const ALIGNED_COLUMNS: usize = 256;

impl Machine {
    /// Loads a host matrix A to the device matrix `wide`, and factors 2^power·A in `factors`. If the device works in panels, it factors the columns
    /// of a stage while it loads the columns of the next stage. Returns the pivots, the number of the first zero pivot or 0, and the norms of A.
    pub(super) fn factor_while_loading(
        &self,
        a: MatRef<'_, f64>,
        wide: &DeviceMatrix<f64>,
        factors: &mut DeviceMatrix<f32>,
    ) -> Result<(Vec<i32>, usize, Norms)> {
        let (n, power) = (a.rows(), power_for_f32(a));
        let lookahead = self.runtimes()[wide.device()].lookahead(DType::F32);
        let in_panels = |end: usize| lookahead.is_some_and(|lookahead| lookahead.width(end).is_some());
        let ends = STAGE_DIVISORS.map(|divisor| (n / divisor).next_multiple_of(ALIGNED_COLUMNS).min(n));
        let mut ends: Vec<usize> = ends.into_iter().filter(|&end| end == n || in_panels(end)).collect();
        ends.dedup();
        // SAFETY: this method is the only one that accesses `wide`, each column is written once, and `narrow` reads only columns whose load has ended.
        let load = |cols: Range<usize>| unsafe { wide.write_cols(cols.start, a.sub(0..n, cols)) };
        let (mut ipiv, mut info, mut factored) = (vec![0; n], 0, 0);
        let mut factor_up_to = |end: usize| {
            if info == 0 {
                narrow(self, power, wide, factors, factored..end)?;
                let part = Getrf::new(factors.view_mut().sub(0..n, 0..end), &mut ipiv[..end]);
                info = self.factor(part.accuracy(Accuracy::Normwise), factored)?.0.get();
                factored = end;
            }
            Ok::<(), Error>(())
        };
        let norms = thread::scope(|scope| {
            load(0..ends[0])?;
            for (&end, &next) in ends.iter().zip(&ends[1..]) {
                let loaded = Background::start(scope, move || load(end..next));
                factor_up_to(end)?;
                loaded.end()?;
            }
            // the norms are needed at the end, and would slow down the transfers
            let norms = Background::start(scope, move || Norms::new(a, power));
            factor_up_to(n).map(|()| norms.end())
        })?;
        Ok((ipiv, info, norms))
    }
}

/// Work that another thread does meanwhile, or that this thread does at the end if the system starts no thread.
enum Background<'scope, F, R> {
    Running(ScopedJoinHandle<'scope, R>),
    Deferred(F),
}

impl<'scope, F: Fn() -> R + Copy + Send + 'scope, R: Send + 'scope> Background<'scope, F, R> {
    fn start<'env>(scope: &'scope Scope<'scope, 'env>, work: F) -> Self {
        thread::Builder::new().spawn_scoped(scope, work).map_or(Background::Deferred(work), Background::Running)
    }

    fn end(self) -> R {
        match self {
            Background::Running(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Background::Deferred(work) => work(),
        }
    }
}

/// Sets columns of the matrix `to` to those of 2^power·`from`.
fn narrow(machine: &Machine, power: i32, from: &DeviceMatrix<f64>, to: &mut DeviceMatrix<f32>, cols: Range<usize>) -> Result<()> {
    let (n, alpha) = (from.shape().0, times_power(1.0, power).into());
    let memory = [from.view().sub(0..n, cols.clone()).raw(), to.view_mut().sub(0..n, cols).raw()];
    let call = InPlace { instructions: &[Instruction::Narrow { alpha, a: 0, b: 1 }], schedule: None, memory: &memory };
    // SAFETY: the views borrow the matrices, `to` mutably, and the device has loaded the columns of `from`.
    unsafe { machine.runtimes()[from.device()].run_in_place(&call, machine.watch()) }
}
