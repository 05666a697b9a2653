//! The choice of kernels for a device.

use lapidary_core::{DType, DeviceFacts, Feature, Limits};

use crate::params::{PanelParams, TileParams, VectorParams};
use crate::program::{Program, TRIANGLE, sides_of_group, unknowns_of_group};
use crate::scratch::Purpose;
use crate::strips::StripParams;

/// The language of the kernels' source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenCL C 1.2.
    OpenClC,
    /// WGSL.
    Wgsl,
}

/// The kernels chosen for a device, with their parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Kernels for matrix products in f32 and in f64.
    pub products: [Products; 2],
    /// Work-items that search a column for a pivot; a power of two.
    pub pivot_search_group_size: usize,
    /// Work-items in a group of kernels without local memory.
    pub group: usize,
    /// Work-items in a group, if several groups factor a panel together; a power of two.
    pub column_group: usize,
    /// Maximum scratch memory for one [`Purpose`], in bytes: the largest buffer, or less under a memory limit.
    pub max_scratch_bytes: usize,
    /// Work-items in a group that holds a strip of a panel in registers; a power of two, or 0 if panels are not factored by
    /// strips.
    pub strips: usize,
    /// Whether the groups that hold strips wait for one another in one launch ([`Feature::GroupsMayWait`]). Only the WGSL
    /// program for strips has such a kernel.
    pub waits: bool,
    /// Least rows with which many groups factor a panel together, column by column, if it is not factored by strips.
    pub multi_group_min_rows: usize,
    /// Work-items in a group that makes many row exchanges at once; 0 if a work-item makes the exchanges of its
    /// column one after the other.
    pub laswp_group_size: usize,
    /// Work-items in a group that solves a triangular system together, in f32 and in f64; 0 if each work-item solves for
    /// right-hand sides of its own.
    pub trsm_group_size: [usize; 2],
    /// Most work-items in a group that computes a matrix of a batch, a power of two; 1 on devices whose work-items are threads.
    pub batch_group: usize,
    /// Multiprocessors that a product should occupy: it takes smaller tiles if larger ones are fewer. 1 if no smaller tiles fit.
    pub units: usize,
}

/// [`Choices::group`], if the device allows as many.
const GROUP: usize = 64;

/// [`Choices::multi_group_min_rows`]: with fewer rows, one group is done sooner than several can synchronise.
const MULTI_GROUP_MIN_ROWS: usize = 256;

/// Work-items in a group that holds a strip of a panel. More would hide more latency, but
/// have fewer registers each (bench/results/wgpu/2026-11-22-h200-strips.txt and -h100-blocks.txt).
const STRIP: usize = 256;

/// [`Choices::batch_group`], if the device allows as many.
const BATCH: usize = 64;

/// Most work-items in a group that solves a triangular system.
const SOLVER: usize = 128;

/// Most work-items in a group that makes row exchanges.
const EXCHANGER: usize = 256;

/// [`Choices::column_group`], if the device allows as many.
const COLUMN: usize = 256;

/// Most work-items that search one column.
const SEARCHERS: usize = 512;

/// Width of the longest WGSL vector in bits.
const WGSL_VECTOR_BITS: usize = 128;

/// The largest power of two that exceeds neither `items` nor the limit of a work-group.
fn power_of_two(items: usize, limits: &Limits) -> usize {
    1 << items.min(limits.work_group).ilog2()
}

impl Choices {
    /// Chooses kernels by a device's facts alone: kernels that share local memory on GPUs; kernels without barriers on CPUs,
    /// whose work-items are threads, and on devices whose local memory is too small for a tile.
    #[must_use]
    pub fn choose(facts: &DeviceFacts, dialect: Dialect) -> Self {
        let shared = if facts.is_cpu() { None } else { Self::shared(facts, dialect).ok() };
        shared.unwrap_or_else(|| Self::barrier_free(facts, dialect))
    }

