//! A machine as a subject of the conformance suite.

use lapidary::{DType, Machine};
use lapidary_conformance::report::Identity;
use lapidary_conformance::{Subject, routines_of};

/// A machine under the name of its selection.
pub struct Graded {
    machine: Machine,
    name: String,
}

impl Graded {
    /// The machine that was opened by a selection.
    pub fn new(machine: Machine, name: String) -> Self {
        Graded { machine, name }
    }
}

impl Subject for Graded {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> Identity {
        let models = self.machine.devices().map(|device| device.description.as_str());
        let drivers = self.machine.devices().filter_map(|device| driver(&device.name));
        let api = format!("lapidary {}", env!("CARGO_PKG_VERSION"));
        let os = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        Identity { name: self.name(), device: listed(models), driver: listed(drivers), api, os }
    }

    fn computes(&self, dtype: DType) -> bool {
        dtype != DType::F64 || self.machine.devices().any(|device| device.f64)
    }

    fn devices(&self, visitor: &mut impl lapidary::core::DeviceVisitor) {
        self.machine.visit_devices(visitor);
    }

    routines_of!(machine, getrf_into);
}

/// Texts in order, each once.
fn listed<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> String {
    let mut all: Vec<String> = Vec::new();
    texts.for_each(|text| {
        if all.iter().all(|before| before != text.as_ref()) {
            all.push(text.as_ref().to_owned());
        }
    });
    all.join(" + ")
}

/// The driver of a device and its version, where it has one.
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
