//! What a search varies: the parameters of one kernel of the database, for one call.

use lapidary::kernels::database::Kernel;
use lapidary::kernels::space::axes_for;
use lapidary::kernels::{Dialect, check};
use lapidary::{DType, DeviceFacts};
use lapidary_tune::{Axis, Header, Space};

use super::message::{Call, Job};
use crate::failure::{Failure, Result};

/// The device whose kernels are tuned.
pub struct Device {
    /// Facts of the device.
    pub facts: DeviceFacts,
    /// Language of its kernels.
    pub dialect: Dialect,
}

/// A search for the parameters of one kernel that are the fastest for one call.
pub struct Goal {
    /// The call.
    pub call: Call,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// The sets of parameters that the device can run.
    pub space: Space,
}

impl Goal {
    /// Makes the space of a search: all combinations of values that meet the constraints of the kernel and the limits of the device.
    ///
    /// # Errors
    /// No kernel of the database has the name `kernel`.
    pub fn new(call: Call, kernel: &'static str, device: &Device) -> Result<Self> {
        let unknown = || Failure::usage(format!("no kernel is called `{kernel}`"));
        let axes = axes_for(kernel, call.dtype(), call.sizes).ok_or_else(unknown)?;
        let names: Vec<&str> = axes.iter().map(|axis| axis.name).collect();
        let axes = axes.into_iter().map(|axis| Axis { name: axis.name, values: axis.values, structural: axis.is_structural });
        let space = Space::new(axes.collect(), |values| {
            let values: Vec<(&str, usize)> = names.iter().copied().zip(values.iter().copied()).collect();
            check(Kernel::new(kernel, &values)?, call.dtype(), &device.facts, device.dialect)
        });
        Ok(Goal { call, kernel, space })
    }

    /// Returns the kernel with the parameters of a point of the space.
    pub fn kernel_at(&self, point: usize) -> Kernel {
        let names = self.space.axes().iter().map(|axis| axis.name);
        let values: Vec<(&str, usize)> = names.zip(self.space.point(point).iter().copied()).collect();
        Kernel::new(self.kernel, &values).expect("the point has a value for each parameter")
    }

    /// Returns the point of the space with the parameters of a kernel. `None` if it is another kernel or has values that the search
    /// does not try.
    pub fn point_of(&self, kernel: Kernel) -> Option<usize> {
        let values = kernel.values();
        let names = self.space.axes().iter().map(|axis| axis.name);
        if !kernel.to_string().starts_with(&format!("{} ", self.kernel)) || !names.eq(values.iter().map(|(name, _)| *name)) {
            return None;
        }
        self.space.find(&values.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
    }

    /// Returns the job of measuring a point. The device uses no other kernel of the family, so that a kernel which does not suit the
    /// call fails.
    pub fn job(&self, point: usize, runs: usize) -> Job {
        Job { call: self.call.clone(), entries: alone(self.kernel_at(point), self.call.dtype()), runs }
    }

    /// Returns the identity of the search, for its journal.
    pub fn header(&self, device: &Device) -> Header {
        let identity = &device.facts.identity;
        Header {
            family: format!("{} {}", self.kernel, lapidary::kernels::GENERATOR),
            device: format!("{}, {}, {}", identity.model, identity.driver, device.dialect),
            axes: self.space.axes().iter().map(|axis| axis.name.to_owned()).collect(),
        }
    }

    /// Describes the size of the space and why combinations of values were left out.
    pub fn explain(&self) -> String {
        let words = self.call.words().unwrap_or_default();
        let mut text = format!("{} for {words}: {} of {} points", self.kernel, self.space.len(), self.space.total());
        for (reason, count) in self.space.refused() {
            text += &format!("\n{count:>10} left out: {reason}");
        }
        text
    }
}

/// The text of the database that makes a device use this kernel, and no other one of its family, for elements of a type.
pub fn alone(kernel: Kernel, dtype: DType) -> String {
    format!("{kernel} {dtype}\nstop {} {dtype}", kernel.family())
}
