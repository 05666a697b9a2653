//! What a search varies: the parameters of one kernel of the database, for one call.

use lapidary::kernels::database::{CPU_BLOCKS, Family, Kernel};
use lapidary::kernels::space::axes_for;
use lapidary::kernels::{Dialect, HeldRows, check};
use lapidary::{DType, DeviceFacts};
use lapidary_tune::{Axis, Header, Space};

use super::message::{Call, Job};
use super::values::Values;
use crate::failure::{Failure, Result};

/// The device whose kernels are tuned.
pub struct Device {
    /// Facts of the device.
    pub facts: DeviceFacts,
    /// Language of its kernels. `None` for the CPU backend, which has no generated kernels.
    pub language: Option<Dialect>,
}

impl Device {
    /// The language by which entries of the database are selected. Entries for the CPU backend are restricted to no language.
    pub fn dialect(&self) -> Dialect {
        self.language.unwrap_or(Dialect::OpenClC)
    }

    /// The language of the kernels as a word.
    pub fn language_name(&self) -> String {
        self.language.map_or_else(|| "cpu".to_owned(), |language| language.to_string())
    }
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
    /// `values` replace the values worth trying.
    ///
    /// # Errors
    /// No kernel of the database has the name `kernel`, or `values` name a parameter that the kernel does not have.
    pub fn new(call: Call, kernel: &'static str, device: &Device, values: &Values) -> Result<Self> {
        let unknown = || Failure::usage(format!("no kernel is called `{kernel}`"));
        let mut axes = axes_for(kernel, call.dtype(), call.sizes).ok_or_else(unknown)?;
        values.replace(&mut axes).map_err(|reason| Failure::usage(format!("--values for {kernel}: {reason}")))?;
        let names: Vec<&str> = axes.iter().map(|axis| axis.name).collect();
        let axes =
            axes.into_iter().map(|axis| Axis { name: axis.name.to_owned(), values: axis.values, structural: axis.is_structural });
        let space = Space::new(axes.collect(), |values| {
            let values: Vec<(&str, usize)> = names.iter().copied().zip(values.iter().copied()).collect();
            let kernel = Kernel::new(kernel, &values)?;
            if matches!(kernel, Kernel::Group(Family::HeldRows, items) if !HeldRows::on(&device.facts).hold(call.sizes[0], items)) {
                return Err("the work-groups that run at the same time hold all rows of the panel".to_owned());
            }
            check(kernel, call.dtype(), &device.facts, device.dialect())
        });
        Ok(Goal { call, kernel, space })
    }

    /// Returns the kernel with the parameters of a point of the space.
    pub fn kernel_at(&self, point: usize) -> Kernel {
        let names = self.space.axes().iter().map(|axis| axis.name.as_str());
        let values: Vec<(&str, usize)> = names.zip(self.space.point(point).iter().copied()).collect();
        Kernel::new(self.kernel, &values).expect("the point has a value for each parameter")
    }

