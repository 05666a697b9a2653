//! Reads and writes numbers as JSON. JSON has neither infinity nor NaN, so that the texts `"inf"`, `"-inf"` and `"NaN"`
//! stand for them. Earlier versions of the suite wrote `null` for these numbers; `null` is read as infinity, the worst
//! possible ratio.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number in the form that JSON allows.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Other(String),
    Unknown,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let number = if value.is_finite() { Number::Finite(*value) } else { Number::Other(value.to_string()) };
    number.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match Number::deserialize(deserializer)? {
        Number::Finite(value) => Ok(value),
        Number::Other(text) => text.parse().map_err(|_| D::Error::custom(format!("`{text}` is no number"))),
        Number::Unknown => Ok(f64::INFINITY),
    }
}
