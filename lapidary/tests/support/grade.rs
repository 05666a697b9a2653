//! A subject graded in a test of its own.

use lapidary::core::Scalar;
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{Grader, Scope, Subject, expectation};

use crate::agree::all_good;

/// Every property, all failures at once.
pub fn grade<T: Scalar>(subject: &impl Subject, scope: &Scope) {
    let grader = Grader::new(subject, &subject.identity(), scope.clone(), &expectation::known());
    all_good(&subject.name(), properties_in::<_, T>().iter().map(|property| grader.grade(subject, property)));
}
