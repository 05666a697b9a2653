//! Tests with a subject that panics. If a wrapper converts the panics to errors, each failure names its case.

use lapidary_conformance::cases::Pinned;
use lapidary_conformance::report::Verdict;
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{Grader, Guarded, Scope, Subject, expectation, grades};
use lapidary_core::{DType, Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm};

/// A subject whose routines panic. The list contains the precisions in which the subject computes.
pub struct Panics(pub &'static [DType]);

impl Subject for Panics {
    fn name(&self) -> String {
        "panics".into()
    }
    fn computes(&self, dtype: DType) -> bool {
        self.0.contains(&dtype)
    }
    fn gemm<T: Scalar>(&self, _: Gemm<'_, T>) -> Result<()> {
        panic!("no product")
    }
    fn trsm<T: Scalar>(&self, _: Trsm<'_, T>) -> Result<()> {
        panic!("no solve")
    }
    fn getrf<T: Scalar>(&self, _: Getrf<'_, T>) -> Result<usize> {
        panic!("no factors")
    }
    fn getrs<T: Scalar>(&self, _: Getrs<'_, T>) -> Result<()> {
        panic!("no solution")
    }
    fn laswp<T: Scalar>(&self, _: Laswp<'_, T>) -> Result<()> {
        panic!("no exchange")
    }
}

#[test]
fn a_run_of_a_subject_that_panics_ends_with_cases_and_grades() {
    let subject = Guarded(Panics(&[DType::F32, DType::F64]));
    let scope = Scope { cases: 3, ..Scope::quick(1) };
    let grader = Grader::new(&subject, &subject.identity(), scope, &expectation::known());
    let all = properties_in::<_, f64>();
    let mut trials = Vec::new();
    for (name, says) in [
        ("f64::gemm::random", "no product"),
        ("f64::trsm::substitution", "no solve"),
        ("f64::getrf::random", "no factors"),
        ("f64::solve::random", "no factors"),
        ("f64::laswp::rows_move", "no exchange"),
    ] {
        let trial = grader.try_on(&subject, all.iter().find(|property| property.full_name() == name).unwrap());
        let failure = trial.failure.clone().unwrap();
        assert!(trial.verdict == Verdict::Failed && failure.detail.contains(says), "{name}: {failure}");
        assert!(failure.case.parse::<Pinned>().is_ok(), "{name}: `{}` can be pinned", failure.case);
        trials.push(trial);
    }
    assert!(grades::grades(&subject, &trials).iter().any(|grade| grade.value.contains("no product")));
}

#[test]
fn a_panic_is_no_refusal_of_wrong_arguments() {
    let subject = Guarded(Panics(&[DType::F32, DType::F64]));
    let all = properties_in::<_, f32>();
    let refusals: Vec<_> = all.iter().filter(|property| property.name.ends_with("_are_refused")).collect();
    let grader = Grader::strict(Scope { cases: 1, ..Scope::quick(1) });
    let verdicts =
        refusals.iter().filter(|property| property.routine != "faults").map(|property| grader.grade(&subject, property).verdict);
    assert!(verdicts.clone().count() >= 4 && verdicts.into_iter().all(|verdict| verdict == Verdict::Failed));
}
