//! Tests that two subjects agree, for example one device and several devices. The results of the two subjects may differ by twice
//! the bound, and must be equal if no step has rounding errors.

use lapidary_core::{Scalar, TrsmMode};

use super::getrf::Factored;
use super::{gemm, getrf, laswp, solve, trsm};
use crate::bounds::{self, Bound};
use crate::cases::trsm::System;
use crate::cases::{Fill, GemmCase, GetrfCase, LaswpCase, Shape, SolveCase, TrsmCase};
use crate::failure::{Worst, ratio};
use crate::oracle::product::{product, same_class};
use crate::oracle::residual::{factors_apart, linear, solutions_apart};
use crate::oracle::{Dense, Product};
use crate::trial::{Evidence, Trial};
use crate::{Failure, Subject};

/// Two subjects, and the allowed difference between their results.
#[derive(Debug)]
pub struct Pair<'a, R, S> {
    /// The first subject of the comparison.
    pub one: &'a R,
    /// The second subject of the comparison.
    pub other: &'a S,
    /// The allowed difference between the results of the two subjects.
    pub closeness: Closeness,
}

/// The allowed difference between two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closeness {
    /// The results may differ by twice the bounds. Results without rounding errors must be equal.
    Bounds,
    /// The results must have the same bits. Equal bits are required only if both subjects run the same steps in tiles of the same
    /// sizes on devices of the same kind.
    Bits,
}

impl<R: Subject, S: Subject> Trial<'_, Pair<'_, R, S>> {
    /// Tests that the products of both subjects agree: within twice bound 1, equal for integers (bound 5), and of equal classes.
    ///
    /// # Errors
    /// The results differ too much, or a call fails.
    pub fn agree_in_gemm<T: Scalar>(&self, case: &GemmCase) -> Result<(), Failure> {
        let verdict = || {
            let data = case.data::<T>();
            let (here, there) =
                (gemm::run(self.subject.one, case, &data)?.dense(), gemm::run(self.subject.other, case, &data)?.dense());
            if self.exactly(case.fill == Fill::Integers) {
                return self.case(case).exact("agreement: gemm", same("agreement: gemm", &here, &there));
            }
            same_classes("agreement: gemm", &here, &there)?;
            let (a, b, old) = data.operands(case);
            let exact = product::<T>(case.alpha, &a, &b, case.beta, &old);
            let slack = 2.0 * bounds::underflow(case.k, case.alpha, bounds::eta::<T>());
            let worst = apart([&here, &there], |i, j| exact.scale(i, j), slack);
            self.case(case).worst("agreement: gemm", bounds::gemm_componentwise::<T>(case.k).twice(), worst)
        };
        verdict().map_err(|failure| failure.in_case(case))
    }

    /// Tests that the triangular solves of both subjects agree: within twice bound 7, equal for integers (bound 5), and of equal
    /// classes.
    ///
    /// # Errors
    /// The results differ too much, or a call fails.
    pub fn agree_in_trsm<T: Scalar>(&self, case: &TrsmCase) -> Result<(), Failure> {
        let verdict = || {
            let system = case.system::<T>();
            let here = trsm::run::<R, T>(self.subject.one, case, &system)?;
            let there = trsm::run::<S, T>(self.subject.other, case, &system)?;
            if self.exactly(case.fill == Fill::Integers && case.mode == TrsmMode::Substitution) {
                return self.case(case).exact("agreement: trsm", same("agreement: trsm", &here, &there));
            }
            same_classes("agreement: trsm", &here, &there)?;
            if here.is_finite() { solved_alike::<T>(&self.case(case), case, &system, [&here, &there]) } else { Ok(()) }
        };
        verdict().map_err(|failure| failure.in_case(case))
    }

    /// Tests that the factorisations of both subjects agree within twice bound 8. Factors, pivots and `info` must be equal if the
    /// factorisation has no rounding errors (bounds 5 and 11).
    ///
    /// # Errors
    /// The results differ too much, or a call fails.
    pub fn agree_in_getrf<T: Scalar>(&self, case: &GetrfCase) -> Result<(), Failure> {
        let a = case.matrix::<T>();
        let verdict = || {
            let here = getrf::run::<R, T>(self.subject.one, case, &a)?;
            let there = getrf::run::<S, T>(self.subject.other, case, &a)?;
            if a.is_finite() && here.info != there.info {
                return Err(Failure::new("agreement: getrf", format!("info {} and {}", here.info, there.info)));
            }
            if self.exactly(!rounds(case.shape)) {
                return self.case(case).exact("agreement: getrf", same_factors(&here, &there));
            }
            factored_alike::<T>(&self.case(case), &a, [&here, &there])
        };
        verdict().map_err(|failure| failure.in_case(case))
    }

    /// Tests that the solutions of both subjects by getrf and getrs agree within twice bound 8.
    ///
    /// # Errors
    /// The results differ too much, or a call fails.
    pub fn agree_in_solve<T: Scalar>(&self, case: &SolveCase) -> Result<(), Failure> {
        let (a, b) = case.matrices::<T>();
        let verdict = || {
            let here = solve::run::<R, T>(self.subject.one, case, &a, &b)?;
            let there = solve::run::<S, T>(self.subject.other, case, &a, &b)?;
            if self.exactly(false) {
                return self.case(case).exact("agreement: solve", same("agreement: solve", &here, &there));
            }
            let apart = solutions_apart::<T>(&a.under(case.op), [&here, &there], &b);
            self.case(case).within("agreement: solve", bounds::solve_residual().twice(), apart)
        };
        verdict().map_err(|failure| failure.in_case(case))
    }

