//! The list of all properties, by name. A property comes after the properties on which it depends: memory, then devices, then
//! laswp, gemm, trsm, getrf, solve, batches, solutions in mixed precision, faults, large matrices.

mod agreement;
mod batched;
mod device;
mod faults;
mod gemm;
mod getrf;
mod large;
mod memory;
mod mixed;
mod pinned;
mod search;
mod solve;
mod trsm;

pub use agreement::agreements;
pub use search::search;

use lapidary_core::{DType, Routine, Scalar};

use crate::cases::Rng;
use crate::erased::AnySubject;
use crate::{Failure, Ledger, Scope, Subject, Trial};

/// A function that tests a property on a subject.
pub type Check<S> = fn(&Trial<'_, S>) -> Result<(), Failure>;

/// A property in one precision.
#[derive(Debug)]
pub struct Property<S> {
    /// Precision in which the property is tested.
    pub dtype: DType,
    /// The routine under test, or the name of another group of properties, such as `memory`.
    pub routine: &'static str,
    /// The routines that the check of the property calls. The trial is skipped for a library that lacks one of these routines.
    pub calls: &'static [Routine],
    /// Name of the property.
    pub name: &'static str,
    /// The requirement that the property states, in one sentence.
    pub about: &'static str,
    way: Way<S>,
}

/// The type on which a property is tested.
#[derive(Debug)]
enum Way<S> {
    /// The check is compiled for the type of the subject.
    Typed(Check<S>),
    /// The check is compiled once, for [`AnySubject`], since the code of such a check is large and the suite has many subjects. The
    /// function converts a subject to [`AnySubject`].
    Erased(Check<AnySubject>, fn(&S) -> &AnySubject),
}

// a derived `Clone` would require `S: Clone`
impl<S> Clone for Way<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Way<S> {}

// a derived `Clone` would require `S: Clone`
impl<S> Clone for Property<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Property<S> {}

impl<S> Property<S> {
    /// Precision, routine and name of the property, for example `f64::gemm::nan_propagates`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}::{}::{}", self.dtype, self.routine, self.name)
    }

    /// Tests the property on a subject. The cases are drawn from a seed that depends on the seed of the scope and on the name of
    /// the property.
    ///
    /// # Errors
    /// The subject lacks the property.
    pub fn check(&self, subject: &S, scope: &Scope, ledger: &Ledger) -> Result<(), Failure> {
        let scope = &Scope { seed: own_seed(scope.seed, &self.full_name()), ..scope.clone() };
        match self.way {
            Way::Typed(check) => check(&Trial { subject, scope, ledger }),
            Way::Erased(check, erased) => check(&Trial { subject: erased(subject), scope, ledger }),
        }
    }
}

/// The seed of a trial: the FNV-1a hash of the trial's name, mixed with the seed of the run. With one seed for all trials, every
/// trial would draw the same sizes.
fn own_seed(seed: u64, name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Rng::new(seed ^ hash).bits()
}

/// An entry of the list of properties: name, requirement and check of one property.
type Entry<S> = (&'static str, &'static str, Check<S>);

/// The properties of one routine, or of another group such as `memory`.
struct Group<S: ?Sized> {
    name: &'static str,
    /// The routines that each check of the group calls.
    calls: &'static [Routine],
    entries: Vec<Entry<S>>,
}

/// Creates the properties of a group in the precision of `T`. `way` states the type on which a check is tested.
fn under<T: Scalar, C: ?Sized, S>(group: Group<C>, way: fn(Check<C>) -> Way<S>) -> impl Iterator<Item = Property<S>> {
    let Group { name: routine, calls, entries } = group;
    entries.into_iter().map(move |(name, about, check)| Property { dtype: T::DTYPE, routine, calls, name, about, way: way(check) })
}

/// All properties in the precision of `T`.
#[must_use]
pub fn properties_in<S: Subject + 'static, T: Scalar>() -> Vec<Property<S>> {
    groups::<T>().into_iter().flat_map(|group| under::<T, _, _>(group, |check| Way::Erased(check, |subject| subject))).collect()
}

/// The name of the group that contains the properties of `routine`.
#[must_use]
pub fn group_of(routine: Routine) -> &'static str {
    match routine {
        Routine::Gemm | Routine::Trsm | Routine::Getrf | Routine::Laswp => routine.name(),
        Routine::Getrs | Routine::Gesv => "solve",
    }
}

/// The routines that the properties call.
pub(crate) fn called_routines() -> Vec<Routine> {
    let groups = groups::<f64>();
    Routine::ALL.into_iter().filter(|routine| groups.iter().any(|group| group.calls.contains(routine))).collect()
}

