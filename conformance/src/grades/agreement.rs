//! Compares one device with several devices: for each routine, whether the results have the same bits.

use lapidary_core::{Result as CoreResult, Scalar};

use super::{NOT_MEASURED, grade};
use crate::cases::{Fill, GemmCase, GetrfCase, Shape, TrsmCase};
use crate::properties::agreement::{Closeness, Pair};
use crate::report::Grade;
use crate::{Failure, Ledger, Scope, Subject, Trial};

/// Order of the matrices. A matrix of this order has several tiles, which several devices share.
const N: usize = 300;

/// Number of attempts to have several devices take part in a call. The first free device takes the next task, so that one device
/// may run all tasks before another device begins. If one device ran all tasks, the call is repeated.
const ATTEMPTS: usize = 5;

type Comparison<S> = for<'a, 'p> fn(&Trial<'a, Pair<'p, S, S>>) -> Result<(), Failure>;

/// One grade for each routine, from the same calls on one device and on several devices.
pub fn one_and_several<S: Subject, T: Scalar>(both: &CoreResult<[S; 2]>) -> [Grade; 3] {
    let routines: [(&str, Comparison<S>); 3] = [
        ("gemm", |pair| pair.agree_in_gemm::<T>(&GemmCase { fill: Fill::Graded, ..GemmCase::packed([N, N - 3, N + 5], 1) })),
        ("trsm", |pair| {
            TrsmCase::regular(N).into_iter().try_for_each(|case| pair.agree_in_trsm::<T>(&TrsmCase { nrhs: N, ..case }))
        }),
        ("getrf", |pair| pair.agree_in_getrf::<T>(&GetrfCase::square(N, Shape::Random))),
    ];
    routines.map(|(routine, agree)| {
        let (value, verdict) = match both {
            Ok(both) => shared(both, agree),
            Err(error) => (error.to_string(), NOT_MEASURED),
        };
        let about = "The same calls of order 300 on one device and on several (bounds 1, 7 and 8, twice).";
        let told = grade(T::DTYPE, &format!("one device and several, {routine}"), value, verdict, about);
        Grade { failed: verdict == APART, ..told }
    })
}

const APART: &str = "too far apart";

/// Value and verdict of a comparison between one device and several. If the subject counts the devices that took part, the
/// comparison is repeated until several devices took part in a call.
fn shared<S: Subject>(both: &[S; 2], agree: Comparison<S>) -> (String, &'static str) {
    let mut last = (String::new(), NOT_MEASURED);
    for _ in 0..ATTEMPTS {
        both[1].devices_used();
        let (value, verdict) = compared(both, agree);
        last = match both[1].devices_used() {
            None => return (value, verdict),
            Some(_) if verdict == NOT_MEASURED => return (value, verdict),
            Some(count) if count > 1 || verdict == APART => return (format!("{value}; {count} devices had a part"), verdict),
            Some(_) => ("one of the devices did everything".to_owned(), NOT_MEASURED),
        };
    }
    last
}

/// Compares the results of one device with those of several. Different bits are no failure, since tiles of different sizes are
/// summed in a different order. A difference of more than twice the bounds is a failure.
fn compared<S: Subject>([one, other]: &[S; 2], agree: Comparison<S>) -> (String, &'static str) {
    let (scope, ledger) = (Scope::quick(1), Ledger::default());
    let within = |closeness| agree(&Trial { subject: &Pair { one, other, closeness }, scope: &scope, ledger: &ledger });
    if within(Closeness::Bits).is_ok() {
        return ("nothing differs".to_owned(), "same bits");
    }
    match within(Closeness::Bounds) {
        Ok(()) => {
            let bounded = ledger.figures().into_iter().filter(|figure| figure.limit > 0.0);
            let used = bounded.map(|figure| figure.used()).fold(0.0, f64::max);
            (format!("{used:.3} of what the bounds allow apart"), "other bits")
        }
        // if a call returned an error, there is nothing to compare; the trials of the subject report this error
        Err(failure) if failure.is_of_a_call() => (failure.to_string(), NOT_MEASURED),
        Err(failure) => (failure.to_string(), APART),
    }
}
