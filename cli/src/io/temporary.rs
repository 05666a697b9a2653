//! Temporary files, which go away with the program, also where a signal ends it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tempfile::NamedTempFile;

/// The temporary files that are there now. Who makes, renames or removes one holds the lock.
static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<PathBuf>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is removed unless it gets its name.
pub struct Temporary {
    file: Option<NamedTempFile>,
    path: PathBuf,
}

impl Temporary {
    /// A new file in `folder`.
    pub fn new(folder: &Path) -> io::Result<Self> {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(system::remove_files_at_the_end);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".lapidary-");
        // a temporary file is private by default; a result gets what the umask allows
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut files = files();
        let file = builder.tempfile_in(folder)?;
        let path = file.path().to_owned();
        files.push(path.clone());
        Ok(Temporary { file: Some(file), path })
    }

    /// The file, for writing.
    pub fn file(&mut self) -> &mut std::fs::File {
        self.file.as_mut().expect("the file is there until it gets its name").as_file_mut()
    }

    /// Gives the file its name, in place of what was there.
    pub fn persist(mut self, path: &Path) -> io::Result<()> {
        let mut files = files();
        let file = self.file.take().expect("a file gets its name once");
        // where that fails the file is removed
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

/// Removes what is there and keeps the lock, so that nothing is made or renamed any more.
fn remove_all() -> MutexGuard<'static, Vec<PathBuf>> {
    let files = files();
    for path in files.iter() {
        // nothing more can be done about one that stays
        let _ = std::fs::remove_file(path);
    }
    files
}

/// Lets a write beyond the limit on the size of files fail, in place of ending the program.
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
    use signal_hook::low_level::emulate_default_handler;

    /// A thread waits for the signals that end programs, removes the files, and lets the signal
    /// do what it would have done. Without a thread signals act as ever, and files may stay.
    pub(super) fn remove_files_at_the_end() {
        let (ready, wait_until_ready) = mpsc::channel();
        let watch = move || {
            let ending = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
            let Ok(mut signals) = Signals::new(ending) else { return };
            let _ = ready.send(());
            if let Some(signal) = signals.forever().next() {
                let _files = super::remove_all();
                let _ = emulate_default_handler(signal);
            }
        };
        if thread::Builder::new().name("signals".to_owned()).spawn(watch).is_ok() {
            // an error says that the thread could not watch
            let _ = wait_until_ready.recv();
        }
    }

    /// Whether who started the program wants a signal to be ignored, as `nohup` does.
    fn is_ignored(signal: libc::c_int) -> bool {
        // SAFETY: a `sigaction` of zeros is one; without a new action the call only fills it
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
        }
    }

    pub(super) fn survive_file_size_limit() {
        // a signal that is caught ends nothing; the write that was too much returns an error
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
}

#[cfg(windows)]
mod system {
    /// What a program ends with that Ctrl+C has ended.
    const STATUS_CONTROL_C_EXIT: i32 = 0xC000_013A_u32.cast_signed();

    pub(super) fn remove_files_at_the_end() {
        let end = || {
            let _files = super::remove_all();
            std::process::exit(STATUS_CONTROL_C_EXIT);
        };
        let _ = ctrlc::set_handler(end);
    }

    pub(super) fn survive_file_size_limit() {}
}

#[cfg(not(any(unix, windows)))]
mod system {
    pub(super) fn remove_files_at_the_end() {}

    pub(super) fn survive_file_size_limit() {}
}
