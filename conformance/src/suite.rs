//! Every property by name, in the order in which they build on one another.

use std::fmt::Debug;

use lapidary_core::{Diag, Op, Scalar, Side, TrsmMode, Uplo};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::cases::{Fill, GemmCase, GetrfCase, LaswpCase, Shape, SolveCase, Storage, TrsmCase};
use crate::properties::{gemm, getrf, laswp, memory, solve, trsm};
use crate::{Failure, Scope, Subject};

/// Grades a subject in a property.
pub type Check<S> = fn(&S, &Scope) -> Result<(), Failure>;

/// A property with its name.
#[derive(Clone, Copy, Debug)]
pub struct Property<S> {
    /// Routine and property, for example `gemm: integers`.
    pub name: &'static str,
    /// Grades a subject.
    pub check: Check<S>,
}

/// All properties for the numbers `T`.
#[must_use]
pub fn properties<S: Subject, T: Scalar>() -> Vec<Property<S>> {
    let list: [(&'static str, Check<S>); 23] = [
        ("memory: short ld", |_, _| memory::short_ld::<T>()),
        ("laswp: errors", |s, _| memory::laswp_errors::<S, T>(s)),
        ("laswp: random", |s, scope| search(scope, LaswpCase::any(scope), |case| laswp::check_laswp::<S, T>(s, case))),
        ("gemm: errors", |s, _| memory::gemm_errors::<S, T>(s)),
        ("gemm: precision", |s, _| gemm::check_precision::<S, T>(s)),
        ("gemm: integers", |s, scope| gemms::<S, T>(s, scope, &[Fill::Integers])),
        ("gemm: random", |s, scope| gemms::<S, T>(s, scope, &[Fill::Uniform, Fill::Graded])),
        ("gemm: extremes", |s, scope| gemms::<S, T>(s, scope, &[Fill::Wide, Fill::Tiny, Fill::Huge])),
        ("gemm: non-finite", |s, scope| gemms::<S, T>(s, scope, &[Fill::NonFinite])),
        ("gemm: large", large_gemms::<S, T>),
        ("trsm: errors", |s, _| memory::trsm_errors::<S, T>(s)),
        ("trsm: integers", |s, scope| trsms::<S, T>(s, scope, TrsmMode::Substitution, &[Fill::Integers])),
        ("trsm: substitution", |s, scope| trsms::<S, T>(s, scope, TrsmMode::Substitution, &[Fill::Uniform, Fill::Graded, Fill::Tiny])),
        ("trsm: inverted", |s, scope| trsms::<S, T>(s, scope, TrsmMode::Inverted, &[Fill::Uniform, Fill::NonFinite])),
        ("trsm: non-finite", |s, scope| trsms::<S, T>(s, scope, TrsmMode::Substitution, &[Fill::NonFinite])),
        ("trsm: pivots", trsm_pivots::<S, T>),
        ("getrf: errors", |s, _| memory::getrf_errors::<S, T>(s)),
        ("getrf: exact", |s, scope| getrfs::<S, T>(s, scope, &[Shape::Exact, Shape::Ties, Shape::Permuted])),
        ("getrf: singular", |s, scope| getrfs::<S, T>(s, scope, &[Shape::Singular, Shape::ZeroColumn])),
        ("getrf: random", |s, scope| getrfs::<S, T>(s, scope, &[Shape::Random, Shape::Graded, Shape::Dominant, Shape::Nan])),
        ("getrf: classics", classics::<S, T>),
        ("getrs: errors", |s, _| memory::getrs_errors::<S, T>(s)),
        ("solve: random", solves::<S, T>),
    ];
    list.into_iter().map(|(name, check)| Property { name, check }).collect()
}

/// Tries random cases and shrinks a failure to a short one. The cases depend on
/// the scope's seed alone.
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

fn gemms<S: Subject, T: Scalar>(subject: &S, scope: &Scope, fills: &'static [Fill]) -> Result<(), Failure> {
    search(scope, GemmCase::any(scope, fills), |case| gemm::check_gemm::<S, T>(subject, case))
}

fn trsms<S: Subject, T: Scalar>(subject: &S, scope: &Scope, mode: TrsmMode, fills: &'static [Fill]) -> Result<(), Failure> {
    search(scope, TrsmCase::any(scope, mode, fills), |case| trsm::check_trsm::<S, T>(subject, case))
}

fn getrfs<S: Subject, T: Scalar>(subject: &S, scope: &Scope, shapes: &'static [Shape]) -> Result<(), Failure> {
    search(scope, GetrfCase::any(scope, shapes), |case| getrf::check_getrf::<S, T>(subject, case))
}

fn large_gemms<S: Subject, T: Scalar>(subject: &S, scope: &Scope) -> Result<(), Failure> {
    for &n in &scope.large {
        let case = GemmCase {
            m: n,
            n: n - 1,
            k: n,
            ops: (Op::Trans, Op::NoTrans),
            alpha: -1.0,
            beta: 0.5,
            fill: Fill::Uniform,
            same: false,
            storage: [Storage::default(); 3],
            seed: scope.seed,
        };
        gemm::check_checksum::<S, T>(subject, &case)?;
    }
    Ok(())
}

fn trsm_pivots<S: Subject, T: Scalar>(subject: &S, scope: &Scope) -> Result<(), Failure> {
    let storage = [Storage::default(); 2];
    for order in [1, 2, 7, scope.max] {
        for (side, uplo, op) in [(Side::Left, Uplo::Lower, Op::NoTrans), (Side::Right, Uplo::Lower, Op::Trans), (Side::Left, Uplo::Upper, Op::NoTrans)] {
            let flags = (side, uplo, op, Diag::NonUnit);
            let (fill, mode, seed) = (Fill::Uniform, TrsmMode::Substitution, scope.seed);
            let case = TrsmCase { order, nrhs: 3, flags, alpha: 1.0, fill, mode, storage, seed };
            trsm::check_zero_pivot::<S, T>(subject, &case)?;
            trsm::check_subnormal_pivot::<S, T>(subject, &case)?;
        }
    }
    Ok(())
}

/// The matrices that every implementation is shown, and the large ones.
fn classics<S: Subject, T: Scalar>(subject: &S, scope: &Scope) -> Result<(), Failure> {
    for (n, shape) in [(1, Shape::Random), (1, Shape::Singular), (12, Shape::Hilbert), (20, Shape::Wilkinson), (5, Shape::ZeroColumn)] {
        getrf::check_getrf::<S, T>(subject, &GetrfCase::square(n, shape))?;
    }
    solve::check_singular_is_no_error::<S, T>(subject)?;
    for &n in &scope.large {
        getrf::check_large::<S, T>(subject, &GetrfCase { n: n - 1, ..GetrfCase::square(n, Shape::Random) })?;
    }
    Ok(())
}

fn solves<S: Subject, T: Scalar>(subject: &S, scope: &Scope) -> Result<(), Failure> {
    search(scope, SolveCase::any(scope), |case| solve::check_solve::<S, T>(subject, case))?;
    scope.large.iter().try_for_each(|&n| solve::check_solve::<S, T>(subject, &SolveCase::packed(n)))
}
