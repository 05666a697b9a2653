//! The blocked algorithms: pure functions that make a [`Plan`](crate::Plan) from a problem and a [`Blocking`](crate::Blocking).
//!
//! A *problem* is a checked call in its normal form. In the normal form all matrices are column-major: flags express the
//! transposition of a row-major operand, so that one algorithm serves all cases. A problem contains sizes and flags but no
//! memory. A plan can therefore be made, printed and simulated without any matrix.

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
