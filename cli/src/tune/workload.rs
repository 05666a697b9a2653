//! What the worker process runs to measure a candidate.

use lapidary::kernels::space::Task;
use lapidary::{Batch, BatchMut, Gemm, GemmBatched, GetrfBatched, Layout, Machine, Op, Routine, Scalar};

use super::message::Call;
use crate::bench::on_device::OnDevice;
use crate::bench::placement::Placement;
use crate::bench::problem::{Check, Problem};
use crate::dense::{Dense, larger};
use crate::failure::Result;
use crate::residual::{self, LU_THRESHOLD, RATIO_THRESHOLD};

/// A call with its operands in device memory.
pub trait Workload {
    /// Restores the operands for the next call.
    fn reset(&mut self) -> Result<()>;
    /// Makes the call.
    fn run(&mut self) -> Result<()>;
    /// Checks the result of the call.
    fn check(&mut self) -> Result<Check>;
    /// Makes other calls with the same operands and checks their results. The result is `None` if there are none.
    fn check_others(&mut self) -> Result<Option<Check>> {
        Ok(None)
    }
    /// Makes the call `times` times. `None` if the operands must be restored before each call.
    fn repeat(&mut self, times: usize) -> Option<Result<()>>;
}

/// Makes the operands of a call.
pub fn workload<'m, T: Scalar>(call: &Call, machine: &'m Machine) -> Result<Box<dyn Workload + 'm>> {
    let task = call.task()?;
    Ok(match task {
        Task::Gemm | Task::Trsm | Task::Trtri | Task::Getrf | Task::Laswp => {
            let problem = Problem::<T>::new(call.shape()?, call.seed, machine, Placement::Resident)?;
            Box::new(problem.padded(call.is_padded))
        }
        Task::GemmBatched | Task::GetrfBatched | Task::Scale => Box::new(Columns::<T>::new(call, task, machine)?),
    })
}

impl<T: Scalar> Workload for Problem<'_, T> {
    fn reset(&mut self) -> Result<()> {
        Problem::reset(self)
    }

    fn run(&mut self) -> Result<()> {
        self.ours()
    }

    fn check(&mut self) -> Result<Check> {
        self.check_ours()
    }

    fn check_others(&mut self) -> Result<Option<Check>> {
        self.check_scaled()
    }

    fn repeat(&mut self, times: usize) -> Option<Result<()>> {
        // a product overwrites no operand that it reads
        (self.shape().routine == Routine::Gemm).then(|| Problem::repeat(self, times))
    }
}

/// Matrices side by side: a batch, or a matrix that is multiplied by a number.
struct Columns<'m, T: Scalar> {
    machine: &'m Machine,
    task: Task,
    ops: [Op; 2],
    is_padded: bool,
    /// Number of matrices.
    count: usize,
    /// A and B before each call. Only a product has a second factor, but all tasks have the memory.
    inputs: [Dense<T>; 2],
    /// A, B and C on the device.
    on: [OnDevice<T>; 3],
    ipiv: Vec<i32>,
    info: Vec<i32>,
}

/// The number by which a matrix is multiplied. Its magnitude is 1, so that repeated calls do not overflow.
const FACTOR: f64 = -1.0;

impl<'m, T: Scalar> Columns<'m, T> {
    fn new(call: &Call, task: Task, machine: &'m Machine) -> Result<Self> {
        let [m, n, count] = call.sizes;
        let (count, cols) = if task == Task::Scale { (1, n) } else { (count, n * count) };
        let mut rng = fastrand::Rng::with_seed(call.seed);
        // a matrix is multiplied by a number as a product with a single term, of which only C is accessed
        let second = if task == Task::Scale { 1 } else { cols };
        let inputs = [Dense::random(m, cols, &mut rng)?, Dense::random(m, second, &mut rng)?];
        let on = Self::upload(machine, task, &inputs, call.is_padded)?;
        let ops = call.transposed.map(|is_set| if is_set { Op::Trans } else { Op::NoTrans });
        Ok(Columns {
            machine,
            task,
            ops,
            is_padded: call.is_padded,
            count,
            inputs,
            on,
            ipiv: vec![0; m.min(n) * count],
            info: vec![0; count],
        })
    }

