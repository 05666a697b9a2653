//! What the tests of the suite share.

pub mod naive;
pub mod wrong;

use lapidary_conformance::Scope;

/// A small scope: the loops under test are the slowest there are.
pub fn scope(cases: u32) -> Scope {
    Scope { blocks: vec![4, 16], min: 0, max: 24, cases, large: vec![65], seed: 7 }
}
