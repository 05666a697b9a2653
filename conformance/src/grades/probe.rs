//! Grades that are measured by a few calls with known operands.

use lapidary_core::{Gemm, Getrf, MatMut, MatRef, Result, Scalar};

use super::grade;
use crate::Subject;
use crate::cases::{Fill, GemmCase, GetrfCase, Rng, Shape};
use crate::oracle::Dense;
use crate::oracle::residual::growth as grown;
use crate::report::Grade;
use crate::subject::flushed;

/// Multiplies X by a matrix of ones, and returns the sum of each row of X, as the subject has computed it.
pub fn sums<S: Subject, T: Scalar>(subject: &S, x: &Dense) -> Result<Vec<f64>> {
    /// Number of columns of the matrix of ones, which is large enough that a device uses its ordinary kernel.
    const COLS: usize = 16;
    let (m, k) = (x.rows(), x.cols());
    let a: Vec<T> = x.elements().map(|(_, x)| T::from_f64(x)).collect();
    let (ones, mut c) = (vec![T::ONE; k * COLS], vec![T::ZERO; m * COLS]);
    let [a, b] = [MatRef::col_major(&a, m, k)?, MatRef::col_major(&ones, k, COLS)?];
    subject.gemm(Gemm::new(a, b, MatMut::col_major(&mut c, m, COLS)?))?;
    Ok(c[..m].iter().map(|x| x.to_f64()).collect())
}

/// Grades whether the subject treats subnormal operands and subnormal results as zero.
pub fn flushing<S: Subject, T: Scalar>(subject: &S) -> Result<Grade> {
    let (operands, results) = flushed::<S, T>(subject)?;
    let value = match (operands, results) {
        (false, false) => "operands and results are kept",
        (true, false) => "operands are taken for zero",
        (false, true) => "results are taken for zero",
        (true, true) => "operands and results are taken for zero",
    };
    let verdict = if operands || results { "flushes" } else { "keeps" };
    Ok(grade(T::DTYPE, "subnormal numbers", value, verdict, "Whether numbers below the normal ones are numbers like others."))
}

/// Grades the growth factor of a random matrix: the largest element of U divided by the largest element of A.
pub fn growth<S: Subject, T: Scalar>(subject: &S) -> Result<Grade> {
    const N: usize = 200;
    let matrix = GetrfCase::square(N, Shape::Random).matrix::<T>();
    let mut a: Vec<T> = matrix.elements().map(|(_, x)| T::from_f64(x)).collect();
    let mut ipiv = vec![0; N];
    subject.getrf(Getrf::new(MatMut::col_major(&mut a, N, N)?, &mut ipiv))?;
    let factor = grown(&Dense::from_view(MatRef::col_major(&a, N, N)?), &matrix);
    // the limit of the growth factor is twice its usual value n^(2/3)
    let verdict = if factor < 2.0 * crate::bounds::real(N).powf(2.0 / 3.0) { "usual" } else { "large" };
    let about = "max|U| over max|A| of a uniform random matrix of order 200: partial pivoting gives about n^(2/3) (Trefethen and Schreiber 1990) or less.";
    Ok(grade(T::DTYPE, "growth of a random LU", format!("{factor:.2}"), verdict, about))
}

/// Grades whether repeated calls give the same bits.
pub fn reproducible<S: Subject, T: Scalar>(subject: &S) -> Result<Grade> {
    const N: usize = 200;
    let case = GemmCase { beta: 0.5, fill: Fill::Graded, ..GemmCase::packed([N, N - 3, N + 5], 1) };
    let data = case.data::<T>();
    let matrix = Fill::Uniform.matrix::<T>(N, N, &mut Rng::new(2));
    let twice = |()| -> Result<(Dense, Dense, Vec<i32>)> {
        let mut c = data.c.clone();
        subject.gemm(data.args(&case, &mut c))?;
        let mut lu: Vec<T> = matrix.elements().map(|(_, x)| T::from_f64(x)).collect();
        let mut ipiv = vec![0; N];
        subject.getrf(Getrf::new(MatMut::col_major(&mut lu, N, N)?, &mut ipiv))?;
        Ok((c.dense(), Dense::from_view(MatRef::col_major(&lu, N, N)?), ipiv))
    };
    let first = twice(())?;
    let mut same = true;
    for () in [(); 3] {
        same &= twice(())? == first;
    }
    let (value, verdict) = if same { ("the same bits four times", "yes") } else { ("other bits from time to time", "no") };
    Ok(grade(T::DTYPE, "reproducible", value, verdict, "A product and a factorisation of order 200, each four times."))
}
