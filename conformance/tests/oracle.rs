//! Tests of the oracle against exact arithmetic with numbers of any length.

use dashu_float::FBig;
use lapidary_conformance::cases::Rng;
use lapidary_conformance::oracle::{Dense, Double, product::product};

/// Computes `Σ x·y` without rounding errors.
fn exact_dot(x: &[f64], y: &[f64]) -> FBig {
    let big = |x: f64| FBig::try_from(x).expect("finite").with_precision(0).value();
    x.iter().zip(y).fold(big(0.0), |sum, (&x, &y)| sum + big(x) * big(y))
}

/// Draws two vectors whose dot product is about 2^-`exponent` times the sum of the magnitudes of its terms. The method is a short
/// form of algorithm 6.1 of Ogita, Rump and Oishi.
fn ill_conditioned(n: usize, exponent: f64, rng: &mut Rng) -> (Vec<f64>, Vec<f64>) {
    let half = n / 2;
    let spread = |rng: &mut Rng| rng.uniform() * (exponent / 2.0 * rng.uniform()).exp2();
    let mut x: Vec<f64> = (0..half).map(|_| spread(rng)).collect();
    let mut y: Vec<f64> = (0..half).map(|_| spread(rng)).collect();
    for _ in half..n {
        // the new term cancels the sum of the earlier terms as far as one product can
        let factor = spread(rng);
        let sum = exact_dot(&x, &y).to_f64().value();
        x.push(factor);
        y.push((rng.uniform() - sum) / factor);
    }
    (x, y)
}

#[test]
fn dots_are_as_good_as_in_twice_the_precision() {
    let rng = &mut Rng::new(3);
    for exponent in [0.0, 40.0, 80.0, 120.0] {
        for n in [2, 10, 100, 300] {
            let (x, y) = ill_conditioned(n, exponent, rng);
            let exact = exact_dot(&x, &y);
            let double = Double::dot(&x, &y);
            let error = (exact - exact_dot(&[double.hi, double.lo], &[1.0, 1.0])).to_f64().value().abs();
            let magnitudes: f64 = x.iter().zip(&y).map(|(x, y)| (x * y).abs()).sum();
            let unit = f64::EPSILON / 2.0;
            // the bound of Ogita, Rump and Oishi, proposition 5.5, for the sum before its final rounding
            let gamma = f64::from(u32::try_from(n).unwrap()) * unit;
            assert!(error <= gamma * gamma * magnitudes, "n={n} exponent={exponent} error={error:e} of {magnitudes:e}");
        }
    }
}

#[test]
fn a_product_with_factors_is_as_good() {
    let rng = &mut Rng::new(4);
    let (x, y) = ill_conditioned(60, 60.0, rng);
    let (alpha, beta, c) = (rng.uniform(), rng.uniform(), rng.uniform());
    let (row, column) = (Dense::from_fn(1, 60, |_, p| x[p]), Dense::from_fn(60, 1, |p, _| y[p]));
    let got = product::<f64>(alpha, &row, &column, beta, &Dense::from_fn(1, 1, |_, _| c));
    let big = |x: f64| exact_dot(&[x], &[1.0]);
    let exact = big(alpha) * exact_dot(&x, &y) + exact_dot(&[beta], &[c]);
    let error = (exact - big(got.value(0, 0).hi) - big(got.value(0, 0).lo)).to_f64().value().abs();
    assert!(error <= 1e-28 * got.scale(0, 0), "{error:e} of {:e}", got.scale(0, 0));
}

#[test]
fn single_precision_operands_are_exact() {
    let (x, y) = (f64::from(1.1_f32), f64::from(3.3_f32));
    let double = Double::dot(&[x, -x], &[y, y]);
    assert_eq!((double.hi, double.lo), (0.0, 0.0));
}
