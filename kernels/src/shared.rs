//! The kernel texts that are written once for both languages.

/// The product of matrices in whole vectors.
pub const GEMM_VECTOR: &str = include_str!("shared/gemm_vector.wgsl");
/// The product of matrices with one of several models of memory.
pub const GEMM_BLOCK: &str = include_str!("shared/gemm_block.wgsl");
/// The sum of the parts of a product.
pub const SUM_PARTS: &str = include_str!("shared/sum_parts.wgsl");
/// The copy of lines into whole vectors.
pub const PAD: &str = include_str!("shared/pad.wgsl");
/// The triangular solve in which a workgroup solves together.
pub const SOLVE: &str = include_str!("shared/solve.wgsl");
