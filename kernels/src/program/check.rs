//! The constraints of the programs.

use lapidary_core::Limits;

use super::{BATCH_DEPTH, LANES, MAX_HELD, Program, SIDE, TRIANGLE, UNKNOWNS, sides_of_copy, sides_of_group, unknowns_of_group};
use crate::held_rows;
use crate::mma::SUB_GROUP;
use crate::params::VectorParams;
use crate::trsv;

impl Program {
    /// Checks that a device can run the program.
    ///
    /// # Errors
    /// The program violates a constraint, which the error states with its reason.
    pub fn check(&self, limits: &Limits) -> Result<(), String> {
        let group = |items: usize| {
            if items == 0 {
                return Err("a work-group has at least one work-item".to_owned());
            }
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
            Program::GemmBlock { dtype, params, .. } => params.check(dtype, limits),
            Program::GemmMma { dtype, params, .. } => params.check(dtype, limits),
            Program::MmaProbe { .. } => group(SUB_GROUP),
            Program::Pad { items, .. } if !items.is_multiple_of(SIDE) || !(SIDE * SIDE).is_multiple_of(items.max(1)) => {
                Err(format!("{items} work-items do not move the {SIDE} lines of a square equally"))
            }
            // local memory holds a square, in which each line has one element of padding
            Program::Pad { dtype, items } => local("a square", SIDE * (SIDE + 1) * dtype.size()).and_then(|()| group(items)),
            // a compiler divides longer vectors
            Program::GemmPanel { dtype, params } => params.check(dtype, limits, usize::MAX),
            // local memory holds a slice of A and a slice of B, in which each line has one element of padding
            Program::GemmBatched { dtype, lanes, micro, .. } => {
                let bytes = 2 * BATCH_DEPTH * (lanes * micro + 1) * dtype.size();
                local("the slices of A and B", bytes).and_then(|()| group(lanes * lanes))
            }
            Program::LuBatched { items, .. } if !items.is_power_of_two() => Err(format!("{items} work-items are no power of two")),
            // local memory holds the matrix, and a magnitude and a row number for each work-item
            Program::LuBatched { dtype, items, room } => {
                let bytes = room * dtype.size() + items * (dtype.size() + size_of::<u64>());
                local("a matrix with the search for a pivot", bytes).and_then(|()| group(items))
            }
            Program::LuRows { items, order, .. } if !order.is_power_of_two() || order < 4 || !items.is_multiple_of(order) => {
                Err(format!("{items} work-items do not have all rows of matrices of order {order}"))
            }
            // local memory holds the matrices, one pivot row per matrix, one magnitude per row, and one magnitude with its place
            // per four rows
            Program::LuRows { dtype, items, order } => {
                let bytes = items * (order + 2) * dtype.size() + items / 4 * (dtype.size() + size_of::<u32>());
                local("a matrix with the search for a pivot", bytes).and_then(|()| group(items))
            }
            Program::Elements { group: items, .. } | Program::Triangle { group: items, .. } | Program::SumParts { items, .. } => {
                group(items)
            }
            Program::Solve { items, .. } if !items.is_power_of_two() || unknowns_of_group(items) < TRIANGLE => {
                Err(format!("{items} work-items do not have {TRIANGLE} unknowns, or not a power of two"))
            }
            Program::Solve { dtype, items } => {
                // local memory holds coefficients, with unused places in each column, and unknowns of two steps
                let unused = UNKNOWNS * VectorParams::vector(dtype);
                let columns = 2 * (unknowns_of_group(items) + unused + sides_of_group(dtype));
                local("a triangle", columns * UNKNOWNS * dtype.size()).and_then(|()| group(items))
            }
            Program::SumBlocks { items, .. } if !items.is_multiple_of(SIDE) || items > SIDE * SIDE => {
                Err(format!("{items} work-items do not have {SIDE} columns, or too many"))
            }
            // local memory holds the partial sums of each column
            Program::SumBlocks { dtype, items } => {
                local("the partial sums", SIDE * (SIDE + 1) * dtype.size()).and_then(|()| group(items))
            }
            Program::JudgeBlocks { items, .. } if !items.is_power_of_two() => {
                Err(format!("{items} work-items are no power of two"))
            }
            Program::JudgeBlocks { items, .. } => local("a sum", items * size_of::<u32>()).and_then(|()| group(items)),
            Program::SolveCopy { each, .. } if each > MAX_HELD => {
                Err(format!("{each} unknowns are more than the {MAX_HELD} that a work-item holds in registers"))
            }
            // local memory holds one unknown of each right-hand side, for two steps
            Program::SolveCopy { dtype, items, .. } => {
                local("an unknown", 2 * sides_of_copy(dtype) * dtype.size()).and_then(|()| group(items))
            }
            Program::Exchange { items, .. } if !items.is_power_of_two() => Err(format!("{items} work-items are no power of two")),
            // a work-item has two exchanges; for each of them, local memory holds a row, a place, and the elements of two rows
            Program::Exchange { dtype, items } => {
                local("a set of exchanges", 4 * items * (size_of::<u32>() + dtype.size())).and_then(|()| group(items))
            }
            Program::HeldRows { dtype, shape, uses_ptx } => {
                let (items, bytes) = (shape.items, held_rows::local_bytes(dtype, shape, uses_ptx)?);
                // a text with PTX may use more local memory than the device reports
                if uses_ptx { group(items) } else { local("the rows", bytes).and_then(|()| group(items)) }
            }
            Program::Trsv { dtype, items, is_transposed, uses_ptx } => {
                let bytes = trsv::local_bytes(dtype, items, is_transposed, uses_ptx)?;
                local("a block on the diagonal", bytes).and_then(|()| group(items))
            }
            // local memory holds a magnitude and a row number for each work-item
            Program::Panel { dtype, items } => {
                local("the search for a pivot", items * (dtype.size() + size_of::<u64>())).and_then(|()| group(items))
            }
            Program::Strips { dtype, params } => params.check(dtype, limits),
            Program::Columns { items, .. } if !items.is_power_of_two() || items < LANES => {
                Err(format!("{items} work-items are no power of two of at least {LANES}"))
            }
            // local memory holds a magnitude and a row number for each work-item; as much again has room for a column and for the
            // search
            Program::Columns { dtype, items } => {
                let bytes = 2 * items * (dtype.size() + size_of::<u64>());
                local("the search for a pivot", bytes).and_then(|()| group(items))
            }
        }
    }
}
