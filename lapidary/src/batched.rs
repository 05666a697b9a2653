//! Batches of small problems: in equal shapes at equal distances, or as a list.

use lapidary_core::algorithms::batched::{self, Each};
use lapidary_core::algorithms::{Problem, gemm, getrf, getrs};
use lapidary_core::{
    Batch, Error, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Info, Instruction, RawBatch, RawMat, Result, Scalar,
};

use crate::machine::{Machine, column, read_column};
use crate::singular::{B_STAYS, singular};

/// Bytes of a matrix above which the matrices of a batch are computed one after the other. Each then occupies a device alone, and
/// several of them need not fit its memory limit.
const MAX_BATCHED_BYTES: usize = 2 << 20;

/// Calls of a list that are gathered at a time, with their instructions.
const CALLS_AT_ONCE: usize = 4096;

/// One problem of a list; each of the routines has three operands.
struct Call {
    problem: Problem,
    memory: [RawMat; 3],
    /// Whether nothing is to be done.
    is_empty: bool,
}

/// An operand of a batch: matrices, or a column of indices in as many equal pieces.
#[derive(Clone, Copy)]
enum Operand {
    Matrices(RawBatch),
    Column(RawMat),
}

impl Operand {
    /// The operand as batched instructions take it; `None` if its matrices do not lie side by side.
    fn side_by_side(&self) -> Option<RawMat> {
        match self {
            Operand::Matrices(batch) => batch.side_by_side(),
            Operand::Column(column) => Some(*column),
        }
    }

    /// The part of the operand that belongs to matrix `i` of `count`.
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
    /// `C ← α·op(A)·op(B) + β·C` for each matrix of a batch: A_i is m×k, B_i is k×n, C_i is m×n.
    ///
    /// On host matrices the threads of the processor share the matrices; a device has matrices that lie
    /// side by side in few transfers and launches, others one after the other. Batches on a
    /// device are made of an uploaded matrix by [`Batch::from_columns`].
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

    /// `A = P·L·U` of each m×n matrix of a batch, in place. `ipiv` gets the row indices of one matrix after the other, `info` for
    /// each matrix 0 or the number, counted from 1, of its first pivot that is exactly zero: no error, and the factorisation is
    /// completed then too.
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
    /// `ipiv` does not hold count·min(m, n) elements or `info` not count, matrices on a device are row-major, or a device failed.
    pub fn getrf_batched<T: Scalar>(&self, args: GetrfBatched<'_, T>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        let normal = batched::getrf(&args);
        let GetrfBatched { ipiv, info, .. } = args.into_inner();
        // nothing is written for empty matrices, and single factorisations keep an `info` that is set
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

    /// `B ← op(A)⁻¹·B` for each matrix of a batch, from the factors of A_i of order n; B_i is n×nrhs.
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot is exactly zero. The error's context `matrix` is
    /// the index, from 0, of the first matrix with such a pivot; no right-hand side is changed. The arguments do not agree, or a device failed.
    pub fn getrs_batched<T: Scalar>(&self, args: GetrsBatched<'_, T>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        let normal = batched::getrs(&args);
        self.require_pivots_of_all(args.lu)?;
        let ipiv = Operand::Column(read_column(args.ipiv)?);
        let with_column = |[lu, b]: [RawBatch; 2]| [Operand::Matrices(lu), ipiv, Operand::Matrices(b)];
        let (memory, of_each) = (with_column(normal.memory), with_column(normal.memory_of_each));
        self.run_batch(&normal.problem, memory, &normal.each, of_each)
    }

    /// Computes each product of a list as [`Machine::gemm`] does. Shapes and flags may differ from one product to the next. If the
    /// processor computes the list, each of its threads takes some of the products.
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
    /// The shapes of one do not agree: then nothing is written, and the context `number` says which, counted from 0. Or a device
    /// failed.
    pub fn gemm_list<'a, T: Scalar>(&self, list: impl IntoIterator<Item = Gemm<'a, T>>) -> Result<()> {
        let list = checked(list, Gemm::check)?;
        let calls = list.iter().map(|args| {
            let (problem, memory) = gemm::normalise(args);
            Call { problem: Problem::Gemm(problem), memory, is_empty: problem.is_empty() }
        });
        self.run_list(calls.collect())
    }

