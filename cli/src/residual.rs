//! Measures the errors of results by the residuals of `docs/numerics.md`. The residuals are computed on the host in double
//! precision, and not by the routines under test.

use lapidary::{Diag, Equilibration, Op, Scalar, Side, Uplo};
use rayon::prelude::*;

use crate::accuracy::Reference;
use crate::dense::{Dense, larger, largest};

/// Largest accepted residual of a factorisation or a solution (bound 8).
pub const LU_THRESHOLD: f64 = 30.0;
/// Largest accepted residual of Linpack (bound 9, with u in place of ε as in HPL).
pub const HPL_THRESHOLD: f64 = 16.0;
/// Largest accepted ratio of a residual to bound 1 or bound 7.
pub const RATIO_THRESHOLD: f64 = 1.0;

/// The ε of the element type, which is 2u.
pub fn epsilon<T: Scalar>() -> f64 {
    2.0 * T::UNIT_ROUNDOFF
}

fn sum_abs(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).sum()
}

/// Divides an error by its scale. If the error is zero, the ratio is 0 even if the scale is zero. If only the scale is zero, the
/// ratio is infinite.
fn ratio(error: f64, scale: f64) -> f64 {
    // If the scale overflows, the ratio shows nothing about the result.
    if !scale.is_finite() {
        return f64::NAN;
    }
    if error == 0.0 { 0.0 } else { error / scale }
}

/// LAPACK's dget02 of the equilibrated system (bound 12): the largest ‖b − A·x‖₁ / (‖A‖₁·‖x‖₁·ε) over the columns.
pub fn solution<T: Scalar>(a: &Dense<T>, x: &Dense<T>, b: &Dense<T>) -> f64 {
    match Equilibration::new(a.view(), T::DTYPE) {
        Ok(scales) => Reference::new(a, b, &scales).measure(x).backward_error(),
        Err(_) => f64::NAN, // A is not finite
    }
}

/// Draws a vector with random elements between 0.5 and 1.5.
fn probe(len: usize) -> Vec<f64> {
    let mut rng = fastrand::Rng::with_seed(len as u64);
    (0..len).map(|_| 0.5 + rng.f64()).collect()
}

/// The largest |left − right| / bound over all elements.
fn worst(left: &[f64], right: &[f64], bound: &[f64]) -> f64 {
    let each = left.iter().zip(right).zip(bound).map(|((l, r), bound)| ratio((l - r).abs(), *bound));
    largest(&each.collect::<Vec<_>>())
}

/// Bound of the relative rounding error with which the checksum itself is computed, for sums of `terms` terms.
fn own_rounding(terms: usize) -> f64 {
    2.0 * (terms + 3) as f64 * f64::UNIT_ROUNDOFF
}

/// Bound 6 for C = op(A)·op(B): compares C·t with op(A)·(op(B)·t) for a random vector t. The function returns the largest
/// difference divided by the difference that bound 1 allows, so that the limit is 1.
pub fn product<T: Scalar>(a: (Op, &Dense<T>), b: (Op, &Dense<T>), c: &Dense<T>) -> f64 {
    scaled_product(1.0, a, b, None, c)
}

/// Bound 6 for C = α·op(A)·op(B) + β·C₀, as [`product`]. `before` holds β and C₀.
pub fn scaled_product<T: Scalar>(
    alpha: f64,
    (op_a, a): (Op, &Dense<T>),
    (op_b, b): (Op, &Dense<T>),
    before: Option<(f64, &Dense<T>)>,
    c: &Dense<T>,
) -> f64 {
    let plain = |_, _, value: f64| value;
    let abs = |_, _, value: f64| value.abs();
    let t = probe(c.cols());
    let (bt, abs_bt) = (b.times(op_b, &t, plain), b.times(op_b, &t, abs));
    let k = bt.len();
    let factor = 2.0 * (k + 3) as f64 * T::UNIT_ROUNDOFF + own_rounding(c.cols() + k);
    let mut expected: Vec<f64> = a.times(op_a, &bt, plain).iter().map(|sum| alpha * sum).collect();
    let mut scale: Vec<f64> = a.times(op_a, &abs_bt, abs).iter().map(|sum| alpha.abs() * sum).collect();
    if let Some((beta, c)) = before {
        let rows = c.times(Op::NoTrans, &t, plain).into_iter().zip(c.times(Op::NoTrans, &t, abs));
        for ((expected, scale), (row, abs_row)) in expected.iter_mut().zip(&mut scale).zip(rows) {
            *expected += beta * row;
            *scale += beta.abs() * abs_row;
        }
    }
    let bound: Vec<f64> = scale.iter().map(|scale| factor * scale).collect();
    worst(&c.times(Op::NoTrans, &t, plain), &expected, &bound)
}

