//! Batches of small problems: problems of one shape at equal distances in memory, or lists of problems of any shapes.

use lapidary_core::algorithms::batched::{self, Each};
use lapidary_core::algorithms::{Problem, gemm, getrf, getrs};
use lapidary_core::{
    Batch, Error, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Info, Instruction, Outputs, RawBatch, RawMat,
    Result, Scalar,
};

use crate::machine::{Machine, column, read_column};
use crate::singular::singular;

/// Maximum size in bytes of a matrix of a batch that one instruction computes. Larger matrices are computed one after the other:
/// one such matrix occupies a device alone, and several such matrices may exceed the memory limit of the device.
const MAX_BATCHED_BYTES: usize = 2 << 20;

/// Maximum number of calls of a list whose instructions are collected at a time.
const CALLS_AT_ONCE: usize = 4096;

/// One call of a list: a problem and the memory of its operands. Each routine that runs lists has three operands.
struct Call {
    problem: Problem,
    memory: [RawMat; 3],
    /// Whether the problem is empty, so that there is nothing to compute.
    is_empty: bool,
}

/// An operand of a batch: matrices, or a column of indices that consists of one equal part for each matrix.
#[derive(Clone, Copy)]
enum Operand {
    Matrices(RawBatch),
    Column(RawMat),
}

impl Operand {
    /// Returns the operand in the form that batched instructions take. `None` if the matrices of the operand do not lie side by
    /// side.
    fn side_by_side(&self) -> Option<RawMat> {
        match self {
            Operand::Matrices(batch) => batch.side_by_side(),
            Operand::Column(column) => Some(*column),
        }
    }

    /// Returns the part of the operand that belongs to matrix `i` of `count`.
    fn of_matrix(&self, i: usize, count: usize) -> RawMat {
        match *self {
            Operand::Matrices(batch) => batch.get(i),
            Operand::Column(column) => {
                let rows = column.rows / count;
                RawMat { offset: column.offset + i * rows, rows, ld: rows.max(1), ..column }
            }
        }
    }
}

impl Machine {
    /// Computes `C ← α·op(A)·op(B) + β·C` for each matrix of a batch: A_i is m×k, B_i is k×n, C_i is m×n.
    ///
    /// If the CPU computes the batch, each of its threads computes some of the products. If a device with memory of its own
    /// computes the batch, matrices that lie side by side are computed together, with few transfers and kernel launches; matrices
    /// that do not lie side by side are computed one after the other. [`Batch::from_columns`] makes a batch of an uploaded matrix.
    ///
    /// ```
    /// use lapidary::{Batch, BatchMut, GemmBatched, Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// // three 2×2 matrices, column-major, one after the other
    /// let a = [1.0, 0.0, 1.0, 1.0, 2.0, 0.0, 0.0, 2.0, 0.0, 1.0, 1.0, 0.0];
    /// let mut c = [0.0; 12];
    /// let (a, squares) = (Batch::col_major(&a, 2, 2, 3)?, BatchMut::col_major(&mut c, 2, 2, 3)?);
    /// machine.gemm_batched(GemmBatched::new(a, a, squares))?;
    /// assert_eq!(c, [1.0, 0.0, 2.0, 1.0, 4.0, 0.0, 0.0, 4.0, 1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes or the numbers of matrices do not agree, or a device failed.
    pub fn gemm_batched<T: Scalar>(&self, args: GemmBatched<'_, T>) -> Result<()> {
        let normal = batched::gemm(&args.check().map_err(Error::untouched)?);
        let [memory, of_each] = [normal.memory, normal.memory_of_each].map(|memory| memory.map(Operand::Matrices));
        self.run_batch(&normal.problem, memory, &normal.each, of_each)
    }

