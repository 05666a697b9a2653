//! Cases of the LU factorisation.

use std::cmp::Ordering;
use std::fmt;

use lapidary_core::{Getrf, Scalar};
use proptest::prelude::*;

use super::storage::{Storage, Stored, storage};
use super::{Case, Fill, Pivots, Rng, Scope, below, packed, seed};
use crate::bounds::real;
use crate::oracle::Dense;

/// The kind of matrix to factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A matrix of uniform random numbers.
    Random,
    /// A matrix of uniform numbers whose columns are multiplied by different powers of two.
    Graded,
    /// A product of two triangular matrices L and U without rounding errors, with its rows permuted, so that the pivots, the
    /// factors and `info` are known.
    Exact,
    /// A matrix as in `Exact`, but not permuted. In every other column, candidates for the pivot have the same magnitude as the
    /// diagonal element, so that no row may be exchanged.
    Ties,
    /// A matrix as in `Exact`, with candidates of equal magnitude in every other column. The diagonal element is smaller than these
    /// candidates, so that the first candidate must become the pivot.
    TiesBelow,
    /// A matrix as in `Exact`, with a zero pivot.
    Singular,
    /// A matrix as in `Exact`, with a column of zeros.
    ZeroColumn,
    /// The rows of the identity in random order.
    Permuted,
    /// A matrix that is diagonally dominant by rows and by columns, which is factored without pivoting.
    Dominant,
    /// Wilkinson's matrix of order n, whose growth factor 2^(n−1) is the largest possible. The factorisation is exact up to order
    /// 24.
    Wilkinson,
    /// Hilbert's matrix.
    Hilbert,
    /// A matrix of uniform numbers and one NaN.
    Nan,
    /// A matrix of uniform numbers, except that the first element is NaN. Comparisons with NaN are false, so that no other element
    /// becomes the first pivot.
    NanPivot,
}

impl Shape {
    /// All kinds of matrices.
    pub const ALL: [Shape; 13] = [
        Shape::Random,
        Shape::Graded,
        Shape::Exact,
        Shape::Ties,
        Shape::TiesBelow,
        Shape::Singular,
        Shape::ZeroColumn,
        Shape::Permuted,
        Shape::Dominant,
        Shape::Wilkinson,
        Shape::Hilbert,
        Shape::Nan,
        Shape::NanPivot,
    ];
}

/// A description of one call of getrf.
#[derive(Clone, Copy, PartialEq)]
pub struct GetrfCase {
    /// Rows of A.
    pub m: usize,
    /// Columns of A.
    pub n: usize,
    /// The kind of matrix to factor.
    pub shape: Shape,
    /// The storage of A.
    pub storage: Storage,
    /// Seed of the numbers.
    pub seed: u64,
}

impl fmt::Display for GetrfCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GetrfCase { m, n, shape, storage, seed } = self;
        write!(f, "getrf m={m} n={n} {shape:?} A:{storage} seed={seed:#x}")
    }
}

impl Case for GetrfCase {
    fn flags(&self) -> String {
        format!("{:?}", self.shape)
    }

    fn size(&self) -> usize {
        self.n
    }

    fn simpler(&self) -> Vec<Self> {
        let case = *self;
        let rows = below(case.m).map(|m| GetrfCase { m, ..case });
        let cols = below(case.n).map(|n| GetrfCase { n, ..case });
        let storage = packed([case.storage]).map(|[storage]| GetrfCase { storage, ..case });
        rows.chain(cols).chain(storage).collect()
    }
}

impl fmt::Debug for GetrfCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl GetrfCase {
    /// Draws random cases of the kinds `shapes`. About half of the matrices are square.
    pub fn any(scope: &Scope, shapes: &'static [Shape]) -> impl Strategy<Value = GetrfCase> + use<> {
        let sizes = (scope.extents(), any::<bool>());
        (sizes, prop::sample::select(shapes), storage(), seed()).prop_map(|(([m, n, _], square), shape, storage, seed)| {
            let n = if square { m } else { n };
            GetrfCase { m, n, shape, storage, seed }
        })
    }

    /// The case of a packed square matrix of order n.
    #[must_use]
    pub fn square(n: usize, shape: Shape) -> Self {
        GetrfCase { m: n, n, shape, storage: Storage::default(), seed: 1 }
    }