/// A triangular matrix A and the flags with which a solve reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Triangle {
    /// Side of X on which op(A) stands.
    pub side: Side,
    /// The triangle of A that the solve reads.
    pub uplo: Uplo,
    /// Whether the solve uses A or its transpose.
    pub op: Op,
    /// Whether the diagonal is stored or consists of ones.
    pub diag: Diag,
}

impl Triangle {
    /// Element (i, j) of the triangular matrix: 0 outside the triangle, and 1 on a unit diagonal.
    pub fn weigh(self, i: usize, j: usize, value: f64) -> f64 {
        let outside = if self.uplo == Uplo::Lower { j > i } else { j < i };
        match (outside, i == j && self.diag == Diag::Unit) {
            (true, _) => 0.0,
            (false, true) => 1.0,
            (false, false) => value,
        }
    }
}

/// Bound 7 for op(A)·X = B or X·op(A) = B: multiplies both sides of the equation by a random vector. The function returns the
/// largest difference divided by the difference that the bound allows, so that the limit is 1.
pub fn triangular<T: Scalar>(how: Triangle, a: &Dense<T>, x: &Dense<T>, b: &Dense<T>) -> f64 {
    // The equation X·op(A) = B is equivalent to op(A)ᵀ·Xᵀ = Bᵀ.
    let (op, across) = if how.side == Side::Left { (how.op, Op::NoTrans) } else { (how.op.flip(), Op::Trans) };
    let plain = |_, _, value: f64| value;
    let abs = |_, _, value: f64| value.abs();
    let t = probe(across.shape((x.rows(), x.cols())).1);
    let (xt, abs_xt) = (x.times(across, &t, plain), x.times(across, &t, abs));
    let (bt, abs_bt) = (b.times(across, &t, plain), b.times(across, &t, abs));
    let factor = 2.0 * (a.rows() + 3) as f64 * T::UNIT_ROUNDOFF + own_rounding(a.rows() + t.len());
    let scale = a.times(op, &abs_xt, |i, j, value| how.weigh(i, j, value).abs());
    let bound: Vec<f64> = scale.iter().zip(&abs_bt).map(|(ax, b)| factor * (ax + b)).collect();
    worst(&a.times(op, &xt, |i, j, value| how.weigh(i, j, value)), &bt, &bound)
}

/// LAPACK's dget01 along a random vector t: ‖(P·L·U − A)·t‖₁ / (n·‖A‖₁·‖t‖₁·ε), computed in O(n²) operations. The residual along
/// one vector never exceeds that of dget01. `ipiv` counts rows from 0. The function returns infinity if a row index is out of
/// range, or if an |l_ij| above 1 shows a wrong pivot.
pub fn factorisation<T: Scalar>(a: &Dense<T>, lu: &Dense<T>, ipiv: &[i32]) -> f64 {
    let (m, n) = (a.rows(), a.cols());
    let t = probe(n);
    let ut = lu.times(Op::NoTrans, &t, |i, j, value| if i <= j { value } else { 0.0 });
    let mut plut = lower_times(lu, &ut[..m.min(n)]);
    for (i, &p) in ipiv.iter().enumerate().rev() {
        match usize::try_from(p) {
            Ok(p) if (i..m).contains(&p) => plut.swap(i, p),
            Ok(_) | Err(_) => return f64::INFINITY,
        }
    }
    if largest_multiplier(lu) > 1.0 + 4.0 * T::UNIT_ROUNDOFF {
        return f64::INFINITY;
    }
    let at = a.times(Op::NoTrans, &t, |_, _, value| value);
    let r: Vec<f64> = plut.iter().zip(&at).map(|(l, r)| l - r).collect();
    let norm_1 = largest(&a.times(Op::Trans, &vec![1.0; m], |_, _, value| value.abs()));
    ratio(sum_abs(&r), n as f64 * norm_1 * sum_abs(&t) * epsilon::<T>())
}

/// Exchanges row i of A with row `ipiv[i]`, for each i in order. Returns the number of elements in which the result differs from
/// `moved`.
pub fn exchanges<T: Scalar>(a: &Dense<T>, ipiv: &[i32], moved: &Dense<T>) -> f64 {
    let mut rows: Vec<usize> = (0..a.rows()).collect();
    for (i, &p) in ipiv.iter().enumerate() {
        rows.swap(i, usize::try_from(p).unwrap_or(i));
    }
    let columns = a.data().par_chunks(a.rows().max(1)).zip(moved.data().par_chunks(a.rows().max(1)));
    columns.map(|(from, to)| rows.iter().zip(to).filter(|&(&row, element)| from[row] != *element).count()).sum::<usize>() as f64
}

