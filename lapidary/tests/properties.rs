//! The conformance suite on the CPU: in place, on several devices, out of core, and
//! on the plain loops that define every instruction.

mod support;

use lapidary::{Machine, Settings};
use lapidary_conformance::Scope;
use lapidary_conformance::properties::agreement::Closeness;
use support::{Graded, agree, grade, limited, tall_panel};

/// Small calls, many of them; the blocks are the panels and kernels of the CPU.
fn small() -> Scope {
    Scope { blocks: vec![8, 16, 32, 64], min: 0, max: 150, cases: 60, large: vec![257, 400], seed: 1 }
}

/// Calls that are too large to run as one kernel on the caller's thread.
fn planned() -> Scope {
    Scope { blocks: vec![232, 256], min: 225, max: 270, cases: 6, large: vec![257, 400], seed: 2 }
}

fn several() -> Graded {
    Graded::open("cpu:0,1,2", &Settings::default())
}

/// The CPU's plain loops.
fn by_definition(settings: &Settings) -> Graded {
    Graded(format!("by definition {settings:?}"), Machine::by_definition(settings))
}

macro_rules! graded {
    ($($name:ident: $t:ty, $subject:expr, $scope:expr;)+) => {$(
        #[test]
        fn $name() {
            grade::<$t>(&$subject, &$scope);
        }
    )+};
}

graded! {
    one_device_f32: f32, Graded::open("cpu:0", &Settings::default()), small();
    one_device_f64: f64, Graded::open("cpu:0", &Settings::default()), small();
    several_devices_f32: f32, several(), planned();
    several_devices_f64: f64, several(), planned();
    out_of_core_f32: f32, Graded::open("cpu:0", &limited(48 << 10)), small();
    out_of_core_f64: f64, Graded::open("cpu:0", &limited(96 << 10)), small();
    by_definition_f32: f32, by_definition(&Settings::default()), small();
    by_definition_f64: f64, by_definition(&Settings::default()), small();
    by_definition_out_of_core_f64: f64, by_definition(&limited(96 << 10)), Scope { cases: 20, ..small() };
    several_out_of_core_f32: f32, Graded::open("cpu:0,1,2", &limited(48 << 10)), small();
    several_out_of_core_f64: f64, Graded::open("cpu:0,1,2", &limited(96 << 10)), small();
}

#[test]
fn one_device_and_several_agree() {
    let one = Graded::open("cpu:0", &Settings::default());
    let scope = Scope { cases: 3, ..planned() };
    agree::<f64>(&one, &several(), Closeness::Bounds, &scope);
    agree::<f32>(&one, &Graded::open("cpu:0,1", &limited(96 << 10)), Closeness::Bounds, &scope);
}

#[test]
fn a_tall_panel() {
    tall_panel::<f64>(&several());
    tall_panel::<f32>(&by_definition(&Settings::default()));
}