    /// Computes the matrix of the case.
    #[must_use]
    pub fn matrix<T: Scalar>(&self) -> Dense {
        let rng = &mut Rng::new(self.seed);
        let GetrfCase { m, n, .. } = *self;
        let matrix = match self.shape {
            Shape::Random => Fill::Uniform.matrix::<T>(m, n, rng),
            Shape::Graded => graded_columns(&Fill::Uniform.matrix::<T>(m, n, rng), rng),
            Shape::Exact | Shape::Ties | Shape::TiesBelow | Shape::Singular | Shape::ZeroColumn => self.product_of_factors(rng),
            Shape::Permuted => identity_rows(&rng.permutation(m), n),
            Shape::Dominant => dominant(&Fill::Uniform.matrix::<T>(m, n, rng)),
            Shape::Wilkinson => Dense::from_fn(m, n, wilkinson(n)),
            Shape::Hilbert => Dense::from_fn(m, n, |i, j| 1.0 / real(i + j + 1)),
            Shape::Nan => {
                let a = Fill::Uniform.matrix::<T>(m, n, rng);
                with_nan(a, (rng.below(m.max(1)), rng.below(n.max(1))))
            }
            Shape::NanPivot => with_nan(Fill::Uniform.matrix::<T>(m, n, rng), (0, 0)),
        };
        matrix.map(|x| T::from_f64(x).to_f64())
    }

    /// `P·L·U` with factors for which no variant of the algorithm has rounding errors. The factor L is I + N with N·N = 0, so that
    /// the elements of L⁻¹ = I − N have as few digits as those of L. The diagonal of U holds powers of two.
    fn product_of_factors(&self, rng: &mut Rng) -> Dense {
        self.exact_factors(rng).product()
    }

    fn exact_factors(&self, rng: &mut Rng) -> ExactFactors {
        let least = self.m.min(self.n);
        let zero = self.zero_pivot(least, rng);
        let (l, u) = (self.exact_l(least, zero, rng), self.exact_u(least, zero, rng));
        let kept = match zero {
            _ if self.shape == Shape::Ties => self.m,
            // above a zero pivot no candidate for the pivot is larger than the others, so that the row of the pivot must already be
            // in place
            Some(zero) => zero + 1,
            None => 0,
        };
        let order = (0..kept).chain(rng.permutation(self.m - kept).into_iter().map(|i| kept + i)).collect();
        let factors = ExactFactors { l, u, order };
        if matches!(self.shape, Shape::Ties | Shape::TiesBelow) { factors.with_ties() } else { factors }
    }

    /// The factors and pivots of a matrix of the kind `Exact`. The function takes them from the construction of the matrix, without
    /// a factorisation.
    #[must_use]
    pub fn known_factors(&self) -> (Dense, Vec<usize>) {
        self.exact_factors(&mut Rng::new(self.seed)).factored()
    }

    fn zero_pivot(&self, least: usize, rng: &mut Rng) -> Option<usize> {
        let singular = matches!(self.shape, Shape::Singular | Shape::ZeroColumn);
        (singular && least > 0).then(|| rng.below(least))
    }

    /// The exact factor L. The nonzero elements of L below the diagonal stand in even columns, in odd rows and in the rows below
    /// the square part. A column with a zero pivot has only zeros below the diagonal.
    fn exact_l(&self, least: usize, zero: Option<usize>, rng: &mut Rng) -> Dense {
        Dense::from_fn(self.m, least, |i, j| match i {
            _ if i == j => 1.0,
            _ if i > j && j % 2 == 0 && (i % 2 == 1 || i >= least) && zero != Some(j) => 0.5 * rng.sign(),
            _ => 0.0,
        })
    }

    fn exact_u(&self, least: usize, zero: Option<usize>, rng: &mut Rng) -> Dense {
        Dense::from_fn(least, self.n, |i, j| match i.cmp(&j) {
            _ if zero == Some(j) && (i == j || self.shape == Shape::ZeroColumn) => 0.0,
            Ordering::Less => rng.integer(2),
            Ordering::Equal => rng.sign() * [1.0, 2.0, 4.0][rng.below(3)],
            Ordering::Greater => 0.0,
        })
    }

    /// Stores the matrix and allocates an array for the row exchanges.
    #[must_use]
    pub fn store<T: Scalar>(&self, matrix: &Dense) -> (Stored<T>, Pivots) {
        (Stored::new(matrix, self.storage), Pivots::new(self.m.min(self.n)))
    }

