//! Opens drivers in child processes, to find drivers that crash or hang.
//!
//! A driver that crashes terminates the program before the program can report the driver. [`leave_out_failing_drivers`] therefore
//! opens each unknown driver in a child process, and stores on disk whether the driver opens, crashes or hangs.
//! [`Machine::open`](crate::Machine::open) reads the stored results of all probes, also in programs that do not probe drivers.
//! Drivers are probed only on Linux and similar systems, where drivers are registered by files.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use lapidary_core::{DriverFile, Error, ErrorKind, ProgramCache, Result};
use tempfile::TempDir;

use crate::open::open;
use crate::select::{Backend, Select};
use crate::settings::Settings;

/// Environment variable of a child process: the backend whose drivers the child opens.
const BACKEND: &str = "LAPIDARY_PROBE_BACKEND";
/// Environment variable of a child process: the file that the child creates when the drivers are open.
const ANSWER: &str = "LAPIDARY_PROBE_ANSWER";
/// Environment variable with the number of seconds that a driver may take to open. If `LAPIDARY_PROBE` is 0, no driver is probed.
const TIMEOUT_VARIABLE: &str = "LAPIDARY_PROBE";
/// Time that a driver may take to open if `LAPIDARY_PROBE` is unset. A driver that initialises many GPUs takes ten seconds and
/// more.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two checks whether a child process has ended.
const STEP: Duration = Duration::from_millis(5);
/// Maximum time to wait for the end of a killed child process. A child process that is blocked inside the operating system does not
/// end and is abandoned.
const GRACE: Duration = Duration::from_secs(1);
/// Exit status of a child process that could not create its answer file.
const NO_ANSWER: i32 = 86;
/// Cached result of the probe of a driver that opens.
const OPENS: &str = "opens";
/// Prefix of the cached result of the probe of a driver that hangs. The time limit in seconds follows this prefix.
const HANGS: &str = "it does not open within ";

/// In a child process that was started to probe drivers, opens the drivers and ends the process. In a process that was not started
/// to probe drivers, returns at once. Call this function first in `main`, before the program reads its arguments.
pub fn run_if_probe_child() {
    let (Some(backend), Some(file)) = (env::var_os(BACKEND), env::var_os(ANSWER)) else { return };
    std::thread::spawn(|| {
        // Standard input ends when the parent process ends. A child with a hanging driver must not outlive its parent.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::abort();
    });
    // Errors are ignored, since a driver that returns an error has not crashed.
    let settings = Settings::from_env().unwrap_or_default();
    let _ = backend.to_string_lossy().parse::<Select>().and_then(|select| open(&select, &settings).map(drop));
    std::process::exit(if fs::write(file, []).is_ok() { 0 } else { NO_ANSWER });
}

/// Owns the files that [`leave_out_failing_drivers`] has created and named in environment variables. The OpenCL loader may read the
/// files of a `LeftOut` until the process ends.
#[must_use = "the loader of OpenCL reads files that are removed when this is dropped: keep it until `main` ends"]
#[derive(Debug, Default)]
pub struct LeftOut {
    _files: Vec<TempDir>,
}

/// Opens unknown drivers of the selected backends in child processes of this program. Sets environment variables of this process,
/// so that the OpenCL and Vulkan loaders do not load drivers that crash or hang. `tell` receives a message before drivers are
/// opened, which may take seconds, and a message for each driver that will not be loaded.
///
/// The environment variable `LAPIDARY_PROBE` is the number of seconds that a driver may take (default 60); if it is `0`, no driver
/// is probed. Without a cache folder no driver is probed, since every start of the program would probe all drivers again.
///
/// # Safety
/// No other thread may run, since the function changes the environment.
///
/// # Errors
/// The value of `LAPIDARY_PROBE` is not a number.
pub unsafe fn leave_out_failing_drivers(select: &Select, settings: &Settings, mut tell: impl FnMut(&str)) -> Result<LeftOut> {
    run_if_probe_child();
    let mut left_out = LeftOut::default();
    let (Some(timeout), cache) = (timeout()?, settings.program_cache()) else { return Ok(left_out) };
    if !cache.keeps() {
        return Ok(left_out);
    }
    for backend in select.backends() {
        let drivers = registered(backend);
        if drivers.iter().any(|driver| driver.verdict(&cache, timeout).is_none()) {
            tell(&format!("the drivers of {backend} devices are opened for the first time, in a process of their own"));
            if let Err(error) = try_all(backend, &drivers, timeout, &cache) {
                tell(&format!("no process opens the drivers of {backend} devices: {error}"));
            }
        }
        let (good, failing): (Vec<_>, Vec<_>) = drivers.iter().partition(|driver| driver.failure(&cache).is_none());
        if failing.is_empty() {
            continue;
        }
        failing.iter().filter_map(|driver| driver.failure(&cache)).for_each(|why| tell(&why));
        match TempDir::with_prefix("lapidary-").and_then(|folder| Ok((variables_for(backend, &good, folder.path())?, folder))) {
            Ok((variables, folder)) => {
                // SAFETY: the caller guarantees that no other thread runs.
                variables.into_iter().for_each(|(name, value)| unsafe { env::set_var(name, value) });
                left_out._files.push(folder);
            }
            Err(error) => tell(&format!("all {backend} devices are left out, since no file can be made: {error}")),
        }
    }
    Ok(left_out)
}

