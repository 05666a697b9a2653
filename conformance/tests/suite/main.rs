//! Tests of the suite itself. The subject of plain loops must have every property. For each deliberate fault, the property that is
//! meant for it must fail.

mod agreement;
mod controls;
mod documents;
mod faults;
mod faulty_lu;
mod grading;
mod mixed;
mod naive;
mod panics;
mod plain;
mod subtle;
mod wrong;
mod wrong_device;

use lapidary_conformance::suite::Property;
use lapidary_conformance::{Failure, Ledger, Scope};

/// A small scope, since the plain loops are slow.
fn scope(cases: u32) -> Scope {
    Scope { blocks: vec![4, 16], min: 0, max: 24, cases, large: vec![65], elements: 1 << 16, seed: 7 }
}

/// The scope of a quick run with smaller large matrices, since the plain loops are slow.
fn quick() -> Scope {
    Scope { large: vec![65], ..Scope::quick(1) }
}

/// Tests one property on a subject.
fn outcome<S>(subject: &S, property: &Property<S>, scope: &Scope) -> Result<(), Failure> {
    property.check(subject, scope, &Ledger::default())
}

/// Returns the property of `list` that `name` states in the form `routine::property`.
fn find<'a, S>(list: &'a [Property<S>], name: &str) -> &'a Property<S> {
    let (routine, name) = name.split_once("::").expect("a routine and a name");
    let named = |property: &&Property<S>| property.routine == routine && property.name == name;
    list.iter().find(named).expect("the suite has the property")
}
