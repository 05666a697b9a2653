//! What the machine has left for a program: [`memory`], and processors that nobody uses ([`rest`](rest())).
//!
//! For the programs and suites around the library. The library itself asks for neither.
#![deny(unsafe_code)]

mod groups;
pub mod memory;
mod rest;

pub use rest::rest;
