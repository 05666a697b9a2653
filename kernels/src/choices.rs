//! Which kernels suit a device.

use lapidary_core::{DType, Limits};

use crate::params::{PanelParams, TileParams, VectorParams};
use crate::program::{Program, TRIANGLE, sides_of_group, unknowns_of_group};
use crate::scratch::Purpose;
use crate::strips::StripParams;

/// Which kernels suit a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// How products are computed, in f32 and in f64.
    pub products: [Products; 2],
    /// Work-items of a group that searches a column for a pivot, a power of two.
    pub searchers: usize,
    /// Work-items of a group for kernels without local memory.
    pub group: usize,
    /// Most work-items of a group.
    pub most: usize,
    /// Most groups in each dimension.
    pub groups: usize,
    /// Most bytes of scratch memory for one purpose: those of the largest buffer, or a part of a memory limit.
    pub max_scratch_bytes: usize,
    /// Work-items of a group that holds a strip of a panel, a power of two; 0 if none does.
    pub strips: usize,
    /// Whether a group may wait for those that began before it: they go on while it does, and see
    /// what others write. For WGSL alone, whose program of strips has such a kernel.
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
    /// Whether work-items may each write a part of one vector in local memory.
    pub parts_of_vectors: bool,
    /// Most rounds that the loops of a work-item go in all.
    pub rounds: usize,
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

impl Choices {
    /// Kernels that share local memory, for devices whose work-items are many.
    ///
    /// # Errors
    /// Why not even the smallest product fits the device.
    pub fn shared(limits: &Limits) -> Result<Self, String> {
        let product = |dtype| TileParams::choose(dtype, limits).map(Products::Tile);
        Ok(Self::with_many(limits, [product(DType::F32)?, product(DType::F64)?]))
    }

    /// The same with products in whole vectors where they fit: for dialects that have them.
    ///
    /// # Errors
    /// As [`Choices::shared`].
    pub fn vectors(limits: &Limits) -> Result<Self, String> {
        let product = |dtype| -> Result<Products, String> {
            let tile = TileParams::choose(dtype, limits)?;
            let narrow = VectorParams::narrow(dtype);
            let wide = Some(VectorParams::wide(dtype)).filter(|wide| wide.check(dtype, limits).is_ok());
            let fits = narrow.check(dtype, limits).is_ok();
            Ok(if fits { Products::Vector(VectorProducts { wide, narrow, tile }) } else { Products::Tile(tile) })
        };
        Ok(Self::with_many(limits, [product(DType::F32)?, product(DType::F64)?]))
    }

    /// The same for a processor, whose compiler takes minutes over large groups and
    /// long loops between barriers.
    #[must_use]
    pub fn shared_on_processor(limits: &Limits) -> Self {
        Self::within(limits, [Products::Tile(TileParams::SMALL); 2], 8)
    }

    /// The same for drivers of Mesa's llvmpipe, which ends all loops of a work-item after
    /// 65535 rounds in all, silently (`LP_MAX_TGSI_LOOP_ITERATIONS`): a whole group searches
    /// a column, and tall panels are narrow.
    #[must_use]
    pub fn with_short_loops(self) -> Self {
        Choices { searchers: 1 << SEARCHERS.min(self.most).ilog2(), rounds: 60_000, ..self }
    }

    /// Kernels without barriers, for a processor, whose work-items are threads with
    /// vectors of so many bits.
    #[must_use]
    pub fn barrier_free(limits: &Limits, vector_bits: usize) -> Self {
        let product = |dtype| Products::Panel(PanelParams::choose(dtype, vector_bits));
        Self::within(limits, [product(DType::F32), product(DType::F64)], 1)
    }

    fn within(limits: &Limits, products: [Products; 2], searchers: usize) -> Self {
        // the largest power of two that a group holds
        let searchers = 1 << searchers.min(limits.work_group).ilog2();
        let Limits { work_group: most, groups, buffer: max_scratch_bytes, .. } = *limits;
        Choices {
            products,
            searchers,
            group: GROUP.min(most),
            most,
            groups,
            max_scratch_bytes,
            strips: 0,
            waits: false,
            spread: usize::MAX,
            exchangers: 0,
            solvers: [0; 2],
            parts_of_vectors: false,
            rounds: usize::MAX,
            units: 1,
        }
    }

    /// For devices with many multiprocessors.
    fn with_many(limits: &Limits, products: [Products; 2]) -> Self {
        let choices = Self::within(limits, products, SEARCHERS);
        let fits = |program: Program| program.check(limits).is_ok();
        // the largest power of two that a program fits, or 0
        let largest = |most: usize, program: &dyn Fn(usize) -> Program| {
            (0..=most.ilog2()).rev().map(|power| 1 << power).find(|&items| fits(program(items))).unwrap_or(0)
        };
        let solvers = [DType::F32, DType::F64].map(|dtype| largest(SOLVER, &|items| Program::Solve { dtype, items }));
        let dtype = DType::F64;
        let exchangers = largest(EXCHANGER, &|items| Program::Exchange { dtype, items });
        let spread = if fits(choices.columns(dtype)) { SPREAD } else { usize::MAX };
        let choices = Choices { spread, exchangers, solvers, ..choices };
        choices.with_strips(1 << STRIP.min(limits.work_group).ilog2(), limits).unwrap_or(choices)
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

    /// The same for a device of so many multiprocessors, if it has room for the tiles that keep them at work.
    #[must_use]
    pub fn with_units(self, units: usize, limits: &Limits) -> Self {
        let fit = |dtype| TileParams::smaller(dtype).iter().all(|tile| tile.check(dtype, limits).is_ok());
        Choices { units: if fit(DType::F32) && fit(DType::F64) { units } else { 1 }, ..self }
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
        Program::Columns { dtype, items: 1 << COLUMN.min(self.most).ilog2() }
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
mod tests {
    use super::*;

    #[test]
    fn groups_solve_and_exchange_as_many_rows_as_the_limits_allow() {
        let limits = |work_group, kibibytes: usize| Limits { work_group, local_memory: kibibytes << 10, ..Limits::default() };
        for (device, limits, solvers, exchangers) in [
            ("a GPU", limits(1024, 48), [128, 128], 256),
            ("a browser", limits(256, 16), [64, 32], 128),
            ("little memory", limits(256, 4), [16, 0], 32),
            ("groups of eight", limits(8, 16), [0, 0], 8),
        ] {
            let choices = Choices::shared(&limits).unwrap();
            assert_eq!((choices.solvers, choices.exchangers), (solvers, exchangers), "{device}");
        }
    }
}
