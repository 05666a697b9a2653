//! The suite tested by itself: plain loops have every property, and every
//! deliberate fault lacks the one that is there for it.

mod agreement;
mod faults;
mod naive;
mod plain;
mod wrong;

use lapidary_conformance::Scope;

/// A small scope: the loops under test are the slowest there are.
fn scope(cases: u32) -> Scope {
    Scope { blocks: vec![4, 16], min: 0, max: 24, cases, large: vec![65], seed: 7 }
}
