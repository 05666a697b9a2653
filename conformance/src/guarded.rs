//! A subject whose panics are errors.
//!
//! A panic that left a check would take the case with it. As the error of a call it is one
//! more way not to give a result: the check fails in its case, which is shrunk like any other,
//! and the run goes on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lapidary_core::{DType, DeviceVisitor, Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm};

use crate::Subject;
use crate::report::Identity;

/// A subject whose routines end in an error where they would panic.
#[derive(Clone, Copy, Debug)]
pub struct Guarded<S>(pub S);

fn guarded<R>(operation: &'static str, call: impl FnOnce() -> Result<R>) -> Result<R> {
    // what the panic leaves half-way are operands of this call, which nobody reads after it
    let failed =
        |panic: Box<dyn Any + Send>| Error::new(ErrorKind::DeviceFailed, operation, format!("panic: {}", message(&*panic)));
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(failed(panic)))
}

/// What a panic says.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

impl<S: Subject> Subject for Guarded<S> {
    fn name(&self) -> String {
        self.0.name()
    }
    fn smallest<T: Scalar>(&self) -> f64 {
        self.0.smallest::<T>()
    }
    fn identity(&self) -> Identity {
        self.0.identity()
    }
    fn computes(&self, dtype: DType) -> bool {
        self.0.computes(dtype)
    }
    fn devices(&self, visitor: &mut impl DeviceVisitor) {
        self.0.devices(visitor);
    }
    fn lacks(&self, dtype: DType, routine: &str, property: &str) -> Option<String> {
        self.0.lacks(dtype, routine, property)
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        guarded("gemm", || self.0.gemm(args))
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        guarded("trsm", || self.0.trsm(args))
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        guarded("getrf", || self.0.getrf(args))
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        guarded("getrs", || self.0.getrs(args))
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        guarded("laswp", || self.0.laswp(args))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Pinned;
    use crate::report::Verdict;
    use crate::suite::properties_in;
    use crate::{Grader, Scope, expectation, grades};

    struct Panics;

    impl Subject for Panics {
        fn name(&self) -> String {
            "panics".into()
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
        let subject = Guarded(Panics);
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
        let subject = Guarded(Panics);
        let all = properties_in::<_, f32>();
        let refusals: Vec<_> = all.iter().filter(|property| property.name.ends_with("_are_refused")).collect();
        let grader = Grader::strict(Scope { cases: 1, ..Scope::quick(1) });
        let verdicts = refusals
            .iter()
            .filter(|property| property.routine != "faults")
            .map(|property| grader.grade(&subject, property).verdict);
        assert!(verdicts.clone().count() >= 4 && verdicts.into_iter().all(|verdict| verdict == Verdict::Failed));
    }
}
