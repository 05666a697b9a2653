//! Chooses the kernels for a device.

use lapidary_core::{DType, DeviceFacts, Feature, Limits};

use crate::block::BlockParams;
use crate::params::{PanelParams, TileParams, VectorParams};
use crate::program::{Program, TRIANGLE, sides_of_group, unknowns_of_group};
use crate::scratch::Purpose;
use crate::strips::StripParams;

/// Language of the kernel sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The language OpenCL C in version 1.2.
    OpenClC,
    /// WGSL, the shading language of WebGPU.
    Wgsl,
}

/// The kernels chosen for a device, with their parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Kernels for matrix products, first in f32, then in f64.
    pub products: [Products; 2],
    /// Number of work-items that search a column for a pivot, a power of two.
    pub pivot_search_group_size: usize,
    /// Number of work-items in a work-group of a kernel that uses no local memory.
    pub group: usize,
    /// Number of work-items in a work-group if several work-groups factor a panel together, a power of two.
    pub column_group: usize,
    /// Maximum scratch memory for one [`Purpose`], in bytes. The value is the size of the largest buffer, or less under a memory
    /// limit.
    pub max_scratch_bytes: usize,
    /// Number of work-items in a work-group that holds a strip of a panel in registers, a power of two. The value 0 means that
    /// panels are not factored by strips.
    pub strip_group_size: usize,
    /// Whether one launch factors all strips of a panel, so that work-groups wait for one another ([`Feature::GroupsMayWait`]).
    /// Only the WGSL program has a kernel that factors all strips in one launch.
    pub groups_may_wait: bool,
    /// Minimum number of rows of a panel that several work-groups factor together column by column. The minimum does not apply to
    /// panels that are factored by strips.
    pub multi_group_min_rows: usize,
    /// Number of work-items in a work-group that makes many row exchanges at once. The value 0 means that each work-item makes
    /// the exchanges in one column one after the other.
    pub laswp_group_size: usize,
    /// Number of work-items in a work-group that solves a triangular system together, first in f32, then in f64. The value 0
    /// means that each work-item solves for one right-hand side alone.
    pub trsm_group_size: [usize; 2],
    /// Maximum number of work-items in a work-group that computes a matrix of a batch, a power of two. The value is 1 on devices
    /// whose work-items are threads.
    pub batch_group: usize,
    /// Number of multiprocessors that a product should keep busy. If a product has fewer large tiles than multiprocessors, it
    /// uses smaller tiles. The value is 1 if the number is unknown or if the smaller tiles do not fit the device.
    pub units: usize,
}

/// Value of [`Choices::group`] if the device allows work-groups of this size.
const GROUP: usize = 64;

/// Minimum number of rows of a panel that several work-groups factor together (see [`Choices::multi_group_min_rows`]). With fewer
/// rows, one work-group factors a panel in less time than several work-groups need to synchronise.
const MULTI_GROUP_MIN_ROWS: usize = 256;

/// Number of work-items in a work-group that holds a strip of a panel. More work-items would hide more latency, but each
/// work-item would have fewer registers (bench/results/wgpu/2026-11-22-h200-strips.txt and -h100-blocks.txt).
const STRIP: usize = 256;

/// Value of [`Choices::batch_group`] if the device allows work-groups of this size.
const BATCH: usize = 64;

/// Maximum number of work-items in a work-group that solves a triangular system.
const SOLVER: usize = 128;

/// Maximum number of work-items in a work-group that exchanges rows.
const EXCHANGER: usize = 256;

/// Value of [`Choices::column_group`] if the device allows work-groups of this size.
const COLUMN: usize = 256;

/// Maximum number of work-items that search one column for a pivot.
const SEARCHERS: usize = 512;

/// Width of the longest WGSL vector, in bits.
const WGSL_VECTOR_BITS: usize = 128;

/// Returns the largest power of two that exceeds neither `items` nor the maximum size of a work-group.
fn power_of_two(items: usize, limits: &Limits) -> usize {
    1 << items.min(limits.work_group).ilog2()
}

impl Choices {
    /// Chooses kernels from the facts of a device. A CPU gets kernels without barriers, because its work-items are threads. Every
    /// other device gets kernels that share local memory, or kernels without barriers if its local memory is too small for a
    /// tile.
    #[must_use]
    pub fn choose(facts: &DeviceFacts, dialect: Dialect) -> Self {
        let shared = if facts.is_cpu() { None } else { Self::shared(facts, dialect).ok() };
        shared.unwrap_or_else(|| Self::barrier_free(facts, dialect))
    }

