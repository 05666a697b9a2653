//! The checks of the properties. Most checks are functions of a trial and a case, which return a [`Failure`](crate::Failure) if the
//! property does not hold.

pub mod agreement;
pub mod batched;
pub mod far;
pub mod gemm;
pub mod getrf;
pub mod growth;
pub mod large;
pub mod laswp;
pub mod memory;
pub mod mixed;
mod pages;
pub mod solve;
pub mod trsm;
