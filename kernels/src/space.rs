//! The values of parameters that are worth trying on a device nobody has measured.

use lapidary_core::DType;

use crate::database::{CPU_BLOCKS, Family, ProductSizes};
use crate::product::Product;
use crate::thresholds::Threshold;

/// A parameter of a kernel with the values that are worth trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Name of the parameter.
    pub name: &'static str,
    /// The values in ascending order.
    pub values: Vec<usize>,
    /// Whether the parameter changes how the text works, and not only how large its tiles are.
    pub is_structural: bool,
}

/// Returns the parameters of a kernel of the database with the values worth trying, or `None` if no kernel has the name `kernel`. A
/// threshold has one parameter. Not every combination of values is a kernel ([`check`](crate::check)).
#[must_use]
pub fn axes(kernel: &str, dtype: DType) -> Option<Vec<Axis>> {
    let axis = |name, values: &[usize]| Axis { name, values: values.to_vec(), is_structural: false };
    let structural = |name, values: &[usize]| Axis { is_structural: true, ..axis(name, values) };
    Some(match kernel {
        "gemm_tile" => vec![
            axis("mwg", &[8, 16, 32, 64, 128]),
            axis("nwg", &[8, 16, 32, 64, 128]),
            axis("kwg", &[4, 8, 16, 32]),
            axis("mr", &[1, 2, 4, 8]),
            axis("nr", &[1, 2, 4, 8]),
            structural("vwm", &[1, 2, 4]),
            structural("stages", &[1, 2]),
        ],
        "gemm_vector" => vec![
            axis("mwg", &[32, 64, 128, 256]),
            axis("nwg", &[32, 64, 128, 256]),
            axis("kwg", &[4, 8, 16, 32]),
            axis("mr", &[4, 8, 16]),
            axis("nr", &[4, 8, 16]),
            axis("lanes_n", &[2, 4, 8, 16]),
            structural("zigzag", &[0, 1]),
            structural("ahead", &[0, 1]),
            structural("images", &[0, 1]),
        ],
        "gemm_panel" => {
            // the same sizes in bytes for both types
            let terms = [1024, 2048, 4096, 8192].map(|bytes| bytes / dtype.size());
            vec![
                axis("mv", &[1, 2, 3, 4, 5, 6]),
                structural("vw", &[2, 4, 8, 16]),
                axis("nr", &[2, 3, 4, 5, 6, 8, 10, 12, 14]),
                // a driver for a CPU that runs several work-items in the lanes of a vector needs more than one
                axis("group", &[1, 8, 16, 32]),
                axis("kc", &terms),
                axis("mc", &[96, 384, 1536, 4096]),
                axis("nc", &[96, 384, 1536, 4096]),
            ]
        }
        "gemm_block" => vec![
            axis("mwg", &[8, 16, 32, 64, 128]),
            axis("nwg", &[8, 16, 32, 64, 128]),
            axis("kwg", &[4, 8, 16, 32]),
            axis("mr", &[2, 4, 8]),
            axis("nr", &[2, 4, 8]),
            axis("kr", &[1, 2, 4]),
            structural("memory", &[0, 1, 2, 3, 4, 5]),
            structural("stages", &[1, 2]),
            structural("pad", &[0, 1]),
            structural("swizzle", &[0, 1]),
            axis("vw", &[1, 2, 4]),
            structural("order", &[0, 1]),
            structural("indexing", &[0, 1]),
            // with constant sizes, each size of a product would need a program of its own
            structural("inline", &[0]),
            axis("raster", &[1, 8]),
            // large products have enough tiles
            axis("split", &[1]),
        ],
        "gemm_mma" => vec![
            axis("mwg", &[32, 64, 96, 128, 256]),
            axis("nwg", &[32, 64, 96, 128, 256]),
            axis("kwg", if dtype == DType::F32 { &[8, 16, 32] } else { &[16, 32] }),
            axis("mw", if dtype == DType::F32 { &[32, 64, 96, 128] } else { &[16, 32, 64] }),
            axis("nw", &[16, 32, 64]),
            axis("stages", &[2, 3, 4, 6]),
            axis("raster", &[2, 4, 8, 16, 32]),
            // large products have enough tiles
            axis("split", &[1]),
            // in f32, unit=16 is for products that are accurate in norm, which the program does not time
            structural("unit", if dtype == DType::F32 { &[1] } else { &[4, 8] }),
            structural("guarded", &[0, 1]),
            structural("aligned", &[0, 1]),
        ],
        CPU_BLOCKS => {
            // the same sizes in bytes for both types
            let terms = [1024, 2048, 3072, 4096, 6144, 8192].map(|bytes| bytes / dtype.size());
            vec![
                axis("kc", &terms),
                axis("mc", &[48, 96, 144, 192, 288, 384, 768]),
                axis("nc", &[512, 1024, 4096]),
                axis("team_mc", &[384, 768, 1536, 2048, 4096]),
                axis("team_nc", &[512, 1024, 2048, 4096]),
            ]
        }
        _ => {
            if let Some(threshold) = Threshold::named(kernel).filter(|threshold| !threshold.trials().is_empty()) {
                return Some(vec![axis(threshold.unit(), threshold.trials())]);
            }
            let family = Family::ALL.into_iter().find(|family| family.name() == kernel)?;
            let most = if matches!(family, Family::Batched | Family::Elements | Family::Triangle) { 8 } else { 10 };
            vec![axis("items", &(0..=most).map(|power| 1 << power).collect::<Vec<usize>>())]
        }
    })
}

