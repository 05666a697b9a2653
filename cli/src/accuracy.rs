//! Measures the error of a solution with respect to the matrices as they were read from files. The residuals are computed in twice
//! the precision of `f64`, without the routines that computed the solution. The error measures are bounds 8 and 13 of
//! `docs/numerics.md`.

use lapidary::{Equilibration, Lu, Op, Scalar};
use lapidary_conformance::oracle::double::two_sum;
use rayon::prelude::*;

use crate::dense::{Dense, larger, largest};
use crate::failure::Result;

/// Number of columns of X whose residuals one pass over A computes.
const LANES: usize = 4;

type Lanes = [f64; LANES];

/// The system A·X = B as it was read from files, and the scales R and C with which its residual is measured.
pub struct Reference<'a, S> {
    a: &'a Dense<S>,
    b: &'a Dense<S>,
    scales: &'a Equilibration,
    /// The 1-norm of the scaled matrix, ‖R·A·C‖₁.
    norm: f64,
    /// The largest magnitude of an element of R·A·C.
    size: f64,
}

/// Error measures of a solution, computed from its residual.
pub struct Measured {
    /// The residual of LAPACK's dget02 for the scaled system, ‖b − A·x‖₁ / (‖A‖₁·‖x‖₁·ε), for each column of X.
    pub backward_errors: Vec<f64>,
    /// For each row, an upper bound of the largest |b − A·x| / max|x| over all columns.
    residual: Vec<f64>,
    /// For each scaled unknown, the power of two that converts it to the units of A and B, divided by the largest |x|.
    units: Vec<f64>,
}

/// A column of X, scaled so that its largest element is about one.
struct Column {
    x: Vec<f64>,
    /// Exponent of the power of two by which the column was divided, after the scales of the unknowns had been removed.
    shift: i32,
    /// Significand of the largest |x| of the column before scaling: this largest |x|, divided by `2^shift`, is `mantissa ·
    /// 2^spread`.
    mantissa: f64,
    spread: i32,
}

/// Exponent of the largest power of two that does not exceed |`value`|. `None` for zero, infinity and NaN.
fn exponent(value: f64) -> Option<i32> {
    (value != 0.0 && value.is_finite()).then(|| libm::ilogb(value))
}

impl Column {
    /// Scales a column of X. If the column is zero, its scale is that of the column of B, so that the residual, which then equals
    /// B, does not underflow.
    fn new<T: Scalar>(x: &[T], b: impl Iterator<Item = f64>, scales: &Equilibration) -> Column {
        let values = || x.iter().map(|value| value.to_f64());
        let sizes = values().zip(scales.cols()).filter_map(|(x, c)| exponent(x).map(|e| e - c));
        let shift = sizes.max().or_else(|| b.zip(scales.rows()).filter_map(|(b, r)| exponent(b).map(|e| e + r)).max());
        let shift = shift.unwrap_or(0);
        let size = values().map(f64::abs).fold(0.0, larger);
        let spread = exponent(size).unwrap_or(0);
        let scaled = values().zip(scales.cols()).map(|(x, c)| libm::scalbn(x, -c - shift)).collect();
        Column { x: scaled, shift, mantissa: libm::scalbn(size, -spread), spread: spread - shift }
    }
}

impl<'a, S: Scalar> Reference<'a, S> {
    /// Takes a system whose residuals are measured with `scales`, and computes the norm of the scaled A.
    pub fn new(a: &'a Dense<S>, b: &'a Dense<S>, scales: &'a Equilibration) -> Self {
        let mut columns = vec![(0.0, 0.0); a.cols()];
        a.fold(Op::Trans, &vec![(); a.rows()], &mut columns, |(sum, size), (), i, j, value| {
            let scaled = scale(scales, i, j, value).abs();
            *sum += scaled;
            *size = larger(*size, scaled);
        });
        let (sums, sizes): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        Reference { a, b, scales, norm: largest(&sums), size: largest(&sizes) }
    }

    /// ‖R·A·C‖₁, the 1-norm of the scaled A.
    pub fn norm_one(&self) -> f64 {
        self.norm
    }

    /// Growth of the factorisation, max|u_ij| / max|a_ij|. The larger the growth, the less accurate are the factors.
    pub fn growth<T: Scalar>(&self, lu: &Lu<'_, T>) -> f64 {
        let (factors, n) = (lu.factors(), self.a.cols());
        let upper = (0..n).flat_map(|j| (0..=j).map(move |i| (i, j)));
        upper.map(|(i, j)| factors.at(i, j).abs().to_f64()).fold(0.0, larger) / self.size
    }

    /// Measures all columns of X. The number of threads depends on the number of multiplications.
    pub fn measure<T: Scalar>(&self, x: &Dense<T>) -> Measured {
        let (n, nrhs) = (self.b.rows(), self.b.cols());
        let columns: Vec<&[T]> = x.data().chunks(n).collect();
        let b = |k: usize| (0..n).map(move |i| self.b.view().at(i, k).to_f64());
        let column = |k: usize| Column::new(columns[k], b(k), self.scales);
        let columns = |first: usize| (first..nrhs.min(first + LANES)).map(column);
        let spread = (0..nrhs).map(|k| column(k).spread).max().unwrap_or(0);
        let units = self.scales.cols().iter().map(|c| libm::scalbn(1.0, c - spread)).collect();
        let of_block = |first: usize| {
            let columns: Vec<Column> = columns(first).collect();
            let sums = self.residuals(first, &columns);
            let errors: Vec<f64> =
                columns.iter().enumerate().map(|(l, column)| self.backward_error::<T>(&sums, l, column)).collect();
            let weights: Vec<f64> =
                columns.iter().map(|column| libm::scalbn(1.0 / column.mantissa, spread - column.spread)).collect();
            let at_least = |sum: &Sum| weights.iter().enumerate().map(|(l, &weight)| sum.at_least(l, n, weight)).fold(0.0, larger);
            (errors, sums.iter().map(at_least).collect::<Vec<f64>>())
        };
        let blocks: Vec<_> = (0..nrhs).into_par_iter().step_by(LANES).map(of_block).collect();
        let (mut errors, mut residual) = (Vec::with_capacity(nrhs), vec![0.0; n]);
        for (of_block, most) in blocks {
            errors.extend(of_block);
            residual.iter_mut().zip(most).for_each(|(most, value)| *most = larger(*most, value));
        }
        Measured { backward_errors: errors, residual, units }
    }