    /// Factors `A = P·L·U` for each m×n matrix of a batch, in place. `ipiv` receives the row indices of all matrices, one matrix
    /// after the other. `info` receives one number for each matrix: 0, or the index, counted from 1, of the first pivot of the
    /// matrix that is exactly zero. A zero pivot is not an error; the factorisation is completed.
    ///
    /// ```
    /// use lapidary::{Batch, BatchMut, GetrfBatched, GetrsBatched, Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// // A_0 = [0 4; 2 1] and A_1 = [4 0; 0 2], column-major
    /// let mut a = [0.0, 2.0, 4.0, 1.0, 4.0, 0.0, 0.0, 2.0];
    /// let mut x = [8.0, 4.0, 8.0, 4.0];
    /// let (mut ipiv, mut info) = ([0; 4], [0; 2]);
    /// machine.getrf_batched(GetrfBatched::new(BatchMut::col_major(&mut a, 2, 2, 2)?, &mut ipiv, &mut info))?;
    /// assert_eq!((ipiv, info), ([1, 1, 0, 1], [0, 0]));
    /// let lu = Batch::col_major(&a, 2, 2, 2)?;
    /// machine.getrs_batched(GetrsBatched::new(lu, &ipiv, BatchMut::col_major(&mut x, 2, 1, 2)?))?;
    /// assert_eq!(x, [1.0, 2.0, 2.0, 2.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ipiv` does not have count·min(m, n) elements, `info` does not have count elements, matrices on a device are row-major, or
    /// a device failed.
    pub fn getrf_batched<T: Scalar>(&self, args: GetrfBatched<'_, T>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        let normal = batched::getrf(&args);
        let GetrfBatched { ipiv, info, .. } = args.into_inner();
        // no kernel writes `info` of an empty matrix, and the kernel for a single matrix keeps an `info` that is not zero
        let before = info.to_vec();
        info.fill(0);
        let columns = [Operand::Column(column(ipiv)?), Operand::Column(column(info)?)];
        let with_columns = |[a]: [RawBatch; 1]| [Operand::Matrices(a), columns[0], columns[1]];
        let (memory, of_each) = (with_columns(normal.memory), with_columns(normal.memory_of_each));
        let outcome = self.run_batch(&normal.problem, memory, &self.with_panels(normal.each), of_each);
        if outcome.as_ref().is_err_and(Error::is_untouched) {
            info.copy_from_slice(&before);
        }
        outcome
    }

    /// Computes `B ← op(A)⁻¹·B` for each matrix of a batch, from the factors of the n×n matrices A_i. The shape of each B_i is
    /// n×nrhs.
    ///
    /// ```
    /// use lapidary::{Batch, BatchMut, GetrsBatched, Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// // the factors of two diagonal matrices, which exchange no rows
    /// let lu = [2.0, 0.0, 0.0, 4.0, 1.0, 0.0, 0.0, 5.0];
    /// let ipiv = [0, 1, 0, 1];
    /// let mut x = [2.0, 4.0, 3.0, 10.0];
    /// let b = BatchMut::col_major(&mut x, 2, 1, 2)?;
    /// machine.getrs_batched(GetrsBatched::new(Batch::col_major(&lu, 2, 2, 2)?, &ipiv, b))?;
    /// assert_eq!(x, [1.0, 1.0, 3.0, 2.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot is exactly zero. The context `matrix` of the error
    /// `Singular` is the index, counted from 0, of the first matrix with a zero pivot; no right-hand side is changed. Another
    /// error is returned if the arguments do not agree or a device failed.
    pub fn getrs_batched<T: Scalar>(&self, args: GetrsBatched<'_, T>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        let normal = batched::getrs(&args);
        self.require_pivots_of_all(args.lu)?;
        let ipiv = Operand::Column(read_column(args.ipiv)?);
        let with_column = |[lu, b]: [RawBatch; 2]| [Operand::Matrices(lu), ipiv, Operand::Matrices(b)];
        let (memory, of_each) = (with_column(normal.memory), with_column(normal.memory_of_each));
        self.run_batch(&normal.problem, memory, &normal.each, of_each)
    }