/// Returns the axes of a kernel for a call with the sizes m, n and k. For a narrow product, the axes of `gemm_block` have other values than
/// [`axes`]: a tile has at most as many rows and columns as C, each rounded up to a power of two, and several work-groups may divide the
/// terms of a tile.
#[must_use]
pub fn axes_for(kernel: &str, dtype: DType, sizes: [usize; 3]) -> Option<Vec<Axis>> {
    let mut axes = axes(kernel, dtype)?;
    if kernel == "gemm_block" && ProductSizes::like_narrow(sizes).is_some() {
        for axis in &mut axes {
            axis.values = narrow_values(axis, sizes);
        }
    }
    Some(axes)
}

/// Number of extents of a tile that are worth trying along an extent of a narrow product.
const NARROW_EXTENTS: usize = 5;

/// Returns the values of an axis of `gemm_block` for a narrow product.
fn narrow_values(axis: &Axis, [m, n, _]: [usize; 3]) -> Vec<usize> {
    let powers = |most: usize| (0..=8).map(|power| 1 << power).filter(|&extent| extent <= most).collect::<Vec<usize>>();
    let extents = |extent: usize| {
        let all = powers(extent.next_power_of_two());
        all[all.len().saturating_sub(NARROW_EXTENTS)..].to_vec()
    };
    match axis.name {
        "mwg" => extents(m),
        "nwg" => extents(n),
        "mr" | "nr" => powers(4),
        "split" => powers(32),
        // the order of the products and the tiles matters little where memory is the limit
        "order" | "indexing" => vec![0],
        "raster" => vec![1],
        _ => axis.values.clone(),
    }
}

/// What a device computes to measure kernels whose parameters are tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A product.
    Gemm,
    /// Products of a batch of small matrices.
    GemmBatched,
    /// Factorisations of a batch of small matrices.
    GetrfBatched,
    /// A solve with a triangular matrix, by substitution.
    Trsm,
    /// A solve with a triangular matrix whose diagonal blocks are inverted.
    Trtri,
    /// An LU factorisation.
    Getrf,
    /// Exchanges of rows of a matrix.
    Laswp,
    /// A product of a matrix and a number.
    Scale,
}

impl Task {
    /// All tasks, in the order of their declaration.
    pub const ALL: [Task; 8] =
        [Task::Gemm, Task::GemmBatched, Task::GetrfBatched, Task::Trsm, Task::Trtri, Task::Getrf, Task::Laswp, Task::Scale];

