//! Writes files completely or not at all. The file name `-` stands for standard output.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use super::temporary::Temporary;
use crate::failure::{Failure, Result};
use crate::report;

/// Whether a file name stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    let names: &[&str] = if cfg!(unix) { &["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] } else { &["-"] };
    names.iter().any(|name| path == Path::new(name))
}

/// Fills a temporary file in the folder of `path` and renames it to `path`. If writing fails, an existing file at `path` stays
/// unchanged.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    if is_stdout(path) {
        report::to_stdout(fill);
        return Ok(());
    }
    let fail = |e: std::io::Error| Failure::write(path, e);
    let mut temporary = Temporary::new(folder(path)).map_err(fail)?;
    let mut out = BufWriter::with_capacity(1 << 20, temporary.file());
    let filled = fill(&mut out).and_then(|()| out.flush());
    // The program takes the buffered writer apart, since its destructor would try to write the remaining bytes again.
    drop(out.into_parts());
    filled.and_then(|()| temporary.persist(path)).map_err(fail)
}

/// Writes a text file as [`write()`] does.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    write(path, |out| out.write_all(text.as_bytes()))
}

/// Checks whether [`write()`] can write `path`. The commands call this function before they compute, so that a `path` that cannot
/// be written is reported at once, and not after hours of computation. If `path` is standard output, no other text is printed there after this call.
pub fn check_folder(path: &Path) -> Result<()> {
    if is_stdout(path) {
        report::reserve_stdout();
        return Ok(());
    }
    if path.is_dir() {
        return Err(Failure::file(path, "is a folder, not a file to write"));
    }
    // A rename would replace a device, a pipe or a link by a regular file.
    match path.symlink_metadata() {
        Ok(there) if there.is_symlink() => return Err(Failure::file(path, "is a link; name the file that it leads to")),
        Ok(there) if !there.is_file() => return Err(Failure::file(path, "is a device, a pipe or the like; name a file")),
        // a rename would replace this file, too
        Ok(there) if there.permissions().readonly() => {
            return Err(Failure::file(path, "is write-protected; name another file, or make this one writable"));
        }
        // The file name may be too long, or the folder may not be accessible.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(Failure::file(path, error)),
        Ok(_) | Err(_) => {}
    }
    let folder = folder(path);
    if !folder.is_dir() {
        return Err(Failure::file(path, format!("there is no folder {}", folder.display())));
    }
    // A temporary file tests whether the folder is writable. The temporary file has no name, or is deleted at once.
    tempfile::tempfile_in(folder).map(drop).map_err(|error| Failure::write(path, error))
}

/// The folder that contains, or will contain, the file at `path`.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) | None => Path::new("."),
    }
}