    /// Chooses kernels that share local memory, for any kind of device.
    ///
    /// # Errors
    /// The smallest tile exceeds a limit of the device, which the error names.
    pub fn shared(facts: &DeviceFacts, dialect: Dialect) -> Result<Self, String> {
        let limits = &facts.limits;
        let product = |dtype| -> Result<Products, String> {
            let tile = TileParams::choose(dtype, limits)?;
            let narrow = VectorParams::narrow(dtype);
            let wide = Some(VectorParams::wide(dtype)).filter(|wide| wide.check(dtype, limits).is_ok());
            let has_vectors = narrow.check(dtype, limits).is_ok();
            Ok(if has_vectors { Products::Vector(VectorProducts { wide, narrow, tile }) } else { Products::Tile(tile) })
        };
        let choices = Self::within(limits, [product(DType::F32)?, product(DType::F64)?], SEARCHERS);
        let fits = |program: Program| program.check(limits).is_ok();
        // returns the largest number of work-items, a power of two up to `most`, with which the program fits the device, or 0
        let largest = |most: usize, program: &dyn Fn(usize) -> Program| {
            (0..=most.ilog2()).rev().map(|power| 1 << power).find(|&items| fits(program(items))).unwrap_or(0)
        };
        let trsm_group_size = [DType::F32, DType::F64].map(|dtype| largest(SOLVER, &|items| Program::Solve { dtype, items }));
        let laswp_group_size = largest(EXCHANGER, &|items| Program::Exchange { dtype: DType::F64, items });
        let multi_group_min_rows = if fits(choices.columns(DType::F64)) { MULTI_GROUP_MIN_ROWS } else { usize::MAX };
        let has_smaller = |dtype| TileParams::smaller(dtype).iter().all(|tile| tile.check(dtype, limits).is_ok());
        let units = facts.compute_units.filter(|_| has_smaller(DType::F32) && has_smaller(DType::F64)).unwrap_or(1);
        let groups_may_wait = dialect == Dialect::Wgsl && facts.has(Feature::GroupsMayWait);
        let batch_group = power_of_two(BATCH, limits);
        let choices =
            Choices { multi_group_min_rows, laswp_group_size, trsm_group_size, batch_group, units, groups_may_wait, ..choices };
        Ok(choices.with_strips(power_of_two(STRIP, limits), limits).unwrap_or(choices))
    }

    fn barrier_free(facts: &DeviceFacts, dialect: Dialect) -> Self {
        let bits = match dialect {
            Dialect::OpenClC => facts.vector_bits,
            Dialect::Wgsl => WGSL_VECTOR_BITS,
        };
        let product = |dtype| Products::Panel(PanelParams::choose(dtype, bits));
        // a single work-item would loop over the whole column and might exceed the maximum number of loop iterations
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
            strip_group_size: 0,
            groups_may_wait: false,
            multi_group_min_rows: usize::MAX,
            laswp_group_size: 0,
            trsm_group_size: [0; 2],
            batch_group: 1,
            units: 1,
        }
    }

    /// Returns a copy of `self` in which panels are factored by strips in work-groups of `items` work-items, a power of two. If
    /// `items` is less than 4, panels are factored column by column, because fewer than 4 work-items cannot hold a strip.
    ///
    /// # Errors
    /// A work-group of `items` work-items exceeds a limit of the device, which the error names.
    pub fn with_strips(self, items: usize, limits: &Limits) -> Result<Self, String> {
        let strip = StripParams::choose(DType::F64, 1, items, false);
        strip.map_or(Ok(()), |params| params.check(DType::F64, limits))?;
        Ok(Choices { strip_group_size: if strip.is_some() { items } else { 0 }, ..self })
    }

    /// Returns a copy of `self` for a device whose memory is limited to `limit` bytes. Scratch memory takes at most an eighth of
    /// the limit, in equal shares for the values of [`Purpose`].
    #[must_use]
    pub fn within_memory(self, limit: usize) -> Self {
        Choices { max_scratch_bytes: self.max_scratch_bytes.min(Purpose::share(limit)), ..self }
    }

    /// Returns the kernel for triangular solves.
    pub(crate) fn solver(&self, dtype: DType) -> Solver {
        match self.trsm_group_size[usize::from(dtype == DType::F64)] {
            0 => Solver { program: self.triangle(dtype), kernel: "trsm_block", unknowns: TRIANGLE, sides: self.group },
            items => {
                let program = Program::Solve { dtype, items };
                Solver { program, kernel: "solve", unknowns: unknowns_of_group(items), sides: sides_of_group(dtype) }
            }
        }
    }

    /// Returns the program that inverts diagonal blocks of triangular matrices.
    pub(crate) fn triangle(&self, dtype: DType) -> Program {
        Program::Triangle { dtype, group: self.group }
    }

    /// Returns the shape of the strips by which a panel of `rows` rows is factored, or `None` if the panel cannot be factored by
    /// strips.
    #[must_use]
    pub fn strip_params(&self, dtype: DType, rows: usize) -> Option<StripParams> {
        StripParams::choose(dtype, rows, self.strip_group_size, self.groups_may_wait)
    }

    /// Returns the program in which several work-groups factor a panel together.
    pub(crate) fn columns(&self, dtype: DType) -> Program {
        Program::Columns { dtype, items: self.column_group }
    }

    /// Returns the kernel for an m×n product. The kernel uses smaller tiles if larger ones would leave multiprocessors idle.
    #[must_use]
    pub fn product_of(&self, dtype: DType, m: usize, n: usize) -> Products {
        let smaller = |tile: TileParams| tile.of_product(dtype, [m, n], self.units);
        match self.product(dtype) {
            Products::Tile(tile) => Products::Tile(smaller(tile)),
            Products::Vector(params) => Products::Vector(VectorProducts { tile: smaller(params.tile), ..params }),
            Products::Panel(params) => Products::Panel(params),
            Products::Block(params) => Products::Block(params),
        }
    }

    /// Returns the kernel for large products.
    #[must_use]
    pub fn product(&self, dtype: DType) -> Products {
        self.products[usize::from(dtype == DType::F64)]
    }
}

