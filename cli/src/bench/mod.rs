//! Times a routine of Lapidary and the same routine of a peer library.

pub mod measure;
pub mod peer;
pub mod plot;
pub mod problem;
pub mod startup;
pub mod timeline;
