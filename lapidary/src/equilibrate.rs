//! Scales the rows and columns of a linear system to similar sizes before the matrix is factored.
//!
//! Method: the scaling factors are computed as in LAPACK's `geequb` and applied by the rule of LAPACK's `laqge`; see Higham,
//! *Accuracy and Stability of Numerical Algorithms* (2002), §9.8. The scaling factors are powers of two, stored as exponents.
//! Scaling therefore causes no rounding while the scaled element stays in the range of its type, and no scaling factor overflows.

use lapidary_core::{DType, Error, Layout, MatMut, MatRef, Result, Scalar};

/// Rows (or columns) are scaled if the binary exponents of their largest elements differ by more than this number. Rows whose
/// largest elements have a ratio of 16 or more are always scaled, and rows with a ratio below 8 never are; LAPACK's `laqge` scales
/// from a ratio of ten.
const MAX_SPREAD: i32 = 3;

/// Powers of two for the rows and columns of A, such that the largest element of each scaled row or column of `A' = R·A·C` lies
/// in [1, 2).
///
/// The system `A·X = B` becomes `A'·X' = R·B·S` with `X = C·X'·S⁻¹`. S is a diagonal matrix of powers of two, which scale each
/// right-hand side into the middle of the range of its type. With equilibration, a system is solved accurately although its numbers
/// exceed the range of the computation type, or although its matrix is ill-conditioned only because its rows or columns have
/// different units.
///
/// ```
/// use lapidary::{DType, Equilibration, Machine, MatMut, MatRef, Select};
///
/// let machine = Machine::open(&"cpu:0".parse::<Select>()?)?;
/// // the elements of A are too small or too large for their squares to be representable in f32
/// let (a, b) = ([1e-30_f32, 2e30, 3e-30, 4e30], [7e-30_f32, 10e30]);
/// let (a, b) = (MatRef::col_major(&a, 2, 2)?, MatRef::col_major(&b, 2, 1)?);
///
/// let scales = Equilibration::new(a, DType::F32)?;
/// let (mut scaled, mut x) = ([0.0_f32; 4], [0.0_f32; 2]);
/// scales.scale_matrix(a, MatMut::col_major(&mut scaled, 2, 2)?)?;
/// let rhs = scales.scale_rhs(b, MatMut::col_major(&mut x, 2, 1)?)?;
/// let lu = machine.getrf(MatMut::col_major(&mut scaled, 2, 2)?)?;
/// lu.solve(MatMut::col_major(&mut x, 2, 1)?)?;
/// scales.unscale(MatMut::col_major(&mut x, 2, 1)?, &rhs.exponents)?;
/// assert!((x[0] - 1.0).abs() < 1e-6 && (x[1] - 2.0).abs() < 1e-6, "{x:?}");
/// # Ok::<(), lapidary::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Equilibration {
    rows: Vec<i32>,
    cols: Vec<i32>,
    /// Two numbers with magnitudes from 2^-range to 2^range can be multiplied without overflow or underflow.
    range: i32,
}

/// Counts of the elements that changed when they were stored in another type or at another scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rounding {
    /// Number of elements whose stored value is not exact.
    pub inexact: usize,
    /// Number of inexact elements that became zero or subnormal.
    pub underflowed: usize,
    /// Number of inexact elements that became infinite.
    pub overflowed: usize,
}

/// Exponents and rounding of right-hand sides that [`Equilibration::scale_rhs`] has scaled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScaledRhs {
    /// For each right-hand side, the exponent of the power of two that multiplies it.
    pub exponents: Vec<i32>,
    /// Number of elements that scaling has rounded.
    pub rounding: Rounding,
}

/// Returns the binary exponent of a number; `None` for zero, infinity and NaN.
pub(crate) fn exponent(value: f64) -> Option<i32> {
    (value != 0.0 && value.is_finite()).then(|| libm::ilogb(value))
}

/// Computes `value · 2^power`, rounded once.
pub(crate) fn times_power(value: f64, power: i32) -> f64 {
    if power == 0 { value } else { libm::scalbn(value, power) }
}

