//! Calls of cuBLAS and cuSOLVER on matrices in device memory.

use super::Prepared;
use super::problem::{Operands, Problem, Product};
use crate::cublas::{Array, Cublas, Real};
use crate::cusolver::{Cusolver, Matrix};

/// A product of cuBLAS.
struct Multiply<'c, T> {
    cublas: &'c Cublas,
    product: Product,
    matrices: [Array<'c, T>; 3],
}

/// A triangular solve of cuBLAS.
struct Solve<'c, T> {
    cublas: &'c Cublas,
    shape: (usize, usize),
    /// The matrices A, B and X.
    matrices: [Array<'c, T>; 3],
}

/// A factorisation of cuSOLVER.
struct Factor<'c, T> {
    cusolver: &'c Cusolver<'c>,
    matrix: Matrix<'c, T>,
}

/// Copies the operands of a product or a solve to the device. Returns `None` for other routines.
///
/// # Errors
/// The device has too little memory.
pub fn cublas<'c, T: Real + 'c>(cublas: &'c Cublas, operands: &Operands<T>) -> Result<Option<Box<dyn Prepared<T> + 'c>>, String> {
    let upload = || Ok::<_, String>([cublas.array(&operands.a)?, cublas.array(&operands.b)?, cublas.array(&operands.unwritten())?]);
    Ok(match operands.problem {
        Problem::Product(product) => Some(Box::new(Multiply { cublas, product, matrices: upload()? })),
        Problem::Solve { n, nrhs } => Some(Box::new(Solve { cublas, shape: (n, nrhs), matrices: upload()? })),
        Problem::Factors { .. } | Problem::System { .. } => None,
    })
}

/// Copies the matrix of a factorisation to the device. Returns `None` for other routines.
///
/// # Errors
/// The device has too little memory.
pub fn cusolver<'c, T: Real + 'c>(
    cusolver: &'c Cusolver<'c>,
    operands: &Operands<T>,
) -> Result<Option<Box<dyn Prepared<T> + 'c>>, String> {
    Ok(match operands.problem {
        Problem::Factors { n } => Some(Box::new(Factor { cusolver, matrix: cusolver.prepare(n, &operands.a)? })),
        Problem::Product(_) | Problem::Solve { .. } | Problem::System { .. } => None,
    })
}

impl<T: Real> Prepared<T> for Multiply<'_, T> {
    fn name(&self) -> &'static str {
        "cublas"
    }

    fn run(&mut self, times: usize) -> Result<(), String> {
        self.cublas.gemm(self.product, self.matrices.each_ref().map(Array::memory), times)
    }

    fn read(&self, to: &mut [T]) -> Result<Vec<usize>, String> {
        self.cublas.download(self.matrices[2].memory(), to).map(|()| Vec::new())
    }
}

impl<T: Real> Prepared<T> for Solve<'_, T> {
    fn name(&self) -> &'static str {
        "cublas"
    }

    fn run(&mut self, times: usize) -> Result<(), String> {
        self.cublas.trsm(self.shape, self.matrices.each_ref().map(Array::memory), times)
    }

    fn read(&self, to: &mut [T]) -> Result<Vec<usize>, String> {
        self.cublas.download(self.matrices[2].memory(), to).map(|()| Vec::new())
    }
}

impl<T: Real> Prepared<T> for Factor<'_, T> {
    fn name(&self) -> &'static str {
        "cusolver"
    }

    fn run(&mut self, times: usize) -> Result<(), String> {
        self.cusolver.getrf(&self.matrix, times)
    }

    fn read(&self, to: &mut [T]) -> Result<Vec<usize>, String> {
        self.cusolver.read(&self.matrix, to)
    }
}
