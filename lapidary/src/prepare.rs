//! Compiles the kernels of a call before the call.

use std::ptr::NonNull;

use lapidary_core::algorithms::{Problem, getrf, getrs};
use lapidary_core::{DType, Home, Layout, Op, RawMat, Result, Scalar, TrsmMode, prepare, prepare_in_place};

use crate::machine::Machine;
use crate::run::Planner;

/// A column-major matrix in host memory whose elements are not accessed.
fn shape(rows: usize, cols: usize, dtype: DType) -> RawMat {
    RawMat { home: Home::Host(NonNull::dangling()), offset: 0, rows, cols, ld: rows.max(1), layout: Layout::ColMajor, dtype }
}

impl Machine {
    /// Compiles the kernels of a factorisation ([`Machine::getrf`]) of a column-major host matrix of order `n`. If one device factors the matrix,
    /// the method also compiles the kernels of a solve for one right-hand side. The first call then does not wait for the compilers of drivers,
    /// which may need seconds for a large matrix. The machine keeps compiled kernels on disk for later processes, unless
    /// [`Settings::cache_dir`](crate::Settings::cache_dir) says otherwise. The method compiles kernels of OpenCL devices only: the CPU compiles none,
    /// and wgpu devices compile a kernel when it first runs.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// machine.prepare_gesv::<f64>(1000)?;
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The devices cannot factor the matrix, for example because they have too little memory, or a device has no kernel for it.
    pub fn prepare_gesv<T: Scalar>(&self, n: usize) -> Result<()> {
        let dtype = T::DTYPE;
        if n == 0 {
            return Ok(());
        }
        let (problem, memory) = self.factorisation(n, Layout::ColMajor, dtype);
        let devices = self.devices_of(&problem, &memory)?;
        if self.runs_without_plan(&devices) {
            return Ok(());
        }
        let _exclusive = self.exclusive(&devices);
        let devices = Planner { machine: self, problem: &problem, memory: &memory, devices: &devices, resident: false }.measured();
        let planner = Planner { machine: self, problem: &problem, memory: &memory, devices: &devices, resident: false };
        let runtimes = planner.runtimes();
        prepare(&runtimes, &planner.schedule(usize::MAX)?.0, &memory)?;
        // the only device of a factorisation solves with its copy of the factors
        if let [runtime] = runtimes[..] {
            let ([a, ipiv, _], b) = (memory, shape(n, 1, dtype));
            let (solve, [lu, b]) = getrs::normal_form(Op::NoTrans, [a, b]);
            // `gesv_mixed` solves in the mode `Inverted`
            for mode in [TrsmMode::Substitution, TrsmMode::Inverted] {
                prepare_in_place(runtime, &solve.with_mode(mode).instructions([lu, ipiv, b]))?;
            }
        }
        Ok(())
    }

    /// Returns the factorisation of a host matrix of order `n`, and matrices of the right shapes whose elements are not accessed.
    pub(crate) fn factorisation(&self, n: usize, layout: Layout, dtype: DType) -> (Problem, [RawMat; 3]) {
        let problem = getrf::Problem::pivoted((n, n), layout, dtype);
        let a = RawMat { layout, ..shape(n, n, dtype) };
        (Problem::Getrf { problem, nb: self.settings().nb }, [a, shape(n, 1, DType::I32), shape(1, 1, DType::I32)])
    }
}
