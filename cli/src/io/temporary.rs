//! Temporary files and folders. The program removes them when it ends, even if a signal ends it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tempfile::{NamedTempFile, TempDir};

use crate::progress;
use crate::report::note;

/// Paths of the temporary files and folders that exist now. A thread holds the lock while it creates, renames or removes one of them.
static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<PathBuf>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary file, which is removed unless [`persist`](Self::persist) renames it.
pub struct Temporary {
    file: Option<NamedTempFile>,
    path: PathBuf,
}

impl Temporary {
    /// Creates a temporary file in `folder`.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".lapidary-");
        // By default only the owner may read a temporary file. The finished file must have the permissions that the umask allows.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut files = files();
        let file = builder.tempfile_in(folder)?;
        let path = file.path().to_owned();
        files.push(path.clone());
        Ok(Temporary { file: Some(file), path })
    }

    /// The open file, for writing.
    pub fn file(&mut self) -> &mut std::fs::File {
        self.file.as_mut().expect("the file is there until it gets its name").as_file_mut()
    }

    /// Renames the file to `path`. If a file with this name exists, it is replaced, and the new file has its permissions.
    pub fn persist(mut self, path: &Path) -> io::Result<()> {
        let mut files = files();
        let file = self.file.take().expect("a file gets its name once");
        if let Ok(replaced) = path.metadata() {
            file.as_file().set_permissions(replaced.permissions())?;
        }
        // If the rename fails, the destructor of the error removes the temporary file.
        let result = file.persist(path).map(drop).map_err(|error| error.error);
        files.retain(|there| there != &self.path);
        result
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let mut files = files();
            drop(file);
            files.retain(|there| there != &self.path);
        }
    }
}

/// A temporary folder, which is removed with its files.
pub struct TemporaryFolder {
    folder: Option<TempDir>,
    path: PathBuf,
}

impl TemporaryFolder {
    /// Creates an empty folder among the temporary files of the system.
    pub fn new() -> io::Result<Self> {
        let mut files = files();
        let folder = tempfile::tempdir()?;
        let path = folder.path().to_owned();
        files.push(path.clone());
        Ok(TemporaryFolder { folder: Some(folder), path })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let mut files = files();
        drop(self.folder.take());
        files.retain(|there| there != &self.path);
    }
}

/// Makes signals that end the program remove the temporary files first. An interrupt (Ctrl-C) also clears the progress bar, prints a
/// message, and ends the program with the status [`Status::Interrupted`](crate::failure::Status::Interrupted). Drivers with LLVM end the
/// process at an interrupt, unless the process handles interrupts before it loads them, so that the program calls this function before
/// a command opens devices.
pub fn watch_signals() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(system::watch_signals);
}

/// Whether the first interrupt (Ctrl-C) only sets [`INTERRUPTED`].
static FINISHES: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes the first interrupt (Ctrl-C) set the returned flag, so that the command can finish its work. A second interrupt ends the
/// program.
pub fn finish_on_interrupt() -> &'static AtomicBool {
    FINISHES.store(true, Ordering::Relaxed);
    &INTERRUPTED
}

/// Whether an interrupt has just set the flag of [`finish_on_interrupt`], and the program continues.
fn finishes_first() -> bool {
    FINISHES.load(Ordering::Relaxed) && !INTERRUPTED.swap(true, Ordering::Relaxed)
}

/// Makes interrupts (Ctrl-C) leave this process alone. A terminal sends an interrupt to a worker process too, which the watching
/// process ends.
pub fn ignore_interrupts() {
    system::ignore_interrupts();
}

/// Clears the progress bar and tells the user that the program ends before its work is done.
fn tell_interrupted() {
    progress::clear();
    note("lapidary: interrupted");
}

/// Removes all temporary files and folders. Returns the lock, so that no other thread can create or rename a temporary file until the program
/// ends.
fn remove_all() -> MutexGuard<'static, Vec<PathBuf>> {
    let files = files();
    for path in files.iter() {
        // If the system refuses to remove a file or folder, the program goes on with the next one, because it is about to end.
        let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path));
    }
    files
}

/// Makes a write beyond the file size limit of the process return an error. By default the signal SIGXFSZ would end the program.
pub fn survive_file_size_limit() {
    system::survive_file_size_limit();
}

#[cfg(unix)]
mod system {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, mpsc};
    use std::{mem, ptr, thread};

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::{emulate_default_handler, exit};

    use crate::failure::Status;

    /// Starts a thread that waits for the signals that end a program. When a signal arrives that ends a program, the thread removes
    /// the temporary files. An interrupt then ends the program at once, without the functions that libraries run at the exit, since other
    /// threads still use the drivers. Another signal takes its default action. If the system refuses to start the thread, the
    /// signals end the program directly, and temporary files may remain.
    pub(super) fn watch_signals() {
        let (ready, wait_until_ready) = mpsc::channel();
        let watch = move || {
            let ending = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
            let Ok(mut signals) = Signals::new(ending) else { return };
            let _ = ready.send(());
            let ends = |&signal: &libc::c_int| signal != SIGINT || !super::finishes_first();
            if let Some(signal) = signals.forever().find(ends) {
                let _files = super::remove_all();
                if signal == SIGINT {
                    super::tell_interrupted();
                    exit(Status::Interrupted as i32);
                }
                let _ = emulate_default_handler(signal);
            }
        };
        if thread::Builder::new().name("signals".to_owned()).spawn(watch).is_ok() {
            // If the thread cannot watch the signals, it closes the channel, so that `recv` returns.
            let _ = wait_until_ready.recv();
        }
    }

    /// Whether the program was started with this signal ignored, as by `nohup`.
    fn is_ignored(signal: libc::c_int) -> bool {
        // SAFETY: a `sigaction` of zeros is valid. Since the call sets no new action, it only writes the current action to
        // `action`, which this function owns.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
        }
    }

    pub(super) fn ignore_interrupts() {
        // A SIGINT with a handler does not end the program.
        let _ = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    }

    pub(super) fn survive_file_size_limit() {
        // A SIGXFSZ with a handler does not end the program, so that the write beyond the limit returns an error.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
}

#[cfg(windows)]
mod system {
    /// Exit status that Windows gives to a program that Ctrl+C ends.
    const STATUS_CONTROL_C_EXIT: i32 = 0xC000_013A_u32.cast_signed();

    pub(super) fn watch_signals() {
        let end = || {
            if super::finishes_first() {
                return;
            }
            let _files = super::remove_all();
            super::tell_interrupted();
            std::process::exit(STATUS_CONTROL_C_EXIT);
        };
        let _ = ctrlc::set_handler(end);
    }

    pub(super) fn ignore_interrupts() {
        let _ = ctrlc::set_handler(|| {});
    }

    pub(super) fn survive_file_size_limit() {}
}

#[cfg(not(any(unix, windows)))]
mod system {
    pub(super) fn watch_signals() {}

    pub(super) fn ignore_interrupts() {}

    pub(super) fn survive_file_size_limit() {}
}
