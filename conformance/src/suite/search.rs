//! Tries random cases and searches for the shortest case that fails.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;

use proptest::strategy::{BoxedStrategy, Strategy};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::cases::Case;
use crate::{Failure, Scope};

/// Tries random cases. If a case fails, the function searches for a shorter case that fails too. The random cases depend on `scope`
/// alone. If a case lacks memory, the search ends, and no simpler case is tried, since a simpler case may have enough memory.
///
/// # Errors
/// The failure of the shortest failing case that was found.
pub fn search<C: Case + Debug>(
    scope: &Scope,
    cases: impl Strategy<Value = C> + 'static,
    check: impl Fn(&C) -> Result<(), Failure>,
) -> Result<(), Failure> {
    shortest(scope, &cases.boxed(), &check)
}

/// Does the work of [`search`] with boxed arguments. This function is compiled once for each type of case and not for each subject,
/// since its code is large and the suite is compiled for many subjects.
fn shortest<C: Case + Debug>(
    scope: &Scope,
    cases: &BoxedStrategy<C>,
    check: &dyn Fn(&C) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let config = Config { cases: scope.cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&scope.seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    // a simpler case that fails in another check has another cause, and its failure would hide the first failure
    let (first, lacking) = (Cell::new(None), RefCell::new(None));
    let outcome = runner.run(cases, |case| match check_unless(&lacking, &case, check) {
        Err(failure) if first.get().is_none_or(|first| first == failure.check) => {
            first.set(Some(failure.check));
            Err(TestCaseError::fail(failure.to_string()))
        }
        _ => Ok(()),
    });
    match outcome {
        Ok(()) => lacking.into_inner().map_or(Ok(()), Err),
        Err(TestError::Fail(_, case)) => match check(&case) {
            Ok(()) => Err(unsteady(&case)),
            Err(failure) => Err(simplest(case, failure, check)),
        },
        Err(TestError::Abort(reason)) => Err(Failure::new("suite: cases", reason)),
    }
}

/// Checks `case`, unless the check of an earlier case lacked memory. If `case` lacks memory, its failure is stored in `lacking`.
fn check_unless<C>(lacking: &RefCell<Option<Failure>>, case: &C, check: &dyn Fn(&C) -> Result<(), Failure>) -> Result<(), Failure> {
    if lacking.borrow().is_some() {
        return Ok(());
    }
    let outcome = check(case);
    if outcome.as_ref().is_err_and(|failure| failure.lacks_memory) {
        *lacking.borrow_mut() = outcome.err();
        return Ok(());
    }
    outcome
}

/// Replaces the case by a simpler one as long as the simpler case fails in the same check. The library proptest cannot find these
/// simpler cases: it draws an extent from a list, and shrinks it only to another value of the list.
fn simplest<C: Case>(mut case: C, mut failure: Failure, check: &dyn Fn(&C) -> Result<(), Failure>) -> Failure {
    let mut tries = 300;
    loop {
        let mut fails = |simpler: C| {
            tries -= 1;
            let found = check(&simpler).err().filter(|found| found.check == failure.check && !found.lacks_memory)?;
            Some((simpler, found))
        };
        match case.simpler().into_iter().find_map(&mut fails) {
            Some(step) if tries > 0 => (case, failure) = step,
            _ => return failure,
        }
    }
}

fn unsteady(case: &impl Debug) -> Failure {
    Failure::new("suite: repeatable", format!("the case failed once and then passed: {case:?}"))
}

#[cfg(test)]
mod tests {
    use std::cell::OnceCell;

    use super::search;
    use crate::cases::SolveCase;
    use crate::{Failure, Scope};

    /// The check of this test: systems of an order above 40 fail in one check, and smaller systems in another check.
    #[test]
    fn shrinking_keeps_the_check_that_failed_first() {
        let mut firsts = Vec::new();
        for seed in 0..20 {
            let (scope, first) = (Scope::quick(seed), OnceCell::new());
            let failure = search(&scope, SolveCase::any(&scope), |case| {
                let check = if case.n > 40 { "long" } else { "short" };
                if case.n < 2 {
                    return Ok(());
                }
                Err(Failure::new(check, *first.get_or_init(|| check)))
            });
            let failure = failure.unwrap_err();
            assert_eq!(failure.check, failure.detail, "seed {seed}");
            firsts.push(failure.check);
        }
        assert!(firsts.contains(&"long") && firsts.contains(&"short"));
    }
}
