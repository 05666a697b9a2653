//! The memory through which the work-groups of a launch exchange messages (`opencl/messages.cl`). All kernels that exchange messages use the same
//! memory.

/// Number of bytes of a piece of a message.
pub(crate) const PIECE: usize = 16;
/// Number of pieces in a region: a panel of held rows needs so many.
pub(crate) const REGION: usize = crate::held_rows::PIECES;
/// Number of words of 64 bits in the header, which lies before the regions.
pub const HEADER_WORDS: usize = 4;
/// Size of the memory in bytes: the header and two regions.
pub const RECORD_BYTES: usize = HEADER_WORDS * size_of::<u64>() + 2 * REGION * PIECE;

/// Returns the constants of the kernel text.
pub(crate) fn constants() -> [(&'static str, usize); 2] {
    [("header", HEADER_WORDS), ("region", REGION)]
}
