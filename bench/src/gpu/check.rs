//! Checks results on the host. A check multiplies both sides of an equation by a random vector in double precision, and so needs
//! n² operations. `docs/numerics.md` states the bounds.

use lapidary::Scalar;
use rayon::prelude::*;

use super::problem::{Operands, Problem, Product};
use crate::cases::{MIN_LEN, random};
use crate::measure::{larger, largest};

/// Largest accepted residual of a factorisation (bound 8).
const LU_THRESHOLD: f64 = 30.0;

/// Bound 9: largest accepted residual of the solution of a system.
pub const HPL_THRESHOLD: f64 = 16.0;

/// Smallest number of adjacent sums for one thread in a product, so that a thread reads adjacent elements.
const MIN_SUMS: usize = 512;

/// A vector, and the same sums of magnitudes, with which the rounding errors of the vector grow.
struct Sums {
    values: Vec<f64>,
    magnitudes: Vec<f64>,
}

/// The part of a matrix that takes part in a product. A unit diagonal is not stored.
#[derive(Clone, Copy)]
enum Part {
    All,
    Lower,
    UnitLower,
    Upper,
}

impl Part {
    fn weigh(self, i: usize, j: usize, x: f64) -> f64 {
        match self {
            Part::All => x,
            Part::UnitLower if i == j => 1.0,
            Part::Lower | Part::UnitLower => {
                if i >= j {
                    x
                } else {
                    0.0
                }
            }
            Part::Upper => {
                if i <= j {
                    x
                } else {
                    0.0
                }
            }
        }
    }
}

impl Sums {
    /// A vector with elements between 0.5 and 1.5.
    fn probe(len: usize) -> Self {
        let values: Vec<f64> = random::<f64>(len, 7).into_iter().map(|x| x + 1.0).collect();
        Sums { magnitudes: values.clone(), values }
    }

    /// A vector of zeros whose magnitudes are 1. The magnitudes of its product with a matrix are the sums of the magnitudes of the
    /// elements.
    fn magnitudes(len: usize) -> Self {
        Sums { values: vec![0.0; len], magnitudes: vec![1.0; len] }
    }

    /// The product of a part of a column-major matrix with `rows` rows, or of its transpose, and the vector. One thread computes
    /// each sum in the order of the terms, so that the result does not depend on the number of threads.
    fn times<T: Scalar>(&self, a: &[T], rows: usize, trans: bool, part: Part) -> Sums {
        let columns = a.len() / rows.max(1);
        let (len, terms) = if trans { (columns, rows) } else { (rows, columns) };
        assert_eq!(self.values.len(), terms);
        let (mut values, mut magnitudes) = (vec![0.0; len], vec![0.0; len]);
        let t = || self.values.iter().zip(&self.magnitudes);
        let add = |(value, magnitude): (&mut f64, &mut f64), (t, of_t): (&f64, &f64), x: f64| {
            *value += x * t;
            *magnitude += x.abs() * of_t;
        };
        let min_sums = (MIN_LEN * len / a.len().max(1)).max(1);
        if trans {
            let columns = values.par_iter_mut().zip(&mut magnitudes).zip(a.par_chunks(rows.max(1)));
            columns.enumerate().with_min_len(min_sums).for_each(|(j, ((value, magnitude), column))| {
                for ((i, x), t) in column.iter().enumerate().zip(t()) {
                    add((value, magnitude), t, part.weigh(i, j, x.to_f64()));
                }
            });
            return Sums { values, magnitudes };
        }
        let block = min_sums.max(MIN_SUMS);
        values.par_chunks_mut(block).zip(magnitudes.par_chunks_mut(block)).enumerate().for_each(|(b, (values, magnitudes))| {
            for ((j, column), t) in a.chunks(rows.max(1)).enumerate().zip(t()) {
                let elements = (b * block..).zip(&column[b * block..]);
                for (sum, (i, x)) in values.iter_mut().zip(&mut *magnitudes).zip(elements) {
                    add(sum, t, part.weigh(i, j, x.to_f64()));
                }
            }
        });
        Sums { values, magnitudes }
    }

    /// The largest difference of two vectors, divided by `factor` times the sum of magnitudes. NaN if an element is NaN.
    fn apart(&self, other: &Sums, factor: f64) -> f64 {
        let pairs = self.values.iter().zip(&other.values).zip(self.magnitudes.iter().zip(&other.magnitudes));
        largest(pairs.map(|((x, y), (of_x, of_y))| if x == y { 0.0 } else { (x - y) / (factor * of_x.max(*of_y)) }))
    }

    fn plus(mut self, other: &Sums) -> Sums {
        self.values.iter_mut().zip(&other.values).for_each(|(x, y)| *x += y);
        self.magnitudes.iter_mut().zip(&other.magnitudes).for_each(|(x, y)| *x += y);
        self
    }

    fn norm(&self) -> f64 {
        self.values.iter().map(|x| x.abs()).sum()
    }
}

