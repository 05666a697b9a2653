//! The blocked algorithms: pure functions from a problem and a [`Blocking`](crate::Blocking)
//! to a [`Plan`](crate::Plan).
//!
//! A *problem* is a checked call brought to its normal form: everything is
//! column-major (row-major operands are transposed by flipping flags), so that
//! one text serves all cases. It holds sizes and flags but no memory: a plan
//! can be made, printed and simulated without any matrix.

pub mod batched;
pub mod gemm;
pub mod getrf;
pub mod getrs;
pub mod laswp;
mod problem;
pub mod trsm;

pub use problem::{LimitTooSmall, MAX_COMMANDS, Problem};

#[cfg(test)]
mod tests;
