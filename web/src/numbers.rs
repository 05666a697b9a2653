//! Random numbers, and the accuracy of results in `f32`: bounds, and plain loops in `f64` to compare with.
//!
//! All matrices are column-major without gaps. ε is the distance from 1 to the next `f32`, and u = ε/2.

/// The unit roundoff of `f32`.
pub const U: f64 = 0.5 * f32::EPSILON as f64;

/// Returns a generator of numbers that are uniform in [−½, ½), as LAPACK's test matrices are. The generator is xorshift64*.
pub fn uniform(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let bits = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40;
        bits as f32 / (1_u32 << 24) as f32 - 0.5
    }
}

/// The residual b − A·x of a solution, which is summed up column by column, so that a page may pause between columns.
#[derive(Clone, Debug)]
pub struct Residual {
    /// The residual b − A·x.
    rest: Vec<f64>,
    /// The sums of the magnitudes of each row of A.
    row_sums: Vec<f64>,
    x_norm: f64,
    b_norm: f64,
}

impl Residual {
    /// Begins with the residual b, of which no column is subtracted yet.
    #[must_use]
    pub fn new(b: &[f32], x: &[f32]) -> Self {
        let largest = |values: &[f32]| values.iter().fold(0.0, |most, &value| f64::from(value).abs().max(most));
        let rest: Vec<f64> = b.iter().map(|&value| f64::from(value)).collect();
        Residual { row_sums: vec![0.0; rest.len()], rest, x_norm: largest(x), b_norm: largest(b) }
    }

    /// Subtracts a column of A multiplied by its unknown.
    pub fn subtract(&mut self, column: &[f32], x: f32) {
        for ((rest, sum), &entry) in self.rest.iter_mut().zip(&mut self.row_sums).zip(column) {
            *rest -= f64::from(entry) * f64::from(x);
            *sum += f64::from(entry).abs();
        }
    }

    /// Returns ‖b − A·x‖∞ / (ε·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n), which the benchmark HPL requires to be less than 16. The result is NaN if a
    /// number of the residual is NaN.
    #[must_use]
    pub fn scaled(&self) -> f64 {
        let largest = |values: &[f64]| {
            values
                .iter()
                .map(|value| value.abs())
                .fold(0.0, |most, value| if value > most || value.is_nan() { value } else { most })
        };
        let scale = largest(&self.row_sums) * self.x_norm + self.b_norm;
        largest(&self.rest) / (2.0 * U * scale * self.rest.len() as f64)
    }
}

/// Returns the largest ratio of the error of a product C = A·B of order n to its bound 2·(n + 3)·u·|A|·|B|, element by element
/// (Demmel et al., *Grading the BLAS*, 2024). A correct product has a ratio of at most 1.
#[must_use]
pub fn product_error([a, b, c]: [&[f32]; 3], n: usize) -> f64 {
    let mut worst = 0.0_f64;
    for (b, c) in b.chunks(n).zip(c.chunks(n)) {
        let (mut exact, mut magnitude) = (vec![0.0; n], vec![0.0; n]);
        for (a, &b) in a.chunks(n).zip(b) {
            for ((exact, magnitude), &a) in exact.iter_mut().zip(&mut magnitude).zip(a) {
                let product = f64::from(a) * f64::from(b);
                *exact += product;
                *magnitude += product.abs();
            }
        }
        for ((exact, magnitude), &c) in exact.iter().zip(&magnitude).zip(c) {
            let ratio = (f64::from(c) - exact).abs() / (2.0 * (n as f64 + 3.0) * U * magnitude);
            worst = if ratio > worst || ratio.is_nan() { ratio } else { worst };
        }
    }
    worst
}

/// Returns ‖P·L·U − A‖₁ / (n·‖A‖₁·ε) of the factors of a matrix of order n, which LAPACK's tests require to be less than 30. Row `i` was
/// exchanged with row `ipiv[i]`. The result is NaN if a factor is NaN, and infinite if an element of L exceeds 1, so that a row has not
/// been exchanged as it should.
#[must_use]
pub fn factor_error(a: &[f32], factors: &[f32], ipiv: &[i32]) -> f64 {
    let n = ipiv.len();
    let (mut worst, mut norm) = (0.0_f64, 0.0_f64);
    for (j, (a, u)) in a.chunks(n).zip(factors.chunks(n)).enumerate() {
        // a column of P·L·U
        let mut product = vec![0.0; n];
        for (k, l) in factors.chunks(n).enumerate().take(j + 1) {
            product[k] += f64::from(u[k]);
            (k + 1..n).for_each(|i| product[i] += f64::from(l[i]) * f64::from(u[k]));
        }
        if u[j + 1..].iter().any(|l| f64::from(l.abs()) > 1.0 + 4.0 * U) {
            return f64::INFINITY;
        }
        (0..n).rev().for_each(|k| product.swap(k, ipiv[k] as usize));
        let difference = product.iter().zip(a).map(|(product, &a)| (product - f64::from(a)).abs()).sum::<f64>();
        worst = if difference > worst || difference.is_nan() { difference } else { worst };
        norm = norm.max(a.iter().map(|&a| f64::from(a).abs()).sum());
    }
    worst / (n as f64 * norm * 2.0 * U)
}