    /// Returns the point of the space with the parameters of a kernel. `None` if it is another kernel or has values that the search
    /// does not try.
    pub fn point_of(&self, kernel: Kernel) -> Option<usize> {
        let values = kernel.values();
        let names = self.space.axes().iter().map(|axis| axis.name.as_str());
        if !kernel.to_string().starts_with(&format!("{} ", self.kernel)) || !names.eq(values.iter().map(|(name, _)| *name)) {
            return None;
        }
        self.space.find(&values.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
    }

    /// Returns the job of measuring a point. The device uses no other kernel of the family, so that a kernel for products
    /// which does not suit the call fails.
    pub fn job(&self, point: usize, runs: usize) -> Job {
        Job { call: self.call.clone(), entries: alone(self.kernel_at(point), self.call.dtype()), runs }
    }

    /// Returns the identity of the search, for its journal.
    pub fn header(&self, device: &Device) -> Header {
        let identity = &device.facts.identity;
        Header {
            family: format!("{} {}", self.kernel, lapidary::kernels::GENERATOR),
            device: format!("{}, {}, {}", identity.model, identity.driver, device.language_name()),
            axes: self.space.axes().iter().map(|axis| axis.name.clone()).collect(),
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

/// The entry of the database for a kernel and one element type. The same parameters may be too large for the other type.
pub fn preferred(kernel: Kernel, dtype: DType) -> String {
    format!("{kernel} {dtype}")
}

/// The text of the database that makes a device use this kernel and no other one that does the same work. Panels are factored by
/// held rows, else by strips, else column by column, else in one work-group, and triangles are solved by `trsv` if the right-hand sides are few, so that
/// the kernels that come first are stopped. The value of a threshold leaves the kernels as they are.
pub fn alone(kernel: Kernel, dtype: DType) -> String {
    if let Kernel::Threshold(..) = kernel {
        return preferred(kernel, dtype);
    }
    let stopped: &[&str] = match kernel.family() {
        "solve" => &["trsv", "solve"],
        "triangle" => &["trsv", "triangle"],
        "strips" => &["held_rows", "strips"],
        "columns" => &["held_rows", "strips", "columns"],
        "panel" => &["held_rows", "strips", "columns", "panel"],
        // the CPU backend uses the first blocks that a text names
        CPU_BLOCKS => &[],
        family => &[family],
    };
    let stops: String = stopped.iter().map(|family| format!("\nstop {family} {dtype}")).collect();
    preferred(kernel, dtype) + &stops
}

#[cfg(test)]
mod tests {
    use lapidary::kernels::{Database, Threshold, Tuning};

    use super::*;

    fn device() -> Device {
        let mut facts = DeviceFacts::new("opencl:0");
        facts.limits.work_group = 256;
        facts.limits.local_memory = 16 << 10;
        facts.vector_bits = 256;
        Device { facts, language: Some(Dialect::OpenClC) }
    }

    fn goal(kernel: &'static str, is_f64: bool) -> Goal {
        let call = Call { task: "gemm".to_owned(), is_f64, sizes: [64; 3], transposed: [false; 2], is_padded: false, seed: 1 };
        Goal::new(call, kernel, &device(), &Values::default()).unwrap()
    }

    #[test]
    fn each_point_is_a_kernel_that_the_device_can_run_in_its_type() {
        let (facts, dialect) = (device().facts, device().dialect());
        for (kernel, is_f64) in [("gemm_tile", false), ("gemm_vector", false), ("gemm_panel", false), ("gemm_panel", true)] {
            let goal = goal(kernel, is_f64);
            assert!(!goal.space.is_empty() && goal.space.len() < goal.space.total(), "{kernel}");
            for point in 0..goal.space.len() {
                assert_eq!(goal.point_of(goal.kernel_at(point)), Some(point));
                let tuning = Tuning::lookup(Database::shipped(), &facts, dialect);
                let tuning = tuning.preferring(&goal.job(point, 1).entries, &facts, dialect).unwrap();
                let products: Vec<_> = tuning.products(goal.call.dtype(), [64; 3]).map(Kernel::Product).collect();
                assert_eq!(products, [goal.kernel_at(point)]);
            }
        }
    }

    #[test]
    fn a_threshold_is_searched_beside_the_kernels_in_use() {
        let (facts, dialect) = (device().facts, device().dialect());
        let call =
            Call { task: "getrf".to_owned(), is_f64: true, sizes: [64; 3], transposed: [false; 2], is_padded: false, seed: 1 };
        let goal = Goal::new(call, "lu_block", &device(), &Values::default()).unwrap();
        assert_eq!(goal.space.len(), Threshold::LuBlock.trials().len());
        let tuning = Tuning::lookup(Database::shipped(), &facts, dialect);
        let preferred = tuning.clone().preferring(&goal.job(0, 1).entries, &facts, dialect).unwrap();
        assert_eq!(preferred.threshold(Threshold::LuBlock, DType::F64), Threshold::LuBlock.trials()[0]);
        assert_eq!(preferred.threshold(Threshold::LuBlock, DType::F32), 1024);
        assert_eq!(preferred.strips(DType::F64, 64).next(), tuning.strips(DType::F64, 64).next());
    }

    #[test]
    fn given_values_are_the_whole_space_if_the_kernel_takes_them() {
        let call =
            Call { task: "gemm".to_owned(), is_f64: false, sizes: [64; 3], transposed: [false; 2], is_padded: false, seed: 1 };
        let values: Values = "mwg=16,25 nwg=8 kwg=4 mr=4 nr=4 vwm=1 stages=1,2".parse().unwrap();
        let goal = Goal::new(call, "gemm_tile", &device(), &values).unwrap();
        let points: Vec<&[usize]> = (0..goal.space.len()).map(|point| goal.space.point(point)).collect();
        // mr divides 16 only
        assert_eq!((points, goal.space.total()), (vec![&[16, 8, 4, 4, 4, 1, 1][..], &[16, 8, 4, 4, 4, 1, 2]], 4));
    }

    #[test]
    fn a_kernel_outside_the_space_has_no_point() {
        let (tile, solve) = (goal("gemm_tile", true), goal("solve", true));
        assert_eq!(tile.point_of(solve.kernel_at(0)), None);
        assert_eq!(tile.point_of(Kernel::Stop(None)), None);
        let values = [("mwg", 24), ("nwg", 24), ("kwg", 8), ("mr", 4), ("nr", 4), ("vwm", 1), ("stages", 2)];
        assert_eq!(tile.point_of(Kernel::new("gemm_tile", &values).unwrap()), None);
        let unknown = Goal::new(tile.call, "gemm_best", &device(), &Values::default()).err().unwrap().to_string();
        assert!(unknown.contains("`gemm_best`"), "{unknown}");
    }

    #[test]
    fn the_explanation_counts_every_combination() {
        let goal = goal("gemm_tile", true);
        let text = goal.explain();
        let heading = format!("gemm_tile for gemm f64 m=64 n=64 k=64: {} of {} points\n", goal.space.len(), goal.space.total());
        assert!(text.starts_with(&heading) && text.contains(" left out: vwm is 1 or"), "{text}");
        let count = |line: &str| line.trim_start().split(' ').next().unwrap().parse::<usize>().unwrap();
        let left_out: usize = text.lines().skip(1).map(count).sum();
        assert_eq!(left_out + goal.space.len(), goal.space.total());
    }

    #[test]
    fn outcomes_of_another_driver_or_kernel_are_not_comparable() {
        let (goal, mut other) = (goal("gemm_tile", true), device());
        other.facts.identity.driver = "2".to_owned();
        assert_ne!(goal.header(&device()), goal.header(&other));
        let mut wgsl = device();
        wgsl.language = Some(Dialect::Wgsl);
        assert_ne!(goal.header(&device()), goal.header(&wgsl));
        assert_eq!(goal.header(&device()).axes.len(), 7);
    }
}
