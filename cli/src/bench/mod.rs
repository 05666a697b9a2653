//! Timing one routine, ours and a peer's.

pub mod measure;
pub mod peer;
pub mod plot;
pub mod problem;
pub mod startup;
pub mod timeline;
