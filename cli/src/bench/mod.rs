//! Times a routine of Lapidary and the same routine of a peer library.

pub mod fit;
pub mod heat_map;
pub mod kernels;
pub mod measure;
pub mod on_device;
pub mod peer;
pub mod placement;
pub mod plot;
pub mod problem;
pub mod profile;
pub mod stacked;
pub mod startup;
pub mod sweep;
pub mod table;
pub mod timeline;
pub mod timing;
