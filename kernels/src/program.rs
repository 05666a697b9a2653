//! The programs. A [`Program`] value holds everything that the text of a program depends on; it is the key of its cache.

use lapidary_core::{DType, Limits};

use crate::params::{PanelParams, TileParams, VectorParams};
use crate::strips::{LINES, STRIPS_PER_ITEM, StripParams};

/// Order of the triangle that one work-item solves. A work-group solves triangles of at least this order.
pub const TRIANGLE: usize = 32;
/// Columns of the narrowest panel, factored by one work-group.
pub const PANEL: usize = 16;
/// Strips of the widest panel that is factored by strips, one launch for each: about as many as a large
/// device has multiprocessors.
pub const STRIPS: usize = 128;
/// The same where groups wait for one another. Those that begin late find much to do at once
/// (bench/results/wgpu/2026-11-23-h100-waits.txt).
pub const STRIPS_THAT_WAIT: usize = 2 * STRIPS;
/// Columns of the narrowest panel, factored column by column by many work-groups.
pub const COLUMNS: usize = 64;
/// Work-items that share a row of such a panel.
const LANES: usize = 8;
/// Work-items that solve for the same unknowns of a triangle, each for other right-hand sides.
const SOLVERS: usize = 4;
/// Unknowns that each work-item holds, and for which a group solves in one step.
const UNKNOWNS: usize = 8;
/// Columns in which a group of [`Program::Exchange`] moves elements at once.
pub(crate) const MOVED: usize = 2;
/// Terms of a slice of [`Program::GemmBatched`].
const BATCH_DEPTH: usize = 16;
/// Lines and terms of a square that a group of [`Program::Pad`] moves.
pub(crate) const SIDE: usize = 32;

/// A program of one or more kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// `gemm_tile`, through local memory.
    GemmTile {
        /// Element type.
        dtype: DType,
        /// Shape of the tiles.
        params: TileParams,
        /// Whether A enters transposed.
        trans_a: bool,
        /// Whether B enters transposed.
        trans_b: bool,
    },
    /// `gemm_vector`, of operands in whole vectors; A is not transposed.
    GemmVector {
        /// Element type.
        dtype: DType,
        /// Shape of the tiles.
        params: VectorParams,
        /// Whether B enters transposed.
        trans_b: bool,
        /// Whether C too lies in whole vectors.
        vec_c: bool,
    },
    /// `pad`: lines of one or two matrices side by side, filled up with zeros.
    Pad {
        /// Element type.
        dtype: DType,
        /// Work-items of a group, a multiple of 32 that divides 1024.
        items: usize,
    },
    /// `pack` and `gemm_panel`, without barriers.
    GemmPanel {
        /// Element type.
        dtype: DType,
        /// Shape of the panels.
        params: PanelParams,
    },
    /// `gemm_batched`: tiles of small matrices, through local memory.
    GemmBatched {
        /// Element type.
        dtype: DType,
        /// Work-items of a group along the rows, and along the columns of a tile.
        lanes: usize,
        /// Rows, and columns, of a tile for each work-item.
        micro: usize,
        /// Whether A enters transposed.
        trans_a: bool,
        /// Whether B enters transposed.
        trans_b: bool,
    },
    /// `getrf_batched` and `getrs_batched`, one group for each matrix.
    LuBatched {
        /// Element type.
        dtype: DType,
        /// Work-items of a group, a power of two: the search for a pivot halves them.
        items: usize,
        /// Elements in local memory; 0 if the matrix stays in global memory.
        room: usize,
    },
    /// The kernel `getrf_rows` factors many small matrices. Each work-item holds one row of one matrix in registers.
    LuRows {
        /// Element type.
        dtype: DType,
        /// Work-items of a group, a multiple of `order`.
        items: usize,
        /// Maximum number of rows and columns of a matrix, a power of two of at least 4.
        order: usize,
    },
    /// `scale`, `copy`, `laswp`, `zero_pivots` and `clear`.
    Elements {
        /// Element type.
        dtype: DType,
        /// Work-items of a group.
        group: usize,
    },
    /// `exchange`: exchanges of rows, many at once.
    Exchange {
        /// Element type.
        dtype: DType,
        /// Work-items of a group.
        items: usize,
    },
    /// `trsm_block` and `trtri_block` for triangles of [`TRIANGLE`] unknowns.
    Triangle {
        /// Element type.
        dtype: DType,
        /// Work-items of a group.
        group: usize,
    },
    /// `solve` for triangles of as many unknowns as [`unknowns_of_group`].
    Solve {
        /// Element type.
        dtype: DType,
        /// Work-items of a group, a power of two; they have at least [`TRIANGLE`] unknowns.
        items: usize,
    },
    /// `getrf_panel`.
    Panel {
        /// Element type.
        dtype: DType,
        /// Work-items of the one group, a power of two: the search for a pivot halves them.
        items: usize,
    },
    /// `enter_strips`, `getrf_strip` or, in WGSL, `getrf_strips`, and `leave_strips`.
    Strips {
        /// Element type.
        dtype: DType,
        /// Shape of the strips.
        params: StripParams,
    },
    /// `getrf_column`.
    Columns {
        /// Element type.
        dtype: DType,
        /// Work-items of a group, a power of two of at least 8; see [`rows_of_group`].
        items: usize,
    },
}

