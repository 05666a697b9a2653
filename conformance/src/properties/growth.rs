//! Measures how the error of a product grows with k.

use crate::bounds::{self, real};
use crate::report::Figure;
use crate::trial::Trial;
use crate::{Failure, Subject};

/// Checks the exponent with which the worst error of a product grows with k, from the products of the trial (bound 1). The check
/// passes if fewer than three products have rounding errors.
///
/// # Errors
/// The exponent exceeds one.
pub fn check_growth<S: Subject + ?Sized>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let figures = trial.ledger.figures();
    let Some(exponent) = exponent(&figures) else { return Ok(()) };
    let largest = figures.iter().map(|figure| figure.size).max().unwrap_or(0);
    // if the error shrinks as k grows, the exponent is negative and counts as zero
    trial.ledger.evidence("NN", largest).within("gemm: growth", bounds::gemm_growth(), exponent.max(0.0))
}

/// The exponent with which the worst componentwise error of a product grows with k: the slope of the logarithm of the error over
/// the logarithm of k. `None` if fewer than three products have rounding errors.
#[must_use]
pub fn exponent(figures: &[Figure]) -> Option<f64> {
    let seen = figures.iter().filter(|figure| figure.check == "gemm: componentwise" && figure.ratio > 0.0);
    slope(&seen.map(|figure| (real(figure.size).log2(), figure.ratio.log2())).collect::<Vec<_>>())
}

/// The slope of the line that fits the points best (least squares). `None` for fewer than three points.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = real(points.len());
    let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / count;
    let (x0, y0) = (mean(|p| p.0), mean(|p| p.1));
    let (above, below) =
        points.iter().fold((0.0, 0.0), |(above, below), (x, y)| (above + (x - x0) * (y - y0), below + (x - x0) * (x - x0)));
    (points.len() > 2 && below > 0.0).then(|| above / below)
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn powers_have_their_exponent_as_slope() {
        for exponent in [0.0, 0.5, 1.0, 2.0] {
            let points: Vec<(f64, f64)> = (4..=10).map(|x| (f64::from(x), -50.0 + exponent * f64::from(x))).collect();
            assert!((slope(&points).unwrap() - exponent).abs() < 1e-12);
        }
        assert_eq!((slope(&[]), slope(&[(1.0, 1.0), (2.0, 2.0)]), slope(&[(1.0, 1.0); 5])), (None, None, None));
    }
}