    /// The scaled residuals b − A·x of up to [`LANES`] columns, one sum for each row.
    fn residuals(&self, first: usize, columns: &[Column]) -> Vec<Sum> {
        let lanes = |f: &dyn Fn(usize, &Column) -> f64| {
            let mut values = [0.0; LANES];
            columns.iter().enumerate().for_each(|(l, column)| values[l] = f(l, column));
            values
        };
        let b = self.b.view();
        let row = |(i, r): (usize, &i32)| lanes(&|l, column| libm::scalbn(b.at(i, first + l).to_f64(), r - column.shift));
        let mut sums: Vec<Sum> = self.scales.rows().iter().enumerate().map(row).map(Sum::new).collect();
        let x: Vec<Halves> = (0..self.a.cols()).map(|j| Halves::new(lanes(&|_, column| column.x[j]))).collect();
        self.a.fold(Op::NoTrans, &x, &mut sums, |sum, x, i, j, value| sum.subtract(scale(self.scales, i, j, value), x));
        sums
    }

    fn backward_error<T: Scalar>(&self, sums: &[Sum], l: usize, column: &Column) -> f64 {
        let error: f64 = sums.iter().map(|sum| sum.value(l).abs()).sum();
        let x: f64 = column.x.iter().map(|x| x.abs()).sum();
        // For X = 0 the backward error is zero if the residual is zero, else infinite.
        if error == 0.0 { 0.0 } else { error / (2.0 * T::UNIT_ROUNDOFF * self.norm * x) }
    }
}

fn scale(scales: &Equilibration, i: usize, j: usize, value: f64) -> f64 {
    match scales.rows()[i] + scales.cols()[j] {
        0 => value,
        power => libm::scalbn(value, power),
    }
}

impl Measured {
    /// The largest backward error of all columns, or NaN if a backward error is NaN.
    pub fn backward_error(&self) -> f64 {
        largest(&self.backward_errors)
    }

    /// Bound 13 of `docs/numerics.md`: an upper bound, between 0 and 1, of the relative error of X. The error of each column of X
    /// is divided by the largest element of this column.
    pub fn error_bound<T: Scalar>(&self, lu: &Lu<'_, T>, growth: f64, rcond: f64) -> Result<f64> {
        let doubt = growth * T::UNIT_ROUNDOFF / rcond; // relative uncertainty of the inverse that the factors represent
        let computed = lu.error_bound(&self.residual, &self.units)?;
        let of_inverse = computed / (1.0 - doubt);
        let of_solution = of_inverse / (1.0 - of_inverse);
        let is_sound = doubt < 0.5 && of_inverse < 0.5; // false if a value is NaN
        Ok(if is_sound { of_solution.max(T::UNIT_ROUNDOFF / rcond).min(1.0) } else { 1.0 })
    }
}

/// Numbers, each with the leading half of its digits (Dekker). A product of two halves is exact.
struct Halves {
    value: Lanes,
    head: Lanes,
}

impl Halves {
    fn new(value: Lanes) -> Halves {
        Halves { value, head: value.map(head) }
    }
}

fn head(value: f64) -> f64 {
    let spread = 134_217_729.0 * value; // the factor is 2^27 + 1
    spread - (spread - value)
}

/// Sums of products in twice the working precision: `Dot2` of Ogita, Rump and Oishi. Dekker's product needs no fused multiply-add,
/// so that the compiler can vectorise the computation for every processor.
struct Sum {
    value: Lanes,
    lost: Lanes,
    magnitudes: Lanes,
}

impl Sum {
    fn new(value: Lanes) -> Sum {
        Sum { value, lost: [0.0; LANES], magnitudes: value.map(f64::abs) }
    }

    /// Subtracts a·x from the sum in each lane.
    fn subtract(&mut self, a: f64, x: &Halves) {
        let a = -a;
        let a_head = head(a);
        let a_tail = a - a_head;
        for l in 0..LANES {
            let (x, x_head) = (x.value[l], x.head[l]);
            let (x_tail, product) = (x - x_head, a * x);
            let lost = a_tail * x_tail - (((product - a_head * x_head) - a_tail * x_head) - a_head * x_tail);
            let (sum, carry) = two_sum(self.value[l], product);
            self.value[l] = sum;
            self.lost[l] += lost + carry;
            self.magnitudes[l] += product.abs();
        }
    }

    fn value(&self, l: usize) -> f64 {
        self.value[l] + self.lost[l]
    }

    /// Returns an upper bound of |sum|·`weight`, which includes the rounding errors of `Dot2`.
    fn at_least(&self, l: usize, terms: usize, weight: f64) -> f64 {
        let rounding = 2.0 * (terms + 2) as f64 * f64::UNIT_ROUNDOFF;
        let bound = self.value(l).abs() * (1.0 + rounding) + rounding * rounding * self.magnitudes[l];
        // A zero column has an infinite weight. If the bound is zero, the product with this weight would be NaN, although the
        // column is exact.
        if bound == 0.0 { 0.0 } else { bound * weight }
    }
}
