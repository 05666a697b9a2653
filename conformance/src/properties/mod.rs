//! The properties: each takes a subject and a case and gives a [`Failure`](crate::Failure)
//! or nothing.

pub mod agreement;
pub mod batched;
pub mod far;
pub mod gemm;
pub mod getrf;
pub mod growth;
pub mod large;
pub mod laswp;
pub mod memory;
mod pages;
pub mod solve;
pub mod trsm;