/// The product L·v, where L is the unit lower trapezoid in `lu`.
fn lower_times<T: Scalar>(lu: &Dense<T>, v: &[f64]) -> Vec<f64> {
    let mut padded = v.to_vec();
    padded.resize(lu.cols(), 0.0);
    let mut y = lu.times(Op::NoTrans, &padded, |i, j, value| if i > j { value } else { 0.0 });
    y.iter_mut().zip(v).for_each(|(y, v)| *y += v);
    y
}

fn largest_multiplier<T: Scalar>(lu: &Dense<T>) -> f64 {
    let mut of_columns = vec![0.0; lu.cols()];
    let below = |i, j, value: f64| if i > j { value.abs() } else { 0.0 };
    lu.fold(Op::Trans, &vec![(); lu.rows()], &mut of_columns, |most, (), i, j, value| *most = larger(*most, below(i, j, value)));
    largest(&of_columns)
}

#[cfg(test)]
mod tests {
    use lapidary::Layout;

    use super::*;

    fn dense(data: &[f64], rows: usize) -> Dense<f64> {
        Dense::from_vec(data.to_vec(), rows, data.len() / rows, Layout::ColMajor)
    }

    #[test]
    fn right_results_pass_and_wrong_ones_fail() {
        let (a, x) = (dense(&[2.0, 1.0, 1.0, 3.0], 2), dense(&[1.0, 2.0], 2));
        assert_eq!(solution(&a, &x, &dense(&[4.0, 7.0], 2)), 0.0);
        assert!(solution(&a, &x, &dense(&[4.0, 7.1], 2)) > LU_THRESHOLD);
        assert!(solution(&a, &dense(&[f64::NAN, 1.0], 2), &x).is_nan());
        let c = dense(&[4.0, 7.0], 2);
        assert!(product((Op::NoTrans, &a), (Op::NoTrans, &x), &c) <= RATIO_THRESHOLD);
        assert!(product((Op::NoTrans, &a), (Op::NoTrans, &c), &c) > RATIO_THRESHOLD);
    }

    #[test]
    fn a_product_with_a_wrong_alpha_or_beta_fails() {
        let (a, b, before) = (dense(&[2.0, 1.0, 1.0, 3.0], 2), dense(&[1.0, 2.0], 2), dense(&[8.0, -4.0], 2));
        let ratio = |c: &[f64]| {
            let factors = ((Op::NoTrans, &a), (Op::NoTrans, &b));
            scaled_product(-1.5, factors.0, factors.1, Some((0.75, &before)), &dense(c, 2))
        };
        // A·B = [4, 7]
        assert!(ratio(&[0.0, -13.5]) <= RATIO_THRESHOLD);
        for (wrong, what) in [([-6.0, -10.5], "β is 0"), ([10.0, 4.0], "α is 1"), ([2.0, -14.5], "β is 1"), ([f64::NAN; 2], "NaN")]
        {
            assert!(!matches!(ratio(&wrong), ratio if ratio <= RATIO_THRESHOLD), "{what}");
        }
    }

    #[test]
    fn triangles_read_one_side_only() {
        let how = Triangle { side: Side::Left, uplo: Uplo::Lower, op: Op::NoTrans, diag: Diag::Unit };
        let a = dense(&[9.0, 2.0, f64::NAN, 9.0], 2);
        assert!(triangular(how, &a, &dense(&[1.0, 1.0], 2), &dense(&[1.0, 3.0], 2)) <= RATIO_THRESHOLD);
        assert!(triangular(how, &a, &dense(&[1.0, 1.0], 2), &dense(&[1.0, 4.0], 2)) > RATIO_THRESHOLD);
    }

    #[test]
    fn factors_with_wrong_pivots_fail() {
        let a = dense(&[1.0, 2.0, 3.0, 4.0], 2);
        let lu = dense(&[2.0, 0.5, 4.0, 1.0], 2);
        assert!(factorisation(&a, &lu, &[1, 1]) < LU_THRESHOLD);
        assert!(factorisation(&a, &lu, &[0, 1]) > LU_THRESHOLD);
        assert!(factorisation(&a, &dense(&[1.0, 2.0, 3.0, -2.0], 2), &[0, 1]).is_infinite());
        for ipiv in [[1, 0], [1, 2], [1, -1]] {
            assert!(factorisation(&a, &lu, &ipiv).is_infinite(), "{ipiv:?}");
        }
    }
}
