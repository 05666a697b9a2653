//! A subject graded in a test of its own.

use lapidary::core::Scalar;
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{Grader, Scope, Subject, expectation};

use crate::agree::all_good;

/// Every property, all failures at once.
pub fn grade<T: Scalar>(subject: &(impl Subject + 'static), scope: &Scope) {
    grade_some::<T>(subject, scope, "");
}

/// Those with this in their full names.
pub fn grade_some<T: Scalar>(subject: &(impl Subject + 'static), scope: &Scope, name: &str) {
    let grader = Grader::new(subject, &subject.identity(), scope.clone(), &expectation::known());
    let properties = properties_in::<_, T>().into_iter().filter(|property| property.full_name().contains(name));
    all_good(&subject.name(), properties.map(|property| grader.grade(subject, &property)));
}
