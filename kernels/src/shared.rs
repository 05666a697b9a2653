//! The kernel texts that are written once for both languages.

/// The product of matrices in whole vectors.
pub const GEMM_VECTOR: &str = include_str!("shared/gemm_vector.wgsl");
/// The product of matrices with one of several models of memory.
pub const GEMM_BLOCK: &str = include_str!("shared/gemm_block.wgsl");
/// The sum of the parts of a product.
pub const SUM_PARTS: &str = include_str!("shared/sum_parts.wgsl");
/// The copy of lines into whole vectors.
pub const PAD: &str = include_str!("shared/pad.wgsl");
/// The sums of the columns of blocks on the diagonal of a triangle.
pub const SUM_BLOCKS: &str = include_str!("shared/sum_blocks.wgsl");
/// The decision which inverses of blocks are kept.
pub const JUDGE_BLOCKS: &str = include_str!("shared/judge_blocks.wgsl");
/// The copy of right-hand sides that may also solve.
pub const SOLVE_COPY: &str = include_str!("shared/solve_copy.wgsl");
/// The triangular solve in which a workgroup solves together.
pub const SOLVE: &str = include_str!("shared/solve.wgsl");
/// The exchange of rows of a matrix.
pub const EXCHANGE: &str = include_str!("shared/exchange.wgsl");
