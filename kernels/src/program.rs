//! Definitions of the programs. The text of a program depends only on a [`Program`] value, so caches use this value as the key of
//! the program.

use lapidary_core::DType;

use crate::block::BlockParams;
use crate::held_rows::{self, HeldShape};
use crate::messages;
use crate::mma::{MmaParams, SUB_GROUP};
use crate::params::{PanelParams, TileParams, VectorParams};
use crate::strips::{LINES, STRIPS_PER_ITEM, StripParams};
use crate::trsv;

mod check;

// The numbers below are fixed by the texts of the kernels, which name them. Thresholds that a device may want different are entries of the
// database (`Threshold`).

/// Maximum order of a triangle that one work-item solves. A work-group of [`Program::Solve`] can solve triangles of at least this
/// order.
pub const TRIANGLE: usize = 32;
/// Maximum number of columns of a panel that many work-groups factor column by column.
pub const COLUMNS: usize = 64;
/// Number of work-items of [`Program::Columns`] that share a row of a panel.
const LANES: usize = 8;
/// Number of work-items of [`Program::Solve`] that hold the same unknowns, each for other right-hand sides.
const SOLVERS: usize = 4;
/// Number of unknowns that each work-item of [`Program::Solve`] holds. A work-group solves for [`UNKNOWNS`] unknowns in one step.
const UNKNOWNS: usize = 8;
/// Maximum order of a block that a triangular solve inverts. A work-group of [`Program::SolveCopy`] can solve with a block of this order.
pub(crate) const MAX_INVERTED: usize = 1024;
/// Maximum number of unknowns of one right-hand side that a work-item of [`Program::SolveCopy`] holds in registers.
const MAX_HELD: usize = 16;
/// Number of terms (extent along k) in a slice of [`Program::GemmBatched`].
const BATCH_DEPTH: usize = 16;
/// Number of lines, and of terms, of a square that a work-group of [`Program::Pad`] copies. Also the number of columns that a work-group of
/// [`Program::SumBlocks`] sums. A block on the diagonal begins at a multiple of [`TRIANGLE`], which is a multiple of this number.
pub(crate) const SIDE: usize = 32;

