//! Calls of Lapidary, in particular on matrices in device memory.

use lapidary::{DeviceMatrix, Gemm, Lu, Machine, MatMut, MatRef, Op, Scalar, Trsm};

use super::Prepared;
use super::problem::{Operands, Problem, Product};
use crate::measure::try_timed;

/// A call of Lapidary with its operands in device memory.
pub struct Ours<'m, T: Scalar> {
    machine: &'m Machine,
    problem: Problem,
    inputs: Vec<DeviceMatrix<T>>,
    /// The operands that a call overwrites. A product overwrites none.
    overwritten: Option<DeviceMatrix<T>>,
    result: DeviceMatrix<T>,
    pivots: Vec<usize>,
}

/// Copies the operands to the device of the machine.
///
/// # Errors
/// The device has too little memory.
pub fn prepare<'m, T: Scalar>(machine: &'m Machine, operands: &Operands<T>) -> Result<Ours<'m, T>, String> {
    new(machine, operands).map_err(|error| error.to_string())
}

fn new<'m, T: Scalar>(machine: &'m Machine, operands: &Operands<T>) -> lapidary::Result<Ours<'m, T>> {
    let problem = operands.problem;
    let upload = |data: &[T], (rows, cols)| machine.upload(MatRef::col_major(data, rows, cols)?);
    let inputs = operands.inputs().zip(problem.shapes()).map(|(data, shape)| upload(data, shape)).collect::<Result<_, _>>()?;
    let [.., of_result] = problem.shapes();
    let mut result = operands.unwritten();
    operands.restore(&mut result);
    let overwritten = if let Problem::Product(_) = problem { None } else { Some(upload(&result, of_result)?) };
    Ok(Ours { machine, problem, inputs, overwritten, result: upload(&result, of_result)?, pivots: Vec::new() })
}

/// Makes a call with matrices in host memory or in device memory. A product is added to `beta` times the result. Returns the factors of a
/// factorisation or of a system.
///
/// # Errors
/// The device fails, or a pivot of a system is zero.
pub fn call<'c, T: Scalar>(
    machine: &Machine,
    problem: Problem,
    inputs: &[MatRef<'_, T>],
    beta: T,
    result: MatMut<'c, T>,
) -> lapidary::Result<Option<Lu<'c, T>>> {
    match problem {
        Problem::Product(product) => {
            let [op_a, op_b] = ops(product);
            machine.gemm(Gemm::new(inputs[0], inputs[1], result).op_a(op_a).op_b(op_b).beta(beta)).map(|()| None)
        }
        Problem::Solve { .. } => machine.trsm(Trsm::new(inputs[0], result)).map(|()| None),
        Problem::Factors { .. } => machine.getrf(result).map(Some),
        Problem::System { n } => {
            let (a, b) = result.split_cols(n);
            machine.gesv(a, b).map(Some)
        }
    }
}

/// The pivots of LU factors. A pivot that is no row makes the check fail, and so does a zero pivot.
pub fn pivots<T: Scalar>(lu: Option<&Lu<'_, T>>) -> Vec<usize> {
    lu.map_or_else(Vec::new, |lu| lu.ipiv().iter().map(|&pivot| usize::try_from(pivot).unwrap_or(usize::MAX)).collect())
}

fn ops(product: Product) -> [Op; 2] {
    product.trans.map(|trans| if trans { Op::Trans } else { Op::NoTrans })
}

impl<T: Scalar> Ours<'_, T> {
    /// Enqueues products and waits for the last one.
    fn multiply(&mut self, product: Product, times: usize) -> lapidary::Result<()> {
        let ([a, b], [op_a, op_b]) = ([0, 1].map(|i| &self.inputs[i]), ops(product));
        let stream = self.machine.stream(b.device())?;
        for _ in 0..times {
            stream.gemm(Gemm::new(a.view(), b.view(), self.result.view_mut()).op_a(op_a).op_b(op_b))?;
        }
        stream.wait()
    }

    fn restore(&mut self) -> lapidary::Result<()> {
        self.overwritten.as_ref().map_or(Ok(()), |overwritten| self.result.copy_from(overwritten))
    }

    /// Makes one call and waits until it has ended.
    fn call(&mut self) -> lapidary::Result<()> {
        let inputs: Vec<_> = self.inputs.iter().map(DeviceMatrix::view).collect();
        let lu = call(self.machine, self.problem, &inputs, T::ZERO, self.result.view_mut())?;
        self.pivots = pivots(lu.as_ref());
        Ok(())
    }

    /// Makes one call and returns its seconds. The copy of the operands that the call overwrites is not timed.
    ///
    /// # Errors
    /// The device fails.
    pub fn timed_call(&mut self) -> Result<f64, String> {
        self.restore().and_then(|()| try_timed(|| self.call())).map_err(|error| error.to_string())
    }
}

impl<T: Scalar> Prepared<T> for Ours<'_, T> {
    fn name(&self) -> &'static str {
        "ours"
    }

    fn run(&mut self, times: usize) -> Result<(), String> {
        let outcome = match self.problem {
            Problem::Product(product) => self.multiply(product, times),
            Problem::Solve { .. } | Problem::Factors { .. } | Problem::System { .. } => {
                (0..times).try_for_each(|_| self.restore().and_then(|()| self.call()))
            }
        };
        outcome.map_err(|error| error.to_string())
    }

    fn read(&self, to: &mut [T]) -> Result<Vec<usize>, String> {
        let [.., (rows, cols)] = self.problem.shapes();
        let view = MatMut::col_major(to, rows, cols).map_err(|error| error.to_string())?;
        self.result.download(view).map_err(|error| error.to_string())?;
        Ok(self.pivots.clone())
    }
}
