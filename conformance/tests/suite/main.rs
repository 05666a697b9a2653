//! The suite tested by itself: plain loops have every property, and every
//! deliberate fault lacks the one that is there for it.

mod agreement;
mod controls;
mod documents;
mod faults;
mod grading;
mod naive;
mod panics;
mod plain;
mod slips;
mod subtle;
mod wrong;
mod wrong_device;

use lapidary_conformance::suite::Property;
use lapidary_conformance::{Failure, Ledger, Scope};

/// A small scope: the loops under test are the slowest there are.
fn scope(cases: u32) -> Scope {
    Scope { blocks: vec![4, 16], min: 0, max: 24, cases, large: vec![65], elements: 1 << 16, seed: 7 }
}

/// A quick run without its largest sizes, for which the plain loops take long.
fn quick() -> Scope {
    Scope { large: vec![65], ..Scope::quick(1) }
}

/// The outcome of one property.
fn outcome<S>(subject: &S, property: &Property<S>, scope: &Scope) -> Result<(), Failure> {
    property.check(subject, scope, &Ledger::default())
}

/// The property of a list that is called `routine::name`.
fn find<'a, S>(list: &'a [Property<S>], name: &str) -> &'a Property<S> {
    let (routine, name) = name.split_once("::").expect("a routine and a name");
    let named = |property: &&Property<S>| property.routine == routine && property.name == name;
    list.iter().find(named).expect("the suite has the property")
}