/// Rows of a panel that a group of [`Program::Columns`] holds.
#[must_use]
pub fn rows_of_group(items: usize) -> usize {
    items / LANES
}

/// Unknowns that a group of [`Program::Solve`] holds.
#[must_use]
pub fn unknowns_of_group(items: usize) -> usize {
    items / SOLVERS * UNKNOWNS
}

/// Right-hand sides of a work-item of [`Program::Solve`]: registers hold them with its unknowns.
fn sides_of_item(dtype: DType) -> usize {
    16 / dtype.size()
}

/// Right-hand sides of a group of [`Program::Solve`].
pub(crate) fn sides_of_group(dtype: DType) -> usize {
    SOLVERS * sides_of_item(dtype)
}

/// Number of elements in which the groups of [`Program::Columns`] exchange pivots of a panel: two sets, each with a magnitude, a
/// position and a row for each group, and one row more.
#[must_use]
pub fn notes(groups: usize) -> usize {
    2 * (groups + 1) * (COLUMNS + 2)
}

impl Program {
    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match *self {
            Program::GemmTile { dtype, .. }
            | Program::GemmVector { dtype, .. }
            | Program::Pad { dtype, .. }
            | Program::GemmPanel { dtype, .. }
            | Program::GemmBatched { dtype, .. }
            | Program::LuBatched { dtype, .. }
            | Program::LuRows { dtype, .. }
            | Program::Elements { dtype, .. }
            | Program::Exchange { dtype, .. }
            | Program::Triangle { dtype, .. }
            | Program::Solve { dtype, .. }
            | Program::Panel { dtype, .. }
            | Program::Strips { dtype, .. }
            | Program::Columns { dtype, .. } => dtype,
        }
    }

    /// Work-items of a group in each dimension.
    #[must_use]
    pub fn local(&self) -> [usize; 2] {
        match *self {
            Program::GemmTile { params, .. } => params.local(),
            Program::GemmVector { params, .. } => [params.items(), 1],
            Program::GemmPanel { params, .. } => [params.group, 1],
            Program::Strips { params, .. } => [params.items, 1],
            Program::Elements { group, .. } | Program::Triangle { group, .. } => [group, 1],
            Program::GemmBatched { lanes, .. } => [lanes * lanes, 1],
            Program::Panel { items, .. }
            | Program::LuBatched { items, .. }
            | Program::LuRows { items, .. }
            | Program::Columns { items, .. }
            | Program::Exchange { items, .. }
            | Program::Solve { items, .. }
            | Program::Pad { items, .. } => [items, 1],
        }
    }

    /// Whether a device can run it.
    ///
    /// # Errors
    /// The constraint that is not met, and why it is one.
    pub fn check(&self, limits: &Limits) -> Result<(), String> {
        let group = |items: usize| {
            let fits = items <= limits.work_group;
            if fits { Ok(()) } else { Err(format!("{items} work-items are more than the {} of a work-group", limits.work_group)) }
        };
        let local = |what: &str, bytes: usize| {
            let fits = bytes <= limits.local_memory;
            if fits { Ok(()) } else { Err(format!("{what} takes {bytes} bytes of the {} of local memory", limits.local_memory)) }
        };
        match *self {
            Program::GemmTile { dtype, params, .. } => params.check(dtype, limits),
            Program::GemmVector { dtype, params, .. } => params.check(dtype, limits),
            Program::Pad { items, .. } if !items.is_multiple_of(SIDE) || !(SIDE * SIDE).is_multiple_of(items.max(1)) => {
                Err(format!("{items} work-items do not move the {SIDE} lines of a square equally"))
            }
            // one element more in each line
            Program::Pad { dtype, items } => local("a square", SIDE * (SIDE + 1) * dtype.size()).and_then(|()| group(items)),
            Program::GemmPanel { params, .. } => params.check().and_then(|()| group(params.group)),
            // a slice of A and one of B, of which each line has one element more
            Program::GemmBatched { dtype, lanes, micro, .. } => {
                let bytes = 2 * BATCH_DEPTH * (lanes * micro + 1) * dtype.size();
                local("the slices of A and B", bytes).and_then(|()| group(lanes * lanes))
            }
            Program::LuBatched { items, .. } if !items.is_power_of_two() => Err(format!("{items} work-items do not halve")),
            // the matrix, and a magnitude and a row for each work-item
            Program::LuBatched { dtype, items, room } => {
                let bytes = room * dtype.size() + items * (dtype.size() + size_of::<u64>());
                local("a matrix with the search for a pivot", bytes).and_then(|()| group(items))
            }
            Program::LuRows { items, order, .. } if !order.is_power_of_two() || order < 4 || !items.is_multiple_of(order) => {
                Err(format!("{items} work-items do not have all rows of matrices of order {order}"))
            }
            // the matrices; a row of each; a magnitude for each row, and one with a place for every fourth
            Program::LuRows { dtype, items, order } => {
                let bytes = items * (order + 2) * dtype.size() + items / 4 * (dtype.size() + size_of::<u32>());
                local("a matrix with the search for a pivot", bytes).and_then(|()| group(items))
            }
            Program::Elements { group: items, .. } | Program::Triangle { group: items, .. } => group(items),
            Program::Solve { items, .. } if !items.is_power_of_two() || unknowns_of_group(items) < TRIANGLE => {
                Err(format!("{items} work-items do not have {TRIANGLE} unknowns, or not a power of two"))
            }
            Program::Solve { dtype, items } => {
                // the coefficients of two steps, and the unknowns of one
                let columns = 2 * unknowns_of_group(items) + sides_of_group(dtype);
                local("a triangle", columns * UNKNOWNS * dtype.size()).and_then(|()| group(items))
            }
            Program::Exchange { items, .. } => {
                // four exchanges for each work-item, with the place that each names, a table
                // of twice as many places with their rows, and what each place holds
                local("a set of exchanges", 4 * items * 6 * size_of::<u32>()).and_then(|()| group(items))
            }
            // a magnitude and a row for each work-item
            Program::Panel { dtype, items } => {
                local("the search for a pivot", items * (dtype.size() + size_of::<u64>())).and_then(|()| group(items))
            }
            Program::Strips { dtype, params } => params.check(dtype, limits),
            Program::Columns { items, .. } if !items.is_power_of_two() || items < LANES => {
                Err(format!("{items} work-items do not halve into rows of {LANES}"))
            }
            // the same, a column of its rows, and less than the half again for the search
            Program::Columns { dtype, items } => {
                let bytes = 2 * items * (dtype.size() + size_of::<u64>());
                local("the search for a pivot", bytes).and_then(|()| group(items))
            }
        }
    }

    /// Name and the parameters that head the text.
    pub(crate) fn heading(&self) -> (&'static str, Vec<(&'static str, usize)>) {
        match *self {
            Program::GemmTile { params: TileParams { mwg, nwg, kwg, mr, nr, vwm, stages }, trans_a, trans_b, .. } => {
                let shape = [("MWG", mwg), ("NWG", nwg), ("KWG", kwg), ("MR", mr), ("NR", nr), ("VWM", vwm), ("STAGES", stages)];
                let flags = [("TRANS_A", usize::from(trans_a)), ("TRANS_B", usize::from(trans_b))];
                ("gemm_tile", [&shape[..], &flags].concat())
            }
            Program::GemmVector {
                dtype,
                params: VectorParams { mwg, nwg, kwg, mr, nr, lanes_n, zigzag, ahead },
                trans_b,
                vec_c,
            } => {
                let shape = [("MWG", mwg), ("NWG", nwg), ("KWG", kwg), ("MR", mr), ("NR", nr), ("LANES_N", lanes_n)];
                let flags = [("ZIGZAG", zigzag), ("AHEAD", ahead), ("TRANS_B", trans_b), ("VEC_C", vec_c)];
                let flags = flags.map(|(name, set)| (name, usize::from(set)));
                ("gemm_vector", [&shape[..], &flags, &[("V", VectorParams::vector(dtype))]].concat())
            }
            Program::Pad { dtype, items } => ("pad", vec![("ITEMS", items), ("SIDE", SIDE), ("V", VectorParams::vector(dtype))]),
            Program::GemmPanel { params: PanelParams { mv, vw, nr, group }, .. } => {
                ("gemm_panel", vec![("MV", mv), ("VW", vw), ("NR", nr), ("GROUP", group)])
            }
            Program::GemmBatched { lanes, micro, trans_a, trans_b, .. } => {
                let flags = [("TRANS_A", usize::from(trans_a)), ("TRANS_B", usize::from(trans_b))];
                ("gemm_batched", [&[("LANES", lanes), ("MICRO", micro), ("DEPTH", BATCH_DEPTH)][..], &flags].concat())
            }
            Program::LuBatched { items, room, .. } => ("lu_batched", vec![("ITEMS", items), ("ROOM", room)]),
            Program::LuRows { items, order, .. } => ("lu_rows", vec![("ITEMS", items), ("ORDER", order)]),
            Program::Elements { group, .. } => ("elements", vec![("GROUP", group)]),
            Program::Triangle { group, .. } => ("triangle", vec![("GROUP", group), ("NB", TRIANGLE)]),
            Program::Solve { dtype, items } => {
                let own = [("MR", UNKNOWNS), ("NR", sides_of_item(dtype)), ("V", VectorParams::vector(dtype))];
                ("solve", [&[("ITEMS", items), ("LANES", SOLVERS)][..], &own].concat())
            }
            Program::Exchange { items, .. } => ("exchange", vec![("ITEMS", items), ("COLUMNS", MOVED)]),
            Program::Panel { items, .. } => ("panel", vec![("ITEMS", items)]),
            Program::Strips { dtype, params: params @ StripParams { items, rows, width } } => {
                let lines = LINES.min(items);
                let shape = [("ITEMS", items), ("ROWS", rows), ("WIDTH", width), ("V", params.vector(dtype))];
                ("strips", [&shape[..], &[("LINES", lines), ("LINE", items / lines), ("TOGETHER", STRIPS_PER_ITEM)]].concat())
            }
            Program::Columns { items, .. } => ("columns", vec![("ITEMS", items), ("LANES", LANES), ("WIDTH", COLUMNS)]),
        }
    }

    /// The name of a file with its text: program, element type, parameters.
    pub(crate) fn file(&self, extension: &str) -> String {
        let (name, values) = self.heading();
        let values: String = values.iter().map(|(key, value)| format!("-{}{value}", key.to_lowercase())).collect();
        format!("{name}-{}{values}.{extension}", self.dtype())
    }
}
