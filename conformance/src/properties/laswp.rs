//! Properties of row exchanges: elements move, and their bits must stay unchanged.

use lapidary_core::{Laswp, Scalar};

use super::memory::completed;
use crate::cases::{LaswpCase, Stored};
use crate::oracle::loops;
use crate::trial::{Evidence, Trial};
use crate::{Failure, Subject};

/// Checks that laswp of the subject moves the rows as a plain loop does, and leaves all other elements of the buffer unchanged.
///
/// # Errors
/// An element of the buffer differs from the expected one, or the call returns an error.
pub fn check_laswp<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, case: &LaswpCase) -> Result<(), Failure> {
    checked::<S, T>(trial.subject, case, &trial.case(case)).map_err(|failure| failure.in_case(case))
}

fn checked<S: Subject + ?Sized, T: Scalar>(subject: &S, case: &LaswpCase, seen: &Evidence<'_>) -> Result<(), Failure> {
    let stored = run::<S, T>(subject, case)?;
    let (mut expected, rows) = case.matrix::<T>();
    loops::exchange(&mut expected, &rows, case.forward);
    let differs = |at| Err(Failure::new("laswp: rows", format!("element {at} of the buffer differs")));
    seen.exact("laswp: rows", stored.changed(&Stored::new(&expected, case.storage)).map_or(Ok(()), differs))
}

/// Calls laswp of the subject and returns the matrix with its rows exchanged.
pub(super) fn run<S: Subject + ?Sized, T: Scalar>(subject: &S, case: &LaswpCase) -> Result<Stored<T>, Failure> {
    let (a, rows) = case.matrix::<T>();
    let mut stored = Stored::<T>::new(&a, case.storage);
    let ipiv: Vec<i32> = rows.iter().map(|&p| i32::try_from(p).expect("few rows")).collect();
    let laswp = Laswp::new(stored.view_mut(), &ipiv);
    completed("laswp: completes", subject.laswp(if case.forward { laswp } else { laswp.backward() }))?;
    Ok(stored)
}
