//! Reads and writes numbers as JSON. JSON has neither infinity nor NaN, so that this module writes the texts `"inf"`, `"-inf"` and
//! `"NaN"` in their place. Earlier versions of the suite wrote infinity and NaN as `null`. This module reads `null` as infinity,
//! the worst possible ratio.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number in a form that JSON allows.
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
