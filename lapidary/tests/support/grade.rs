//! Grades a subject by the conformance suite within one test.

use lapidary::Scalar;
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{Grader, Scope, Subject, expectation};

use crate::agree::all_good;

/// Tests every property, and reports all failures together.
pub fn grade<T: Scalar>(subject: &(impl Subject + 'static), scope: &Scope) {
    grade_some::<T>(subject, scope, "");
}

/// Tests the properties whose full names contain `name`.
pub fn grade_some<T: Scalar>(subject: &(impl Subject + 'static), scope: &Scope, name: &str) {
    let grader = Grader::new(subject, &subject.identity(), scope.clone(), &expectation::known());
    let properties = properties_in::<_, T>().into_iter().filter(|property| property.full_name().contains(name));
    all_good(&subject.name(), properties.map(|property| grader.grade(subject, &property)));
}
