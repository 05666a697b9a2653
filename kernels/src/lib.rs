//! The kernels of Lapidary: their text, made from parameters that are values.
//!
//! A backend asks for a [`Source`] and compiles it; this crate opens no device.
//! What each kernel means is defined by the CPU backend's reference path. The
//! text of a kernel is headed by its parameters, so that it can be read alone.

pub mod opencl;
mod params;

pub use params::{Limits, PanelParams, TileParams};

/// Changes whenever a text changes its meaning to a cache.
pub const GENERATOR: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

/// The text of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the file that it would be.
    pub name: String,
    /// The text.
    pub text: String,
}