/// Returns messages about the drivers of a backend that are known to crash or hang. The result is empty if probes are disabled.
#[must_use]
pub fn failures(backend: Backend, settings: &Settings) -> Vec<String> {
    if matches!(timeout(), Ok(None)) || env::var_os(BACKEND).is_some() {
        return Vec::new();
    }
    let cache = settings.program_cache();
    registered(backend).iter().filter_map(|driver| driver.failure(&cache)).collect()
}

/// Returns the time that a driver may take to open. Returns `None` if probes are disabled.
fn timeout() -> Result<Option<Duration>> {
    let Some(text) = env::var_os(TIMEOUT_VARIABLE).filter(|text| !text.is_empty()) else { return Ok(Some(DEFAULT_TIMEOUT)) };
    let seconds = text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        let text = text.display();
        Error::invalid("probe", format!("{TIMEOUT_VARIABLE} = `{text}`: give a whole number of seconds, 0 for no probe"))
    })?;
    Ok(Some(Duration::from_secs(seconds)).filter(|timeout| !timeout.is_zero()))
}

/// A driver that is registered by a file.
struct RegisteredDriver {
    backend: Backend,
    file: DriverFile,
}

fn registered(backend: Backend) -> Vec<RegisteredDriver> {
    let files = match backend {
        Backend::Cpu => Vec::new(),
        #[cfg(feature = "opencl")]
        Backend::OpenCl => crate::opencl::drivers(),
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => crate::wgpu::drivers(),
        #[cfg(not(all(feature = "opencl", feature = "wgpu")))]
        _ => Vec::new(),
    };
    files.into_iter().map(|file| RegisteredDriver { backend, file }).collect()
}

impl RegisteredDriver {
    /// The cache key: the text of the manifest, and the size and modification time of the library. If the library is not found,
    /// the size and modification time are those of the file in which the system's loader lists libraries.
    fn key(&self) -> String {
        let DriverFile { manifest, library } = &self.file;
        let text = fs::read_to_string(manifest).unwrap_or_default();
        let file = library_file(library).unwrap_or_else(|| "/etc/ld.so.cache".into());
        let version = fs::metadata(file).ok().and_then(|about| Some((about.len(), about.modified().ok()?)));
        format!("probe of {}\n{}\n{text}\n{version:?}", library.display(), self.backend)
    }

    /// Returns the cached result: [`OPENS`], or a text that says how the driver fails. Returns `None` for an unknown driver, and
    /// for a driver that hung with a shorter time limit than `timeout`.
    fn verdict(&self, cache: &ProgramCache, timeout: Duration) -> Option<String> {
        let verdict = String::from_utf8(cache.load(&self.key())?).ok()?;
        let tried = verdict.strip_prefix(HANGS).and_then(|rest| rest.split(' ').next()?.parse().ok());
        tried.is_none_or(|seconds: u64| seconds >= timeout.as_secs()).then_some(verdict)
    }

    /// Returns the reason why the driver is not loaded, if the driver is known to fail.
    fn failure(&self, cache: &ProgramCache) -> Option<String> {
        let how = self.verdict(cache, Duration::ZERO).filter(|verdict| verdict != OPENS)?;
        let kind = if uses_vulkan(self.backend) { "Vulkan" } else { "OpenCL" };
        let file = self.file.manifest.display();
        Some(format!(
            "the {kind} driver of {file} is left out: {how}; LAPIDARY_PROBE=0 uses it, and `lapidary cache clear` has it tried again"
        ))
    }
}

/// Whether the backend uses Vulkan drivers.
fn uses_vulkan(backend: Backend) -> bool {
    backend == Backend::Wgpu
}

/// Returns the path of a library in the folders that the system's loader usually searches.
fn library_file(library: &Path) -> Option<PathBuf> {
    const USUAL: [&str; 7] =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/local/lib"];
    let named = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let places = env::split_paths(&named).chain(USUAL.map(PathBuf::from)).filter(|place| !place.as_os_str().is_empty());
    // joining an absolute path replaces the folder
    places.map(|place| place.join(library)).find(|path| path.exists())
}