/// Checks the result of a call. `pivots` holds the pivots of a factorisation, counted from 0.
///
/// # Errors
/// The result is wrong. The error states the residual as a fraction of the largest accepted one.
pub fn check<T: Scalar>(operands: &Operands<T>, result: &[T], pivots: &[usize]) -> Result<(), String> {
    let Operands { a, b, problem } = operands;
    let fraction = match *problem {
        Problem::Product(product) => of_product(product, [a, b, result], None),
        Problem::Solve { n, nrhs } => of_solution(n, nrhs, [a, b, result]),
        Problem::Factors { n } => of_factors(n, a, result, pivots) / LU_THRESHOLD,
        Problem::System { n } => {
            let (lu, x) = result.split_at(n * n);
            largest([of_factors(n, a, lu, pivots) / LU_THRESHOLD, hpl(n, a, b, x) / HPL_THRESHOLD].into_iter())
        }
    };
    accept(fraction)
}

/// Checks the result of C ← op(A)·op(B), or of C ← op(A)·op(B) + C if `before` holds the old C.
///
/// # Errors
/// The result is wrong. The error states the residual as a fraction of the largest accepted one.
pub fn check_product<T: Scalar>(product: Product, matrices: [&[T]; 3], before: Option<&[T]>) -> Result<(), String> {
    accept(of_product(product, matrices, before))
}

fn accept(fraction: f64) -> Result<(), String> {
    // A fraction of NaN is not accepted either.
    if fraction <= 1.0 { Ok(()) } else { Err(format!("the residual is {fraction:.3e} times the largest accepted one")) }
}

/// Bound of the relative rounding error of sums of `terms` terms in an arithmetic with the unit roundoff `u`.
fn rounding(terms: usize, u: f64) -> f64 {
    2.0 * (terms + 4) as f64 * u
}

/// Bound 6: compares C·t with op(A)·(op(B)·t), to which it adds C₀·t if `before` holds the old matrix C₀.
fn of_product<T: Scalar>(product: Product, [a, b, c]: [&[T]; 3], before: Option<&[T]>) -> f64 {
    let Product { m, n, k, trans } = product;
    let t = Sums::probe(n);
    let of_terms = t.times(b, product.shape_b().0, trans[1], Part::All).times(a, product.shape_a().0, trans[0], Part::All);
    let expected = match before {
        Some(before) => of_terms.plus(&t.times(before, m, false, Part::All)),
        None => of_terms,
    };
    let factor = rounding(k, T::UNIT_ROUNDOFF) + rounding(n + k, f64::UNIT_ROUNDOFF);
    expected.apart(&t.times(c, m, false, Part::All), factor)
}

/// Bound 7: compares L·(X·t) with B·t.
fn of_solution<T: Scalar>(n: usize, nrhs: usize, [l, b, x]: [&[T]; 3]) -> f64 {
    let t = Sums::probe(nrhs);
    let factor = rounding(n, T::UNIT_ROUNDOFF) + rounding(n + nrhs, f64::UNIT_ROUNDOFF);
    t.times(x, n, false, Part::All).times(l, n, false, Part::Lower).apart(&t.times(b, n, false, Part::All), factor)
}

/// LAPACK's dget01 along a vector t: ‖(P·L·U − A)·t‖₁ / (n·‖A‖₁·‖t‖₁·ε). Infinite if a pivot lies outside the matrix, or if an
/// element of L above 1 shows a wrong pivot.
fn of_factors<T: Scalar>(n: usize, a: &[T], lu: &[T], pivots: &[usize]) -> f64 {
    let below = |(j, column): (usize, &[T])| largest(column[j + 1..].iter().map(|x| x.to_f64()));
    let multiplier = lu.par_chunks(n.max(1)).enumerate().map(below).reduce(|| 0.0, larger);
    if pivots.len() != n || multiplier > 1.0 + 4.0 * T::UNIT_ROUNDOFF {
        return f64::INFINITY;
    }
    let t = Sums::probe(n);
    let mut product = t.times(lu, n, false, Part::Upper).times(lu, n, false, Part::UnitLower);
    for (i, &pivot) in pivots.iter().enumerate().rev() {
        if !(i..n).contains(&pivot) {
            return f64::INFINITY;
        }
        product.values.swap(i, pivot);
    }
    let expected = t.times(a, n, false, Part::All);
    let residual: f64 = product.values.iter().zip(&expected.values).map(|(x, y)| (x - y).abs()).sum();
    let norm = largest(Sums::magnitudes(n).times(a, n, true, Part::All).magnitudes.into_iter());
    if residual == 0.0 { 0.0 } else { residual / (n as f64 * norm * t.norm() * 2.0 * T::UNIT_ROUNDOFF) }
}