    /// Factors each matrix of a list as [`Machine::getrf_into`] does, and returns the [`Info`] of each. Shapes may differ.
    ///
    /// # Errors
    /// As [`Machine::gemm_list`].
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

    /// Solves each system of a list as [`Machine::getrs`] does. Shapes and flags may differ.
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot is exactly zero. The error's context `number` is
    /// the index, from 0, of that call in the list; no right-hand side is changed. Else as [`Machine::gemm_list`].
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

    /// Runs a batch in one go where its matrices are small and lie side by side, else matrix by matrix.
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
        if let Some(driver) = self.direct(problem.dtype(), problem.flops(), &joined) {
            // SAFETY: checked host memory, uniquely borrowed where it is written.
            return unsafe { driver.launch(&problem.instruction(count, &joined)) };
        }
        match self.run(&Problem::Batched(*problem), &joined) {
            // a single call is cut into tiles where a device has no memory for one matrix
            Err(error) if error.kind().is_out_of_memory() && error.is_untouched() => one_by_one(),
            outcome => outcome,
        }
    }

    fn run_list(&self, mut calls: Vec<Call>) -> Result<()> {
        calls.retain(|call| !call.is_empty);
        let mut done = 0;
        for calls in calls.chunks(CALLS_AT_ONCE) {
            self.run_calls(calls, &mut done).map_err(|error| {
                // what an error says of its own call is not all: others have written
                if done > 0 { error.with_outputs("partly written") } else { error }
            })?;
        }
        Ok(())
    }

    /// Runs some calls of a list, and adds how many are done.
    fn run_calls(&self, calls: &[Call], done: &mut usize) -> Result<()> {
        let memory: Vec<RawMat> = calls.iter().flat_map(|call| call.memory).collect();
        let of_call = |call: &Call| {
            let steps = call.problem.instructions().expect("each of these routines is a few instructions");
            steps.into_iter().map(|step| step.map(|operand| call.memory[operand])).collect::<Vec<_>>()
        };
        let length = of_call(&calls[0]).len();
        let instructions: Vec<Instruction<RawMat>> = calls.iter().flat_map(of_call).collect();
        let flops = |call: &[Instruction<RawMat>]| call.iter().map(Instruction::flops).sum();
        // the largest call decides: each must be too small for other devices
        let largest = instructions.chunks_exact(length).map(flops).fold(0.0, f64::max);
        let driver = self.direct(calls[0].problem.dtype(), largest, &memory).or_else(|| self.lone_processor(&memory));
        let Some(driver) = driver else {
            return calls.iter().try_for_each(|call| {
                self.run(&call.problem, &call.memory)?;
                *done += 1;
                Ok(())
            });
        };
        // SAFETY: checked host memory, uniquely borrowed where it is written: calls do not conflict.
        unsafe { driver.launch_sequences(&instructions, length)? }
        *done += calls.len();
        Ok(())
    }

    /// Refuses factors of a batch of which a pivot is exactly zero.
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
        zero.map_or(Ok(()), |(i, pivot)| Err(singular("getrs_batched", pivot, B_STAYS).with("matrix", i)))
    }
}

/// Arguments that have all passed their check.
fn checked<A, C>(list: impl IntoIterator<Item = A>, check: impl Fn(A) -> Result<C>) -> Result<Vec<C>> {
    let numbered = |(number, args)| check(args).map_err(|error: Error| error.with("number", number).untouched());
    list.into_iter().enumerate().map(numbered).collect()
}