/// Opens all unknown drivers of a backend in one child process, together with the drivers that are known to open. If this child
/// process crashes or hangs, opens each unknown driver in a child process of its own, first alone, then together with the drivers
/// that open. The results are stored in the cache.
fn try_all(backend: Backend, drivers: &[RegisteredDriver], timeout: Duration, cache: &ProgramCache) -> io::Result<()> {
    let keep = |driver: &RegisteredDriver, verdict: &str| cache.store(&driver.key(), verdict.as_bytes());
    let (known, unknown): (Vec<_>, Vec<_>) = drivers.iter().partition(|driver| driver.verdict(cache, timeout).is_some());
    let mut good: Vec<&RegisteredDriver> = known.into_iter().filter(|driver| driver.failure(cache).is_none()).collect();
    let all = [&good[..], &unknown[..]].concat();
    if all.len() > 1 && Probe::start(backend, &all, timeout)?.outcome() == Outcome::Opens {
        unknown.iter().for_each(|driver| keep(driver, OPENS));
        return Ok(());
    }
    let alone = unknown.iter().map(|driver| Probe::start(backend, &[driver], timeout)).collect::<io::Result<Vec<_>>>()?;
    let outcomes: Vec<Outcome> = alone.into_iter().map(Probe::outcome).collect();
    for (&driver, outcome) in unknown.iter().zip(outcomes) {
        let beside = [&good[..], &[driver]].concat();
        let outcome = match outcome {
            Outcome::Opens if beside.len() > 1 => match Probe::start(backend, &beside, timeout)?.outcome() {
                Outcome::Fails(how) => Outcome::Fails(format!("{how} beside the drivers before it")),
                outcome => outcome,
            },
            outcome => outcome,
        };
        match outcome {
            Outcome::Opens => {
                keep(driver, OPENS);
                good.push(driver);
            }
            Outcome::Fails(how) => keep(driver, &how),
            Outcome::Unknown => {}
        }
    }
    Ok(())
}

/// Returns environment variables with which the loaders find only these drivers. For the OpenCL loader, copies the manifests to
/// `folder`.
fn variables_for(backend: Backend, drivers: &[&RegisteredDriver], folder: &Path) -> io::Result<Vec<(&'static str, OsString)>> {
    let manifests = drivers.iter().map(|driver| driver.file.manifest.as_path());
    if uses_vulkan(backend) {
        let list = env::join_paths(manifests).map_err(io::Error::other)?;
        // with an empty list, the loader would search the usual folders
        let list = if list.is_empty() { "/dev/null".into() } else { list };
        return Ok(vec![("VK_DRIVER_FILES", list.clone()), ("VK_ICD_FILENAMES", list), ("VK_ADD_DRIVER_FILES", OsString::new())]);
    }
    for manifest in manifests {
        // Only the text of the manifest is copied, not its permissions: a copy that only root may write could not be removed or
        // replaced.
        fs::write(folder.join(manifest.file_name().unwrap_or(OsStr::new("driver.icd"))), fs::read(manifest)?)?;
    }
    let folder = || folder.as_os_str().to_owned();
    Ok(vec![("OCL_ICD_VENDORS", folder()), ("OPENCL_VENDOR_PATH", folder()), ("OCL_ICD_FILENAMES", OsString::new())])
}

/// Result of a child process that opens drivers.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Opens,
    /// The drivers make the child process crash or hang. The text of `Fails` completes a sentence that begins with the name of the
    /// driver.
    Fails(String),
    /// Another process ended the child process, or the child process could not create its answer file.
    Unknown,
}

/// A child process that opens drivers.
struct Probe {
    child: Child,
    /// Folder for the files of the child. This folder is removed when the `Probe` is dropped.
    folder: TempDir,
    end: Instant,
    timeout: Duration,
}

impl Probe {
    fn start(backend: Backend, drivers: &[&RegisteredDriver], timeout: Duration) -> io::Result<Self> {
        let folder = TempDir::with_prefix("lapidary-")?;
        let mut command = Command::new(env::current_exe()?);
        command.envs(variables_for(backend, drivers, folder.path())?);
        command.env(BACKEND, backend.to_string()).env(ANSWER, folder.path().join("answer"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Probe { child, folder, end: Instant::now() + timeout, timeout })
    }

    /// Waits until the child process has created its answer file or has ended, or until the time limit has passed, and returns the
    /// result.
    fn outcome(mut self) -> Outcome {
        let answer = self.folder.path().join("answer");
        loop {
            match self.child.try_wait() {
                _ if answer.exists() => return Outcome::Opens,
                Ok(Some(status)) if is_self_inflicted(status) => {
                    return Outcome::Fails(format!("it ends the process that opens it ({status})"));
                }
                Ok(None) if Instant::now() < self.end => std::thread::sleep(STEP),
                Ok(None) => return Outcome::Fails(format!("{HANGS}{} s", self.timeout.as_secs())),
                Ok(Some(_)) | Err(_) => return Outcome::Unknown,
            }
        }
    }
}

/// Whether the exit status of a process comes from the process itself: an exit code, or a signal caused by a fault.
fn is_self_inflicted(status: ExitStatus) -> bool {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        /// The numbers of `SIGILL`, `SIGABRT`, `SIGBUS`, `SIGFPE` and `SIGSEGV`.
        const FAULTS: [i32; 5] = [4, 6, 7, 8, 11];
        return FAULTS.contains(&signal);
    }
    status.code() != Some(NO_ANSWER)
}

impl Drop for Probe {
    fn drop(&mut self) {
        // crashes and hangs after the child process has created its answer file are ignored
        let _ = self.child.kill();
        let end = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(STEP);
        }
    }
}

/// The error for a selection whose drivers all fail.
pub(crate) fn left_out(backend: Backend, failures: &[String]) -> Error {
    Error::new(ErrorKind::NoSuchDevice, "open", format!("no {backend} device is opened: {}", failures.join("; ")))
}
