//! Converts figures to JSON. JSON has no infinity and no NaN, so this module writes the texts `"inf"`, `"-inf"` and `"NaN"` in
//! their place, as in the reports of the conformance suite.

use serde_json::Value;

/// A number as a JSON value.
pub fn number(value: f64) -> Value {
    if value.is_finite() { value.into() } else { value.to_string().into() }
}

/// A figure of a report as a JSON value.
pub struct Figure(pub Value);

impl From<f64> for Figure {
    fn from(value: f64) -> Self {
        Figure(number(value))
    }
}

impl From<&[f64]> for Figure {
    fn from(values: &[f64]) -> Self {
        Figure(values.iter().copied().map(number).collect())
    }
}

macro_rules! as_serde_has_it {
    ($($type:ty),+) => {$(
        impl From<$type> for Figure {
            fn from(value: $type) -> Self {
                Figure(value.into())
            }
        }
    )+};
}

as_serde_has_it!(Value, bool, i32, u32, u64, usize, Option<usize>, &str, String);

#[cfg(test)]
mod tests {
    use super::Figure;

    #[test]
    fn infinities_and_nan_are_told_apart() {
        let text = |value: f64| Figure::from(value).0.to_string();
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(text), ["\"inf\"", "\"-inf\"", "\"NaN\""]);
        assert_eq!(text(0.1), "0.1");
        assert_eq!(Figure::from(&[1.0, f64::NAN][..]).0.to_string(), "[1.0,\"NaN\"]");
    }
}
