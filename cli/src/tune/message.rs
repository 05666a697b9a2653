//! Messages between the process that searches and the worker process that runs the candidates.

use lapidary::kernels::space::Task;
use lapidary::{DType, Routine, TrsmMode, flops};
use serde::{Deserialize, Serialize};

use crate::bench::problem::operand_shapes;
use crate::failure::{Failure, Result};
use crate::residual::Triangle;
use crate::shape::Shape;
use crate::worker;

/// A message from the worker process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// The worker process has opened the device.
    Opened,
    /// The device or the operands of a call are not to be had. The run ends with the exit status `status`.
    Refused {
        /// Exit status of the run.
        status: i32,
        /// Reason for the user.
        message: String,
    },
    /// A device is about to load or compile the program with this name.
    Program(String),
    /// A candidate has computed right results in these times.
    Measured {
        /// Time of the first call, in which the kernel is compiled and its result is checked, in seconds.
        setup_seconds: f64,
        /// Times of the calls after the first one, in seconds.
        seconds: Vec<f64>,
    },
    /// A candidate does not suit the call or has computed wrong results, as this text states. The device is in order.
    Unfit(String),
    /// A candidate did not compile or did not run, for this reason. The device may refuse all further work.
    Failed(String),
}

impl worker::Message for Message {
    fn program(self) -> Result<String, Self> {
        match self {
            Message::Program(program) => Ok(program),
            message => Err(message),
        }
    }
}

/// A call that candidates run: the task, its element type and its sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Name of the task.
    pub task: String,
    /// Whether the matrices are in double precision.
    pub is_f64: bool,
    /// Number of rows, number of columns, and number of terms. For a batch, the last number is that of the matrices.
    pub sizes: [usize; 3],
    /// Which operands of a product are transposed.
    pub transposed: [bool; 2],
    /// Whether the matrices have odd leading dimensions, with NaN between the columns.
    pub is_padded: bool,
    /// Seed of the random operands.
    pub seed: u64,
}

impl Call {
    /// Element type of the matrices.
    pub fn dtype(&self) -> DType {
        if self.is_f64 { DType::F64 } else { DType::F32 }
    }

    /// The task of the call.
    ///
    /// # Errors
    /// No task has the name of the call.
    pub fn task(&self) -> Result<Task> {
        Task::named(&self.task).ok_or_else(|| Failure::usage(format!("nothing to tune is called `{}`", self.task)))
    }

    /// The call of a routine on single matrices. For a batch, this is the call for one of its matrices.
    ///
    /// # Errors
    /// No task has the name of the call.
    pub fn shape(&self) -> Result<Shape> {
        let [m, n, k] = self.sizes;
        let (routine, k) = match self.task()? {
            Task::Gemm => (Routine::Gemm, k),
            Task::GemmBatched | Task::Scale => (Routine::Gemm, n),
            Task::Getrf | Task::GetrfBatched => (Routine::Getrf, k),
            Task::Trsm | Task::Trtri => (Routine::Trsm, k),
            Task::Laswp => (Routine::Laswp, k),
        };
        let [op_a, op_b] = self.transposed.map(|is_set| if is_set { lapidary::Op::Trans } else { lapidary::Op::NoTrans });
        let mode = if self.task()? == Task::Trtri { TrsmMode::Inverted } else { TrsmMode::Substitution };
        Ok(Shape { routine, m, n, k, nrhs: k, op_b, a: Triangle { op: op_a, ..Triangle::default() }, mode })
    }

    /// Number of floating-point operations of the call. `None` if it only moves or scales elements.
    ///
    /// # Errors
    /// No task has the name of the call.
    pub fn flops(&self) -> Result<Option<f64>> {
        let [m, n, count] = self.sizes;
        Ok(match self.task()? {
            Task::GemmBatched => Some(count as f64 * flops::gemm(m, n, n)),
            Task::GetrfBatched => Some(count as f64 * flops::getrf(m, n)),
            Task::Scale => None,
            Task::Gemm | Task::Trsm | Task::Trtri | Task::Getrf | Task::Laswp => self.shape()?.flops(),
        })
    }

    /// Numbers of rows and columns of the matrices of the call.
    ///
    /// # Errors
    /// No task has the name of the call.
    pub fn operands(&self) -> Result<Vec<(usize, usize)>> {
        let [m, n, count] = self.sizes;
        Ok(match self.task()? {
            Task::GemmBatched => vec![(m, n.saturating_mul(count)); 3],
            Task::GetrfBatched => vec![(m, n.saturating_mul(count))],
            Task::Scale => vec![(m, n)],
            Task::Gemm | Task::Trsm | Task::Trtri | Task::Getrf | Task::Laswp => operand_shapes(&self.shape()?).to_vec(),
        })
    }

    /// The call in words, such as `gemm f64 m=1024 n=1024 k=1024`.
    ///
    /// # Errors
    /// No task has the name of the call.
    pub fn words(&self) -> Result<String> {
        let sizes: String = size_names(self.task()?)
            .iter()
            .zip(self.sizes)
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, size)| format!(" {name}={size}"))
            .collect();
        Ok(format!("{} {}{sizes}", self.task, self.dtype()))
    }
}

/// The names of the sizes of a call. A size without a name is not free.
pub fn size_names(task: Task) -> [&'static str; 3] {
    match task {
        Task::Gemm => ["m", "n", "k"],
        Task::GemmBatched | Task::GetrfBatched => ["", "n", "count"],
        Task::Trsm | Task::Trtri | Task::Getrf | Task::Laswp | Task::Scale => ["m", "n", ""],
    }
}

/// The work that the searching process gives to the worker process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The call to run. The operands stay from one job to the next if the call is the same.
    pub call: Call,
    /// The candidate: a text of the database of kernels.
    pub entries: String,
    /// Number of timed calls after the first one.
    pub runs: usize,
}