    /// The arguments of the call of getrf. Only a diagonally dominant matrix is factored without pivoting.
    pub fn args<'a, T: Scalar>(&self, a: &'a mut Stored<T>, ipiv: &'a mut [i32]) -> Getrf<'a, T> {
        let getrf = Getrf::new(a.view_mut(), ipiv);
        if self.shape == Shape::Dominant { getrf.without_pivoting() } else { getrf }
    }
}

/// Triangular matrices L and U whose product has no rounding errors, and the order of the rows of this product: row i of the matrix
/// is row `order[i]` of L·U.
struct ExactFactors {
    l: Dense,
    u: Dense,
    order: Vec<usize>,
}

impl ExactFactors {
    /// The product `P·L·U`. The sums are exact. The sums skip the terms in which the element of L is zero.
    fn product(&self) -> Dense {
        let ExactFactors { l, u, order } = self;
        let row = |i: usize| (0..l.cols()).map(|p| (p, l.at(i, p))).filter(|term| term.1 != 0.0).collect();
        let rows: Vec<Vec<(usize, f64)>> = order.iter().map(|&i| row(i)).collect();
        let element = |i: usize, j: usize| rows[i].iter().fold(0.0, |sum, &(p, l)| sum + l * u.at(p, j));
        Dense::from_fn(order.len(), u.cols(), element)
    }

    /// Doubles the multipliers of each column of L in all rows after the row of the pivot. The candidates in these rows then have
    /// the same magnitude as the pivot, so that the first of equal candidates is the pivot.
    fn with_ties(mut self) -> Self {
        let mut rows = self.order.clone();
        for j in 0..self.l.cols() {
            let p = exchange(&mut rows, j);
            rows[p + 1..].iter().for_each(|&i| self.l.set(i, j, 2.0 * self.l.at(i, j)));
        }
        self
    }

    /// L and U in one array, and the row exchanges. In step i, row i of L becomes the pivot row, because the multipliers of all
    /// rows above it are less than one in magnitude.
    fn factored(self) -> (Dense, Vec<usize>) {
        let ExactFactors { l, u, order: mut rows } = self;
        let ipiv = (0..l.cols()).map(|i| exchange(&mut rows, i)).collect();
        let lu = Dense::from_fn(l.rows(), u.cols(), |i, j| if i > j { l.at(rows[i], j) } else { u.at(i, j) });
        (lu, ipiv)
    }
}

/// Exchanges entry `i` of `rows` with the entry that equals `i`. Returns the index at which this entry was found.
fn exchange(rows: &mut [usize], i: usize) -> usize {
    let p = (i..rows.len()).find(|&p| rows[p] == i).expect("every row comes once");
    rows.swap(i, p);
    p
}

fn graded_columns(a: &Dense, rng: &mut Rng) -> Dense {
    let scales: Vec<f64> = (0..a.cols()).map(|_| rng.integer(12).exp2()).collect();
    Dense::from_fn(a.rows(), a.cols(), |i, j| scales[j] * a.at(i, j))
}

fn identity_rows(order: &[usize], n: usize) -> Dense {
    Dense::from_fn(order.len(), n, |i, j| if order[i] == j { 1.0 } else { 0.0 })
}

fn dominant(a: &Dense) -> Dense {
    let weight = real(a.rows().max(a.cols()) + 1);
    Dense::from_fn(a.rows(), a.cols(), |i, j| if i == j { weight } else { a.at(i, j) })
}

fn wilkinson(n: usize) -> impl Fn(usize, usize) -> f64 {
    move |i, j| match i {
        _ if j + 1 == n || i == j => 1.0,
        _ if i > j => -1.0,
        _ => 0.0,
    }
}

fn with_nan(mut a: Dense, (i, j): (usize, usize)) -> Dense {
    if a.rows() > 0 && a.cols() > 0 {
        a.set(i, j, f64::NAN);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::{GetrfCase, Shape};
    use crate::oracle::loops;

    #[test]
    fn factors_that_are_known_are_those_of_plain_loops() {
        for (m, n) in [(1, 1), (5, 5), (9, 4), (4, 9), (33, 33), (70, 66), (642, 65)] {
            for shape in [Shape::Exact, Shape::Ties, Shape::TiesBelow] {
                let case = GetrfCase { m, ..GetrfCase::square(n, shape) };
                let (lu, ipiv, info) = loops::factor(case.matrix::<f32>());
                assert_eq!((case.known_factors(), info), ((lu, ipiv), 0), "{case}");
            }
        }
    }
}
