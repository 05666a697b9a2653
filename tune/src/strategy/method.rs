//! The names of the strategies.

use std::fmt;
use std::str::FromStr;

use super::Strategy;
use super::descent::Descent;
use super::exhaustive::Exhaustive;
use super::halving::Halving;
use super::nested::Nested;
use super::random;
use crate::space::Space;

/// A strategy, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Measures every point, in the order of the space.
    Exhaustive,
    /// Measures every point, in a random order.
    Random,
    /// Holds the structural axes while it varies the others, and then varies the structural axes.
    Nested,
    /// Coordinate descent with random restarts.
    Descent,
    /// Successive halving of random samples.
    Halving,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 5] = [Method::Exhaustive, Method::Random, Method::Nested, Method::Descent, Method::Halving];

    /// Returns the name of the method, which [`FromStr`] accepts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Exhaustive => "exhaustive",
            Method::Random => "random",
            Method::Nested => "nested",
            Method::Descent => "descent",
            Method::Halving => "halving",
        }
    }

    /// Returns a description of the method in one sentence.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Method::Exhaustive => "Measures every point once, in the order in which the space enumerates them.",
            Method::Random => "Measures every point once, in a random order.",
            Method::Nested => {
                "Probes all points that share the same values of the structural axes, measures the fastest tenth again, and then \
                 varies the structural axes of the winner."
            }
            Method::Descent => {
                "Moves along one axis at a time to the fastest point of a line until no axis improves, and then restarts from a \
                 random point."
            }
            Method::Halving => {
                "Probes samples near the fastest points, and measures the faster half of each sample again with twice the runs."
            }
        }
    }

    /// Starts the strategy on `space`. The strategy measures the points of `first` before all others: points that are known to be
    /// good, such as the parameters in use. The same `seed` and the same outcomes lead to the same requests.
    #[must_use]
    pub fn start<'a>(self, space: &'a Space, first: &[usize], seed: u64) -> Box<dyn Strategy + 'a> {
        let mut rng = fastrand::Rng::with_seed(seed);
        match self {
            Method::Exhaustive => Box::new(Exhaustive::new(space, first)),
            Method::Random => Box::new(random::new(space, first, &mut rng)),
            Method::Nested => Box::new(Nested::new(space, first, rng)),
            Method::Descent => Box::new(Descent::new(space, first, &mut rng)),
            Method::Halving => Box::new(Halving::new(space, first, &mut rng)),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        Method::ALL.into_iter().find(|method| method.name() == text).ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

/// The error that a text is not the name of a method. The error contains the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMethod(pub String);

impl fmt::Display for UnknownMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Method::ALL.map(Method::name).join(", ");
        write!(f, "unknown method \"{}\"; the methods are {names}", self.0)
    }
}

impl std::error::Error for UnknownMethod {}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn names_are_parsed() {
        for method in Method::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
            assert!(method.description().ends_with('.'));
        }
        let error = "Nested".parse::<Method>().unwrap_err().to_string();
        assert!(error.contains("\"Nested\"") && error.contains("halving"), "{error}");
    }
}
