//! Core of Lapidary (draft).

pub mod args; pub mod enums; pub mod error; pub mod matrix; pub mod scalar;
pub mod command; pub mod instruction; pub mod plan; pub mod graph; mod ranges; pub mod dispatch; pub mod slots; pub mod schedule; pub mod simulate; pub mod device; pub mod blocking; pub mod engine; pub mod null; pub mod crew; mod sync; pub mod algorithms;
pub use enums::*; pub use error::*; pub use matrix::*; pub use scalar::*; pub use args::*;
pub use blocking::*; pub use plan::*; pub use dispatch::*; pub use device::*; pub use instruction::*; pub use schedule::*; pub use simulate::*;
pub use crew::*; pub use engine::*; pub use command::{Queue, CommandId};pub use graph::*; pub use slots::*;