/// A program, which contains one or more kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// Kernel `gemm_tile`: a product by tiles in local memory.
    GemmTile {
        /// Element type of the matrices.
        dtype: DType,
        /// Shape of the tiles.
        params: TileParams,
        /// Whether the product uses the transpose of A.
        trans_a: bool,
        /// Whether the product uses the transpose of B.
        trans_b: bool,
    },
    /// Kernel `gemm_vector`: a product of operands that are stored in whole vectors. A is not transposed.
    GemmVector {
        /// Element type of the matrices.
        dtype: DType,
        /// Shape of the tiles.
        params: VectorParams,
        /// Whether the product uses the transpose of B.
        trans_b: bool,
        /// Whether C, too, is stored in whole vectors.
        vec_c: bool,
    },
    /// Kernel `gemm_block`: a product of operands in any layout, with one of several models of memory.
    GemmBlock {
        /// Element type of the matrices.
        dtype: DType,
        /// Shape of the tiles and the model of memory.
        params: BlockParams,
        /// Whether the product uses the transpose of A.
        trans_a: bool,
        /// Whether the product uses the transpose of B.
        trans_b: bool,
        /// The sizes m, n and k of the product, if they are constants in the text.
        sizes: Option<[usize; 3]>,
    },
    /// Kernel `gemm_mma`: a product that copies the next slices to local memory while it multiplies, in OpenCL C with PTX instructions.
    GemmMma {
        /// Element type of the matrices.
        dtype: DType,
        /// Shape of the tiles.
        params: MmaParams,
        /// Whether the product uses the transpose of A.
        trans_a: bool,
        /// Whether the product uses the transpose of B.
        trans_b: bool,
        /// Whether the tiles may extend beyond the matrices.
        guarded: bool,
        /// Whether the matrices are stored in whole vectors of 16 bytes.
        aligned: bool,
        /// Whether a work-group may compute several tiles.
        loops: bool,
    },
    /// Kernel `mma_probe`, which shows whether a device has the instructions of `gemm_mma`.
    MmaProbe {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of terms of an instruction, as in [`MmaParams`].
        unit: usize,
        /// Whether the kernel has PTX instructions.
        ptx: bool,
    },
    /// Kernel `sum_parts`: adds the parts of a product whose terms are divided between work-groups.
    SumParts {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group.
        items: usize,
    },
    /// Kernel `pad`: copies lines of one or two matrices side by side, with zeros for missing lines and terms.
    Pad {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group, a multiple of 32 that divides 1024.
        items: usize,
    },
    /// Kernels `pack` and `gemm_panel`: a product of packed panels without barriers.
    GemmPanel {
        /// Element type of the matrices.
        dtype: DType,
        /// Shape of the panels.
        params: PanelParams,
    },
    /// Kernel `gemm_batched`: products of many small matrices by tiles in local memory.
    GemmBatched {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items of a work-group along the rows of a tile, and also along the columns.
        lanes: usize,
        /// Number of rows, and also of columns, of a tile per work-item.
        micro: usize,
        /// Whether the product uses the transpose of A.
        trans_a: bool,
        /// Whether the product uses the transpose of B.
        trans_b: bool,
    },
    /// Kernels `getrf_batched` and `getrs_batched`, in which one work-group computes each matrix.
    LuBatched {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group, a power of two because each step of the pivot search halves the number of
        /// candidates.
        items: usize,
        /// Number of matrix elements for which the kernel has room in local memory. The value 0 means that the matrix stays in
        /// global memory.
        room: usize,
    },
    /// Kernel `getrf_rows`, which factors many small matrices. Each work-item holds one row of one matrix in registers.
    LuRows {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group, a multiple of `order`.
        items: usize,
        /// Maximum number of rows and of columns of a matrix, a power of two of at least 4.
        order: usize,
    },
    /// Kernels `scale`, `copy`, `laswp`, `zero_pivots` and `clear`.
    Elements {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group.
        group: usize,
    },
    /// Kernel `exchange`, which makes many row exchanges at once.
    Exchange {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group.
        items: usize,
    },
    /// Kernels `trsm_block` and `trtri_block` for triangles of at most [`TRIANGLE`] unknowns.
    Triangle {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group.
        group: usize,
    },
    /// Kernel `solve` for triangles of at most `unknowns_of_group` unknowns.
    Solve {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group, a power of two for which `unknowns_of_group` is at least [`TRIANGLE`].
        items: usize,
    },
    /// Kernel `sum_blocks`, which sums the columns of blocks on the diagonal of a triangle.
    SumBlocks {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group, a multiple of 32 of at most 1024.
        items: usize,
    },
    /// Kernel `judge_blocks`, which decides which inverses of blocks are kept.
    JudgeBlocks {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group, a power of two because each step of a sum halves the number of terms.
        items: usize,
    },
    /// Kernel `solve_copy`, which copies right-hand sides of a block of at most `items * each` unknowns, or their solutions.
    SolveCopy {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group.
        items: usize,
        /// Number of unknowns that a work-item holds for each right-hand side.
        each: usize,
    },
    /// Kernel `getrf_held_rows`, in which work-groups that wait for one another factor a narrow panel. Each work-item
    /// holds some rows.
    HeldRows {
        /// Element type of the matrices.
        dtype: DType,
        /// Shape of a work-group.
        shape: HeldShape,
        /// Whether the text exchanges messages and compares candidates by PTX instructions, in sub-groups of 32 work-items.
        uses_ptx: bool,
    },
    /// Kernel `trsv`, in which work-groups that wait for one another solve a triangular system for few right-hand sides.
    Trsv {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group, a power of two from 64 to 1024. With 1024 work-items in `f64`, a text without PTX needs more than
        /// 48 KiB of local memory.
        items: usize,
        /// Whether the coefficients of an equation, instead of those of an unknown, are neighbours in memory.
        is_transposed: bool,
        /// Whether the text exchanges messages by PTX instructions, in sub-groups of 32 work-items.
        uses_ptx: bool,
    },
    /// Kernel `getrf_panel`, in which one work-group factors a narrow panel.
    Panel {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in the only work-group, a power of two because each step of the pivot search halves the number of
        /// candidates.
        items: usize,
    },
    /// Kernels `enter_strips`, `getrf_strip` and `leave_strips`. In WGSL, the program also contains `getrf_strips`.
    Strips {
        /// Element type of the matrices.
        dtype: DType,
        /// Shape of the strips.
        params: StripParams,
    },
    /// Kernel `getrf_column`, in which many work-groups factor one column of a panel.
    Columns {
        /// Element type of the matrices.
        dtype: DType,
        /// Number of work-items in a work-group, a power of two of at least 8 (see `rows_of_group`).
        items: usize,
    },
}

