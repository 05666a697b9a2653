//! Factors that solve nothing, since a pivot is exactly zero.

use lapidary_core::algorithms::{Problem, gemm};
use lapidary_core::{Error, Gemm, MatMut, MatRef, Result, Scalar};

use crate::machine::Machine;

impl Machine {
    /// Refuses factors of which a pivot is exactly zero.
    pub(crate) fn require_pivots<T: Scalar>(&self, operation: &'static str, lu: MatRef<'_, T>) -> Result<()> {
        let zero = self.pivots(operation, lu)?.iter().position(|&pivot| pivot == T::ZERO);
        zero.map_or(Ok(()), |zero| Err(singular(operation, zero + 1, B_STAYS)))
    }

    /// The pivots, which are the diagonal of U, of factors in host memory or on a device.
    pub(crate) fn pivots<T: Scalar>(&self, operation: &'static str, lu: MatRef<'_, T>) -> Result<Vec<T>> {
        let pivots = lu.diagonal();
        match pivots.host_ptr() {
            Some(_) => Ok((0..pivots.cols()).map(|i| pivots.at(0, i)).collect()),
            None => self.fetch(operation, pivots),
        }
    }

    /// A row of a matrix on a device, by way of a product: one times the row.
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

/// What became of the matrices of a solve with factors.
pub(crate) const B_STAYS: &str = "as they were";

/// What became of the matrices of a solve that factors first.
pub(crate) const A_IS_FACTORED: &str = "A holds its factors, B is as it was";

/// The error of a solve with that zero pivot, counted from 1.
pub(crate) fn singular(operation: &'static str, pivot: usize, outputs: &str) -> Error {
    Error::singular(operation, pivot).with("outputs", outputs)
}
