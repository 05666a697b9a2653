//! Random cases, and the shortest that fails.

use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::{Failure, Scope};

/// Tries random cases and shrinks a failure to a short one. The cases depend on
/// the scope alone.
///
/// # Errors
/// The failure of the shortest case found.
pub fn search<C: Debug>(
    scope: &Scope,
    cases: impl Strategy<Value = C>,
    check: impl Fn(&C) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let config = Config { cases: scope.cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&scope.seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let outcome = runner.run(&cases, |case| check(&case).map_err(|failure| TestCaseError::fail(failure.to_string())));
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(_, case)) => check(&case).and_then(|()| Err(unsteady(&case))),
        Err(TestError::Abort(reason)) => Err(Failure::new("suite: cases", reason)),
    }
}

fn unsteady(case: &impl Debug) -> Failure {
    Failure::new("suite: repeatable", format!("the case failed once and then passed: {case:?}"))
}
