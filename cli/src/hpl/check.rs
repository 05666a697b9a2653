//! Checks a solution of the random system.

use std::thread;

use lapidary::Scalar;

use super::system::{System, share};
use crate::dense::{larger, largest};

/// Norms of the residual, of A and of b, over some rows.
#[derive(Clone, Copy, Debug, Default)]
struct Norms {
    residual: f64,
    a: f64,
    b: f64,
}

impl Norms {
    fn max(self, other: Norms) -> Norms {
        let Norms { residual, a, b } = self;
        Norms { residual: larger(residual, other.residual), a: larger(a, other.a), b: larger(b, other.b) }
    }

    /// The norms over the rows from `first` on, of which there are `rows`. The function generates these rows of A again.
    fn of_rows(system: &System, x: &[f64], first: usize, rows: usize) -> Norms {
        let (mut r, mut row_sums) = (vec![0.0; rows], vec![0.0; rows]);
        let mut columns = system.columns_from(first);
        for (xj, column) in x.iter().zip(&mut columns) {
            for ((a, r), sum) in column.zip(&mut r).zip(&mut row_sums) {
                *r += a * xj;
                *sum += a.abs();
            }
        }
        let b: Vec<f64> = columns.next().into_iter().flat_map(|column| column.take(rows)).collect();
        r.iter_mut().zip(&b).for_each(|(r, b)| *r -= b);
        let norm = |values: &[f64]| values.iter().fold(0.0, |most, value| larger(most, value.abs()));
        Norms { residual: norm(&r), a: largest(&row_sums), b: norm(&b) }
    }
}

/// Computes the residual of HPL, ‖A·x − b‖∞ / (eps·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n), where eps is 2⁻⁵³ as in HPL. All hardware threads take part,
/// each with some of the rows, so that the result does not depend on the number of threads. NaN if x contains NaN.
pub fn residual(system: &System, x: &[f64]) -> f64 {
    let n = system.order();
    let share = share(n);
    let norms = thread::scope(|scope| {
        let of_rows = |first| scope.spawn(move || Norms::of_rows(system, x, first, share.min(n - first)));
        let parts: Vec<_> = (0..n).step_by(share).map(of_rows).collect();
        let join = |part: thread::ScopedJoinHandle<'_, Norms>| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        parts.into_iter().map(join).fold(Norms::default(), Norms::max)
    });
    let x_norm = x.iter().fold(0.0, |most, value| larger(most, value.abs()));
    norms.residual / (f64::UNIT_ROUNDOFF * (norms.a * x_norm + norms.b) * n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpl::system::SEED;

    /// The residual by its definition, from the whole matrix.
    fn by_definition(system: &System, x: &[f64]) -> f64 {
        let n = system.order();
        let [a, b] = system.generate().unwrap();
        let row = |i: usize| (0..n).map(move |j| i + j * n);
        let residual = |i| (row(i).zip(x).map(|(at, x)| a.data()[at] * x).sum::<f64>() - b.data()[i]).abs();
        let sum = |i| row(i).map(|at| a.data()[at].abs()).sum::<f64>();
        let norm = |values: &[f64]| values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let [r, sums] = [&residual as &dyn Fn(usize) -> f64, &sum].map(|of| (0..n).map(of).collect::<Vec<f64>>());
        norm(&r) / (2.0_f64.powi(-53) * (norm(&sums) * norm(x) + norm(b.data())) * n as f64)
    }

    #[test]
    fn the_residual_is_that_of_its_definition_and_grows_with_an_error() {
        for n in [1, 2, 3, 50, 131] {
            let system = System::new(SEED, n);
            let x: Vec<f64> = (0..n).map(|i| 1.0 / (i as f64 + 2.0)).collect();
            let (ours, defined) = (residual(&system, &x), by_definition(&system, &x));
            assert!((ours / defined - 1.0).abs() < 1e-9, "{n}: {ours} {defined}");
            assert!(ours > 16.0);
        }
        assert!(residual(&System::new(1, 5), &[0.0, 1.0, f64::NAN, 0.0, 0.0]).is_nan());
    }
}