/// Returns the number of panel rows that a work-group of [`Program::Columns`] holds.
#[must_use]
pub fn rows_of_group(items: usize) -> usize {
    items / LANES
}

/// Returns the number of row exchanges that a work-group of [`Program::Exchange`] combines into one permutation.
#[must_use]
pub fn exchanges_of_group(items: usize) -> usize {
    2 * items
}

/// Returns the number of unknowns that a work-group of [`Program::Solve`] holds.
#[must_use]
pub fn unknowns_of_group(items: usize) -> usize {
    items / SOLVERS * UNKNOWNS
}

/// Returns the number of right-hand sides for which a work-item of [`Program::Solve`] holds unknowns in registers.
fn sides_of_item(dtype: DType) -> usize {
    16 / dtype.size()
}

/// Returns the number of right-hand sides of a work-group of [`Program::Solve`].
pub(crate) fn sides_of_group(dtype: DType) -> usize {
    SOLVERS * sides_of_item(dtype)
}

/// Returns the number of right-hand sides of a work-group of [`Program::SolveCopy`]. Their elements of one unknown fill 32 bytes, the smallest
/// access to global memory of many devices, if the right-hand sides are rows.
pub(crate) fn sides_of_copy(dtype: DType) -> usize {
    32 / dtype.size()
}

/// Returns the number of elements in the buffer through which the work-groups of [`Program::Columns`] exchange pivots of a panel.
/// The buffer holds two sets of records. Each set has a record for each work-group and one for the row on the diagonal. A record
/// holds a magnitude, a row number and a row of the panel.
#[must_use]
pub fn notes(groups: usize) -> usize {
    2 * (groups + 1) * (COLUMNS + 2)
}

impl Program {
    /// Returns the program of the same product in which a work-group may compute several tiles. Other programs than those of `gemm_mma`
    /// are returned unchanged.
    #[must_use]
    pub fn looping(mut self) -> Self {
        if let Program::GemmMma { loops, .. } = &mut self {
            *loops = true;
        }
        self
    }

