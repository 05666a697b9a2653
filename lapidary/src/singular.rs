//! Errors of solves with LU factors that have a zero pivot.

use lapidary_core::algorithms::{Problem, gemm};
use lapidary_core::{Error, Gemm, MatMut, MatRef, Outputs, Result, Scalar};

use crate::machine::Machine;

impl Machine {
    /// Returns an error if a pivot of the factors is exactly zero.
    pub(crate) fn require_pivots<T: Scalar>(&self, operation: &'static str, lu: MatRef<'_, T>) -> Result<()> {
        let zero = self.pivots(operation, lu)?.iter().position(|&pivot| pivot == T::ZERO);
        zero.map_or(Ok(()), |zero| Err(singular(operation, zero + 1, Outputs::Unchanged)))
    }

    /// Returns the pivots, the diagonal of U. The factors may lie in host memory or on a device.
    pub(crate) fn pivots<T: Scalar>(&self, operation: &'static str, lu: MatRef<'_, T>) -> Result<Vec<T>> {
        let pivots = lu.diagonal();
        match pivots.host_ptr() {
            Some(_) => Ok((0..pivots.cols()).map(|i| pivots.at(0, i)).collect()),
            None => self.fetch(operation, pivots),
        }
    }

    /// Copies a row of a matrix on a device to host memory. The device computes the product of the 1×1 matrix `one` and the row, and
    /// transfers only this product.
    fn fetch<T: Scalar>(&self, operation: &'static str, row: MatRef<'_, T>) -> Result<Vec<T>> {
        let (one, n) = ([T::ONE], row.cols());
        let mut fetched = vec![T::ZERO; n];
        let product = Gemm::new(MatRef::col_major(&one, 1, 1)?, row, MatMut::row_major(&mut fetched, 1, n)?);
        let (problem, memory) = gemm::normalise(&product.check()?);
        if !problem.is_empty() {
            self.run_for(operation, &Problem::Gemm(problem), &memory)?;
        }
        Ok(fetched)
    }
}

/// The error of a solve with a zero pivot. `pivot` is the index of the zero pivot, counted from 1.
pub(crate) fn singular(operation: &'static str, pivot: usize, outputs: Outputs) -> Error {
    Error::singular(operation, pivot).with_outputs(outputs)
}
