//! Runs the suite under `cargo test`, with one test for each trial.
//!
//! A backend runs the suite by this test file, with `harness = false` for it in the manifest of the backend:
//!
//! ```text
//! fn main() -> std::process::ExitCode {
//!     lapidary_conformance::harness::run([("npu:0", || MySubject::open(0), Scope::quick(1))])
//! }
//! ```
//!
//! The command `cargo test npu:0::f64::gemm` runs the tests whose names contain `npu:0::f64::gemm`.

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use libtest_mimic::{Arguments, Failed, Trial as Test};

use crate::expectation;
use crate::grader::Grader;
use crate::report::{TrialReport, Verdict};
use crate::suite::{Property, properties};
use crate::{Guarded, Scope, Subject};

/// Runs the tests of several subjects. Each subject is opened once, when its first test runs. The name of a test begins with the
/// name of its subject.
pub fn run<S: Subject + Send + 'static, O: Fn() -> S + Send + 'static>(
    subjects: impl IntoIterator<Item = (&'static str, O, Scope)>,
) -> ExitCode {
    let tests = subjects.into_iter().flat_map(|(name, open, scope)| tests(name, open, scope)).collect();
    conclude(tests)
}

/// Runs those of `tests` that the command line selects.
#[must_use]
pub fn conclude(tests: Vec<Test>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// One test for each trial of a subject.
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

/// Converts the verdict of a trial to the result of a test.
///
/// # Errors
/// The trial failed, or it passed although an expectation says that it fails.
pub fn verdict(trial: &TrialReport) -> Result<(), Failed> {
    match (trial.verdict, &trial.failure) {
        (Verdict::Failed, Some(failure)) => Err(failure.to_string().into()),
        (Verdict::UnexpectedlyPassed, _) => Err(format!("passes, but is expected to fail: {}", trial.why).into()),
        _ => Ok(()),
    }
}