/// Solves A·x = b of order n by Gaussian elimination with row exchanges in `f64`.
#[must_use]
pub fn solve(a: &[f32], b: &[f32]) -> Vec<f64> {
    let n = b.len();
    let mut a: Vec<f64> = a.iter().map(|&value| f64::from(value)).collect();
    let mut x: Vec<f64> = b.iter().map(|&value| f64::from(value)).collect();
    for k in 0..n {
        let pivot = (k..n).reduce(|best, i| if a[i + k * n].abs() > a[best + k * n].abs() { i } else { best }).unwrap_or(k);
        (k..n).for_each(|j| a.swap(k + j * n, pivot + j * n));
        x.swap(k, pivot);
        for i in k + 1..n {
            a[i + k * n] /= a[k + k * n];
            x[i] -= a[i + k * n] * x[k];
        }
        for j in k + 1..n {
            let (left, right) = a.split_at_mut(j * n);
            let factor = right[k];
            let multipliers = &left[k * n + k + 1..(k + 1) * n];
            right[k + 1..n].iter_mut().zip(multipliers).for_each(|(entry, multiplier)| *entry -= multiplier * factor);
        }
    }
    for k in (0..n).rev() {
        x[k] /= a[k + k * n];
        for i in 0..k {
            x[i] -= a[i + k * n] * x[k];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(count: usize, seed: u64) -> Vec<f32> {
        let mut next = uniform(seed);
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn random_numbers_are_uniform() {
        let values = random(100_000, 7);
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / 1e5;
        let variance = values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / 1e5;
        assert!(values.iter().all(|x| (-0.5..0.5).contains(x)));
        assert!(mean.abs() < 0.005 && (variance - 1.0 / 12.0).abs() < 0.002, "{mean} {variance}");
    }

    #[test]
    fn a_rounded_solution_has_a_small_residual_and_a_wrong_one_a_large_one() {
        let n = 60;
        let (a, b) = (random(n * n, 1), random(n, 2));
        let exact = solve(&a, &b);
        let scaled = |x: &[f32]| {
            let mut residual = Residual::new(&b, x);
            a.chunks(n).zip(x).for_each(|(column, &x)| residual.subtract(column, x));
            residual.scaled()
        };
        let mut x: Vec<f32> = exact.iter().map(|&x| x as f32).collect();
        assert!(scaled(&x) < 0.1, "{}", scaled(&x));
        x.swap(3, 4);
        assert!(scaled(&x) > 16.0, "{}", scaled(&x));
        x[3] = f32::NAN;
        assert!(scaled(&x).is_nan());
    }

    #[test]
    fn wrong_factors_or_pivots_exceed_the_bound() {
        // A = P·L·U with the row exchanges 0 ↔ 1
        let (a, factors) = ([1.0, 2.0, 4.0, 4.0], [2.0, 0.5, 4.0, 2.0]);
        assert_eq!(factor_error(&a, &factors, &[1, 1]), 0.0);
        assert!(factor_error(&a, &factors, &[0, 1]) > 30.0);
        assert!(factor_error(&a, &[2.0, 0.5, 4.0, 2.001], &[1, 1]) > 30.0);
        assert!(factor_error(&a, &[2.0, 0.5, 4.0, f32::NAN], &[1, 1]).is_nan());
        // the same matrix without exchanges: correct, but an element of L is 2
        assert_eq!(factor_error(&a, &[1.0, 2.0, 4.0, -4.0], &[0, 1]), f64::INFINITY);
    }

    #[test]
    fn a_wrong_element_of_a_product_exceeds_the_bound() {
        let n = 20;
        let (a, b) = (random(n * n, 3), random(n * n, 4));
        let entry = |i: usize, j: usize| (0..n).map(|k| a[i + k * n] * b[k + j * n]).sum::<f32>();
        let mut c: Vec<f32> = (0..n * n).map(|at| entry(at % n, at / n)).collect();
        assert!(product_error([&a, &b, &c], n) < 1.0);
        c[57] += 1e-4;
        assert!(product_error([&a, &b, &c], n) > 1.0);
        c[57] = f32::NAN;
        assert!(product_error([&a, &b, &c], n).is_nan());
    }
}
