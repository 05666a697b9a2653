//! Norms of matrices in host memory.

use super::MatRef;
use crate::enums::Layout;
use crate::scalar::Scalar;

impl<T: Scalar> MatRef<'_, T> {
    /// The norm `‖A‖₁`: the largest column sum of magnitudes. The sums are computed in `f64`. The norm of an empty matrix is 0. If an
    /// element is NaN, the norm is NaN. A column sum that exceeds the range of `f64` makes the norm infinite, although the elements are
    /// finite; sums of elements in `f32` cannot exceed this range.
    ///
    /// ```
    /// # extern crate lapidary_core as lapidary; // an application uses `lapidary`
    /// use lapidary::MatRef;
    /// let a = [1.0, -2.0, 4.0, 0.5]; // column-major
    /// assert_eq!(MatRef::col_major(&a, 2, 2)?.norm_1(), 4.5);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Panics
    /// Panics if the matrix lies in the memory of a device and is not empty.
    #[must_use]
    pub fn norm_1(&self) -> f64 {
        let (m, n) = self.shape();
        // a matrix without rows may have any number of columns
        let n = if m == 0 { 0 } else { n };
        let magnitude = |i: usize, j: usize| self.at(i, j).abs().to_f64();
        match self.layout() {
            Layout::ColMajor => (0..n).map(|j| (0..m).map(|i| magnitude(i, j)).sum()).fold(0.0, larger),
            Layout::RowMajor => {
                let mut sums = vec![0.0; n];
                (0..m).for_each(|i| sums.iter_mut().enumerate().for_each(|(j, sum)| *sum += magnitude(i, j)));
                sums.into_iter().fold(0.0, larger)
            }
        }
    }
}

/// Returns the larger number, or NaN if either number is NaN.
fn larger(most: f64, value: f64) -> f64 {
    if most.is_nan() || value <= most { most } else { value }
}

#[cfg(test)]
mod tests {
    use crate::enums::Layout::{ColMajor, RowMajor};
    use crate::matrix::MatRef;

    /// The 2×3 matrix `[1 −5 0; −3 0 2]`, in both layouts and with gaps of NaN between its columns or rows.
    #[test]
    fn the_largest_column_sum_in_either_layout() {
        let gap = f64::NAN;
        let by_columns = [1.0, -3.0, gap, -5.0, 0.0, gap, 0.0, 2.0, gap];
        let by_rows = [1.0, -5.0, 0.0, gap, -3.0, 0.0, 2.0, gap];
        let a = MatRef::new(&by_columns, 2, 3, 3, ColMajor).unwrap();
        assert_eq!([a.norm_1(), a.t().norm_1()], [5.0, 6.0]);
        let a = MatRef::new(&by_rows, 2, 3, 4, RowMajor).unwrap();
        assert_eq!([a.norm_1(), a.t().norm_1()], [5.0, 6.0]);
    }

    #[test]
    fn nan_overflow_and_emptiness() {
        for (at, layout) in [(0, ColMajor), (3, ColMajor), (0, RowMajor), (3, RowMajor)] {
            let mut a = [1.0, 2.0, 3.0, f64::INFINITY];
            a[at] = f64::NAN;
            assert!(MatRef::new(&a, 2, 2, 2, layout).unwrap().norm_1().is_nan(), "{at}, {layout}");
        }
        assert_eq!(MatRef::col_major(&[f64::MAX; 2], 2, 1).unwrap().norm_1(), f64::INFINITY);
        assert_eq!(MatRef::col_major(&[f32::MAX; 2], 2, 1).unwrap().norm_1(), 2.0 * f64::from(f32::MAX));
        for layout in [ColMajor, RowMajor] {
            assert_eq!(MatRef::<f64>::new(&[], 0, usize::MAX, usize::MAX, layout).unwrap().norm_1(), 0.0);
        }
    }
}
