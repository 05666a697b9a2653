//! Tries a property on a subject, and reports the trial.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use lapidary_core::{DType, Scalar};

use crate::expectation::{self, Expectation};
use crate::guarded::message;
use crate::report::{ENDS, Identity, TrialReport, Verdict};
use crate::suite::Property;
use crate::trial::Ledger;
use crate::{Failure, Scope, Subject, flushes, room};

/// What decides how a subject's trials are judged.
#[derive(Clone, Debug)]
pub struct Grader {
    scope: Scope,
    /// Entries about the subject in single and in double precision.
    expectations: [Vec<Expectation>; 2],
}

impl Grader {
    /// A grader of one subject; asks it whether it flushes subnormal numbers.
    #[must_use]
    pub fn new<S: Subject>(subject: &S, identity: &Identity, scope: Scope, known: &[Expectation]) -> Self {
        let expectations = [about::<S, f32>(subject, identity, known), about::<S, f64>(subject, identity, known)];
        Grader { scope, expectations }
    }

    /// A grader that expects no failure.
    #[must_use]
    pub fn strict(scope: Scope) -> Self {
        Grader { scope, expectations: [Vec::new(), Vec::new()] }
    }

    /// Tries a property, unless the subject lacks what it needs.
    pub fn try_on<S: Subject>(&self, subject: &S, property: &Property<S>) -> TrialReport {
        let lacks = subject.lacks(property.dtype, property.calls, property.name);
        let why = lacks.or_else(|| room::given(room::SMALL).err());
        why.map_or_else(|| self.grade(subject, property), |why| skipped(property, &why))
    }

    /// Tries a property. A panic is a failure; the case is named where the subject is [`Guarded`](crate::Guarded).
    pub fn grade<S: Subject>(&self, subject: &S, property: &Property<S>) -> TrialReport {
        self.grade_within(subject, property, subject.memory_limit())
    }

    /// Tries a property of something that need not be a [`Subject`], such as a [`Pair`](crate::properties::agreement::Pair).
    /// `memory_limit` is the memory limit of each of its devices, in bytes.
    pub fn grade_within<S>(&self, subject: &S, property: &Property<S>, memory_limit: Option<usize>) -> TrialReport {
        let (start, ledger) = (Instant::now(), Ledger::default());
        // nothing of ours is left half-way: the ledger is whole after each figure
        let outcome = catch_unwind(AssertUnwindSafe(|| property.check(subject, &self.scope, &ledger)));
        let outcome = outcome.unwrap_or_else(|panic| Err(Failure::new("suite: no panic", message(&*panic))));
        let (cases, skipped, figures) = ledger.close();
        let [single, double] = &self.expectations;
        let expectations = if property.dtype == DType::F32 { single } else { double };
        let name = property.full_name();
        let skipped = match &outcome {
            Ok(()) => skipped,
            Err(failure) if failure.check == room::CHECK => Some(failure.detail.clone()),
            Err(failure) if failure.lacks_memory => too_little_memory(memory_limit),
            // lack of memory elsewhere, such as for a thread, shows as other errors
            Err(failure) if failure.compares_nothing() => room::given(room::SPARE).err(),
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

/// The report of a property that does not apply.
#[must_use]
pub fn skipped<S>(property: &Property<S>, why: &str) -> TrialReport {
    TrialReport { why: why.to_owned(), ..blank(property) }
}

/// Why a call may lack memory through no fault of the subject.
pub(crate) fn too_little_memory(memory_limit: Option<usize>) -> Option<String> {
    let limited = |bytes| format!("too little memory: the limit is {bytes} bytes; raise it to run this trial");
    memory_limit.map(limited).or_else(|| room::given(room::ALWAYS).err())
}

/// The report of a property whose trial has begun and never ended; `detail` says how that is known.
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

/// The entries about a subject. It is asked whether it flushes only where an entry depends on that:
/// a call may end the process, and none is made outside its trials for nothing. A subject that cannot
/// say whether it flushes will say why in its trials.
fn about<S: Subject, T: Scalar>(subject: &S, identity: &Identity, known: &[Expectation]) -> Vec<Expectation> {
    let matters = known.iter().any(|entry| entry.flushes && entry.is_about(identity, true));
    let seen = || matters && subject.computes(T::DTYPE) && flushes::<S, T>(subject).unwrap_or(false);
    let flushes = catch_unwind(AssertUnwindSafe(seen)).unwrap_or(false);
    known.iter().filter(|entry| entry.is_about(identity, flushes)).cloned().collect()
}