    /// Returns the name of the task.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Task::Gemm => "gemm",
            Task::GemmBatched => "gemm_batched",
            Task::GetrfBatched => "getrf_batched",
            Task::Trsm => "trsm",
            Task::Trtri => "trtri",
            Task::Getrf => "getrf",
            Task::Laswp => "laswp",
            Task::Scale => "scale",
        }
    }

    /// Returns the task with the name `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// Returns the names of all generated kernels whose parameters can be tuned for the task: kernels for products, or families of
    /// other kernels and thresholds.
    #[must_use]
    pub fn kernels(self) -> &'static [&'static str] {
        match self {
            Task::Gemm => &Product::KERNELS,
            Task::GemmBatched | Task::GetrfBatched => &["batched"],
            // a device without the kernel `solve` solves by `triangle`
            Task::Trsm => &["trsv", "solve", "triangle", "trsm_block"],
            Task::Trtri => &["triangle", "inverted_block"],
            Task::Getrf => &[
                "held_rows",
                "strips",
                "columns",
                "panel",
                "lu_block",
                "held_block",
                "lu_panel",
                "lu_strips",
                "lu_waiting_strips",
                "strip_rows",
                "strip_elements",
            ],
            Task::Laswp => &["exchange", "exchange_groups"],
            Task::Scale => &["elements"],
        }
    }

    /// Returns the names of what can be tuned for the task on the CPU backend.
    #[must_use]
    pub fn of_cpu(self) -> &'static [&'static str] {
        match self {
            Task::Gemm => &[CPU_BLOCKS],
            Task::GemmBatched | Task::GetrfBatched | Task::Trsm | Task::Trtri | Task::Getrf | Task::Laswp | Task::Scale => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::DeviceFacts;

    use super::*;
    use crate::database::Database;
    use crate::limits;
    use crate::tuning::{Dialect, check};

    #[test]
    fn the_axes_name_all_parameters_of_every_kernel() {
        let mut gpu = DeviceFacts::new("test:0");
        gpu.limits = limits(1024, 48 << 10);
        gpu.vector_bits = 512;
        let families = Family::ALL.map(Family::name);
        let of_tasks = Task::ALL.into_iter().flat_map(|task| [task.kernels(), task.of_cpu()]).flatten().copied();
        let kernels: Vec<&str> = of_tasks.collect();
        assert!(families.iter().all(|family| kernels.contains(family)), "a family belongs to no task: {kernels:?}");
        for kernel in kernels {
            for dtype in [DType::F32, DType::F64] {
                let axes = axes(kernel, dtype).unwrap();
                assert!(axes.iter().all(|axis| axis.values.is_sorted() && !axis.values.is_empty()), "{kernel}");
                let first: String = axes.iter().map(|axis| format!(" {}={}", axis.name, axis.values.last().unwrap())).collect();

                let mut database = Database::default();
                assert_eq!(database.add("axes", &format!("{kernel}{first}")), Vec::<String>::new());
                let entry = database.entries(&gpu, Dialect::OpenClC).next().unwrap();
                let _ = check(entry.kernel, dtype, &gpu, Dialect::OpenClC);
            }
        }
        assert_eq!(axes("gemm", DType::F32), None);
    }

    #[test]
    fn a_narrow_product_has_short_tiles_and_divided_terms() {
        let values = |name: &str, sizes| {
            let axes = axes_for("gemm_block", DType::F64, sizes).unwrap();
            axes.into_iter().find(|axis| axis.name == name).unwrap().values
        };
        assert_eq!(values("mwg", [2000, 5, 2000]), [16, 32, 64, 128, 256]);
        assert_eq!([values("nwg", [2000, 5, 2000]), values("mwg", [1, 2000, 2000])], [vec![1, 2, 4, 8], vec![1]]);
        assert_eq!([values("split", [64, 64, 16_384]), values("split", [64; 3])], [vec![1, 2, 4, 8, 16, 32], vec![1]]);
        assert_eq!(axes_for("gemm_tile", DType::F64, [2000, 5, 2000]), axes("gemm_tile", DType::F64));
    }
}
