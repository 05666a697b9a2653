//! Which kernels suit a device.

use lapidary_core::{DType, DeviceFacts, Feature, Limits};

use crate::params::{PanelParams, TileParams, VectorParams};
use crate::program::{Program, TRIANGLE, sides_of_group, unknowns_of_group};
use crate::scratch::Purpose;
use crate::strips::StripParams;

/// The language that kernels are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenCL C 1.2.
    OpenClC,
    /// WGSL.
    Wgsl,
}

/// Which kernels suit a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// How products are computed, in f32 and in f64.
    pub products: [Products; 2],
    /// Work-items of a group that searches a column for a pivot, a power of two.
    pub searchers: usize,
    /// Work-items of a group for kernels without local memory.
    pub group: usize,
    /// Work-items of a group that factors a panel together with others, a power of two.
    pub column_group: usize,
    /// Most bytes of scratch memory for one purpose: those of the largest buffer, or a part of a memory limit.
    pub max_scratch_bytes: usize,
    /// Work-items of a group that holds a strip of a panel, a power of two; 0 if none does.
    pub strips: usize,
    /// Whether strips wait for one another, where [groups may](Feature::GroupsMayWait). For WGSL alone, whose program
    /// of strips has such a kernel.
    pub waits: bool,
    /// Rows from which on a panel that is too tall for strips is factored by many groups,
    /// column by column.
    pub spread: usize,
    /// Work-items of a group that makes many exchanges of rows at once; 0 if each work-item
    /// makes its own, one after the other.
    pub exchangers: usize,
    /// Work-items of a group that solves a triangle, in f32 and in f64; 0 if each work-item
    /// solves alone.
    pub solvers: [usize; 2],
    /// Multiprocessors that products through local memory keep at work by smaller tiles; 1 where there are no such tiles.
    pub units: usize,
}

/// Work-items of a group for kernels without local memory.
const GROUP: usize = 64;

/// [`Choices::spread`] of a device with many multiprocessors, for panels that strips do not
/// take: with fewer rows one of them is done before the others have been told.
const SPREAD: usize = 256;

/// Work-items of a group that holds a strip of a panel. More would hide more latency, but
/// have fewer registers each (bench/results/wgpu/2026-11-22-h200-strips.txt and -h100-blocks.txt).
const STRIP: usize = 256;

/// Most work-items of a group that solves a triangle.
const SOLVER: usize = 128;

/// Most work-items of a group that makes many exchanges at once.
const EXCHANGER: usize = 256;

/// Work-items of a group that factors a panel together with others.
const COLUMN: usize = 256;

/// Most work-items that search one column.
const SEARCHERS: usize = 512;

/// Bits of the longest vectors in WGSL.
const WGSL_VECTOR_BITS: usize = 128;

/// The largest power of two that is at most `items` and fits a work-group.
fn power_of_two(items: usize, limits: &Limits) -> usize {
    1 << items.min(limits.work_group).ilog2()
}

impl Choices {
    /// What suits a device, by its facts alone: groups that share local memory where work-items are many; kernels without
    /// barriers on a processor, whose work-items are threads, and where local memory holds no tile.
    #[must_use]
    pub fn choose(facts: &DeviceFacts, dialect: Dialect) -> Self {
        let shared = if facts.is_cpu() { None } else { Self::shared(facts, dialect).ok() };
        shared.unwrap_or_else(|| Self::barrier_free(facts, dialect))
    }

