//! A cache of compiled programs on disk, so that the next process does not compile the same programs again.
//!
//! An entry of the cache is a file whose name is the hash of its key. The key is a text that contains everything on which the
//! compiled binary depends. The file contains the key, the binary and a checksum, because drivers accept binaries with flipped
//! bits. A binary runs as code, so the cache uses neither a folder nor a file that belongs to another user or to which other
//! users may write. An entry is written under a temporary name and then renamed, so that several processes may share a folder. If
//! the file of an entry cannot be read, the caller compiles the program again.

use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

#[cfg(test)]
mod tests;

const MAGIC: &[u8; 8] = b"LAPCACH1";
const HASH: usize = blake3::OUT_LEN;
/// Maximum size of all files of the cache together, in bytes. If the size is exceeded, the least recently used files are deleted.
const MAX_BYTES: u64 = 256 << 20;

/// A function that the cache calls with the name of each program before a driver loads or compiles the program.
struct Listener(Box<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// A cache of compiled programs in a folder of files.
#[derive(Debug)]
pub struct ProgramCache {
    folder: Option<PathBuf>,
    max_bytes: u64,
    hits: AtomicU64,
    misses: AtomicU64,
    rejected: AtomicU64,
    trouble: OnceLock<String>,
    listener: OnceLock<Listener>,
}

/// Numbers of programs that were found, not found, and rejected since this [`ProgramCache`] was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheCounts {
    /// Number of requested programs that were found and not rejected.
    pub hits: u64,
    /// Number of requested programs that were not found.
    pub misses: u64,
    /// Number of requested programs whose file was damaged or had another key, plus the number of binaries that a driver refused.
    pub rejected: u64,
}

/// One file of the cache folder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CacheEntry {
    /// Path of the file.
    pub path: PathBuf,
    /// The key of the entry. `None` if the file is damaged, cannot be read, or belongs to another user.
    pub key: Option<String>,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Time at which the file was last used.
    pub used: SystemTime,
}