    /// Computes each product of a list as [`Machine::gemm`] does. Shapes and flags may differ from one product to the next. If
    /// the CPU computes the list, each of its threads computes some of the products.
    ///
    /// ```
    /// use lapidary::{Gemm, Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (a, x) = ([1.0, 2.0, 3.0, 4.0], [1.0, 1.0]);
    /// let (a, x) = (MatRef::col_major(&a, 2, 2)?, MatRef::col_major(&x, 2, 1)?);
    /// let (mut square, mut sums) = ([0.0; 4], [0.0; 2]);
    /// machine.gemm_list([
    ///     Gemm::new(a, a, MatMut::col_major(&mut square, 2, 2)?),
    ///     Gemm::new(a, x, MatMut::col_major(&mut sums, 2, 1)?).trans_a(),
    /// ])?;
    /// assert_eq!((square, sums), ([7.0, 10.0, 15.0, 22.0], [3.0, 7.0]));
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The arguments of one product do not agree. If a check of the arguments fails, no output is written, and the context
    /// `number` of the error is the index, counted from 0, of the product in the list. Another error is returned if a device
    /// failed.
    pub fn gemm_list<'a, T: Scalar>(&self, list: impl IntoIterator<Item = Gemm<'a, T>>) -> Result<()> {
        let list = checked(list, Gemm::check)?;
        let calls = list.iter().map(|args| {
            let (problem, memory) = gemm::normalise(args);
            Call { problem: Problem::Gemm(problem), memory, is_empty: problem.is_empty() }
        });
        self.run_list(calls.collect())
    }

    /// Factors each matrix of a list as [`Machine::getrf_into`] does, and returns the [`Info`] of each matrix. Shapes may differ
    /// from one matrix to the next.
    ///
    /// ```
    /// use lapidary::{Getrf, Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (mut a, mut b) = ([0.0, 2.0, 4.0, 1.0], [3.0]); // of orders 2 and 1
    /// let (mut of_a, mut of_b) = ([0; 2], [0]);
    /// let info = machine.getrf_list([
    ///     Getrf::new(MatMut::col_major(&mut a, 2, 2)?, &mut of_a),
    ///     Getrf::new(MatMut::col_major(&mut b, 1, 1)?, &mut of_b),
    /// ])?;
    /// assert_eq!((of_a, of_b), ([1, 1], [0]));
    /// assert!(info.iter().all(|info| info.get() == 0)); // no pivot is zero
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The method returns the errors of [`Machine::gemm_list`].
    pub fn getrf_list<'a, T: Scalar>(&self, list: impl IntoIterator<Item = Getrf<'a, T>>) -> Result<Vec<Info>> {
        let list = checked(list, Getrf::check)?;
        let mut info = vec![0; list.len()];
        let calls = list.into_iter().zip(&mut info).map(|(args, info)| {
            let problem = getrf::Problem::new(&args);
            let Getrf { a, ipiv, .. } = args.into_inner();
            let memory = [a.raw(), column(ipiv)?, column(std::slice::from_mut(info))?];
            let is_empty = problem.order() == 0;
            Ok(Call { problem: self.with_panels(Problem::Getrf { problem, nb: None }), memory, is_empty })
        });
        self.run_list(calls.collect::<Result<_>>()?)?;
        Ok(info.into_iter().map(|info| Info::new(usize::try_from(info).expect("info counts rows"))).collect())
    }

    /// Solves each system of a list as [`Machine::getrs`] does. Shapes and flags may differ from one system to the next.
    ///
    /// ```
    /// use lapidary::{Getrs, Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// // factors that exchange no rows: U = [2 1; 0 4] with L = I, and the number 5
    /// let (a, b) = ([2.0, 0.0, 1.0, 4.0], [5.0]);
    /// let (mut x, mut y) = ([4.0, 8.0], [10.0]);
    /// machine.getrs_list([
    ///     Getrs::new(MatRef::col_major(&a, 2, 2)?, &[0, 1], MatMut::col_major(&mut x, 2, 1)?),
    ///     Getrs::new(MatRef::col_major(&b, 1, 1)?, &[0], MatMut::col_major(&mut y, 1, 1)?),
    /// ])?;
    /// assert_eq!((x, y), ([1.0, 2.0], [2.0]));
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot is exactly zero. The context `number` of the error
    /// `Singular` is the index, counted from 0, of the system in the list; no right-hand side is changed. The method also returns
    /// the errors of [`Machine::gemm_list`].
    pub fn getrs_list<'a, T: Scalar>(&self, list: impl IntoIterator<Item = Getrs<'a, T>>) -> Result<()> {
        let list = checked(list, Getrs::check)?;
        for (number, args) in list.iter().enumerate() {
            self.require_pivots("getrs_list", args.lu).map_err(|error| error.with("number", number))?;
        }
        let calls = list.iter().map(|args| {
            let (problem, [lu, b]) = getrs::normalise(args);
            let memory = [lu, read_column(args.ipiv)?, b];
            Ok(Call { problem: Problem::Getrs(problem), memory, is_empty: problem.is_empty() })
        });
        self.run_list(calls.collect::<Result<_>>()?)
    }

    /// Runs a batch as one problem if its matrices are small and lie side by side, else matrix by matrix.
    fn run_batch(&self, problem: &batched::Problem, memory: [Operand; 3], each: &Problem, of_each: [Operand; 3]) -> Result<()> {
        if problem.is_empty() {
            return Ok(());
        }
        let count = problem.count;
        let is_small = |operand: &Operand| operand.of_matrix(0, count).bytes() <= MAX_BATCHED_BYTES;
        let joined: Vec<RawMat> = memory.iter().filter(|operand| is_small(operand)).filter_map(Operand::side_by_side).collect();
        let one_by_one = || {
            let of_matrix = |i| of_each.map(|operand| operand.of_matrix(i, count));
            let calls = (0..count).map(|i| Call { problem: *each, memory: of_matrix(i), is_empty: false });
            self.run_list(calls.collect())
        };
        if joined.len() < memory.len() {
            return one_by_one();
        }
        if let Some(runtime) = self.device_for_small_call(problem.dtype(), problem.flops(), &joined) {
            // SAFETY: the callers pass operands of checked arguments, which borrow the host memory during the launch, mutably where
            // the kernel writes, so that no other access conflicts.
            return unsafe { runtime.launch(&problem.instruction(count, &joined)) };
        }
        match self.run(&Problem::Batched(*problem), &joined) {
            // A plan of a batch does not divide a matrix into tiles, so the plan needs memory for at least one whole matrix. Calls
            // for single matrices are divided into tiles, so they may succeed although the batch fails.
            Err(error) if error.kind().is_out_of_memory() && error.is_untouched() && !self.settings().reproducible => one_by_one(),
            outcome => outcome,
        }
    }

    fn run_list(&self, mut calls: Vec<Call>) -> Result<()> {
        calls.retain(|call| !call.is_empty);
        let mut done = 0;
        for calls in calls.chunks(CALLS_AT_ONCE) {
            self.run_calls(calls, &mut done).map_err(|error| {
                // the error describes only the outputs of the failed call, but earlier calls of the list have written their
                // outputs
                if done > 0 { error.with_outputs(Outputs::PartlyWritten) } else { error }
            })?;
        }
        Ok(())
    }

    /// Runs some calls of a list, and adds the number of completed calls to `done`.
    fn run_calls(&self, calls: &[Call], done: &mut usize) -> Result<()> {
        let memory: Vec<RawMat> = calls.iter().flat_map(|call| call.memory).collect();
        let of_call = |call: &Call| {
            call.problem.instructions().into_iter().map(|step| step.map(|operand| call.memory[operand])).collect::<Vec<_>>()
        };
        let length = of_call(&calls[0]).len();
        let instructions: Vec<Instruction<RawMat>> = calls.iter().flat_map(of_call).collect();
        let flops = |call: &[Instruction<RawMat>]| call.iter().map(Instruction::flops).sum();
        // `device_for_small_call` returns a device only if the largest call of the list is a small call.
        let largest = instructions.chunks_exact(length).map(flops).fold(0.0, f64::max);
        let runtime = self.device_for_small_call(calls[0].problem.dtype(), largest, &memory).or_else(|| self.only_cpu(&memory));
        let Some(runtime) = runtime else {
            return calls.iter().try_for_each(|call| {
                self.run(&call.problem, &call.memory)?;
                *done += 1;
                Ok(())
            });
        };
        // SAFETY: the callers pass operands of checked arguments, which borrow the host memory during the launch, mutably where
        // kernels write, so that neither another call of the list nor any other access conflicts.
        unsafe { runtime.launch_sequences(&instructions, length)? }
        *done += calls.len();
        Ok(())
    }

    /// Returns an error if a pivot of any matrix of a batch is exactly zero.
    fn require_pivots_of_all<T: Scalar>(&self, lu: Batch<'_, T>) -> Result<()> {
        let of_matrix = |i: usize| self.require_pivots("getrs_batched", lu.get(i)).map_err(|error| error.with("matrix", i));
        let (n, count) = (lu.shape().0, lu.count());
        if n == 0 || count == 0 {
            return Ok(());
        }
        let is_on_device = lu.get(0).host_ptr().is_none();
        let Some(joined) = lu.raw().side_by_side().filter(|_| is_on_device) else { return (0..count).try_for_each(of_matrix) };
        let mut info = vec![0_i32; count];
        let search = batched::Problem { count, each: Each::ZeroPivots { n, dtype: T::DTYPE } };
        self.run(&Problem::Batched(search), &[joined, column(&mut info)?])?;
        let zero = info.iter().enumerate().find_map(|(i, &info)| Some((i, usize::try_from(info).ok().filter(|&pivot| pivot > 0)?)));
        zero.map_or(Ok(()), |(i, pivot)| Err(singular("getrs_batched", pivot, Outputs::Unchanged).with("matrix", i)))
    }
}

/// Checks all arguments of a list. If the check of a call fails, returns the error with the index of the call.
fn checked<A, C>(list: impl IntoIterator<Item = A>, check: impl Fn(A) -> Result<C>) -> Result<Vec<C>> {
    let numbered = |(number, args)| check(args).map_err(|error: Error| error.with("number", number).untouched());
    list.into_iter().enumerate().map(numbered).collect()
}
