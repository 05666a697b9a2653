//! LU in `f32` of a matrix in `f64` that a device loads meanwhile.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{self, Scope, ScopedJoinHandle};

use lapidary_core::{Accuracy, DType, Getrf, InPlace, Instruction, MatRef, Result};

use super::convert::{Norms, power_for_f32};
use crate::equilibrate::times_power;
use crate::machine::Machine;
use crate::resident::DeviceMatrix;

/// The device first factors a third of the columns. This takes 15 % of the operations, and about as long as the transfer of the other columns.
const FACTORED_FIRST: usize = 3;
/// The number of columns that the device factors first is a multiple of this number, so that the part of the matrix that is left begins at a
/// multiple of all vectors and tiles of kernels.
const ALIGNED_COLUMNS: usize = 256;

impl Machine {
    /// Loads a host matrix A to the device matrix `wide`, and factors 2^power·A in `factors`. If the device works in panels, it factors the columns
    /// on the left while it loads the others. Returns the pivots, the number of the first zero pivot or 0, and the norms of A.
    pub(super) fn factor_while_loading(
        &self,
        a: MatRef<'_, f64>,
        wide: &DeviceMatrix<f64>,
        factors: &mut DeviceMatrix<f32>,
    ) -> Result<(Vec<i32>, usize, Norms)> {
        let (n, power) = (a.rows(), power_for_f32(a));
        let runtime = &self.runtimes()[wide.device()];
        let part = (n / FACTORED_FIRST).next_multiple_of(ALIGNED_COLUMNS);
        let in_panels = runtime.lookahead(DType::F32).and_then(|lookahead| lookahead.width(part)).is_some();
        let first = if in_panels { part.min(n) } else { n };
        // SAFETY: this method is the only one that accesses `wide`, and each column is written once.
        let load = |cols: Range<usize>| unsafe { wide.write_cols(cols.start, a.sub(0..n, cols)) };
        let mut ipiv = vec![0; n];
        thread::scope(|scope| {
            load(0..first)?;
            narrow(self, power, wide, factors, 0..first)?;
            let rest = Background::start(scope, move || load(first..n));
            let left = Getrf::new(factors.view_mut().sub(0..n, 0..first), &mut ipiv[..first]).accuracy(Accuracy::Normwise);
            let left = self.factor(left, 0);
            rest.end()?;
            // the norms are needed at the end, and would slow down the transfers
            let norms = Background::start(scope, move || Norms::new(a, power));
            let mut info = left?.0.get();
            if info == 0 && first < n {
                narrow(self, power, wide, factors, first..n)?;
                info = self.factor(Getrf::new(factors.view_mut(), &mut ipiv).accuracy(Accuracy::Normwise), first)?.0.get();
            }
            Ok((ipiv, info, norms.end()))
        })
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
