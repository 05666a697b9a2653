//! Calls of Lapidary on matrices in device memory.

use lapidary::{DeviceMatrix, Gemm, Getrf, Machine, MatMut, MatRef, Op, Scalar, Trsm};

use super::Prepared;
use super::problem::{Operands, Problem, Product};

/// A call of Lapidary with its operands. A product has a matrix B and a solve too.
struct Ours<'m, T: Scalar> {
    machine: &'m Machine,
    problem: Problem,
    a: DeviceMatrix<T>,
    b: Option<DeviceMatrix<T>>,
    result: DeviceMatrix<T>,
    ipiv: Vec<i32>,
}

/// Copies the operands to the device of the machine.
///
/// # Errors
/// The device has too little memory.
pub fn prepare<'m, T: Scalar>(machine: &'m Machine, operands: &Operands<T>) -> Result<Box<dyn Prepared<T> + 'm>, String> {
    let prepared = new(machine, operands).map_err(|error| error.to_string())?;
    Ok(Box::new(prepared))
}

fn new<'m, T: Scalar>(machine: &'m Machine, operands: &Operands<T>) -> lapidary::Result<Ours<'m, T>> {
    let Operands { problem, a, b } = operands;
    let [of_a, of_b, of_c] = problem.shapes();
    let upload = |data: &[T], (rows, cols)| machine.upload(MatRef::col_major(data, rows, cols)?);
    let b = if b.is_empty() { None } else { Some(upload(b, of_b)?) };
    let result = upload(&operands.unwritten(), of_c)?;
    Ok(Ours { machine, problem: *problem, a: upload(a, of_a)?, b, result, ipiv: vec![0; of_c.0] })
}

impl<T: Scalar> Ours<'_, T> {
    fn product(&mut self, product: Product, times: usize) -> lapidary::Result<()> {
        let [op_a, op_b] = product.trans.map(|trans| if trans { Op::Trans } else { Op::NoTrans });
        let b = self.b.as_ref().expect("a product has a matrix B");
        let stream = self.machine.stream(b.device())?;
        for _ in 0..times {
            stream.gemm(Gemm::new(self.a.view(), b.view(), self.result.view_mut()).op_a(op_a).op_b(op_b))?;
        }
        stream.wait()
    }

    fn solve(&mut self) -> lapidary::Result<()> {
        self.result.copy_from(self.b.as_ref().expect("a solve has a matrix B"))?;
        self.machine.trsm(Trsm::new(self.a.view(), self.result.view_mut()))
    }

    fn factor(&mut self) -> lapidary::Result<()> {
        self.result.copy_from(&self.a)?;
        // A zero pivot makes the check fail.
        self.machine.getrf_into(Getrf::new(self.result.view_mut(), &mut self.ipiv)).map(drop)
    }
}

impl<T: Scalar> Prepared<T> for Ours<'_, T> {
    fn name(&self) -> &'static str {
        "ours"
    }

    fn run(&mut self, times: usize) -> Result<(), String> {
        let outcome = match self.problem {
            Problem::Product(product) => self.product(product, times),
            Problem::Solve { .. } => (0..times).try_for_each(|_| self.solve()),
            Problem::Factors { .. } => (0..times).try_for_each(|_| self.factor()),
        };
        outcome.map_err(|error| error.to_string())
    }

    fn read(&self, to: &mut [T]) -> Result<Vec<usize>, String> {
        let [.., (rows, cols)] = self.problem.shapes();
        let view = MatMut::col_major(to, rows, cols).map_err(|error| error.to_string())?;
        self.result.download(view).map_err(|error| error.to_string())?;
        // A pivot that no call wrote as a row makes the check fail.
        Ok(self.ipiv.iter().map(|&pivot| usize::try_from(pivot).unwrap_or(usize::MAX)).collect())
    }
}
