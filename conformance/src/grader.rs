//! The grader runs a property on a subject and returns the report of this trial.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use lapidary_core::{DType, Scalar};

use crate::expectation::{self, Expectation};
use crate::guarded::message;
use crate::report::{ENDS, Identity, TrialReport, Verdict};
use crate::suite::Property;
use crate::trial::Ledger;
use crate::{Failure, Scope, Subject, flushes, memory_check};

/// The scope of the trials of one subject, and the known failures by which the trials are judged.
#[derive(Clone, Debug)]
pub struct Grader {
    scope: Scope,
    /// Known failures of the subject, in single and in double precision.
    expectations: [Vec<Expectation>; 2],
}

impl Grader {
    /// Creates a grader for one subject. If a known failure applies only to subjects that flush subnormal numbers, the function
    /// calls the subject to find out whether it flushes them.
    #[must_use]
    pub fn new<S: Subject>(subject: &S, identity: &Identity, scope: Scope, known: &[Expectation]) -> Self {
        let expectations = [about::<S, f32>(subject, identity, known), about::<S, f64>(subject, identity, known)];
        Grader { scope, expectations }
    }

    /// Creates a grader that expects no failure.
    #[must_use]
    pub fn strict(scope: Scope) -> Self {
        Grader { scope, expectations: [Vec::new(), Vec::new()] }
    }

    /// Runs the trial of a property on a subject. The trial is skipped if the subject lacks something that the property
    /// needs.
    pub fn try_on<S: Subject>(&self, subject: &S, property: &Property<S>) -> TrialReport {
        let skip_reason = subject.skip_reason(property.dtype, property.calls, property.name);
        let why = skip_reason.or_else(|| memory_check::can_allocate(memory_check::SMALL).err());
        why.map_or_else(|| self.grade(subject, property), |why| skipped(property, &why))
    }

    /// Runs the trial of a property on a subject. A panic during the trial counts as a failure. The failure names the case of the
    /// panic if the subject is [`Guarded`](crate::Guarded).
    pub fn grade<S: Subject>(&self, subject: &S, property: &Property<S>) -> TrialReport {
        self.grade_within(subject, property, subject.memory_limit())
    }

    /// Runs a trial on a subject of any type, such as a [`Pair`](crate::properties::agreement::Pair), which is no [`Subject`].
    /// `memory_limit` is the memory limit of each device, in bytes.
    pub fn grade_within<S>(&self, subject: &S, property: &Property<S>, memory_limit: Option<usize>) -> TrialReport {
        let (start, ledger) = (Instant::now(), Ledger::default());
        // a panic leaves the ledger consistent, since the ledger records each figure in one step
        let outcome = catch_unwind(AssertUnwindSafe(|| property.check(subject, &self.scope, &ledger)));
        let outcome = outcome.unwrap_or_else(|panic| Err(Failure::new("suite: no panic", message(&*panic))));
        let (cases, skipped, figures) = ledger.close();
        let [single, double] = &self.expectations;
        let expectations = if property.dtype == DType::F32 { single } else { double };
        let name = property.full_name();
        let skipped = match &outcome {
            Ok(()) => skipped,
            Err(failure) if failure.check == memory_check::CHECK => Some(failure.detail.clone()),
            Err(failure) if failure.lacks_memory => too_little_memory(memory_limit),
            // if the host lacks memory for something else than a matrix, such as a thread, calls return errors of other kinds
            Err(failure) if failure.compares_nothing() => memory_check::can_allocate(memory_check::MIN_FREE_BYTES).err(),
            Err(_) => None,
        };
        let (verdict, why) = match skipped {
            Some(why) => (Verdict::Skipped, why),
            None => expectation::judge(expectations, &name, outcome.as_ref().copied()),
        };
        let failure = outcome.err().map(|failure| failure.report());
        TrialReport { name, verdict, why, seconds: start.elapsed().as_secs_f64(), cases, figures, failure, ..blank(property) }
    }
}

/// Returns the report of a trial that is skipped. The report gives the reason `why`.
#[must_use]
pub fn skipped<S>(property: &Property<S>, why: &str) -> TrialReport {
    TrialReport { why: why.to_owned(), ..blank(property) }
}

/// Why a call may lack memory although the subject has no fault. `None` if the host has enough memory, so that an error about
/// memory is a fault of the subject.
pub(crate) fn too_little_memory(memory_limit: Option<usize>) -> Option<String> {
    let limited = |bytes| format!("too little memory: the limit is {bytes} bytes; raise it to run this trial");
    memory_limit.map(limited).or_else(|| memory_check::can_allocate(memory_check::ASSUMED_BYTES).err())
}

/// Returns the report of a trial that began but did not end. `detail` describes how the suite noticed that the trial did not end.
#[must_use]
pub fn unended<S>(property: &Property<S>, detail: &str) -> TrialReport {
    let failure = Some(Failure::new(ENDS, detail).report());
    TrialReport { verdict: Verdict::Failed, failure, ..blank(property) }
}

fn blank<S>(property: &Property<S>) -> TrialReport {
    TrialReport {
        name: property.full_name(),
        dtype: property.dtype.to_string(),
        routine: property.routine.to_owned(),
        property: property.name.to_owned(),
        about: property.about.to_owned(),
        verdict: Verdict::Skipped,
        why: String::new(),
        seconds: 0.0,
        cases: 0,
        figures: Vec::new(),
        failure: None,
    }
}

/// Selects the entries of `known` that apply to a subject. The function tests whether the subject flushes subnormal numbers only if
/// an entry depends on flushing, because a call of the subject may end the process. If the call returns an error, the subject
/// counts as one that does not flush subnormal numbers, and its trials report the error.
fn about<S: Subject, T: Scalar>(subject: &S, identity: &Identity, known: &[Expectation]) -> Vec<Expectation> {
    let matters = known.iter().any(|entry| entry.flushes && entry.is_about(identity, true));
    let seen = || matters && subject.computes(T::DTYPE) && flushes::<S, T>(subject).unwrap_or(false);
    let flushes = catch_unwind(AssertUnwindSafe(seen)).unwrap_or(false);
    known.iter().filter(|entry| entry.is_about(identity, flushes)).cloned().collect()
}
