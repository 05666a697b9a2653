//! Functions that report the state of the host: [`memory`] reports how much host memory is left, and [`rest`](rest()) waits
//! until the threads of the process are idle.
//!
//! The command-line program, the benchmarks and the conformance suite use the crate `lapidary-host`. The library itself does not
//! use `lapidary-host`.
#![deny(unsafe_code)]

mod groups;
pub mod memory;
mod rest;

pub use rest::rest;
