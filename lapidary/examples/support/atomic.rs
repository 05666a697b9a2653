//! Files that appear whole or not at all.

use std::io::{Error, Result, Write};
use std::path::Path;

use tempfile::Builder;

/// Fails early where [`write_atomically`] would fail late, after minutes of work, or replace what is no file.
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

/// Fills a temporary file beside `path` and renames it.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let mut builder = Builder::new();
    // a temporary file is private by default; a result gets what the umask allows
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let write = || {
        let mut temporary = builder.tempfile_in(folder(path))?;
        temporary.write_all(content)?;
        temporary.persist(path).map(drop).map_err(|failed| failed.error)
    };
    write().map_err(|error: Error| Error::new(error.kind(), format!("{}: cannot write: {error}", path.display())))
}
