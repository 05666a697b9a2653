//! Plain loops have every property.

use crate::naive::Naive;
use crate::scope;
use crate::wrong::{Fault, Wrong};
use lapidary_conformance::cases::{Fill, GemmCase};
use lapidary_conformance::properties::agreement::check_agreement;
use lapidary_conformance::suite::{properties, search};
use lapidary_core::Scalar;

fn all<T: Scalar>() {
    for property in properties::<Naive, T>() {
        if let Err(failure) = (property.check)(&Naive, &scope(150)) {
            panic!("{}: {failure}", property.name);
        }
    }
}

#[test]
fn all_in_single_precision() {
    all::<f32>();
}

#[test]
fn all_in_double_precision() {
    all::<f64>();
}

#[test]
fn one_agrees_with_itself_and_not_with_a_wrong_one() {
    let scope = scope(50);
    let cases = || GemmCase::any(&scope, &[Fill::Uniform, Fill::Integers, Fill::NonFinite]);
    search(&scope, cases(), |case| check_agreement::<_, _, f64>(&Naive, &Naive, case)).unwrap();
    let failure = search(&scope, cases(), |case| check_agreement::<_, _, f64>(&Naive, &Wrong(Fault::TileEdge), case));
    assert!(failure.unwrap_err().property.starts_with("agreement"));
}