/// A kernel for triangular solves.
pub(crate) struct Solver {
    pub program: Program,
    pub kernel: &'static str,
    /// Maximum number of unknowns of one call.
    pub unknowns: usize,
    /// Number of right-hand sides per work-group.
    pub sides: usize,
}

/// Kernels for matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// Kernel that computes a tile of C from slices of A and B in local memory.
    Tile(TileParams),
    /// Kernel that multiplies packed panels of A and B without barriers.
    Panel(PanelParams),
    /// Kernel with vector loads, for operands that are aligned to vectors or are copied to aligned memory first.
    Vector(VectorProducts),
    /// Kernel with one of several models of memory, for operands in any layout.
    Block(BlockParams),
}

/// Parameters of the kernels for products by vector loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorProducts {
    /// Parameters for products with many tiles, or `None` if they exceed the limits of the device.
    pub wide: Option<VectorParams>,
    /// Parameters for products with fewer tiles.
    pub narrow: VectorParams,
    /// Kernel without vector loads, for small products and for operands that are neither aligned nor worth a copy.
    pub tile: TileParams,
}

impl Products {
    /// Returns the parameters of the kernel with tiles in local memory; `None` if products use no such kernel.
    #[must_use]
    pub fn tile(&self) -> Option<TileParams> {
        match *self {
            Products::Tile(tile) | Products::Vector(VectorProducts { tile, .. }) => Some(tile),
            Products::Panel(_) | Products::Block(_) => None,
        }
    }

    /// Returns these products with another kernel with tiles in local memory, for devices that cannot compile the first one.
    #[must_use]
    pub fn with_tile(self, tile: TileParams) -> Products {
        match self {
            Products::Tile(_) => Products::Tile(tile),
            Products::Vector(params) => Products::Vector(VectorProducts { tile, ..params }),
            Products::Panel(params) => Products::Panel(params),
            Products::Block(params) => Products::Block(params),
        }
    }

    /// Returns the program and the kernel for a large product in which no operand is transposed.
    #[must_use]
    pub fn plain(&self, dtype: DType) -> (Program, &'static str) {
        match *self {
            Products::Tile(params) => (Program::GemmTile { dtype, params, trans_a: false, trans_b: false }, "gemm_tile"),
            Products::Panel(params) => (Program::GemmPanel { dtype, params }, "gemm_panel"),
            Products::Block(params) => {
                (Program::GemmBlock { dtype, params, trans_a: false, trans_b: false, sizes: None }, "gemm_block")
            }
            Products::Vector(VectorProducts { wide, narrow, .. }) => {
                let params = wide.unwrap_or(narrow);
                (Program::GemmVector { dtype, params, trans_b: !params.transposes_b(dtype), vec_c: true }, "gemm_vector")
            }
        }
    }

    /// Checks that the kernels can be compiled and run within `limits`.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        match self {
            Products::Tile(params) => params.check(dtype, limits),
            Products::Panel(params) => params.check(),
            Products::Block(params) => params.check(dtype, limits),
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