    fn upload(machine: &Machine, task: Task, [a, b]: &[Dense<T>; 2], is_padded: bool) -> Result<[OnDevice<T>; 3]> {
        let rows = if task == Task::Scale { 1 } else { a.rows() };
        let mut c = Dense::zeros(rows, a.cols())?;
        c.fill(T::from_f64(f64::NAN));
        let upload = |matrix| OnDevice::new(machine, matrix, is_padded);
        Ok([upload(a)?, upload(b)?, upload(&c)?])
    }

    /// The result of the call: C of a product, else A.
    fn result(&self) -> Result<Dense<T>> {
        let on = if self.task == Task::GemmBatched { &self.on[2] } else { &self.on[0] };
        let mut result = Dense::zeros(self.inputs[0].rows(), self.inputs[0].cols())?;
        on.download(&mut result)?;
        Ok(result)
    }

    /// Matrix `i` of matrices that lie side by side.
    fn matrix(&self, all: &Dense<T>, i: usize) -> Dense<T> {
        let (rows, cols) = (all.rows(), all.cols() / self.count);
        Dense::from_vec(all.data()[i * rows * cols..][..rows * cols].to_vec(), rows, cols, Layout::ColMajor)
    }

    /// The residual of matrix `i` of the result.
    fn ratio(&self, result: &Dense<T>, i: usize) -> f64 {
        let [a, b] = self.inputs.each_ref();
        match self.task {
            Task::GemmBatched => {
                let (a, b) = (self.matrix(a, i), self.matrix(b, i));
                residual::product((self.ops[0], &a), (self.ops[1], &b), &self.matrix(result, i))
            }
            Task::GetrfBatched => {
                let steps = self.ipiv.len() / self.count;
                let ipiv = &self.ipiv[i * steps..][..steps];
                let ratio = residual::factorisation(&self.matrix(a, i), &self.matrix(result, i), ipiv);
                if self.info[i] == 0 { ratio } else { f64::INFINITY }
            }
            Task::Scale | Task::Gemm | Task::Trsm | Task::Trtri | Task::Getrf | Task::Laswp => {
                let pairs = a.data().iter().zip(result.data());
                pairs.filter(|(before, after)| after.to_f64() != FACTOR * before.to_f64()).count() as f64
            }
        }
    }
}

impl<T: Scalar> Workload for Columns<'_, T> {
    fn reset(&mut self) -> Result<()> {
        self.on = Self::upload(self.machine, self.task, &self.inputs, self.is_padded)?;
        self.ipiv.fill(i32::MIN);
        self.info.fill(i32::MIN);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let ([a, b, c], count) = (&mut self.on, self.count);
        match self.task {
            Task::GemmBatched => {
                let factors = [Batch::from_columns(a.view(), count)?, Batch::from_columns(b.view(), count)?];
                let product = GemmBatched::new(factors[0], factors[1], BatchMut::from_columns(c.view_mut(), count)?);
                self.machine.gemm_batched(product.op_a(self.ops[0]).op_b(self.ops[1]))?;
            }
            Task::GetrfBatched => {
                let a = BatchMut::from_columns(a.view_mut(), count)?;
                self.machine.getrf_batched(GetrfBatched::new(a, &mut self.ipiv, &mut self.info))?;
            }
            Task::Scale | Task::Gemm | Task::Trsm | Task::Trtri | Task::Getrf | Task::Laswp => {
                let product = Gemm::new(b.view(), c.view(), a.view_mut());
                self.machine.gemm(product.alpha(T::ZERO).beta(T::from_f64(FACTOR)))?;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<Check> {
        let result = self.result()?;
        let ratio = (0..self.count).map(|i| self.ratio(&result, i)).fold(0.0, larger);
        Ok(match self.task {
            Task::GemmBatched => Check { what: "checksum over bound 1", ratio, threshold: RATIO_THRESHOLD },
            Task::GetrfBatched => Check { what: "dget01 along a vector", ratio, threshold: LU_THRESHOLD },
            Task::Scale | Task::Gemm | Task::Trsm | Task::Trtri | Task::Getrf | Task::Laswp => {
                Check { what: "wrong elements", ratio, threshold: 0.0 }
            }
        })
    }

    fn repeat(&mut self, times: usize) -> Option<Result<()>> {
        (self.task != Task::GetrfBatched).then(|| (0..times).try_for_each(|_| self.run()))
    }
}
