//! Services for programs around the library: [`memory`] reports how much host memory is left, and [`rest`](rest()) waits until
//! the threads of the process are idle.
//!
//! Programs and suites around the library use this crate. The library itself does not use this crate.
#![deny(unsafe_code)]

mod groups;
pub mod memory;
mod rest;

pub use rest::rest;
