//! Calls of cuBLAS and cuSOLVER on matrices in device memory.

use super::Prepared;
use super::problem::{Operands, Problem, Product};
use crate::cublas::{Array, Cublas, Real};
use crate::cusolver::{Cusolver, Factors};

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
    factors: Factors<'c, T>,
}

/// Copies the operands of a product or a solve to the device. Returns `None` for a factorisation.
///
/// # Errors
/// The device has too little memory.
pub fn cublas<'c, T: Real + 'c>(cublas: &'c Cublas, operands: &Operands<T>) -> Result<Option<Box<dyn Prepared<T> + 'c>>, String> {
    let upload = || Ok::<_, String>([cublas.array(&operands.a)?, cublas.array(&operands.b)?, cublas.array(&operands.unwritten())?]);
    Ok(match operands.problem {
        Problem::Product(product) => Some(Box::new(Multiply { cublas, product, matrices: upload()? })),
        Problem::Solve { n, nrhs } => Some(Box::new(Solve { cublas, shape: (n, nrhs), matrices: upload()? })),
        Problem::Factors { .. } => None,
    })
}

/// Copies the matrix of a factorisation to the device. Returns `None` for a product or a solve.
///
/// # Errors
/// The device has too little memory.
pub fn cusolver<'c, T: Real + 'c>(
    cusolver: &'c Cusolver<'c>,
    operands: &Operands<T>,
) -> Result<Option<Box<dyn Prepared<T> + 'c>>, String> {
    Ok(match operands.problem {
        Problem::Factors { n } => Some(Box::new(Factor { cusolver, factors: cusolver.prepare(n, &operands.a)? })),
        Problem::Product(_) | Problem::Solve { .. } => None,
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
        self.cublas.download(self.matrices[2].memory(), to);
        Ok(Vec::new())
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
        self.cublas.download(self.matrices[2].memory(), to);
        Ok(Vec::new())
    }
}

impl<T: Real> Prepared<T> for Factor<'_, T> {
    fn name(&self) -> &'static str {
        "cusolver"
    }

    fn run(&mut self, times: usize) -> Result<(), String> {
        self.cusolver.getrf(&self.factors, times)
    }

    fn read(&self, to: &mut [T]) -> Result<Vec<usize>, String> {
        let (pivots, info) = self.cusolver.read(&self.factors, to);
        let from_zero = |pivot: i32| usize::try_from(i64::from(pivot) - 1).unwrap_or(usize::MAX);
        if info == 0 { Ok(pivots.into_iter().map(from_zero).collect()) } else { Err(format!("info is {info}")) }
    }
}
