//! Every property by name, in the order in which they build on one another: memory, then
//! what devices do, then gemm, trsm, getrf, solve, faults.

mod agreement;
mod device;
mod faults;
mod gemm;
mod getrf;
mod memory;
mod pinned;
mod search;
mod solve;
mod trsm;

pub use agreement::agreements;
pub use search::search;

use lapidary_core::{DType, Scalar};

use crate::{Failure, Subject, Trial};

/// Grades a subject in a property.
pub type Check<S> = fn(&Trial<'_, S>) -> Result<(), Failure>;

/// A property in one precision.
#[derive(Debug)]
pub struct Property<S> {
    /// The precision.
    pub dtype: DType,
    /// What is tried.
    pub routine: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub about: &'static str,
    /// Grades a subject.
    pub check: Check<S>,
}

// derived, these would ask for `S: Clone`
impl<S> Clone for Property<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Property<S> {}

impl<S> Property<S> {
    /// Precision, routine and name, as in `f64::gemm::nan_propagates`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}::{}::{}", self.dtype, self.routine, self.name)
    }
}

/// A name, what it says, and the check.
type Entry<S> = (&'static str, &'static str, Check<S>);

fn under<S, T: Scalar>(routine: &'static str, entries: Vec<Entry<S>>) -> impl Iterator<Item = Property<S>> {
    let property = move |(name, about, check)| Property { dtype: T::DTYPE, routine, name, about, check };
    entries.into_iter().map(property)
}

/// All properties for the numbers `T`.
#[must_use]
pub fn properties_in<S: Subject, T: Scalar>() -> Vec<Property<S>> {
    let lists = [
        ("memory", memory::entries::<S, T>()),
        ("transfer", device::transfers::<S, T>()),
        ("ordering", device::ordering::<S, T>()),
        ("program", device::program::<S, T>()),
        ("laswp", memory::exchanges::<S, T>()),
        ("gemm", gemm::entries::<S, T>()),
        ("trsm", trsm::entries::<S, T>()),
        ("getrf", getrf::entries::<S, T>()),
        ("solve", solve::entries::<S, T>()),
        ("cases", pinned::entries::<S, T>()),
        ("faults", device::faults::<S, T>()),
        ("faults", faults::entries::<S, T>()),
    ];
    lists.into_iter().flat_map(|(routine, entries)| under::<S, T>(routine, entries)).collect()
}

/// All properties, single precision first.
#[must_use]
pub fn properties<S: Subject>() -> Vec<Property<S>> {
    [properties_in::<S, f32>(), properties_in::<S, f64>()].concat()
}

/// Whether a query selects a trial: a part of its name, or, with `*` and `?`, all of it.
#[must_use]
pub fn selects(query: &str, name: &str) -> bool {
    let is_pattern = query.contains(['*', '?']);
    if is_pattern { wildmatch::WildMatch::new(query).matches(name) } else { name.contains(query) }
}

#[cfg(test)]
mod tests {
    use super::selects;

    #[test]
    fn queries_are_parts_or_patterns() {
        let name = "f64::gemm::nan_propagates";
        for query in ["", "gemm", "f64::gemm", name, "*nan*", "f??::gemm::*"] {
            assert!(selects(query, name), "{query}");
        }
        for query in ["f32", "gemm::n?", "gemm*"] {
            assert!(!selects(query, name), "{query}");
        }
    }
}