    /// Kernels that share local memory, whatever the kind of device.
    ///
    /// # Errors
    /// Why not even the smallest product fits the device.
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
        // the largest power of two that a program fits, or 0
        let largest = |most: usize, program: &dyn Fn(usize) -> Program| {
            (0..=most.ilog2()).rev().map(|power| 1 << power).find(|&items| fits(program(items))).unwrap_or(0)
        };
        let solvers = [DType::F32, DType::F64].map(|dtype| largest(SOLVER, &|items| Program::Solve { dtype, items }));
        let exchangers = largest(EXCHANGER, &|items| Program::Exchange { dtype: DType::F64, items });
        let spread = if fits(choices.columns(DType::F64)) { SPREAD } else { usize::MAX };
        let has_smaller = |dtype| TileParams::smaller(dtype).iter().all(|tile| tile.check(dtype, limits).is_ok());
        let units = facts.compute_units.filter(|_| has_smaller(DType::F32) && has_smaller(DType::F64)).unwrap_or(1);
        let waits = dialect == Dialect::Wgsl && facts.has(Feature::GroupsMayWait);
        let choices = Choices { spread, exchangers, solvers, units, waits, ..choices };
        Ok(choices.with_strips(power_of_two(STRIP, limits), limits).unwrap_or(choices))
    }

    fn barrier_free(facts: &DeviceFacts, dialect: Dialect) -> Self {
        let bits = match dialect {
            Dialect::OpenClC => facts.vector_bits,
            Dialect::Wgsl => WGSL_VECTOR_BITS,
        };
        let product = |dtype| Products::Panel(PanelParams::choose(dtype, bits));
        // one work-item alone would take a loop as long as the column
        let searchers = if facts.limits.loop_iterations < usize::MAX { SEARCHERS } else { 1 };
        Self::within(&facts.limits, [product(DType::F32), product(DType::F64)], searchers)
    }

    fn within(limits: &Limits, products: [Products; 2], searchers: usize) -> Self {
        Choices {
            products,
            searchers: power_of_two(searchers, limits),
            group: GROUP.min(limits.work_group),
            column_group: power_of_two(COLUMN, limits),
            max_scratch_bytes: limits.buffer,
            strips: 0,
            waits: false,
            spread: usize::MAX,
            exchangers: 0,
            solvers: [0; 2],
            units: 1,
        }
    }

    /// The same with panels by strips of groups of so many work-items, a power of two; column by column
    /// with fewer than 4, which hold no strip.
    ///
    /// # Errors
    /// Why such groups hold no strip on the device.
    pub fn with_strips(self, items: usize, limits: &Limits) -> Result<Self, String> {
        let strip = StripParams::choose(DType::F64, 1, items, false);
        strip.map_or(Ok(()), |params| params.check(DType::F64, limits))?;
        Ok(Choices { strips: if strip.is_some() { items } else { 0 }, ..self })
    }

    /// The same for a device whose memory is limited to `limit` bytes: scratch memory takes an eighth of it at most, in equal
    /// shares for each [`Purpose`].
    #[must_use]
    pub fn within_memory(self, limit: usize) -> Self {
        Choices { max_scratch_bytes: self.max_scratch_bytes.min(Purpose::share(limit)), ..self }
    }

    /// What solves triangles.
    pub(crate) fn solver(&self, dtype: DType) -> Solver {
        match self.solvers[usize::from(dtype == DType::F64)] {
            0 => Solver { program: self.triangle(dtype), kernel: "trsm_block", unknowns: TRIANGLE, sides: self.group },
            items => {
                let program = Program::Solve { dtype, items };
                Solver { program, kernel: "solve", unknowns: unknowns_of_group(items), sides: sides_of_group(dtype) }
            }
        }
    }

    /// What inverts triangles.
    pub(crate) fn triangle(&self, dtype: DType) -> Program {
        Program::Triangle { dtype, group: self.group }
    }

    /// What factors a panel of so many rows by strips, if registers hold these.
    #[must_use]
    pub fn strips(&self, dtype: DType, rows: usize) -> Option<StripParams> {
        StripParams::choose(dtype, rows, self.strips, self.waits)
    }

    /// What factors a panel together with others.
    pub(crate) fn columns(&self, dtype: DType) -> Program {
        Program::Columns { dtype, items: self.column_group }
    }

    /// How a product of m×n is computed: by smaller tiles where larger ones leave multiprocessors without work.
    #[must_use]
    pub fn product_of(&self, dtype: DType, m: usize, n: usize) -> Products {
        match self.product(dtype) {
            Products::Tile(params) => Products::Tile(params.of_product(dtype, [m, n], self.units)),
            others => others,
        }
    }

    /// How products of a precision are computed, if they are large.
    #[must_use]
    pub fn product(&self, dtype: DType) -> Products {
        self.products[usize::from(dtype == DType::F64)]
    }
}

/// A kernel that solves triangles.
pub(crate) struct Solver {
    pub program: Program,
    pub kernel: &'static str,
    /// Most unknowns.
    pub unknowns: usize,
    /// Right-hand sides of a group.
    pub sides: usize,
}

/// How products are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// Through local memory.
    Tile(TileParams),
    /// From packed panels, without barriers.
    Panel(PanelParams),
    /// In whole vectors, where operands lie so or are worth being moved so.
    Vector(VectorProducts),
}

/// Products in whole vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorProducts {
    /// For products with many tiles, if the device has room for it.
    pub wide: Option<VectorParams>,
    /// For products with fewer.
    pub narrow: VectorParams,
    /// For small products, and where nothing lies in whole vectors.
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

    /// Whether the kernels can be made and run.
    ///
    /// # Errors
    /// The constraint that is not met, and why it is one.
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
