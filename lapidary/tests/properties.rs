//! The conformance suite on the CPU: in place, on several devices, and out of core.

use std::str::FromStr;

use lapidary::core::{Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm};
use lapidary::{Machine, Select, Settings};
use lapidary_conformance::cases::{Fill, GemmCase};
use lapidary_conformance::properties::agreement::check_agreement;
use lapidary_conformance::suite::{properties, search};
use lapidary_conformance::{Scope, Subject};

/// A machine under its selection's name.
struct Graded(String, Machine);

impl Graded {
    fn open(select: &str, settings: &Settings) -> Self {
        let machine = Machine::with_settings(&Select::from_str(select).unwrap(), settings).unwrap();
        Graded(format!("{select} {settings:?}"), machine)
    }
}

impl Subject for Graded {
    fn name(&self) -> String {
        self.0.clone()
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        self.1.gemm(args)
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        self.1.trsm(args)
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        self.1.getrf_into(args)
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        self.1.getrs(args)
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        self.1.laswp(args)
    }
}

/// Every property, all failures at once.
fn grade<T: Scalar>(subject: &Graded, scope: &Scope) {
    let failures: Vec<String> = properties::<Graded, T>()
        .iter()
        .filter_map(|property| (property.check)(subject, scope).err().map(|failure| format!("{}: {failure}", property.name)))
        .collect();
    assert!(failures.is_empty(), "{}\n{}", subject.name(), failures.join("\n"));
}

/// Small calls, many of them; the blocks are the panels and kernels of the CPU.
fn small() -> Scope {
    Scope { blocks: vec![8, 16, 32, 64], min: 0, max: 150, cases: 60, large: vec![257, 400], seed: 1 }
}

/// Calls that are too large to run as one kernel on the caller's thread.
fn planned() -> Scope {
    Scope { blocks: vec![232, 256], min: 225, max: 270, cases: 6, large: vec![257, 400], seed: 2 }
}

/// A few tiles or a narrow panel of the small scope fit, a whole matrix does not.
fn limited(bytes: usize) -> Settings {
    Settings { memory_limit: Some(bytes), nb: None, ..Settings::default() }
}

fn several() -> Graded {
    Graded::open("cpu:0,1,2", &Settings::default())
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
    several_out_of_core_f32: f32, Graded::open("cpu:0,1,2", &limited(48 << 10)), small();
    several_out_of_core_f64: f64, Graded::open("cpu:0,1,2", &limited(96 << 10)), small();
}

#[test]
fn one_device_and_several_agree() {
    let scope = Scope { cases: 12, ..planned() };
    let one = Graded::open("cpu:0", &Settings::default());
    let cases = || GemmCase::any(&scope, &[Fill::Uniform, Fill::Integers]);
    search(&scope, cases(), |case| check_agreement::<_, _, f64>(&one, &several(), case)).unwrap();
    let copying = Graded::open("cpu:0,1", &limited(96 << 10));
    search(&scope, cases(), |case| check_agreement::<_, _, f32>(&one, &copying, case)).unwrap();
}
