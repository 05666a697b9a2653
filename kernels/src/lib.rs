//! The kernels of Lapidary: their text, made from parameters that are values.
//!
//! A backend gives an instruction to [`instructions::enqueue`] and is asked to run
//! some [`Program`]s, whose [`Source`] it compiles; this crate opens no device.
//! What each kernel means is defined by the CPU backend's reference path. The
//! text of a kernel is headed by its parameters, so that it can be read alone.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

mod call;
mod choices;
pub mod instructions;
pub mod opencl;
mod params;
mod program;
mod scratch;
mod strips;
pub mod wgsl;

pub use call::{Arg, Call, Target, View};
pub use choices::{Choices, Dialect, Products, VectorProducts};
pub use params::{PanelParams, TileParams, VectorParams};
pub use program::{PANEL, Program, TRIANGLE};
pub use scratch::{Purpose, Scratch};
pub use strips::StripParams;

/// Version of the kernel sources. It is a part of every cache key, so that no binary of another version is loaded.
pub const GENERATOR: &str = concat!(env!("CARGO_PKG_VERSION"), "/3");

/// The text of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// File name to use if the text is written to a file.
    pub name: String,
    /// The text.
    pub text: String,
}

impl Source {
    /// Writes the text to a new file, so that a person can read what a compiler refused, and returns the name of the file. Nobody
    /// else can have prepared a file of that name. If this process has written the same text before and that file still exists,
    /// its name is returned.
    ///
    /// # Errors
    /// No file could be written in the folder for temporary files.
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
