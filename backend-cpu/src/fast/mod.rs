//! The instructions of [`reference`](crate::reference) at speed, by the members of a [`Team`](crate::Team).
//!
//! All functions are `unsafe` under the [contract of tiles](crate::tile). If the system refuses memory for packed blocks, they panic
//! without a message, and [`CpuDevice`](crate::CpuDevice) makes an error of it.

mod batched;
mod deep;
mod gemm;
mod gemv;
mod getrf;
mod laswp;
mod lookahead;
mod micro;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pack;
mod panel;
mod portable;
mod shared;
mod simd;
mod stored;
mod substitute;
#[cfg(test)]
mod tests;
mod transpose;
mod trsm;
mod trtri;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use batched::{FLOPS_OF_TEAM, in_groups};
pub use batched::{gemm_batched, getrf_batched, getrs_batched, zero_pivots};
pub use gemm::gemm;
pub use getrf::{getrf, getrf_by_rows};
pub use laswp::laswp;
pub(crate) use pack::NoMemory;
#[cfg(test)]
pub(crate) use pack::REFUSES;
pub use simd::Lanes;
pub use transpose::{copy, scale};
pub use trsm::trsm;
pub use trtri::trtri;
