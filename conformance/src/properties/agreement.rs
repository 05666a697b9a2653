//! One device and several agree: they differ by no more than their bounds allow.

use lapidary_core::Scalar;

use super::gemm::run;
use crate::bounds;
use crate::cases::{Fill, GemmCase};
use crate::failure::{Worst, ratio};
use crate::oracle::product::product;
use crate::{Failure, Subject};

/// Two subjects give the same product, within twice bound 1, and bit for bit for
/// integers.
///
/// # Errors
/// They differ by more, or a call fails.
pub fn check_agreement<R: Subject, S: Subject, T: Scalar>(one: &R, other: &S, case: &GemmCase) -> Result<(), Failure> {
    let data = case.data::<T>();
    let here = run(one, case, &data).map_err(|failure| failure.in_case(case))?.dense();
    let there = run(other, case, &data).map_err(|failure| failure.in_case(case))?.dense();
    let (a, b, old) = data.operands(case);
    let exact = product::<T>(case.alpha, &a, &b, case.beta, &old);
    let mut worst = Worst::default();
    for ((i, j), x) in here.elements().filter(|(_, x)| x.is_finite()) {
        let slack = 2.0 * bounds::underflow::<T>(case.k, case.alpha);
        let difference = ((x - there.at(i, j)).abs() - slack).max(0.0);
        worst.see(ratio(difference, exact.scale(i, j)), (i, j));
    }
    let bound = if case.fill == Fill::Integers { bounds::exact() } else { bounds::agreement::<T>(case.k) };
    worst.within("agreement: one device and several", bound).map_err(|failure| failure.in_case(case))
}