/// Calls `f` with the row, the column and the value of each element, in the order of memory.
pub(crate) fn for_each<T: Scalar>(a: MatRef<'_, T>, mut f: impl FnMut(usize, usize, f64)) {
    let (m, n) = a.shape();
    match a.layout() {
        Layout::ColMajor => (0..n).for_each(|j| (0..m).for_each(|i| f(i, j, a.at(i, j).to_f64()))),
        Layout::RowMajor => (0..m).for_each(|i| (0..n).for_each(|j| f(i, j, a.at(i, j).to_f64()))),
    }
}

impl Rounding {
    /// Converts `value · 2^power` to `T`, and counts the result if it is inexact, underflows or overflows.
    fn store<T: Scalar>(&mut self, value: f64, power: i32) -> T {
        let stored = T::from_f64(times_power(value, power));
        if times_power(stored.to_f64(), -power) != value {
            self.inexact += 1;
            self.underflowed += usize::from(stored.abs().to_f64() < T::MIN_POSITIVE);
            self.overflowed += usize::from(value.is_finite() && !stored.is_finite());
        }
        stored
    }
}

/// Returns an error if `from` or `to` has not `rows` rows, if their shapes differ, or if one of them does not lie in host memory.
fn check<S: Scalar, T: Scalar>(operation: &'static str, rows: usize, from: &MatRef<'_, S>, to: &MatMut<'_, T>) -> Result<()> {
    if from.shape() != to.shape() || from.rows() != rows {
        let message = format!("A has {rows} rows, the matrix is {:?}, its place is {:?}", from.shape(), to.shape());
        return Err(Error::invalid(operation, message));
    }
    on_host(operation, from.host_ptr().is_some() && to.host_ptr().is_some())
}

fn on_host(operation: &'static str, is_there: bool) -> Result<()> {
    if is_there { Ok(()) } else { Err(Error::invalid(operation, "the matrices must lie in host memory: download them first")) }
}

/// Returns the negated exponents `largest` if these exponents differ by more than [`MAX_SPREAD`] or if `always` is set, and zeros
/// otherwise. The exponents `largest` are those of the largest magnitudes of the rows (or columns). The exponent returned for a row
/// (or column) of zeros is always 0.
fn factors(largest: impl Iterator<Item = Option<i32>>, always: bool) -> Vec<i32> {
    let exponents: Vec<Option<i32>> = largest.collect();
    let known = || exponents.iter().copied().flatten();
    let spread = known().max().unwrap_or(0) - known().min().unwrap_or(0);
    let scale = always || spread > MAX_SPREAD;
    exponents.iter().map(|exponent| exponent.filter(|_| scale).map_or(0, |e| -e)).collect()
}

impl Equilibration {
    /// Computes scaling factors for a matrix that is to be factored in the precision `computed_in`.
    ///
    /// First the rows, then the columns are scaled if the binary exponents of their largest elements differ by more than three,
    /// which is a ratio of at least 8. Rows are also scaled if the largest element of A lies outside [2^-63, 2^64) for `f32` or
    /// [2^-511, 2^512) for `f64`, since the product of two such elements may overflow or underflow.
    ///
    /// # Errors
    /// An element is infinite or NaN, A does not lie in host memory, or `computed_in` is not a floating-point type.
    pub fn new<S: Scalar>(a: MatRef<'_, S>, computed_in: DType) -> Result<Self> {
        on_host("equilibrate", a.host_ptr().is_some())?;
        let range = match computed_in {
            DType::F32 => f32::MAX_EXP / 2 - 1,
            DType::F64 => f64::MAX_EXP / 2 - 1,
            DType::I32 => return Err(Error::invalid("equilibrate", "i32 is no type to factor in")),
        };
        let (m, n) = a.shape();
        let (mut row_max, mut col_max, mut bad) = (vec![0.0_f64; m], vec![0.0_f64; n], None);
        for_each(a, |i, j, value| {
            let size = value.abs();
            if !size.is_finite() {
                bad = Some((i, j, value));
            }
            row_max[i] = row_max[i].max(size);
            col_max[j] = col_max[j].max(size);
        });
        if let Some((i, j, value)) = bad {
            return Err(Error::invalid("equilibrate", format!("element ({i}, {j}) of A is {value}")));
        }
        let largest = exponent(row_max.iter().copied().fold(0.0, f64::max)).unwrap_or(0);
        let rows = factors(row_max.into_iter().map(exponent), largest.abs() > range);
        let col_sizes =
            if rows.iter().all(|&e| e == 0) { col_max.into_iter().map(exponent).collect() } else { scaled_col_sizes(a, &rows) };
        Ok(Equilibration { rows, cols: factors(col_sizes.into_iter(), false), range })
    }