    /// Returns the element type of the matrices.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match *self {
            Program::GemmTile { dtype, .. }
            | Program::GemmVector { dtype, .. }
            | Program::GemmBlock { dtype, .. }
            | Program::GemmMma { dtype, .. }
            | Program::MmaProbe { dtype, .. }
            | Program::SumParts { dtype, .. }
            | Program::Pad { dtype, .. }
            | Program::GemmPanel { dtype, .. }
            | Program::GemmBatched { dtype, .. }
            | Program::LuBatched { dtype, .. }
            | Program::LuRows { dtype, .. }
            | Program::Elements { dtype, .. }
            | Program::Exchange { dtype, .. }
            | Program::Triangle { dtype, .. }
            | Program::Solve { dtype, .. }
            | Program::SumBlocks { dtype, .. }
            | Program::JudgeBlocks { dtype, .. }
            | Program::SolveCopy { dtype, .. }
            | Program::HeldRows { dtype, .. }
            | Program::Trsv { dtype, .. }
            | Program::Panel { dtype, .. }
            | Program::Strips { dtype, .. }
            | Program::Columns { dtype, .. } => dtype,
        }
    }

    /// Returns the number of elements of a vector in the program's text; `None` if the text has no vectors.
    pub(crate) fn vector(&self) -> Option<usize> {
        match *self {
            Program::GemmVector { dtype, .. } | Program::Pad { dtype, .. } | Program::Solve { dtype, .. } => {
                Some(VectorParams::vector(dtype))
            }
            Program::Strips { dtype, params } => Some(params.vector(dtype)),
            Program::GemmBlock { params, .. } => Some(params.vw),
            Program::SumParts { .. }
            | Program::SumBlocks { .. }
            | Program::JudgeBlocks { .. }
            | Program::SolveCopy { .. }
            | Program::Exchange { .. } => Some(1),
            _ => None,
        }
    }

    /// Returns the type of the elements of an operand in the program's text.
    pub(crate) fn element(&self, operand: &str) -> &'static str {
        match *self {
            Program::GemmVector { vec_c, .. } if vec_c || operand != "c" => "vec",
            Program::Strips { .. } if operand == "strips" => "vec",
            Program::Pad { .. } if operand == "dst" => "vec",
            Program::Elements { .. } if operand == "rounded" => "f32",
            _ => "real",
        }
    }

    /// Returns the parameters of `gemm_block`; `None` for another program.
    pub(crate) fn block(&self) -> Option<BlockParams> {
        if let Program::GemmBlock { params, .. } = *self { Some(params) } else { None }
    }

    /// Returns whether the text reads the operands that it does not write from images.
    pub(crate) fn reads_images(&self) -> bool {
        matches!(self, Program::GemmVector { params: VectorParams { images: true, .. }, .. })
    }

    /// Work-items of a group in each dimension.
    #[must_use]
    pub fn local(&self) -> [usize; 2] {
        match *self {
            Program::GemmTile { params, .. } => params.local(),
            Program::GemmVector { params, .. } => [params.items(), 1],
            Program::GemmBlock { params, .. } => params.local(),
            Program::GemmMma { params, .. } => [params.items(), 1],
            Program::MmaProbe { .. } => [SUB_GROUP, 1],
            Program::GemmPanel { params, .. } => [params.group, 1],
            Program::Strips { params, .. } => [params.items, 1],
            Program::Elements { group, .. } | Program::Triangle { group, .. } => [group, 1],
            Program::HeldRows { shape, .. } => [shape.items, 1],
            Program::GemmBatched { lanes, .. } => [lanes * lanes, 1],
            Program::Panel { items, .. }
            | Program::LuBatched { items, .. }
            | Program::LuRows { items, .. }
            | Program::Columns { items, .. }
            | Program::Exchange { items, .. }
            | Program::Solve { items, .. }
            | Program::Trsv { items, .. }
            | Program::SumBlocks { items, .. }
            | Program::JudgeBlocks { items, .. }
            | Program::SolveCopy { items, .. }
            | Program::SumParts { items, .. }
            | Program::Pad { items, .. } => [items, 1],
        }
    }

    /// Returns the program that shows whether a device has the instructions of this program. `None` if the program has no instructions
    /// besides those of the language.
    #[must_use]
    pub fn probe(&self) -> Option<Program> {
        match *self {
            Program::GemmMma { dtype, params, .. } => Some(Program::MmaProbe { dtype, unit: params.unit, ptx: params.ptx }),
            _ => None,
        }
    }

    /// Returns the name of the program, and the names and values of the parameters with which the text of the program begins. The
    /// text contains the names in capitals.
    pub(crate) fn heading(&self) -> (&'static str, Vec<(&'static str, usize)>) {
        match *self {
            Program::GemmTile { params, trans_a, trans_b, .. } => {
                let flags = [("trans_a", usize::from(trans_a)), ("trans_b", usize::from(trans_b))];
                ("gemm_tile", [&params.values()[..], &flags].concat())
            }
            Program::GemmVector { dtype, params, trans_b, vec_c } => {
                let flags = [("trans_b", usize::from(trans_b)), ("vec_c", usize::from(vec_c))];
                ("gemm_vector", [&params.values()[..], &flags, &[("v", VectorParams::vector(dtype))]].concat())
            }
            Program::GemmBlock { params, trans_a, trans_b, sizes, .. } => {
                let params = BlockParams { inline: usize::from(sizes.is_some()), ..params };
                let flags = [("trans_a", usize::from(trans_a)), ("trans_b", usize::from(trans_b))];
                let sizes = sizes.map_or(Vec::new(), |[m, n, k]| vec![("m", m), ("n", n), ("k", k)]);
                ("gemm_block", [params.values(), flags.to_vec(), sizes].concat())
            }
            Program::GemmMma { dtype, params, trans_a, trans_b, guarded, aligned, loops } => {
                let params = MmaParams { guarded, ..params };
                let flags =
                    [("trans_a", trans_a), ("trans_b", trans_b), ("loops", loops)].map(|(name, set)| (name, usize::from(set)));
                let v = if aligned { VectorParams::vector(dtype) } else { 1 };
                ("gemm_mma", [&params.values()[..], &flags, &[("v", v)]].concat())
            }
            Program::MmaProbe { dtype, unit, ptx } => {
                ("mma_probe", vec![("unit", unit), ("ptx", usize::from(ptx)), ("v", VectorParams::vector(dtype))])
            }
            Program::SumParts { items, .. } => ("sum_parts", vec![("items", items)]),
            Program::Pad { dtype, items } => ("pad", vec![("items", items), ("side", SIDE), ("v", VectorParams::vector(dtype))]),
            Program::GemmPanel { params, .. } => ("gemm_panel", params.values()),
            Program::GemmBatched { lanes, micro, trans_a, trans_b, .. } => {
                let flags = [("trans_a", usize::from(trans_a)), ("trans_b", usize::from(trans_b))];
                ("gemm_batched", [&[("lanes", lanes), ("micro", micro), ("depth", BATCH_DEPTH)][..], &flags].concat())
            }
            Program::LuBatched { items, room, .. } => ("lu_batched", vec![("items", items), ("room", room)]),
            Program::LuRows { items, order, .. } => ("lu_rows", vec![("items", items), ("order", order)]),
            Program::Elements { group, .. } => ("elements", vec![("group", group)]),
            Program::Triangle { group, .. } => ("triangle", vec![("group", group), ("nb", TRIANGLE)]),
            Program::Solve { dtype, items } => {
                let own = [("mr", UNKNOWNS), ("nr", sides_of_item(dtype)), ("v", VectorParams::vector(dtype))];
                ("solve", [&[("items", items), ("lanes", SOLVERS)][..], &own].concat())
            }
            Program::SumBlocks { items, .. } => ("sum_blocks", vec![("items", items), ("side", SIDE)]),
            Program::JudgeBlocks { items, .. } => ("judge_blocks", vec![("items", items)]),
            Program::SolveCopy { dtype, items, each } => {
                ("solve_copy", vec![("items", items), ("each", each), ("nr", sides_of_copy(dtype))])
            }
            Program::Exchange { items, .. } => ("exchange", vec![("items", items), ("set", exchanges_of_group(items))]),
            Program::HeldRows { dtype, shape, uses_ptx } => {
                let HeldShape { items, each } = shape;
                let text = [("items", items), ("each", each), ("real_bytes", dtype.size()), ("uses_ptx", usize::from(uses_ptx))];
                ("held_rows", [&text[..], &messages::constants(), &held_rows::constants(shape, uses_ptx)].concat())
            }
            Program::Trsv { dtype, items, is_transposed, uses_ptx } => {
                let text = [("items", items), ("real_bytes", dtype.size()), ("uses_ptx", usize::from(uses_ptx))];
                ("trsv", [&text[..], &messages::constants(), &trsv::constants(items, is_transposed)].concat())
            }
            Program::Panel { items, .. } => ("panel", vec![("items", items)]),
            Program::Strips { dtype, params: params @ StripParams { items, .. } } => {
                let lines = LINES.min(items);
                let shape = [("v", params.vector(dtype)), ("lines", lines), ("line", items / lines), ("together", STRIPS_PER_ITEM)];
                ("strips", [&params.values()[..], &shape].concat())
            }
            Program::Columns { items, .. } => ("columns", vec![("items", items), ("lanes", LANES), ("width", COLUMNS)]),
        }
    }

    /// Returns a file name for the text, which consists of the program, the element type and the parameters.
    pub(crate) fn file(&self, extension: &str) -> String {
        let (name, values) = self.heading();
        let values: String = values.iter().map(|(key, value)| format!("-{key}{value}")).collect();
        format!("{name}-{}{values}.{extension}", self.dtype())
    }
}
