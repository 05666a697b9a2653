//! Sizes and limits of the kernel `trsv` ([`Program::Trsv`](crate::Program::Trsv)), whose work-groups solve one triangular system together. A
//! work-group waits for the unknowns that others compute.

use lapidary_core::DType;

use crate::messages::{PIECE, REGION};

/// Number of unknowns for which a work-group solves at once.
const BLOCK: usize = 64;
/// Number of work-items that solve with a block on the diagonal.
const WIDTH: usize = 32;
/// Number of work-items that share a row of coefficients, if the coefficients of an equation are neighbours in memory: their loads fill 128
/// bytes in `f64`.
const NEIGHBOURS: usize = 16;

/// Returns the number of work-items that share a row of coefficients.
fn split(items: usize, is_transposed: bool) -> usize {
    if is_transposed { NEIGHBOURS } else { items / BLOCK }
}

/// Returns the constants of the kernel text.
pub(crate) fn constants(items: usize, is_transposed: bool) -> [(&'static str, usize); 4] {
    let split = split(items, is_transposed);
    [("block", BLOCK), ("width", WIDTH), ("split", split), ("transposed", usize::from(is_transposed))]
}

/// Returns the number of tasks of a solve for `unknowns` unknowns of `sides` right-hand sides. A task solves for one block of unknowns of one
/// right-hand side.
pub(crate) fn tasks(unknowns: usize, sides: usize) -> usize {
    unknowns.div_ceil(BLOCK).saturating_mul(sides)
}

/// Maximum number of right-hand sides of a launch: the messages for a block of each of them fit into a region.
pub(crate) const MAX_SIDES: usize = 1024;
const _: () = assert!(MAX_SIDES * BLOCK * size_of::<f64>() <= REGION * PIECE);

/// Returns the maximum number of unknowns of a launch for `sides` right-hand sides, whose messages fill a region.
pub(crate) fn max_unknowns(dtype: DType, sides: usize) -> usize {
    REGION * PIECE / dtype.size() / sides.max(1) / BLOCK * BLOCK
}

/// Returns the bytes of local memory of a work-group.
///
/// # Errors
/// A parameter violates a constraint, which the error states with its reason.
pub(crate) fn local_bytes(dtype: DType, items: usize, is_transposed: bool, uses_ptx: bool) -> Result<usize, String> {
    if !items.is_power_of_two() || !(BLOCK..=BLOCK * NEIGHBOURS).contains(&items) {
        return Err(format!("{items} work-items are no power of two from {BLOCK} to {}", BLOCK * NEIGHBOURS));
    }
    // the block on the diagonal, the sums of a row, and the unknowns of two blocks
    let elements = BLOCK * (BLOCK + 1) + BLOCK * (split(items, is_transposed) + 1) + 2 * BLOCK;
    // the values that work-items exchange without PTX
    let elements = if uses_ptx { elements } else { elements + items };
    Ok(elements * dtype.size() + size_of::<u32>())
}
