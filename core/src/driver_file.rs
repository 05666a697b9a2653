//! How the system's loaders find drivers.

use std::path::PathBuf;

/// A driver that is registered by a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFile {
    /// The file that registers it.
    pub manifest: PathBuf,
    /// The library that the file names: a path, or a name that the system looks for.
    pub library: PathBuf,
}
