//! Writes files atomically: a file appears with its whole content or not at all.

use std::io::{Error, Result, Write};
use std::path::Path;

use tempfile::Builder;

/// Checks before a long computation that [`write_atomically`] can write to `path`: the folder exists, and `path` is a regular
/// file or does not exist.
pub fn check_file(path: &Path) -> Result<()> {
    let refusal = |reason: String| Err(Error::other(format!("{}: {reason}", path.display())));
    match path.symlink_metadata() {
        Ok(there) if there.is_dir() => return refusal("is a folder; name a file".to_owned()),
        Ok(there) if !there.is_file() => return refusal("is a link, a device or the like; name a file".to_owned()),
        Ok(_) | Err(_) => {}
    }
    let folder = folder(path);
    if folder.is_dir() { Ok(()) } else { refusal(format!("there is no folder {}", folder.display())) }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Writes a temporary file beside `path` and renames it to `path`.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let mut builder = Builder::new();
    // A temporary file is private by default; the final file gets the permissions that the umask allows.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let write = || {
        let mut temporary = builder.tempfile_in(folder(path))?;
        temporary.write_all(content)?;
        temporary.persist(path).map(drop).map_err(|failed| failed.error)
    };
    write().map_err(|error: Error| Error::new(error.kind(), format!("{}: cannot write: {error}", path.display())))
}
