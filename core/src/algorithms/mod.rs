//! The blocked algorithms: pure functions that make a [`Plan`](crate::Plan) from a problem and a [`Blocking`](crate::Blocking).
//!
//! A *problem* is a checked call in its normal form. In the normal form all matrices are column-major: flags express that a
//! row-major operand is transposed, so that one algorithm serves all cases. The exception is LU, which has no flag for a
//! transposed matrix and also accepts a row-major matrix. A problem contains sizes and flags but no memory, so that a plan can be
//! made, printed and simulated without any matrix.

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