    /// Tests that the row exchanges of both subjects give equal matrices.
    ///
    /// # Errors
    /// The results differ, or a call fails.
    pub fn agree_in_laswp<T: Scalar>(&self, case: &LaswpCase) -> Result<(), Failure> {
        let verdict = || {
            let here = laswp::run::<R, T>(self.subject.one, case)?.dense();
            let there = laswp::run::<S, T>(self.subject.other, case)?.dense();
            self.case(case).exact("agreement: laswp", same("agreement: laswp", &here, &there))
        };
        verdict().map_err(|failure| failure.in_case(case))
    }

    fn exactly(&self, nothing_rounds: bool) -> bool {
        self.subject.closeness == Closeness::Bits || nothing_rounds
    }
}

/// The largest difference between two elements, minus `slack` and divided by `scale`. Elements that are NaN or infinite are left
/// out.
fn apart([here, there]: [&Dense; 2], scale: impl Fn(usize, usize) -> f64, slack: f64) -> Worst {
    let mut worst = Worst::default();
    for ((i, j), x) in here.elements().filter(|(_, x)| x.is_finite()) {
        let difference = ((x - there.at(i, j)).abs() - slack).max(0.0);
        worst.record(ratio(difference, scale(i, j)), (i, j));
    }
    worst
}

/// Tests that all elements of two matrices are equal. Zeros of either sign count as equal, and so do two NaN.
fn same(check: &'static str, here: &Dense, there: &Dense) -> Result<(), Failure> {
    #[allow(clippy::float_cmp, reason = "exact equality is the property")]
    let equal = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan());
    match here.elements().find(|&((i, j), x)| !equal(x, there.at(i, j))) {
        None => Ok(()),
        Some(((i, j), x)) => Err(Failure::new(check, format!("{x:e} and {:e} are not equal", there.at(i, j))).at((i, j))),
    }
}

fn same_classes(check: &'static str, here: &Dense, there: &Dense) -> Result<(), Failure> {
    match here.elements().find(|&((i, j), x)| !same_class(x, there.at(i, j))) {
        None => Ok(()),
        Some(((i, j), x)) => Err(Failure::new(check, format!("{x} and {}", there.at(i, j))).at((i, j))),
    }
}

/// Tests the difference between the residuals of two solutions. Each residual satisfies bound 7, so that their difference satisfies
/// twice this bound.
fn solved_alike<T: Scalar>(seen: &Evidence<'_>, case: &TrsmCase, system: &System, solutions: [&Dense; 2]) -> Result<(), Failure> {
    let residuals = solutions.map(|x| linear::<T>(&system.e, x, case.alpha, &system.f));
    let [here, there] = residuals.each_ref().map(Product::rounded);
    match case.mode {
        TrsmMode::Substitution => {
            let scale = |i, j| f64::midpoint(residuals[0].scale(i, j), residuals[1].scale(i, j));
            let slack = 2.0 * bounds::underflow(case.order, system.e.max_abs().max(case.alpha.abs()), bounds::eta::<T>());
            let bound: Bound = bounds::trsm_substitution::<T>(case.order);
            seen.worst("agreement: trsm", bound.twice(), apart([&here, &there], scale, slack))
        }
        TrsmMode::Inverted => {
            let scale = system.e.norm_one() * f64::midpoint(solutions[0].norm_one(), solutions[1].norm_one());
            let apart = ratio(here.minus(&there).norm_one(), scale);
            seen.within("agreement: trsm", bounds::trsm_inverted::<T>(case.order).twice(), apart)
        }
    }
}

/// Whether the factorisation of a matrix of this kind has rounding errors.
fn rounds(shape: Shape) -> bool {
    match shape {
        Shape::Exact | Shape::Ties | Shape::TiesBelow | Shape::Singular => false,
        Shape::ZeroColumn | Shape::Permuted | Shape::Wilkinson => false,
        Shape::Random | Shape::Graded | Shape::Dominant | Shape::Hilbert | Shape::Nan | Shape::NanPivot => true,
    }
}

fn same_factors(here: &Factored, there: &Factored) -> Result<(), Failure> {
    if let Some(i) = (0..here.ipiv.len()).find(|&i| here.ipiv[i] != there.ipiv[i]) {
        return Err(Failure::new("agreement: getrf", format!("ipiv[{i}] is {} and {}", here.ipiv[i], there.ipiv[i])));
    }
    same("agreement: getrf", &here.lu, &there.lu)
}

/// Tests the difference between `P·L·U` of two factorisations. If the matrix contains a NaN, the function tests only that the
/// factors of both subjects contain a NaN or an infinity.
fn factored_alike<T: Scalar>(seen: &Evidence<'_>, a: &Dense, [here, there]: [&Factored; 2]) -> Result<(), Failure> {
    if here.lu.is_finite() != there.lu.is_finite() {
        return Err(Failure::new("agreement: getrf", "one is finite, the other is not"));
    }
    if !here.lu.is_finite() {
        return Ok(());
    }
    let apart = factors_apart::<T>([here, there].map(|factored| (&factored.lu, &factored.ipiv[..])), a);
    seen.within("agreement: getrf", bounds::getrf_residual().twice(), apart)
}
