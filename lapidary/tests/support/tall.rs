//! Tests of LU of matrices with many rows or columns.

use lapidary::{Getrf, MatMut, Scalar};
use lapidary_conformance::cases::{GetrfCase, Shape};
use lapidary_conformance::oracle::Dense;
use lapidary_conformance::properties::getrf::check_large_exact;
use lapidary_conformance::{Ledger, Scope, Subject, Trial};

/// Tests panels so tall that one work-item processes many rows, and so wide that they are split more than once. The product of
/// the computed L and U must equal the matrix with exchanged rows. Of several candidates of equal magnitude, the first one must
/// be the pivot.
pub fn panels<T: Scalar>(subject: &impl Subject) {
    for (m, n) in [(9000, 12), (1200, 1100)] {
        panel::<T>(subject, m, n);
    }
    ties::<T>(subject, 9000, 12);
    nan_pivot::<T>(subject);
}

/// Tests that a column is divided by a subnormal pivot, since the reciprocal of this pivot overflows. The test of subnormal
/// pivots uses `f64`, since all devices support subnormal `f64` numbers.
pub fn subnormal_pivot(subject: &impl Subject) {
    let (m, n, least) = (4, 2, f64::from_bits(1 << 10));
    let mut lu = [2.0, 4.0, 1.0, -3.0, 6.0, 4.0, 9.0, -1.0].map(|x| x * least);
    let mut ipiv = vec![0; n];
    let info = subject.getrf(Getrf::new(MatMut::col_major(&mut lu, m, n).unwrap(), &mut ipiv)).unwrap();
    assert_eq!((info, ipiv), (0, vec![1, 2]), "{}", subject.name());
    assert_eq!(lu, [4.0 * least, 0.25, 0.5, -0.75, 4.0 * least, 8.0 * least, 0.5, 0.25], "{}", subject.name());
}

/// Tests that a NaN on the diagonal is the pivot and divides its column, as in the plain loop. A NaN is never a candidate for an
/// exchange, so a NaN on the diagonal stays there. All other elements of the factors below the first row become NaN.
pub fn nan_pivot<T: Scalar>(subject: &impl Subject) {
    let (m, n) = (5, 3);
    let column = [f64::NAN, 0.0, f64::NEG_INFINITY, 2.0, -1.0];
    let mut lu: Vec<T> = (0..m * n).map(|e| T::from_f64(if e < m { column[e] } else { e as f64 })).collect();
    // the first row of the matrix is not exchanged, so it is also the first row of U
    let upper = [lu[m].to_f64(), lu[2 * m].to_f64()];
    let mut ipiv = vec![0; n];
    // the largest candidate is infinite and does not replace the NaN
    let info = subject.getrf(Getrf::new(MatMut::col_major(&mut lu, m, n).unwrap(), &mut ipiv)).unwrap();
    let values: Vec<f64> = lu.iter().map(|x| x.to_f64()).collect();
    assert_eq!((info, ipiv[0], [values[m], values[2 * m]]), (0, 0, upper), "{}", subject.name());
    let numbers = (0..m * n).filter(|&e| e % m > 0 && !values[e].is_nan()).count();
    assert_eq!(numbers, 0, "{}: {values:?}", subject.name());
}

/// Tests pivot candidates of equal magnitude in so many work-groups that one work-item compares the candidates of several
/// work-groups.
pub fn ties<T: Scalar>(subject: &impl Subject, m: usize, n: usize) {
    let (scope, ledger) = (Scope::quick(1), Ledger::default());
    let case = GetrfCase { m, ..GetrfCase::square(n, Shape::TiesBelow) };
    let verdict = check_large_exact::<_, T>(&Trial { subject, scope: &scope, ledger: &ledger }, &case);
    verdict.unwrap_or_else(|failure| panic!("{}: {failure}", subject.name()));
}

/// Tests the product of the factors of one panel of m rows and n columns, and that no multiplier exceeds one.
pub fn panel<T: Scalar>(subject: &impl Subject, m: usize, n: usize) {
    // elements grow towards the last row
    let entry = |e: usize| (((e * 7919 + e / 13) % 1009) as f64 / 1009.0 - 0.5) * (1.0 + (e % m) as f64 / m as f64);
    let a: Vec<T> = (0..m * n).map(|e| T::from_f64(entry(e))).collect();
    let (mut lu, mut ipiv) = (a.clone(), vec![0; n]);
    let info = subject.getrf(Getrf::new(MatMut::col_major(&mut lu, m, n).unwrap(), &mut ipiv)).unwrap();
    let mut rows: Vec<usize> = (0..m).collect();
    ipiv.iter().enumerate().for_each(|(i, &p)| rows.swap(i, p as usize));
    let element = |i: usize, j: usize| {
        let l = |k: usize| if k == i { 1.0 } else { lu[i + k * m].to_f64() };
        (0..=i.min(j)).map(|k| l(k) * lu[k + j * m].to_f64()).sum::<f64>()
    };
    let apart = |i: usize, j: usize| (element(i, j) - a[rows[i] + j * m].to_f64()).abs();
    // `max_abs` of the oracle returns NaN if any element is NaN, whereas `f64::max` would discard a NaN
    let worst = Dense::from_fn(m, n, apart).max_abs();
    let multipliers = Dense::from_fn(m, n, |i, j| if i > j { lu[i + j * m].to_f64() } else { 0.0 }).max_abs();
    assert!(multipliers <= 1.0 + 4.0 * T::UNIT_ROUNDOFF, "{}: a multiplier of {multipliers}", subject.name());
    // Bound 8 of docs/numerics.md is far above 64·n·u, since bound 8 is relative to n·‖A‖₁.
    assert!(info == 0 && worst < 64.0 * n as f64 * T::UNIT_ROUNDOFF, "{}: {worst:e} apart", subject.name());
}