/// All groups of properties in the precision of `T`. If this function called [`groups_of`], each crate that grades subjects would compile all
/// properties again. The two functions that it calls are not inlined, for the same reason.
fn groups<T: Scalar>() -> Vec<Group<AnySubject>> {
    match T::DTYPE {
        DType::F32 => in_single_precision(),
        DType::F64 => in_double_precision(),
        DType::I32 => unreachable!("indices are no elements of a matrix that is graded"),
    }
}

#[inline(never)]
fn in_single_precision() -> Vec<Group<AnySubject>> {
    groups_of::<f32>()
}

#[inline(never)]
fn in_double_precision() -> Vec<Group<AnySubject>> {
    groups_of::<f64>()
}

/// All groups of properties in the precision of `T`. The properties of one name may form several groups, which call different
/// routines.
fn groups_of<T: Scalar>() -> Vec<Group<AnySubject>> {
    use Routine::{Gemm, Getrf, Getrs, Laswp, Trsm};
    const NONE: &[Routine] = &[];
    let group = |name, calls: &'static [Routine], entries| Group { name, calls, entries };
    let of = |routine: Routine, calls: &'static [Routine], entries| group(group_of(routine), calls, entries);
    let mut groups = vec![
        group("memory", &[Gemm, Trsm, Getrf, Getrs], memory::storage::<_, T>()),
        group("memory", &[Gemm], memory::stale::<_, T>()),
        group("memory", &[Gemm, Laswp], memory::far::<_, T>()),
        group("transfer", NONE, device::transfers::<_, T>()),
        group("ordering", NONE, device::ordering::<_, T>()),
        group("program", NONE, device::program::<_, T>()),
        of(Laswp, &[Laswp], memory::exchanges::<_, T>()),
        of(Gemm, &[Gemm], gemm::entries::<_, T>()),
        of(Trsm, &[Trsm], trsm::entries::<_, T>()),
        of(Getrf, &[Getrf], getrf::entries::<_, T>()),
        of(Getrs, &[Getrf, Getrs], solve::entries::<_, T>()),
        // a subject without batched routines calls the single routine for each matrix
        group("batched", &[Gemm, Getrf, Getrs], batched::entries::<_, T>()),
    ];
    if T::DTYPE == DType::F64 {
        groups.push(group("mixed", NONE, mixed::entries()));
    }
    groups.extend(pinned::groups::<_, T>());
    groups.extend([
        group("faults", NONE, device::faults::<_, T>()),
        group("faults", &[Gemm], faults::entries::<_, T>()),
        group("large", NONE, large::on_devices::<_, T>()),
        group("large", &[Gemm, Trsm, Laswp], large::in_host_memory::<_, T>()),
    ]);
    groups
}

/// All properties: those in single precision first, then those in double precision.
#[must_use]
pub fn properties<S: Subject + 'static>() -> Vec<Property<S>> {
    [properties_in::<S, f32>(), properties_in::<S, f64>()].concat()
}

/// Whether a query selects a trial. A query with `*` or `?` must match the whole name; any other query must be a part of the name
/// of the trial.
#[must_use]
pub fn selects(query: &str, name: &str) -> bool {
    let is_pattern = query.contains(['*', '?']);
    if is_pattern { wildmatch::WildMatch::new(query).matches(name) } else { name.contains(query) }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use lapidary_core::{DType, Routine};

    use super::{Check, Property, Way, group_of, groups, search, selects};
    use crate::cases::SolveCase;
    use crate::{Ledger, Scope};

    /// The cases that a trial of a property called `name` draws.
    fn drawn(name: &'static str, seed: u64) -> Vec<String> {
        let check: Check<RefCell<Vec<String>>> = |trial| {
            search(trial.scope, SolveCase::any(trial.scope), |case| {
                trial.subject.borrow_mut().push(case.to_string());
                Ok(())
            })
        };
        let (property, cases) = (
            Property { dtype: DType::F64, routine: "solve", calls: &[], name, about: "", way: Way::Typed(check) },
            RefCell::default(),
        );
        property.check(&cases, &Scope::quick(seed), &Ledger::default()).unwrap();
        cases.into_inner()
    }

    #[test]
    fn a_trial_draws_the_same_cases_again_and_another_draws_others() {
        let cases = drawn("random", 1);
        assert_eq!(cases, drawn("random", 1));
        for other in [drawn("large", 1), drawn("random", 2)] {
            assert!(cases.len() == other.len() && cases.iter().zip(&other).all(|(one, other)| one != other));
        }
    }

    #[test]
    fn every_routine_is_graded() {
        let groups = groups::<f64>();
        for routine in Routine::ALL {
            assert!(groups.iter().any(|group| group.name == group_of(routine)), "{routine:?}");
            // `gesv` is getrf followed by getrs, and is no method of `Subject`
            assert_eq!(groups.iter().any(|group| group.calls.contains(&routine)), routine != Routine::Gesv, "{routine:?}");
        }
    }

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