impl ProgramCache {
    /// A cache in the folder `folder`. The cache creates the folder when it stores the first program. Without a folder the cache
    /// keeps no programs.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        let [hits, misses, rejected] = [0; 3].map(AtomicU64::new);
        ProgramCache { folder, max_bytes: MAX_BYTES, hits, misses, rejected, trouble: OnceLock::new(), listener: OnceLock::new() }
    }

    /// Registers the function `tell`. The cache calls `tell` with the name of each program before a driver loads or compiles the
    /// program. Only the first call of `listen` has an effect.
    pub fn listen(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        self.listener.get_or_init(|| Listener(Box::new(tell)));
    }

    /// Calls the function registered by [`listen`](Self::listen) with the name of a program that a driver is about to load or
    /// compile.
    pub fn announce(&self, program: &str) {
        if let Some(Listener(tell)) = self.listener.get() {
            tell(program);
        }
    }

    /// Whether the cache has a folder in which it keeps programs.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.folder.is_some()
    }

    /// The numbers of programs that were found, not found, and rejected so far.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        let [hits, misses, rejected] = [&self.hits, &self.misses, &self.rejected].map(|count| count.load(Ordering::Relaxed));
        CacheCounts { hits, misses, rejected }
    }

    /// The binary that is stored under `key`. `None` if there is no valid entry.
    pub fn load(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key).filter(|path| fs::metadata(parent(path)).and_then(|about| trust(&about)).is_ok());
        let found = path.and_then(|path| read(&path).map(|bytes| (path, bytes)));
        let Some((path, bytes)) = found else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        match open(&bytes) {
            Some((stored, binary)) if stored == key => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                // the time of last use decides which entries are deleted first; an error is ignored, because the time cannot be
                // set in a read-only folder
                let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
                Some(binary.to_vec())
            }
            Some(_) | None => {
                self.rejected.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// Records that the driver refused a binary, which the cache may have returned as a hit.
    pub fn reject(&self) {
        // the caller may have obtained the refused binary from elsewhere, so the number of hits may be 0
        let _ = self.hits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |hits| hits.checked_sub(1));
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Stores a binary under `key`. If the folder cannot be written, or if other users may write to it, the binary is not stored.
    /// The next process then compiles the program again, and [`trouble`](Self::trouble) states the reason.
    pub fn store(&self, key: &str, binary: &[u8]) {
        if let Some(path) = self.path(key) {
            match write(&path, key, binary) {
                Ok(()) => self.trim(&path),
                Err(error) => drop(self.trouble.get_or_init(|| format!("{}: {error}", path.display()))),
            }
        }
    }

    /// The path and the error of the first binary that could not be stored.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    /// Checks that the folder of the cache can be read, if the folder exists.
    ///
    /// # Errors
    /// Fails if the path of the cache exists and cannot be read as a folder. The error contains the path.
    pub fn check(&self) -> std::io::Result<()> {
        match self.folder.as_deref().map(|folder| (folder, fs::read_dir(folder))) {
            Some((folder, Err(error))) if error.kind() != ErrorKind::NotFound => {
                Err(std::io::Error::new(error.kind(), format!("{}: {error}", folder.display())))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// All files of the cache, the most recently used file first.
    #[must_use]
    pub fn entries(&self) -> Vec<CacheEntry> {
        let mut entries: Vec<CacheEntry> = self.files().map(|(path, about)| entry(path, &about)).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        entries
    }

    /// Removes all files of the cache. Returns the number of removed files.
    ///
    /// # Errors
    /// Fails if a file cannot be removed.
    pub fn clear(&self) -> std::io::Result<usize> {
        let entries = self.entries();
        for entry in &entries {
            // another process may have removed the file already
            match fs::remove_file(&entry.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(std::io::Error::new(error.kind(), format!("{}: {error}", entry.path.display())));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(entries.len())
    }

    /// All files of this cache: entries, and unfinished files of processes that were killed while they wrote an entry. Pipes and
    /// folders are left out, even if they have the name of an entry.
    fn files(&self) -> impl Iterator<Item = (PathBuf, fs::Metadata)> {
        let files = self.folder.as_deref().and_then(|folder| fs::read_dir(folder).ok());
        files.into_iter().flatten().filter_map(|file| {
            let path = file.ok()?.path();
            // the folder may contain files of other programs with the same extension
            let stem = path.file_stem()?.to_str()?;
            let hexadecimal = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            let ours = match path.extension()?.to_str()? {
                EXTENSION => stem.len() == NAME && hexadecimal(stem),
                UNFINISHED => stem.split('-').count() == 3 && stem.split('-').all(hexadecimal),
                _ => false,
            };
            let about = fs::metadata(&path).ok()?;
            (ours && about.is_file()).then_some((path, about))
        })
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        let name = blake3::hash(key.as_bytes()).to_hex();
        self.folder.as_ref().map(|folder| folder.join(&name[..NAME]).with_extension(EXTENSION))
    }

    /// Removes the least recently used files until the remaining files do not exceed the maximum size of the cache. The file
    /// `keep` is never removed.
    fn trim(&self, keep: &Path) {
        let mut files: Vec<(PathBuf, fs::Metadata)> = self.files().collect();
        files.sort_by_key(|(_, about)| std::cmp::Reverse(about.modified().ok()));
        let mut total = 0;
        for (path, about) in files {
            total += about.len();
            if total > self.max_bytes && path != keep {
                let _ = fs::remove_file(path);
            }
        }
    }
}

const EXTENSION: &str = "program";

/// Number of hexadecimal digits in the name of an entry.
const NAME: usize = 32;

/// Extension of the temporary file of an entry that is being written.
const UNFINISHED: &str = "unfinished";

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Creates the folder `folder` and its missing parent folders. On Unix, only the owner may access the created folders.
fn create(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Refuses a folder or a file if it belongs to another user, or if other users may write to it: a program of another user would
/// run as code.
#[cfg(unix)]
fn trust(about: &fs::Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let what = if about.is_dir() { "folder" } else { "file" };
    let refused = |reason: String| Err(std::io::Error::new(ErrorKind::PermissionDenied, reason));
    if about.uid() != rustix::process::geteuid().as_raw() {
        return refused(format!("the {what} belongs to another user, whose programs would run"));
    }
    if about.mode() & 0o022 != 0 {
        return refused(format!(
            "other users may write to the {what}, and their programs would run; empty the folder and chmod go-w it"
        ));
    }
    Ok(())
}

/// Accepts every folder and file. On systems other than Unix, other users cannot write to a user's folders unless the user allows
/// it.
#[cfg(not(unix))]
fn trust(_: &fs::Metadata) -> std::io::Result<()> {
    Ok(())
}

/// The bytes of a file, if the file is a regular file, belongs to the user, and no other user may write to it. Pipes are refused,
/// because reading a pipe would block.
fn read(path: &Path) -> Option<Vec<u8>> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.metadata().and_then(|about| trust(&about)).ok()?;
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn entry(path: PathBuf, about: &fs::Metadata) -> CacheEntry {
    let key = read(&path).and_then(|bytes| open(&bytes).map(|(key, _)| key.to_owned()));
    CacheEntry { path, key, bytes: about.len(), used: about.modified().unwrap_or(SystemTime::UNIX_EPOCH) }
}

/// The key and the binary in the bytes of an undamaged file. The file of an entry consists of the magic number, the checksum of
/// all bytes that follow the checksum, the length of the key, the key, and the binary.
fn open(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (checksum, rest) = rest.split_at_checked(HASH)?;
    if blake3::hash(rest).as_bytes() != checksum {
        return None;
    }
    let (length, rest) = rest.split_at_checked(8)?;
    let length = u64::from_le_bytes(length.try_into().ok()?);
    let (key, binary) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((std::str::from_utf8(key).ok()?, binary))
}

fn write(path: &Path, key: &str, binary: &[u8]) -> std::io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let rest = [&(key.len() as u64).to_le_bytes(), key.as_bytes(), binary].concat();
    let folder = parent(path);
    create(folder)?;
    trust(&fs::metadata(folder)?)?;
    // the time in the file name distinguishes the temporary files of two processes with the same process id, for example in two
    // containers
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let name = format!("{}-{}-{nanos:x}.{UNFINISHED}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let temporary = folder.join(name);
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create_new(true).open(&temporary)?;
    let written = [&MAGIC[..], blake3::hash(&rest).as_bytes(), &rest].iter().try_for_each(|part| file.write_all(part));
    drop(file);
    let done = written.and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}
