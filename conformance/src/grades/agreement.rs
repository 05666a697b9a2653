//! One device against several: whether they give the same bits, routine by routine.

use lapidary_core::Scalar;

use super::grade;
use crate::cases::{Fill, GemmCase, GetrfCase, Shape, TrsmCase};
use crate::properties::agreement::{Closeness, Pair};
use crate::report::Grade;
use crate::{Failure, Ledger, Scope, Subject, Trial};

/// So large that a call is planned in tiles, which several devices share.
const N: usize = 300;

type Comparison<'p, R, S> = fn(&Trial<'_, Pair<'p, R, S>>) -> Result<(), Failure>;

/// A grade for each routine.
pub fn agreement<S: Subject, T: Scalar>(one: &S, other: &S) -> [Grade; 3] {
    [
        compared::<S, T>([one, other], "gemm", |pair| {
            pair.agree_in_gemm::<T>(&GemmCase { fill: Fill::Graded, ..GemmCase::packed([N, N - 3, N + 5], 1) })
        }),
        compared::<S, T>([one, other], "trsm", |pair| {
            TrsmCase::regular(N).into_iter().try_for_each(|case| pair.agree_in_trsm::<T>(&TrsmCase { nrhs: N, ..case }))
        }),
        compared::<S, T>([one, other], "getrf", |pair| pair.agree_in_getrf::<T>(&GetrfCase::square(N, Shape::Random))),
    ]
}

/// Other bits are no failure: tiles that differ sum in another order. More than the bounds let
/// both be apart is one.
fn compared<'p, S: Subject, T: Scalar>([one, other]: [&'p S; 2], routine: &str, agree: Comparison<'p, S, S>) -> Grade {
    let (scope, ledger) = (Scope::quick(1), Ledger::default());
    let within = |closeness| agree(&Trial { subject: &Pair { one, other, closeness }, scope: &scope, ledger: &ledger });
    let compared = || match within(Closeness::Bounds) {
        Ok(()) => {
            let bounded = ledger.figures().into_iter().filter(|figure| figure.limit > 0.0);
            let used = bounded.map(|figure| figure.used()).fold(0.0, f64::max);
            (format!("{used:.3} of what the bounds allow apart"), "other bits", false)
        }
        Err(failure) => (failure.to_string(), "too far apart", true),
    };
    let same = ("nothing differs".to_owned(), "same bits", false);
    let (value, verdict, failed) = if within(Closeness::Bits).is_ok() { same } else { compared() };
    let about = "The same calls of order 300 on one device and on several (bounds 1, 7 and 8, twice).";
    Grade { failed, ..grade(T::DTYPE, &format!("one device and several, {routine}"), value, verdict, about) }
}
