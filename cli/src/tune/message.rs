//! Messages between the process that searches and the worker process that runs the candidates.

use lapidary::DType;
use lapidary::core::Routine;
use serde::{Deserialize, Serialize};

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

/// A call of a routine that candidates run: the routine, its element type and its sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Name of the routine.
    pub routine: String,
    /// Whether the matrices are in double precision.
    pub is_f64: bool,
    /// Number of rows, number of columns, and number of terms or right-hand sides.
    pub sizes: [usize; 3],
    /// Which operands of a product are transposed.
    pub transposed: [bool; 2],
    /// Seed of the random operands.
    pub seed: u64,
}

impl Call {
    /// Element type of the matrices.
    pub fn dtype(&self) -> DType {
        if self.is_f64 { DType::F64 } else { DType::F32 }
    }

    /// The routine and the sizes as a call of a benchmark.
    ///
    /// # Errors
    /// No routine has the name of the call.
    pub fn shape(&self) -> Result<Shape> {
        let routine = Routine::named(&self.routine);
        let routine = routine.ok_or_else(|| Failure::usage(format!("no routine is called `{}`", self.routine)))?;
        let [m, n, k] = self.sizes;
        let [op_a, op_b] = self.transposed.map(|is_set| if is_set { lapidary::Op::Trans } else { lapidary::Op::NoTrans });
        Ok(Shape { routine, m, n, k, nrhs: k, op_b, a: Triangle { op: op_a, ..Triangle::default() } })
    }

    /// The call in words, such as `gemm f64 m=1024 n=1024 k=1024`.
    ///
    /// # Errors
    /// No routine has the name of the call.
    pub fn words(&self) -> Result<String> {
        let sizes: String = self.shape()?.sizes().iter().map(|(name, size)| format!(" {name}={size}")).collect();
        Ok(format!("{} {}{sizes}", self.routine, self.dtype()))
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
