//! Properties of `gesv_mixed`: solutions in double precision with factors in single precision.

use lapidary_core::{ErrorKind, Result as CoreResult};

use super::memory::{completed, read_only, surroundings};
use crate::bounds::{self, real};
use crate::cases::{SolveCase, Stored};
use crate::oracle::Dense;
use crate::oracle::residual::{hpl, refined, solution};
use crate::subject::Factors;
use crate::{Failure, Subject, Trial};

/// Smallest order of a well-conditioned matrix for which factors in single precision must suffice. In smaller systems, the rounding
/// of a residual in double precision may exceed √n·u: for n = 1, b = a·x may have no solution x in double precision.
const MIN_REFINED_ORDER: usize = 16;
/// Value of the elements of X before a call.
const UNSET: f64 = 7.0;

/// A call of `gesv_mixed`, with X after the call.
struct Solved {
    factors: CoreResult<Factors>,
    x: Stored<f64>,
}

/// Calls `gesv_mixed` of the subject, and checks that A, B and the elements around X stay. Returns `None` if the subject has no such
/// routine.
fn run<S: Subject + ?Sized>(subject: &S, case: &SolveCase, a: &Dense, b: &Dense) -> Result<Option<Solved>, Failure> {
    let (a, b) = (Stored::<f64>::new(a, case.storage[0]), Stored::<f64>::new(b, case.storage[1]));
    let mut x = Stored::new(&Dense::from_fn(case.n, case.nrhs, |_, _| UNSET), case.storage[1]);
    let (old_a, old_b) = (a.clone(), b.clone());
    let Some(factors) = subject.gesv_mixed(a.view(), b.view(), x.view_mut()) else { return Ok(None) };
    read_only("A", &old_a, &a)?;
    read_only("B", &old_b, &b)?;
    surroundings("X", &x)?;
    Ok(Some(Solved { factors, x }))
}

/// Solves a system with `gesv_mixed`, and checks the precision of the factors and the residual of X.
fn check<S: Subject + ?Sized>(
    trial: &Trial<'_, S>,
    case: &SolveCase,
    [a, b]: [&Dense; 2],
    expected: Factors,
) -> Result<(), Failure> {
    let Some(solved) = run(trial.subject, case, a, b)? else { return skip(trial) };
    let (seen, factors, x) = (trial.case(case), completed("gesv_mixed: completes", solved.factors)?, solved.x.dense());
    let wrong = || Failure::new("gesv_mixed: precision", format!("factors in {factors:?} precision, expected {expected:?}"));
    let is_expected = factors == expected || case.n < MIN_REFINED_ORDER && expected == Factors::Single;
    seen.exact("gesv_mixed: precision", if is_expected { Ok(()) } else { Err(wrong()) })?;
    seen.within("gesv_mixed: residual", bounds::solve_residual(), solution::<f64>(a, &x, b))?;
    seen.within("gesv_mixed: HPL", bounds::hpl(), hpl::<f64>(a, &x, b))?;
    if factors == Factors::Single {
        seen.within("gesv_mixed: refined", bounds::refined(), refined(a, &x, b))?;
    }
    Ok(())
}

fn skip<S: Subject + ?Sized>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    trial.skip("it has no routine gesv_mixed")
}

/// Checks random matrices with a large diagonal.
///
/// # Errors
/// The factors are in double precision, or X violates a bound.
pub fn check_well_conditioned<S: Subject + ?Sized>(trial: &Trial<'_, S>, case: &SolveCase) -> Result<(), Failure> {
    let (a, b) = well_conditioned(case);
    check(trial, case, [&a, &b], Factors::Single).map_err(|failure| failure.in_case(case))
}

fn well_conditioned(case: &SolveCase) -> (Dense, Dense) {
    let (a, b) = case.matrices::<f64>();
    let n = case.n;
    (Dense::from_fn(n, n, |i, j| a.at(i, j) + if i == j { 2.0 * real(n) } else { 0.0 }), b)
}

