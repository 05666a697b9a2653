//! Plain loops have every property.

use crate::naive::Naive;
use crate::scope;
use lapidary_conformance::suite::properties;
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
