//! Files that appear whole or not at all.

use std::io::{BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};

/// Fills a temporary file in the folder of `path` and renames it, so that a
/// failure half-way leaves what was there before.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let fail = |e: std::io::Error| Failure::write(path, e);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".lapidary-");
    // a temporary file is private by default; a result gets what the umask allows
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut temporary = builder.tempfile_in(folder(path)).map_err(fail)?;
    let mut out = BufWriter::with_capacity(1 << 20, temporary.as_file_mut());
    fill(&mut out).and_then(|()| out.flush()).map_err(fail)?;
    drop(out);
    persist(temporary, path)
}

fn persist(temporary: NamedTempFile, path: &Path) -> Result<()> {
    temporary.persist(path).map(drop).map_err(|e| Failure::write(path, e.error))
}

/// Fails early where [`write`] would fail late: after hours of work.
pub fn check_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Failure::file(path, "is a folder, not a file to write"));
    }
    // renaming onto a device, a pipe or a link would replace it
    match path.symlink_metadata() {
        Ok(there) if there.is_symlink() => return Err(Failure::file(path, "is a link; name the file that it leads to")),
        Ok(there) if !there.is_file() => return Err(Failure::file(path, "is a device, a pipe or the like; name a file")),
        Ok(_) | Err(_) => {}
    }
    let folder = folder(path);
    if !folder.is_dir() {
        return Err(Failure::file(path, format!("there is no folder {}", folder.display())));
    }
    // a file without a name where the system has such; one that is deleted at once elsewhere
    tempfile::tempfile_in(folder).map(drop).map_err(|error| Failure::write(path, error))
}

/// Where a file is or will be.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) | None => Path::new("."),
    }
}
