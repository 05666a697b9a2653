//! Random search: every point once, in a random order.

use super::exhaustive::Exhaustive;
use super::shuffled;
use crate::space::Space;

/// Starts a search over the points of `first`, and then over all other points in a random order.
pub fn new(space: &Space, first: &[usize], rng: &mut fastrand::Rng) -> Exhaustive {
    Exhaustive::of_list(shuffled(space, first, rng))
}
