//! Compares the results of two machines.

use lapidary::Scalar;
use lapidary_conformance::properties::agreement::{Closeness, Pair};
use lapidary_conformance::report::TrialReport;
use lapidary_conformance::suite::agreements;
use lapidary_conformance::{Grader, Scope, harness};

use crate::graded::Graded;

/// Compares the results of every routine on two machines, and reports all disagreements together.
pub fn agree<T: Scalar>(one: &Graded, other: &Graded, closeness: Closeness, scope: &Scope) {
    agree_in::<T>(one, other, closeness, scope, |_| true);
}

/// Compares results on two machines as [`agree`] does, in the properties whose names `wanted` accepts.
pub fn agree_in<T: Scalar>(one: &Graded, other: &Graded, closeness: Closeness, scope: &Scope, wanted: impl Fn(&str) -> bool) {
    let (pair, grader) = (Pair { one, other, closeness }, Grader::strict(scope.clone()));
    let compared = agreements::<Graded, Graded, T>();
    let compared = compared.iter().filter(|property| wanted(property.name));
    all_good(&format!("{} and {}", one.0, other.0), compared.map(|property| grader.grade_within(&pair, property, None)));
}

/// Asserts that all trials have passed, or have failed as a known expectation predicts.
pub fn all_good(name: &str, trials: impl Iterator<Item = TrialReport>) {
    let complaint = |trial: TrialReport| {
        let failed = harness::verdict(&trial).err()?;
        Some(format!("{}: {}", trial.name, failed.message().unwrap_or_default()))
    };
    let failures: Vec<String> = trials.filter_map(complaint).collect();
    assert!(failures.is_empty(), "{name}\n{}", failures.join("\n"));
}
