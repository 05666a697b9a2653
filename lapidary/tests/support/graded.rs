//! Machines as subjects of the conformance suite.

use std::str::FromStr;

use lapidary::backend::Device;
use lapidary::{DType, Machine, MatMut, MatRef, Precision, Result, Select, Settings};
use lapidary_conformance::report::Identity;
use lapidary_conformance::subject::Factors;
use lapidary_conformance::{Subject, routines_of};

/// A machine, named after its selection.
pub struct Graded(pub String, pub Machine);

impl Graded {
    pub fn open(select: &str, settings: &Settings) -> Self {
        let machine = Machine::with_settings(&Select::from_str(select).unwrap(), settings).unwrap();
        Graded(format!("{select} {settings:?}"), machine)
    }
}

impl Subject for Graded {
    fn name(&self) -> String {
        self.0.clone()
    }
    fn identity(&self) -> Identity {
        let names: Vec<&str> = self.1.devices().map(|device| device.description.as_str()).collect();
        Identity { name: self.name(), device: names.join(" + "), ..Identity::default() }
    }
    fn computes(&self, dtype: DType) -> bool {
        self.1.devices().any(|device| device.computes(dtype))
    }
    fn devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        self.1.visit_devices(visit);
    }
    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        let factors = |precision| match precision {
            Precision::Mixed { .. } => Factors::Single,
            Precision::Full { .. } => Factors::Double,
        };
        Some(self.1.gesv_mixed(a, b, x).map(factors))
    }
    routines_of!(1, getrf_into);
}
