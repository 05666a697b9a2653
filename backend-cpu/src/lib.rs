//! The CPU backend of Lapidary.

pub mod fast;
pub mod reference;
pub mod tile;