    /// Kernels that share local memory, whatever the kind of device.
    ///
    /// # Errors
    /// The limit of the device that even the smallest tile exceeds.
    pub fn shared(facts: &DeviceFacts, dialect: Dialect) -> Result<Self, String> {
        let limits = &facts.limits;
        let product = |dtype| -> Result<Products, String> {
            let tile = TileParams::choose(dtype, limits)?;
            let narrow = VectorParams::narrow(dtype);
            let wide = Some(VectorParams::wide(dtype)).filter(|wide| wide.check(dtype, limits).is_ok());
            Ok(match dialect {
                Dialect::Wgsl if narrow.check(dtype, limits).is_ok() => Products::Vector(VectorProducts { wide, narrow, tile }),
                Dialect::Wgsl | Dialect::OpenClC => Products::Tile(tile),
            })
        };
        let choices = Self::within(limits, [product(DType::F32)?, product(DType::F64)?], SEARCHERS);
        let fits = |program: Program| program.check(limits).is_ok();
        // the most work-items, a power of two up to `most`, with which the program fits the device's limits; 0 if it never does
        let largest = |most: usize, program: &dyn Fn(usize) -> Program| {
            (0..=most.ilog2()).rev().map(|power| 1 << power).find(|&items| fits(program(items))).unwrap_or(0)
        };
        let trsm_group_size = [DType::F32, DType::F64].map(|dtype| largest(SOLVER, &|items| Program::Solve { dtype, items }));
        let laswp_group_size = largest(EXCHANGER, &|items| Program::Exchange { dtype: DType::F64, items });
        let multi_group_min_rows = if fits(choices.columns(DType::F64)) { MULTI_GROUP_MIN_ROWS } else { usize::MAX };
        let has_smaller = |dtype| TileParams::smaller(dtype).iter().all(|tile| tile.check(dtype, limits).is_ok());
        let units = facts.compute_units.filter(|_| has_smaller(DType::F32) && has_smaller(DType::F64)).unwrap_or(1);
        let waits = dialect == Dialect::Wgsl && facts.has(Feature::GroupsMayWait);
        let batch_group = power_of_two(BATCH, limits);
        let choices = Choices { multi_group_min_rows, laswp_group_size, trsm_group_size, batch_group, units, waits, ..choices };
        Ok(choices.with_strips(power_of_two(STRIP, limits), limits).unwrap_or(choices))
    }

    fn barrier_free(facts: &DeviceFacts, dialect: Dialect) -> Self {
        let bits = match dialect {
            Dialect::OpenClC => facts.vector_bits,
            Dialect::Wgsl => WGSL_VECTOR_BITS,
        };
        let product = |dtype| Products::Panel(PanelParams::choose(dtype, bits));
        // a single work-item would loop over the whole column
        let pivot_search_group_size = if facts.limits.loop_iterations < usize::MAX { SEARCHERS } else { 1 };
        Self::within(&facts.limits, [product(DType::F32), product(DType::F64)], pivot_search_group_size)
    }

    fn within(limits: &Limits, products: [Products; 2], pivot_search_group_size: usize) -> Self {
        Choices {
            products,
            pivot_search_group_size: power_of_two(pivot_search_group_size, limits),
            group: GROUP.min(limits.work_group),
            column_group: power_of_two(COLUMN, limits),
            max_scratch_bytes: limits.buffer,
            strips: 0,
            waits: false,
            multi_group_min_rows: usize::MAX,
            laswp_group_size: 0,
            trsm_group_size: [0; 2],
            batch_group: 1,
            units: 1,
        }
    }

    /// The same, with panels factored by strips in groups of `items` work-items, a power of two. With fewer than 4, which
    /// cannot hold a strip, panels are factored column by column.
    ///
    /// # Errors
    /// The limit of the device that such a group exceeds.
    pub fn with_strips(self, items: usize, limits: &Limits) -> Result<Self, String> {
        let strip = StripParams::choose(DType::F64, 1, items, false);
        strip.map_or(Ok(()), |params| params.check(DType::F64, limits))?;
        Ok(Choices { strips: if strip.is_some() { items } else { 0 }, ..self })
    }

