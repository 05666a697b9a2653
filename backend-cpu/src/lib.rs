//! The CPU backend of Lapidary.

mod buffer;
mod conv;
mod device;
pub mod fast;
mod pages;
pub mod reference;
mod team;
pub mod tile;

pub use buffer::Buffer;
pub use device::{CpuDevice, Path};
pub use fast::{Blocking, Blocks};
pub use team::Team;
