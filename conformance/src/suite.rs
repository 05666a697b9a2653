//! Every property by name, in the order in which they build on one another.

use std::fmt::Debug;

use lapidary_core::{Scalar, TrsmMode};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::cases::{Fill, GemmCase, GetrfCase, LaswpCase, Shape, SolveCase, TrsmCase};
use crate::properties::agreement::Pair;
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
    let lists = [laswps::<S, T>(), gemms::<S, T>(), trsms::<S, T>(), getrfs::<S, T>(), solves::<S, T>()];
    let named = |(name, check)| Property { name, check };
    lists.into_iter().flatten().map(named).collect()
}

/// The properties that fail on a subject which [flushes](crate::flushes), unless it is
/// graded as [`Flushing`](crate::Flushing).
pub const WITH_SUBNORMALS: [&str; 3] = ["gemm: subnormal", "trsm: subnormal", "trsm: pivots"];

/// Compares a pair of subjects.
pub type Compare<R, S> = fn(&Pair<'_, R, S>, &Scope) -> Result<(), Failure>;

/// What two subjects agree in, by the names of the properties: every routine, in
/// the numbers `T`.
#[must_use]
pub fn agreements<R: Subject, S: Subject, T: Scalar>() -> Vec<(&'static str, Compare<R, S>)> {
    use TrsmMode::{Inverted, Substitution};
    const EXACT: &[Shape] = &[Shape::Exact, Shape::Ties, Shape::Permuted, Shape::Singular, Shape::ZeroColumn];
    const ROUNDED: &[Shape] = &[Shape::Random, Shape::Graded, Shape::Dominant, Shape::Nan];
    vec![
        ("laswp: random", |p, scope| search(scope, LaswpCase::any(scope), |case| p.check_laswp::<T>(case))),
        ("gemm: integers", |p, scope| same_gemm::<R, S, T>(p, scope, &[Fill::Integers])),
        ("gemm: random", |p, scope| same_gemm::<R, S, T>(p, scope, &[Fill::Uniform, Fill::Graded])),
        ("gemm: non-finite", |p, scope| same_gemm::<R, S, T>(p, scope, &[Fill::NonFinite])),
        ("trsm: integers", |p, scope| same_trsm::<R, S, T>(p, scope, Substitution, &[Fill::Integers])),
        ("trsm: substitution", |p, scope| same_trsm::<R, S, T>(p, scope, Substitution, &[Fill::Uniform, Fill::Graded])),
        ("trsm: inverted", |p, scope| same_trsm::<R, S, T>(p, scope, Inverted, &[Fill::Uniform])),
        ("getrf: exact", |p, scope| search(scope, GetrfCase::any(scope, EXACT), |case| p.check_getrf::<T>(case))),
        ("getrf: random", |p, scope| search(scope, GetrfCase::any(scope, ROUNDED), |case| p.check_getrf::<T>(case))),
        ("solve: random", |p, scope| search(scope, SolveCase::any(scope), |case| p.check_solve::<T>(case))),
    ]
}

fn same_gemm<R: Subject, S: Subject, T: Scalar>(
    pair: &Pair<'_, R, S>,
    scope: &Scope,
    fills: &'static [Fill],
) -> Result<(), Failure> {
    search(scope, GemmCase::any(scope, fills), |case| pair.check_gemm::<T>(case))
}

fn same_trsm<R: Subject, S: Subject, T: Scalar>(
    pair: &Pair<'_, R, S>,
    scope: &Scope,
    mode: TrsmMode,
    fills: &'static [Fill],
) -> Result<(), Failure> {
    search(scope, TrsmCase::any(scope, mode, fills), |case| pair.check_trsm::<T>(case))
}

type List<S> = Vec<(&'static str, Check<S>)>;

fn laswps<S: Subject, T: Scalar>() -> List<S> {
    vec![
        ("memory: short ld", |_, _| memory::short_ld::<T>()),
        ("laswp: errors", |s, _| memory::laswp_errors::<S, T>(s)),
        ("laswp: random", |s, scope| search(scope, LaswpCase::any(scope), |case| laswp::check_laswp::<S, T>(s, case))),
    ]
}

fn gemms<S: Subject, T: Scalar>() -> List<S> {
    vec![
        ("gemm: errors", |s, _| memory::gemm_errors::<S, T>(s)),
        ("gemm: precision", |s, _| gemm::check_precision::<S, T>(s)),
        ("gemm: integers", |s, scope| random_gemm::<S, T>(s, scope, &[Fill::Integers])),
        ("gemm: random", |s, scope| random_gemm::<S, T>(s, scope, &[Fill::Uniform, Fill::Graded])),
        ("gemm: extremes", |s, scope| random_gemm::<S, T>(s, scope, &[Fill::Wide, Fill::Huge])),
        ("gemm: subnormal", |s, scope| random_gemm::<S, T>(s, &scope.short(), &[Fill::Tiny, Fill::Rising])),
        ("gemm: non-finite", |s, scope| random_gemm::<S, T>(s, scope, &[Fill::NonFinite])),
        ("gemm: large", large_gemm::<S, T>),
    ]
}

fn trsms<S: Subject, T: Scalar>() -> List<S> {
    use TrsmMode::{Inverted, Substitution};
    vec![
        ("trsm: errors", |s, _| memory::trsm_errors::<S, T>(s)),
        ("trsm: integers", |s, scope| random_trsm::<S, T>(s, scope, Substitution, &[Fill::Integers])),
        ("trsm: substitution", |s, scope| random_trsm::<S, T>(s, scope, Substitution, &[Fill::Uniform, Fill::Graded])),
        ("trsm: subnormal", |s, scope| random_trsm::<S, T>(s, &scope.short(), Substitution, &[Fill::Tiny, Fill::Rising])),
        ("trsm: non-finite", |s, scope| random_trsm::<S, T>(s, scope, Substitution, &[Fill::NonFinite])),
        ("trsm: inverted", |s, scope| random_trsm::<S, T>(s, scope, Inverted, &[Fill::Uniform, Fill::NonFinite])),
        ("trsm: pivots", trsm_pivots::<S, T>),
    ]
}

fn getrfs<S: Subject, T: Scalar>() -> List<S> {
    const REGULAR: &[Shape] = &[Shape::Random, Shape::Graded, Shape::Dominant, Shape::Nan];
    vec![
        ("getrf: errors", |s, _| memory::getrf_errors::<S, T>(s)),
        ("getrf: exact", |s, scope| random_getrf::<S, T>(s, scope, &[Shape::Exact, Shape::Ties, Shape::Permuted])),
        ("getrf: singular", |s, scope| random_getrf::<S, T>(s, scope, &[Shape::Singular, Shape::ZeroColumn])),
        ("getrf: random", |s, scope| random_getrf::<S, T>(s, scope, REGULAR)),
        ("getrf: classics", classics::<S, T>),
        ("getrf: large", large_getrf::<S, T>),
    ]
}

fn solves<S: Subject, T: Scalar>() -> List<S> {
    vec![
        ("getrs: errors", |s, _| memory::getrs_errors::<S, T>(s)),
        ("solve: random", |s, scope| search(scope, SolveCase::any(scope), |case| solve::check_solve::<S, T>(s, case))),
        ("solve: large", large_solve::<S, T>),
    ]
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

fn random_gemm<S: Subject, T: Scalar>(subject: &S, scope: &Scope, fills: &'static [Fill]) -> Result<(), Failure> {
    search(scope, GemmCase::any(scope, fills), |case| gemm::check_gemm::<S, T>(subject, case))
}

fn random_trsm<S: Subject, T: Scalar>(subject: &S, scope: &Scope, mode: TrsmMode, fills: &'static [Fill]) -> Result<(), Failure> {
    search(scope, TrsmCase::any(scope, mode, fills), |case| trsm::check_trsm::<S, T>(subject, case))
}

fn random_getrf<S: Subject, T: Scalar>(subject: &S, scope: &Scope, shapes: &'static [Shape]) -> Result<(), Failure> {
    search(scope, GetrfCase::any(scope, shapes), |case| getrf::check_getrf::<S, T>(subject, case))
}

fn large_gemm<S: Subject, T: Scalar>(subject: &S, scope: &Scope) -> Result<(), Failure> {
    let cases = scope.large.iter().map(|&n| GemmCase::packed([n, n - 1, n], scope.seed));
    cases.flat_map(GemmCase::all_ops).try_for_each(|case| gemm::check_checksum::<S, T>(subject, &case))
}

fn trsm_pivots<S: Subject, T: Scalar>(subject: &S, scope: &Scope) -> Result<(), Failure> {
    for case in [1, 2, 7, scope.max].into_iter().flat_map(TrsmCase::regular) {
        trsm::check_zero_pivot::<S, T>(subject, &case)?;
        trsm::check_subnormal_pivot::<S, T>(subject, &case)?;
    }
    Ok(())
}

/// The matrices that every implementation is shown.
fn classics<S: Subject, T: Scalar>(subject: &S, _: &Scope) -> Result<(), Failure> {
    let shapes = [(1, Shape::Random), (1, Shape::Singular), (12, Shape::Hilbert), (20, Shape::Wilkinson), (5, Shape::ZeroColumn)];
    let mut cases = shapes.into_iter().map(|(n, shape)| GetrfCase::square(n, shape));
    cases.try_for_each(|case| getrf::check_getrf::<S, T>(subject, &case))?;
    solve::check_singular_is_no_error::<S, T>(subject)
}

fn large_getrf<S: Subject, T: Scalar>(subject: &S, scope: &Scope) -> Result<(), Failure> {
    let mut cases = scope.large.iter().map(|&n| GetrfCase { n: n - 1, ..GetrfCase::square(n, Shape::Random) });
    cases.try_for_each(|case| getrf::check_large::<S, T>(subject, &case))
}

fn large_solve<S: Subject, T: Scalar>(subject: &S, scope: &Scope) -> Result<(), Failure> {
    scope.large.iter().try_for_each(|&n| solve::check_solve::<S, T>(subject, &SolveCase::packed(n)))
}
