//! Tests that one CPU device and several CPU devices compute the same results, and tests of tall and wide panels.

#[path = "support/agree.rs"]
mod agree;
#[path = "support/graded.rs"]
mod graded;
#[path = "support/settings.rs"]
mod settings;
#[path = "support/tall.rs"]
mod tall;

use agree::agree;
use graded::Graded;
use lapidary::Machine;
use lapidary_conformance::Scope;
use lapidary_conformance::properties::agreement::Closeness;
use settings::{limited, settings};
use tall::{panels, subnormal_pivot};

fn several() -> Graded {
    Graded::open("cpu:0,1,2", &settings())
}

#[test]
fn one_device_and_several_agree() {
    let one = Graded::open("cpu:0", &settings());
    // the calls of this scope are too large to run as one kernel on the caller's thread
    let scope = Scope { blocks: vec![232, 256], min: 225, max: 270, cases: 3, large: vec![257, 400], elements: 1 << 16, seed: 2 };
    agree::<f64>(&one, &several(), Closeness::Bounds, &scope);
    agree::<f32>(&one, &Graded::open("cpu:0,1", &limited(96 << 10)), Closeness::Bounds, &scope);
}

#[test]
fn tall_and_wide_panels() {
    panels::<f64>(&several());
    subnormal_pivot(&several());
    panels::<f32>(&Graded("by definition".to_owned(), Machine::by_definition(&settings()).unwrap()));
}
