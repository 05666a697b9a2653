//! The subject of plain loops must have every property.

use crate::naive::Naive;
use crate::{outcome, scope};
use lapidary_conformance::suite::properties_in;
use lapidary_core::Scalar;

fn all<T: Scalar>() {
    for property in properties_in::<Naive, T>() {
        if let Err(failure) = outcome(&Naive, &property, &scope(150)) {
            panic!("{}: {failure}", property.full_name());
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
