//! The suite as tests: a trial for each property, run by `cargo test`.
//!
//! A backend's whole test file, with `harness = false` in its manifest:
//!
//! ```text
//! fn main() -> std::process::ExitCode {
//!     lapidary_conformance::harness::run([("npu:0", || MySubject::open(0), Scope::quick(1))])
//! }
//! ```
//!
//! `cargo test npu:0::f64::gemm` runs what begins with that.

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use libtest_mimic::{Arguments, Failed, Trial as Test};

use crate::expectation;
use crate::grader::Grader;
use crate::report::{TrialReport, Verdict};
use crate::suite::{Property, properties};
use crate::{Guarded, Scope, Subject};

/// Tests one subject after the other, each under its name. A subject is opened when its
/// first test runs, and once.
pub fn run<S: Subject + Send + 'static, O: Fn() -> S + Send + 'static>(
    subjects: impl IntoIterator<Item = (&'static str, O, Scope)>,
) -> ExitCode {
    let tests = subjects.into_iter().flat_map(|(name, open, scope)| tests(name, open, scope)).collect();
    conclude(tests)
}

/// Runs tests as the command line asks.
#[must_use]
pub fn conclude(tests: Vec<Test>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// The tests of one subject.
pub fn tests<S: Subject + Send + 'static>(name: &str, open: impl Fn() -> S + Send + 'static, scope: Scope) -> Vec<Test> {
    let opened = Arc::new(LazyLock::new(move || {
        let subject = Guarded(open());
        let grader = Grader::new(&subject, &subject.identity(), scope.clone(), &expectation::known());
        (subject, grader)
    }));
    let test = |property: Property<Guarded<S>>| {
        let opened = Arc::clone(&opened);
        Test::test(format!("{name}::{}", property.full_name()), move || {
            let (subject, grader) = &**opened;
            verdict(&grader.try_on(subject, &property))
        })
    };
    properties::<Guarded<S>>().into_iter().map(test).collect()
}

/// The result of the test that stands for a trial.
///
/// # Errors
/// The trial failed, or passed although it is expected to fail.
pub fn verdict(trial: &TrialReport) -> Result<(), Failed> {
    match (trial.verdict, &trial.failure) {
        (Verdict::Failed, Some(failure)) => Err(failure.to_string().into()),
        (Verdict::UnexpectedlyPassed, _) => Err(format!("passes, but is expected to fail: {}", trial.why).into()),
        _ => Ok(()),
    }
}