    /// The same for a device whose memory is limited to `limit` bytes: scratch memory takes at most an eighth, in equal shares
    /// for each [`Purpose`].
    #[must_use]
    pub fn within_memory(self, limit: usize) -> Self {
        Choices { max_scratch_bytes: self.max_scratch_bytes.min(Purpose::share(limit)), ..self }
    }

    /// The kernel for triangular solves.
    pub(crate) fn solver(&self, dtype: DType) -> Solver {
        match self.trsm_group_size[usize::from(dtype == DType::F64)] {
            0 => Solver { program: self.triangle(dtype), kernel: "trsm_block", unknowns: TRIANGLE, sides: self.group },
            items => {
                let program = Program::Solve { dtype, items };
                Solver { program, kernel: "solve", unknowns: unknowns_of_group(items), sides: sides_of_group(dtype) }
            }
        }
    }

    /// The program that inverts diagonal blocks of triangular matrices.
    pub(crate) fn triangle(&self, dtype: DType) -> Program {
        Program::Triangle { dtype, group: self.group }
    }

    /// The program that factors a panel of `rows` rows by strips; `None` if the rows do not fit into registers.
    #[must_use]
    pub fn strips(&self, dtype: DType, rows: usize) -> Option<StripParams> {
        StripParams::choose(dtype, rows, self.strips, self.waits)
    }

    /// The program in which several groups factor a panel together.
    pub(crate) fn columns(&self, dtype: DType) -> Program {
        Program::Columns { dtype, items: self.column_group }
    }

    /// The kernel for an m×n product: with smaller tiles if larger ones would leave multiprocessors idle.
    #[must_use]
    pub fn product_of(&self, dtype: DType, m: usize, n: usize) -> Products {
        match self.product(dtype) {
            Products::Tile(params) => Products::Tile(params.of_product(dtype, [m, n], self.units)),
            others => others,
        }
    }

    /// The kernel for large products.
    #[must_use]
    pub fn product(&self, dtype: DType) -> Products {
        self.products[usize::from(dtype == DType::F64)]
    }
}

/// A kernel for triangular solves.
pub(crate) struct Solver {
    pub program: Program,
    pub kernel: &'static str,
    /// Most unknowns.
    pub unknowns: usize,
    /// Right-hand sides for each group.
    pub sides: usize,
}

/// Kernels for matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// Tiles in local memory.
    Tile(TileParams),
    /// Packed panels, without barriers.
    Panel(PanelParams),
    /// Vector loads, for operands that are aligned to vectors or are packed first.
    Vector(VectorProducts),
}

/// Kernels for products by vector loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorProducts {
    /// For products with many tiles, if the device's limits allow it.
    pub wide: Option<VectorParams>,
    /// For products with fewer.
    pub narrow: VectorParams,
    /// For small products, and for operands that are neither aligned nor worth packing.
    pub tile: TileParams,
}

impl Products {
    /// The kernel of a large product with nothing transposed.
    #[must_use]
    pub fn plain(&self, dtype: DType) -> (Program, &'static str) {
        match *self {
            Products::Tile(params) => (Program::GemmTile { dtype, params, trans_a: false, trans_b: false }, "gemm_tile"),
            Products::Panel(params) => (Program::GemmPanel { dtype, params }, "gemm_panel"),
            Products::Vector(VectorProducts { wide, narrow, .. }) => {
                let params = wide.unwrap_or(narrow);
                (Program::GemmVector { dtype, params, trans_b: !params.turns_b(dtype), vec_c: true }, "gemm_vector")
            }
        }
    }

    /// Checks that the kernels can be compiled and run within `limits`.
    ///
    /// # Errors
    /// The constraint that is violated, and its reason.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        match self {
            Products::Tile(params) => params.check(dtype, limits),
            Products::Panel(params) => params.check(),
            Products::Vector(VectorProducts { wide, narrow, tile }) => {
                wide.map_or(Ok(()), |wide| wide.check(dtype, limits))?;
                narrow.check(dtype, limits)?;
                tile.check(dtype, limits)
            }
        }
    }
}

#[cfg(test)]
mod tests;
