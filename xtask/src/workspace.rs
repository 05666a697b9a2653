//! What the chores know of the workspace.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::Result;
use crate::runner::Invocation;

/// The workspace: its packages and its files.
pub struct Workspace {
    /// The folder of the repository.
    pub root: PathBuf,
    /// What `cargo metadata` says, without dependencies of dependencies.
    pub metadata: Metadata,
}

impl Workspace {
    /// Asks cargo.
    pub fn load() -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().map_err(|error| format!("cargo metadata: {error}"))?;
        Ok(Workspace { root: metadata.workspace_root.clone().into(), metadata })
    }

    /// The packages, in no particular order.
    pub fn packages(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }

    /// The folder of a package, from the root.
    pub fn folder<'a>(&'a self, package: &'a Package) -> &'a Path {
        let folder = package.manifest_path.parent().map_or(Path::new(""), |folder| folder.as_std_path());
        folder.strip_prefix(&self.root).unwrap_or(folder)
    }

    /// A file's text; its path is from the root.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.root.join(path);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether a file or folder exists; its path is from the root.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The oldest supported compiler, as the workspace states it: `MAJOR.MINOR`.
    pub fn rust_version(&self) -> Option<String> {
        let version = self.packages().iter().find_map(|package| package.rust_version.clone())?;
        Some(format!("{}.{}", version.major, version.minor))
    }

    /// A file or folder below the target folder.
    pub fn target(&self, path: &str) -> PathBuf {
        self.metadata.target_directory.join(path).into()
    }

    /// A cargo command in the root.
    pub fn cargo(&self, args: &[&str]) -> Invocation {
        Invocation::new("cargo", &self.root, args)
    }
}