    /// Whether any row or column has a scaling factor other than one.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.rows.iter().chain(&self.cols).any(|&e| e != 0)
    }

    /// Returns the exponents of the scaling factors R of the rows. Row i is multiplied by `2^rows()[i]`.
    #[must_use]
    pub fn rows(&self) -> &[i32] {
        &self.rows
    }

    /// Returns the exponents of the scaling factors C of the columns. Column j is multiplied by `2^cols()[j]`.
    #[must_use]
    pub fn cols(&self) -> &[i32] {
        &self.cols
    }

    /// `A' ← R·A·C`, rounded to the type of A'.
    ///
    /// # Errors
    /// The shape of A or A' is not that of the matrix given to [`new`](Self::new), or a matrix is not in host memory.
    pub fn scale_matrix<S: Scalar, T: Scalar>(&self, a: MatRef<'_, S>, mut scaled: MatMut<'_, T>) -> Result<Rounding> {
        check("scale_matrix", self.rows.len(), &a, &scaled)?;
        if a.cols() != self.cols.len() {
            return Err(Error::invalid("scale_matrix", format!("A has {} columns, not {}", a.cols(), self.cols.len())));
        }
        let mut rounding = Rounding::default();
        for_each(a, |i, j, value| scaled.set(i, j, rounding.store(value, self.rows[i] + self.cols[j])));
        Ok(rounding)
    }

    /// `B' ← R·B·S`, rounded to the type of B'. A right-hand side has a scaling factor other than one in S only if the largest
    /// element of its column of R·B lies outside [2^-63, 2^64) for computation in `f32`, or [2^-511, 2^512) for `f64`.
    ///
    /// # Errors
    /// B and B' differ in shape, have another number of rows than A, or are not in host memory.
    pub fn scale_rhs<S: Scalar, T: Scalar>(&self, b: MatRef<'_, S>, mut scaled: MatMut<'_, T>) -> Result<ScaledRhs> {
        check("scale_rhs", self.rows.len(), &b, &scaled)?;
        let mut sizes = vec![None; b.cols()];
        for_each(b, |i, k, value| sizes[k] = sizes[k].max(exponent(value).map(|e| e + self.rows[i])));
        let power = |size: &Option<i32>| size.filter(|e| e.abs() > self.range).map_or(0, |e| -e);
        let exponents: Vec<i32> = sizes.iter().map(power).collect();
        let mut rounding = Rounding::default();
        for_each(b, |i, k, value| scaled.set(i, k, rounding.store(value, self.rows[i] + exponents[k])));
        Ok(ScaledRhs { exponents, rounding })
    }

    /// `X ← C·X·S⁻¹`: converts the solution to the units of A and B. `exponents` is the field [`ScaledRhs::exponents`] of the
    /// result of [`scale_rhs`](Self::scale_rhs).
    ///
    /// # Errors
    /// The number of rows of X is not the number of columns of A, the number of columns of X is not that of `exponents`, or X is
    /// not in host memory.
    pub fn unscale<T: Scalar>(&self, mut x: MatMut<'_, T>, exponents: &[i32]) -> Result<Rounding> {
        on_host("unscale", x.host_ptr().is_some())?;
        if x.shape() != (self.cols.len(), exponents.len()) {
            let message = format!("X is {:?}, not {:?}", x.shape(), (self.cols.len(), exponents.len()));
            return Err(Error::invalid("unscale", message));
        }
        let mut rounding = Rounding::default();
        for (k, power) in exponents.iter().enumerate() {
            for (j, col) in self.cols.iter().enumerate() {
                x.set(j, k, rounding.store(x.at(j, k).to_f64(), col - power));
            }
        }
        Ok(rounding)
    }
}

/// Returns the exponents of the largest elements of the columns of R·A.
fn scaled_col_sizes<S: Scalar>(a: MatRef<'_, S>, rows: &[i32]) -> Vec<Option<i32>> {
    let mut sizes = vec![None; a.cols()];
    for_each(a, |i, j, value| sizes[j] = sizes[j].max(exponent(value).map(|e| e + rows[i])));
    sizes
}
