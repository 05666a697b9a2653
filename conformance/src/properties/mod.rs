//! The properties: each takes a subject and a case and gives a [`Failure`](crate::Failure)
//! or nothing.

pub mod agreement;
pub mod far;
pub mod gemm;
pub mod getrf;
pub mod growth;
pub mod laswp;
pub mod memory;
pub mod solve;
pub mod trsm;
