//! The kernels of Lapidary as generated text. This crate generates the text of each program from the values of the program's
//! parameters.
//!
//! A backend passes an instruction to [`instructions::enqueue`], which launches kernels of several [`Program`]s through the trait
//! [`Target`]. The backend compiles the [`Source`] of each program. This crate opens no device. The reference path of the CPU
//! backend defines the result of each kernel. The text of a program begins with the values of all parameters, so that a person
//! can read the text without other files.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

mod block;
mod call;
mod cpu;
pub mod database;
mod held_rows;
pub mod instructions;
mod messages;
mod mma;
pub mod opencl;
mod params;
mod product;
mod program;
mod record;
mod scratch;
mod shared;
mod signature;
#[cfg(test)]
mod snapshots;
pub mod space;
mod strips;
mod template;
mod thresholds;
mod translate;
mod trsv;
mod tuning;
pub mod wgsl;

pub use block::BlockParams;
pub use call::{Arg, Call, Target, View};
pub use cpu::CpuBlocks;
pub use database::Database;
pub use held_rows::{HeldRows, HeldShape};
pub use messages::{HEADER_WORDS, RECORD_BYTES};
pub use mma::{MmaParams, probe_product};
pub use params::{PanelBlocks, PanelParams, TileParams, VECTOR_BYTES, VectorParams};
pub use product::Product;
pub use program::{Program, TRIANGLE};
pub use record::{Launch, launches};
pub use scratch::{Purpose, Scratch};
pub use strips::{StripLimits, StripParams};
pub use thresholds::Threshold;
pub use tuning::{Dialect, Tuning, check, refusals, takes_ptx};

/// For tests: limits of a device whose work-groups have at most `work_group` work-items and `local_memory` bytes of local memory.
#[cfg(test)]
fn limits(work_group: usize, local_memory: usize) -> lapidary_core::Limits {
    let mut limits = lapidary_core::Limits::default();
    (limits.work_group, limits.local_memory) = (work_group, local_memory);
    limits
}

/// Version of the kernel sources. Every cache key contains this version, so that no backend loads a binary that was compiled from
/// another version of the sources.
pub const GENERATOR: &str = concat!(env!("CARGO_PKG_VERSION"), "/13");

/// Source text of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// File name for the text.
    pub name: String,
    /// Source text in OpenCL C or WGSL.
    pub text: String,
}

impl Source {
    /// Writes the text to a new file and returns the path of the file, so that a person can read a text that a compiler has
    /// rejected. The file has a random name, so that no other user can have created the file before. If this process has written
    /// the same text before and that file still exists, the function returns the path of that file.
    ///
    /// # Errors
    /// The file could not be written to the folder for temporary files.
    pub fn keep(&self) -> std::io::Result<String> {
        static KEPT: LazyLock<Mutex<HashMap<Source, String>>> = LazyLock::new(Mutex::default);
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = kept.get(self).filter(|path| Path::new(path).exists()) {
            return Ok(path.clone());
        }
        let file = tempfile::Builder::new().prefix("lapidary-").suffix(&format!("-{}", self.name)).tempfile()?;
        std::fs::write(file.path(), &self.text)?;
        let (_, path) = file.keep().map_err(|error| error.error)?;
        let path = path.display().to_string();
        kept.insert(self.clone(), path.clone());
        Ok(path)
    }
}
