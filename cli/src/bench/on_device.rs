//! Matrices in device memory, optionally with an odd leading dimension.

use lapidary::{DeviceMatrix, Machine, MatMut, MatRef, Scalar};

use crate::dense::Dense;
use crate::failure::{Failure, Result};

/// A matrix in device memory. Its columns may be further apart than they are long.
pub struct OnDevice<T: Scalar> {
    all: DeviceMatrix<T>,
    rows: usize,
}

impl<T: Scalar> OnDevice<T> {
    /// Copies a matrix to the device. If `is_padded` is set, the leading dimension is odd and larger than the number of rows. The elements
    /// between the columns are NaN.
    pub fn new(machine: &Machine, matrix: &Dense<T>, is_padded: bool) -> Result<Self> {
        let rows = matrix.rows();
        if !is_padded {
            return Ok(OnDevice { all: machine.upload(matrix.view())?, rows });
        }
        let ld = (rows + 1) | 1;
        let mut padded = Dense::zeros(ld, matrix.cols())?;
        padded.fill(T::from_f64(f64::NAN));
        for (to, from) in padded.data_mut().chunks_mut(ld).zip(matrix.data().chunks(rows.max(1))) {
            to[..rows].copy_from_slice(from);
        }
        Ok(OnDevice { all: machine.upload(padded.view())?, rows })
    }

    /// Index of the device that holds the matrix.
    pub fn device(&self) -> usize {
        self.all.device()
    }

    /// The matrix for reading.
    pub fn view(&self) -> MatRef<'_, T> {
        let all = self.all.view();
        all.sub(0..self.rows, 0..all.cols())
    }

    /// The matrix for writing.
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        let all = self.all.view_mut();
        let cols = all.cols();
        all.sub(0..self.rows, 0..cols)
    }

    /// Copies the matrix to host memory.
    ///
    /// # Errors
    /// The device fails, or a call has written between the columns.
    pub fn download(&self, to: &mut Dense<T>) -> Result<()> {
        let ld = self.all.view().rows();
        if ld == self.rows {
            return Ok(self.all.download(to.view_mut())?);
        }
        let mut padded = Dense::zeros(ld, to.cols())?;
        self.all.download(padded.view_mut())?;
        for (from, to) in padded.data().chunks(ld).zip(to.data_mut().chunks_mut(self.rows.max(1))) {
            to.copy_from_slice(&from[..self.rows]);
            if from[self.rows..].iter().any(|between| !between.to_f64().is_nan()) {
                return Err(Failure::usage("the kernel has written between the columns of a matrix"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lapidary::Select;

    use super::*;

    #[test]
    fn a_padded_matrix_has_an_odd_leading_dimension_and_returns_as_it_was() {
        let machine = Machine::open(&"cpu:0".parse::<Select>().unwrap()).unwrap();
        let mut rng = fastrand::Rng::with_seed(1);
        for (rows, ld) in [(4, 5), (5, 7)] {
            let matrix = Dense::<f64>::random(rows, 3, &mut rng).unwrap();
            let mut on_device = OnDevice::new(&machine, &matrix, true).unwrap();
            assert_eq!((on_device.all.view().rows(), on_device.view().shape()), (ld, (rows, 3)));
            let mut back = Dense::zeros(rows, 3).unwrap();
            on_device.download(&mut back).unwrap();
            assert_eq!(back, matrix);
            on_device.all = machine.upload(Dense::<f64>::zeros(ld, 3).unwrap().view()).unwrap();
            assert!(on_device.download(&mut back).unwrap_err().to_string().contains("between the columns"));
        }
    }
}
