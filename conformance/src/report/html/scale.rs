//! Logarithmic axes of the plots.

/// A logarithmic axis. The axis maps the positive numbers `low..=high` to the positions from `from` to `to`.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Creates the axis for the numbers `low..=high`. The axis begins and ends at powers of `base`. If the power at an end is zero,
    /// subnormal or infinite, the axis ends at the smallest or the largest normal number instead.
    pub fn around(base: f64, (low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = base.powf(low.log(base).floor()).clamp(f64::MIN_POSITIVE, f64::MAX / base);
        let high = base.powf(high.log(base).ceil()).max(low * base).min(f64::MAX);
        Scale { low, high, from, to }
    }

    /// The position of `value` on the axis. A value outside the axis is placed at the nearer end of the axis.
    pub fn at(&self, value: f64) -> f64 {
        let part = (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln());
        self.from + (self.to - self.from) * if part.is_nan() { 1.0 } else { part.clamp(0.0, 1.0) }
    }

    /// Whether `value` lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        // rounding may have moved the ends of the axis, which should be powers of the base
        value >= self.low * 0.999 && value / 1.001 <= self.high
    }

    /// The powers of `base` on the axis and their positions. If the axis has more than `most` powers, the function returns only
    /// every second (or third, fourth, …) power.
    pub fn ticks(&self, base: f64, most: usize) -> Vec<(i32, f64)> {
        let power = |value: f64| -> i32 { format!("{:.0}", value.log(base)).parse().expect("a logarithm of a double is small") };
        let (first, last) = (power(self.low), power(self.high));
        let step = (1..).find(|step| usize::try_from((last - first) / step).is_ok_and(|steps| steps < most));
        let powers = (first..=last).step_by(step.map_or(1, i32::unsigned_abs) as usize);
        powers.map(|power| (power, self.at(base.powi(power)))).collect()
    }
}

/// Formats 10 with `exponent` as a superscript.
pub fn power_of_ten(exponent: i32) -> String {
    let digit = |c: char| c.to_digit(10).map_or('⁻', |d| ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][d as usize]);
    format!("10{}", exponent.to_string().chars().map(digit).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_stand_at_even_distances() {
        let scale = Scale::around(10.0, (3e-16, 2e-13), (300.0, 0.0));
        let ticks = scale.ticks(10.0, 9);
        assert_eq!(ticks.iter().map(|t| t.0).collect::<Vec<_>>(), [-16, -15, -14, -13, -12]);
        assert!(ticks.iter().zip([300.0, 225.0, 150.0, 75.0, 0.0]).all(|(t, at)| (t.1 - at).abs() < 1e-9), "{ticks:?}");
        assert!((scale.at(1e-14) - 150.0).abs() < 1e-9);
    }

    #[test]
    fn numbers_outside_stand_at_the_end() {
        let scale = Scale::around(2.0, (1.0, 100.0), (0.0, 70.0));
        assert_eq!([0.0, f64::INFINITY, f64::NAN].map(|x| scale.at(x)), [0.0, 70.0, 70.0]);
        assert_eq!([0.0, 1.0, 128.0, 1e9].map(|x| scale.holds(x)), [false, true, true, false]);
    }

    #[test]
    fn an_axis_ends_with_the_numbers() {
        let scale = Scale::around(10.0, (5e-324, 1.5e308), (0.0, 70.0));
        assert_eq!([0.0, f64::MAX, f64::INFINITY].map(|x| scale.at(x)), [0.0, 70.0, 70.0]);
        assert!(scale.holds(1.5e308) && !scale.holds(f64::INFINITY));
        let ticks = scale.ticks(10.0, 8);
        assert!(ticks.len() > 3 && ticks.iter().all(|tick| (0.0..=70.0).contains(&tick.1)), "{ticks:?}");
        let last = Scale::around(10.0, (1.5e308, 1.5e308), (0.0, 70.0));
        assert!(last.holds(1.5e308) && last.at(1.5e308) > 0.0 && !last.ticks(10.0, 8).is_empty());
    }

    #[test]
    fn many_ticks_are_thinned() {
        let scale = Scale::around(2.0, (1.0, 1024.0), (0.0, 1.0));
        assert_eq!(scale.ticks(2.0, 6).iter().map(|t| t.0).collect::<Vec<_>>(), [0, 2, 4, 6, 8, 10]);
        assert_eq!(power_of_ten(-16), "10⁻¹⁶");
    }
}
