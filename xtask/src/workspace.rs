//! The properties of the workspace that the chores of `cargo xtask` use.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::Result;
use crate::runner::Invocation;

/// The packages and the files of the workspace.
pub struct Workspace {
    /// Root folder of the repository.
    pub root: PathBuf,
    /// Output of `cargo metadata` without dependencies.
    pub metadata: Metadata,
}

impl Workspace {
    /// Runs `cargo metadata` and reads its output.
    pub fn load() -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().map_err(|error| format!("cargo metadata: {error}"))?;
        Ok(Workspace { root: metadata.workspace_root.clone().into(), metadata })
    }

    /// The packages of the workspace, in no particular order.
    pub fn packages(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }

    /// The folder of a package, relative to the root of the repository.
    pub fn folder<'a>(&'a self, package: &'a Package) -> &'a Path {
        let folder = package.manifest_path.parent().map_or(Path::new(""), |folder| folder.as_std_path());
        folder.strip_prefix(&self.root).unwrap_or(folder)
    }

    /// The text of a file, whose path is relative to the root of the repository.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.root.join(path);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether a file or folder exists. The path is relative to the root of the repository.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The version `MAJOR.MINOR` of the oldest supported compiler, from the manifest of the workspace.
    pub fn rust_version(&self) -> Option<String> {
        let version = self.packages().iter().find_map(|package| package.rust_version.clone())?;
        Some(format!("{}.{}", version.major, version.minor))
    }

    /// Path of a file or folder in cargo's target folder.
    pub fn target(&self, path: &str) -> PathBuf {
        self.metadata.target_directory.join(path).into()
    }

    /// A cargo command that runs in the root folder of the repository.
    pub fn cargo(&self, args: &[&str]) -> Invocation {
        Invocation::new("cargo", &self.root, args)
    }
}
