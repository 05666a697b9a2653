//! Files that appear whole or not at all; `-` is standard output.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use super::temporary::Temporary;
use crate::failure::{Failure, Result};
use crate::report;

/// Whether a name stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    let names: &[&str] = if cfg!(unix) { &["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] } else { &["-"] };
    names.iter().any(|name| path == Path::new(name))
}

/// Fills a temporary file in the folder of `path` and renames it, so that a
/// failure half-way leaves what was there before.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    if is_stdout(path) {
        report::to_stdout(fill);
        return Ok(());
    }
    let fail = |e: std::io::Error| Failure::write(path, e);
    let mut temporary = Temporary::new(folder(path)).map_err(fail)?;
    let mut out = BufWriter::with_capacity(1 << 20, temporary.file());
    let filled = fill(&mut out).and_then(|()| out.flush());
    // what was not written is not tried again
    drop(out.into_parts());
    filled.and_then(|()| temporary.persist(path)).map_err(fail)
}

/// Fails early where [`write`] would fail late: after hours of work. Where `path` is standard
/// output nothing else is printed there from now on.
pub fn check_folder(path: &Path) -> Result<()> {
    if is_stdout(path) {
        report::reserve_stdout();
        return Ok(());
    }
    if path.is_dir() {
        return Err(Failure::file(path, "is a folder, not a file to write"));
    }
    // renaming onto a device, a pipe or a link would replace it
    match path.symlink_metadata() {
        Ok(there) if there.is_symlink() => return Err(Failure::file(path, "is a link; name the file that it leads to")),
        Ok(there) if !there.is_file() => return Err(Failure::file(path, "is a device, a pipe or the like; name a file")),
        // a name that is too long, a folder that may not be entered
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(Failure::file(path, error)),
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
