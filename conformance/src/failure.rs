//! What a failed check says: the property, the bound, the worst place, the case.

use std::error::Error;
use std::fmt;

use crate::bounds::Bound;

/// A property that a subject does not have, with the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The property, for example `gemm: componentwise`.
    pub property: &'static str,
    /// The bound that was exceeded; none where the property is a plain yes or no.
    pub bound: Option<Bound>,
    /// Row and column of the worst element.
    pub at: Option<(usize, usize)>,
    /// Observed ratio, to be compared with the bound's limit.
    pub ratio: f64,
    /// What was seen, in words.
    pub detail: String,
    /// The case, as it prints.
    pub case: String,
}

impl Failure {
    /// A plain yes-or-no property that does not hold.
    pub fn new(property: &'static str, detail: impl fmt::Display) -> Self {
        Failure { property, bound: None, at: None, ratio: f64::NAN, detail: detail.to_string(), case: String::new() }
    }

    /// Names the worst element.
    #[must_use]
    pub fn at(self, at: (usize, usize)) -> Self {
        Failure { at: Some(at), ..self }
    }

    /// Names the bound and the ratio that exceeds it.
    #[must_use]
    pub fn exceeds(self, bound: Bound, ratio: f64) -> Self {
        Failure { bound: Some(bound), ratio, ..self }
    }

    /// Names the case.
    #[must_use]
    pub fn in_case(self, case: &impl fmt::Display) -> Self {
        Failure { case: case.to_string(), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.detail)?;
        if let Some((i, j)) = self.at {
            write!(f, " at ({i}, {j})")?;
        }
        if let Some(bound) = self.bound {
            write!(f, ", ratio {:.3e} exceeds {bound}", self.ratio)?;
        }
        if self.case.is_empty() { Ok(()) } else { write!(f, " [{}]", self.case) }
    }
}

impl Error for Failure {}

/// The worst ratio seen so far and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst {
    ratio: f64,
    at: Option<(usize, usize)>,
}

impl Worst {
    /// Takes another ratio into account; NaN is worse than any number.
    pub fn see(&mut self, ratio: f64, at: (usize, usize)) {
        let ratio = if ratio.is_nan() { f64::INFINITY } else { ratio };
        if self.at.is_none() || ratio > self.ratio {
            *self = Worst { ratio, at: Some(at) };
        }
    }

    /// Whether the worst ratio is within the bound.
    ///
    /// # Errors
    /// It is not; the failure names the place.
    pub fn within(self, property: &'static str, bound: Bound) -> Result<(), Failure> {
        match self.at {
            Some(at) if self.ratio > bound.limit => {
                Err(Failure::new(property, "error too large").at(at).exceeds(bound, self.ratio))
            }
            _ => Ok(()),
        }
    }
}

/// `error / scale`, with zero error always within any bound.
#[must_use]
pub fn ratio(error: f64, scale: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / scale }
}

/// Whether one number is within a bound.
///
/// # Errors
/// It is not, or it is NaN.
pub fn within(property: &'static str, bound: Bound, ratio: f64) -> Result<(), Failure> {
    if ratio <= bound.limit { Ok(()) } else { Err(Failure::new(property, "residual too large").exceeds(bound, ratio)) }
}
