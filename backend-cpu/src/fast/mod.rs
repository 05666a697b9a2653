//! Fast versions of the instructions in [`reference`](crate::reference). The members of a [`Team`](crate::Team) run each
//! instruction together.
//!
//! All functions are `unsafe`: their callers guarantee the [contract of tiles](crate::tile). If the system refuses memory for
//! packed blocks, a function panics without a message, and [`CpuDevice`](crate::CpuDevice) converts this panic into an error.

mod batched;
mod blocks;
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
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use batched::{FLOPS_OF_TEAM, in_groups};
pub use batched::{gemm_batched, getrf_batched, getrs_batched, zero_pivots};
pub use blocks::{Blocking, Blocks};
pub use gemm::gemm;
pub use getrf::{getrf, getrf_by_rows};
pub use laswp::laswp;
pub(crate) use pack::NoMemory;
#[cfg(test)]
pub(crate) use pack::REFUSES;
pub use simd::Lanes;
pub use transpose::{copy, narrow, scale};
pub use trsm::trsm;