/// Checks a Hilbert matrix, whose condition number is about 10^16.
///
/// # Errors
/// The factors are in single precision, or X violates a bound.
pub fn check_ill_conditioned<S: Subject + ?Sized>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let case = SolveCase { nrhs: 2, ..SolveCase::packed(12) };
    let a = Dense::from_fn(12, 12, |i, j| 1.0 / real(i + j + 1));
    check(trial, &case, [&a, &case.matrices::<f64>().1], Factors::Double)
}

/// Checks a matrix with an element so large that no scale brings all elements into the range of single precision.
///
/// # Errors
/// The factors are in single precision, or X violates a bound.
pub fn check_overflow<S: Subject + ?Sized>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let case = SolveCase { nrhs: 2, ..SolveCase::packed(20) };
    let (mut a, b) = well_conditioned(&case);
    a.set(3, 5, 1e60);
    check(trial, &case, [&a, &b], Factors::Double)
}

/// Checks matrices with a column of zeros.
///
/// # Errors
/// The call does not return the error `Singular`, the error names another pivot, or X changed.
pub fn check_singular<S: Subject + ?Sized>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for (order, zero) in [(1, 0), (7, 6), (trial.scope.max.max(2), 1)] {
        let case = SolveCase::packed(order);
        let (mut a, b) = well_conditioned(&case);
        (0..order).for_each(|i| a.set(i, zero, 0.0));
        let Some(Solved { factors, x }) = run(trial.subject, &case, &a, &b)? else { return skip(trial) };
        let (seen, fail) = (trial.case(&case), |what| Err(Failure::new("gesv_mixed: info", what)));
        let told = match factors {
            Err(error) if error.kind() == (ErrorKind::Singular { pivot: zero + 1 }) => Ok(()),
            Err(error) => fail(format!("{error}, expected the zero pivot {}", zero + 1)),
            Ok(_) => fail(format!("no error for a column of zeros in a matrix of order {order}")),
        };
        seen.exact("gesv_mixed: info", told)?;
        let stays = x.dense().elements().all(|(_, x)| x.to_bits() == UNSET.to_bits());
        let changed = || Failure::new("gesv_mixed: X stays", format!("X changed, order {order}"));
        seen.exact("gesv_mixed: X stays", if stays { Ok(()) } else { Err(changed()) })?;
    }
    Ok(())
}

/// Checks NaN in a column of B, and NaN in A.
///
/// # Errors
/// A column of X without NaN in B is not the solution, or a NaN disappeared.
pub fn check_nan<S: Subject + ?Sized>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let case = SolveCase { nrhs: 3, ..SolveCase::packed(30) };
    let (mut a, mut b) = well_conditioned(&case);
    b.set(4, 1, f64::NAN);
    let solve = |a: &Dense| -> Result<Option<Dense>, Failure> {
        let Some(Solved { factors, x }) = run(trial.subject, &case, a, &b)? else { return Ok(None) };
        completed("gesv_mixed: completes", factors).map(|_| Some(x.dense()))
    };
    let seen = trial.case(&case);
    let Some(x) = solve(&a)? else { return skip(trial) };
    let of_column = |matrix: &Dense, j: usize| Dense::from_fn(case.n, 1, |i, _| matrix.at(i, j));
    let fail = |what: &str| Err(Failure::new("gesv_mixed: NaN", what));
    seen.exact("gesv_mixed: NaN", if x.column(1).iter().any(|x| x.is_nan()) { Ok(()) } else { fail("NaN in B disappeared") })?;
    for j in [0, 2] {
        seen.within("gesv_mixed: residual", bounds::solve_residual(), solution::<f64>(&a, &of_column(&x, j), &of_column(&b, j)))?;
    }
    a.set(2, 3, f64::NAN);
    let has_nan = solve(&a)?.is_some_and(|x| (0..case.nrhs).all(|j| x.column(j).iter().any(|x| x.is_nan())));
    seen.exact("gesv_mixed: NaN", if has_nan { Ok(()) } else { fail("NaN in A disappeared") })
}
