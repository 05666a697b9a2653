//! A [`Machine`] as a subject of the conformance suite.

use std::collections::BTreeSet;

use lapidary::{DType, Machine, MatMut, MatRef, Precision, Queue, Result, Select, Settings};
use lapidary_conformance::report::Identity;
use lapidary_conformance::subject::Factors;
use lapidary_conformance::{Subject, routines_of};

use super::message::Message;
use crate::options::remember_programs;
use crate::worker::send;

/// A machine as a subject, with the selection and the settings with which it was opened.
pub struct Graded {
    machine: Machine,
    select: Select,
    settings: Settings,
}

impl Graded {
    /// Opens a machine on the devices of a selection.
    pub fn open(select: Select, settings: &Settings) -> Result<Self> {
        let machine = Machine::with_settings(&select, settings)?;
        remember_programs(&machine);
        machine.program_cache().listen(|program| send(&Message::Program(program.to_owned())));
        Ok(Graded { machine, select, settings: settings.clone() })
    }
}

impl Subject for Graded {
    fn name(&self) -> String {
        self.select.to_string()
    }

    fn identity(&self) -> Identity {
        let models = self.machine.devices().map(|device| device.description.as_str());
        let drivers = self.machine.devices().filter_map(|device| driver(&device.name));
        let api = format!("lapidary {}", env!("CARGO_PKG_VERSION"));
        let os = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        Identity { name: self.name(), device: listed(models), driver: listed(drivers), api, os }
    }

    fn computes(&self, dtype: DType) -> bool {
        self.machine.devices().any(|device| device.computes(dtype))
    }

    fn memory_limit(&self) -> Option<usize> {
        self.settings.memory_limit
    }

    fn devices(&self, visit: &mut dyn FnMut(&dyn lapidary::backend::Device)) {
        self.machine.visit_devices(visit);
    }

    fn one_and_several(&self) -> Option<Result<[Self; 2]>> {
        let first = self.machine.devices().next()?.name.parse::<Select>();
        let traced =
            |select| Graded::open(select, &self.settings).map(|opened| Graded { machine: opened.machine.traced(), ..opened });
        let both = first.and_then(|first| {
            let several = if self.machine.devices().count() > 1 { self.select.clone() } else { first.clone().repeated(2) };
            Ok([traced(first)?, traced(several)?])
        });
        Some(both)
    }

    fn devices_used(&self) -> Option<usize> {
        // A call that runs only on the caller's thread leaves no event in the trace.
        let events = self.machine.take_trace();
        let computed = events.iter().filter(|event| event.lane.queue == Queue::Exec);
        Some(computed.map(|event| event.lane.device).collect::<BTreeSet<_>>().len())
    }

    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        let factors = |precision| match precision {
            Precision::Mixed { .. } => Factors::Single,
            Precision::Full { .. } => Factors::Double,
        };
        Some(self.machine.gesv_mixed(a, b, x).map(factors))
    }

    routines_of!(machine, getrf_into);
}

/// The texts without repetitions, in their order, joined by ` + `.
fn listed<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> String {
    let mut all: Vec<String> = Vec::new();
    texts.for_each(|text| {
        if all.iter().all(|before| before != text.as_ref()) {
            all.push(text.as_ref().to_owned());
        }
    });
    all.join(" + ")
}

/// The name and the version of the driver of a device. `None` if the device has no driver.
fn driver(name: &str) -> Option<String> {
    let (kind, index) = name.split_once(':')?;
    let index: usize = index.parse().ok()?;
    match kind {
        "opencl" => lapidary::opencl::list().devices.into_iter().nth(index).map(|found| found.versions),
        "wgpu" => {
            let info = lapidary::wgpu::list().devices.into_iter().nth(index)?.info;
            Some(format!("{} {}", info.driver, info.driver_info))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn what_is_alike_is_named_once() {
        assert_eq!(listed(["a", "b", "a"].iter()), "a + b");
        assert_eq!(listed(std::iter::empty::<&str>()), "");
    }
}