/// Bound 9: ‖A·x − b‖∞ / (ε·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n).
pub fn hpl<T: Scalar>(n: usize, a: &[T], b: &[T], x: &[T]) -> f64 {
    let values = x.iter().map(|x| x.to_f64()).collect();
    let product = Sums { values, magnitudes: vec![1.0; n] }.times(a, n, false, Part::All);
    let rest = b.iter().zip(product.values).map(|(b, ax)| b.to_f64() - ax);
    let norm = |v: &[T]| largest(v.iter().map(|x| x.to_f64()));
    let scale = largest(product.magnitudes.into_iter()) * norm(x) + norm(b);
    largest(rest) / (2.0 * T::UNIT_ROUNDOFF * scale * n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operands(problem: Problem, a: &[f64], b: &[f64]) -> Operands<f64> {
        Operands { problem, a: a.to_vec(), b: b.to_vec() }
    }

    #[test]
    fn right_results_pass_and_wrong_ones_fail() {
        // A = [1 3; 2 4], B = [5 7; 6 8]
        let product =
            |trans| operands(Problem::Product(Product { trans, ..Product::square(2) }), &[1., 2., 3., 4.], &[5., 6., 7., 8.]);
        let results =
            [([false, false], [23., 34., 31., 46.]), ([true, false], [17., 39., 23., 53.]), ([false, true], [26., 38., 30., 44.])];
        for (trans, right) in results {
            assert_eq!(check(&product(trans), &right, &[]), Ok(()), "{trans:?}");
            for wrong in [[f64::NAN, right[1], right[2], right[3]], [right[0], right[1] + 1e-9, right[2], right[3]]] {
                assert!(check(&product(trans), &wrong, &[]).is_err(), "{trans:?} {wrong:?}");
            }
        }
        // The solve ignores the element above the diagonal of L.
        let solve = operands(Problem::Solve { n: 2, nrhs: 1 }, &[2., 1., 9., 4.], &[2., 9.]);
        assert_eq!(check(&solve, &[1., 2.], &[]), Ok(()));
        assert!(check(&solve, &[1., 2.1], &[]).is_err());
    }

    #[test]
    fn numbers_and_sums_do_not_depend_on_the_number_of_threads() {
        let (rows, columns) = (1200, 800);
        let compute = || {
            let a = random::<f64>(rows * columns, 1);
            let products = [(false, columns), (true, rows)].map(|(trans, len)| {
                let Sums { values, magnitudes } = Sums::probe(len).times(&a, rows, trans, Part::Lower);
                [values, magnitudes]
            });
            (a, products)
        };
        let with = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(compute);
        let (a, products) = with(1);
        let row: f64 = Sums::probe(columns).values.iter().enumerate().map(|(j, t)| a[1000 + j * rows] * t).sum();
        let column: f64 = Sums::probe(rows).values.iter().enumerate().skip(700).map(|(i, t)| a[i + 700 * rows] * t).sum();
        assert_eq!([products[0][0][1000], products[1][0][700]], [row, column]);
        assert!(with(3) == (a, products));
    }

    #[test]
    fn a_sum_contains_the_old_matrix() {
        let (product, [a, b, before]) = (Product::square(1), [[2.0], [3.0], [4.0]]);
        let passes = |c: f64, before: Option<&[f64]>| check_product(product, [&a, &b, &[c]], before).is_ok();
        assert!(passes(6.0, None) && passes(10.0, Some(&before)));
        assert!(!passes(10.0, None) && !passes(6.0, Some(&before)) && !passes(14.0, Some(&before)));
    }

    #[test]
    fn a_wrong_factor_or_pivot_is_found() {
        // A = [1 3; 2 4]: the rows are exchanged, L = [1 0; 0.5 1], U = [2 4; 0 1]
        let problem = operands(Problem::Factors { n: 2 }, &[1., 2., 3., 4.], &[]);
        assert_eq!(check(&problem, &[2., 0.5, 4., 1.], &[1, 1]), Ok(()));
        for (lu, pivots) in
            [([2., 0.5, 4., 1.], [0, 1]), ([2., 0.5, 4., 1.5], [1, 1]), ([2., 0.5, 4., 1.], [2, 1]), ([1., 2., 3., -2.], [0, 1])]
        {
            assert!(check(&problem, &lu, &pivots).is_err(), "{lu:?} {pivots:?}");
        }
    }

    #[test]
    fn a_system_needs_the_right_factors_and_the_right_solution() {
        // The matrix of the test above, and x = (1, 2)
        let system = operands(Problem::System { n: 2 }, &[1., 2., 3., 4.], &[7., 10.]);
        assert_eq!(check(&system, &[2., 0.5, 4., 1., 1., 2.], &[1, 1]), Ok(()));
        let wrong = [
            ([2., 0.5, 4., 1.5, 1., 2.], [1, 1]),
            ([2., 0.5, 4., 1., 1., 2.], [0, 1]),
            ([2., 0.5, 4., 1., 1., 2.0 + 1e-13], [1, 1]),
        ];
        for (result, pivots) in wrong.into_iter().chain([([2., 0.5, 4., 1., 1., f64::NAN], [1, 1])]) {
            assert!(check(&system, &result, &pivots).is_err(), "{result:?} {pivots:?}");
        }
    }
}
