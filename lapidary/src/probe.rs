//! Drivers that crash or hang when they are opened, found in child processes.
//!
//! A driver that crashes ends the program before it can report the driver. So a program that calls [`leave_out_failing_drivers`] first
//! opens each driver that it does not know in a child process, and keeps the result on disk.
//! [`Machine::open`](crate::Machine::open) reads these results, in any program. This is done on Linux and its kin, where files
//! register drivers; elsewhere nothing is probed.

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

/// Set for a child process: the backend whose drivers it opens.
const BACKEND: &str = "LAPIDARY_PROBE_BACKEND";
/// Set for a child process: the file that it makes when the drivers are open.
const ANSWER: &str = "LAPIDARY_PROBE_ANSWER";
/// Seconds that a driver may take; 0 leaves out the probe.
const TIMEOUT_VARIABLE: &str = "LAPIDARY_PROBE";
/// The limit if the variable is not set. A driver that starts many GPUs takes ten seconds and more.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two looks at a child.
const STEP: Duration = Duration::from_millis(5);
/// Time that a killed child may take to end. One that waits inside the operating system does not end, and is left behind.
const GRACE: Duration = Duration::from_secs(1);
/// Exit status of a child that could not make its file.
const NO_ANSWER: i32 = 86;
/// The text that is kept for a driver that opens.
const OPENS: &str = "opens";
/// Beginning of the text that is kept for a driver that hangs. The limit in seconds follows.
const HANGS: &str = "it does not open within ";

/// Opens drivers and ends the process, if it was started for that. Call it first in `main`, before arguments are read.
pub fn answer() {
    let (Some(backend), Some(file)) = (env::var_os(BACKEND), env::var_os(ANSWER)) else { return };
    std::thread::spawn(|| {
        // standard input ends when the parent does: a driver that hangs must not stay behind
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::abort();
    });
    // an error of a driver is not a crash
    let settings = Settings::from_env().unwrap_or_default();
    let _ = backend.to_string_lossy().parse::<Select>().and_then(|select| open(&select, &settings).map(drop));
    std::process::exit(if fs::write(file, []).is_ok() { 0 } else { NO_ANSWER });
}

/// A change of the environment by [`leave_out_failing_drivers`]. Its files are needed until the process ends.
#[must_use = "the loader of OpenCL reads files that are removed when this is dropped: keep it until `main` ends"]
#[derive(Debug, Default)]
pub struct LeftOut {
    _files: Vec<TempDir>,
}

/// Opens the drivers of the selected backends that are not known yet in child processes of this program. Removes those that crash
/// or hang from the environment of this process, so that OpenCL and Vulkan do not load them. `tell` gets a sentence before drivers
/// are opened, which may take seconds, and one for each that is left out.
///
/// The variable `LAPIDARY_PROBE` is the number of seconds that a driver may take (60); with `0` nothing is probed. Without a cache folder
/// nothing is probed either: the result could not be kept, and every start would probe again.
///
/// # Safety
/// No other thread runs, since the environment changes.
///
/// # Errors
/// `LAPIDARY_PROBE` is no number.
pub unsafe fn leave_out_failing_drivers(select: &Select, settings: &Settings, mut tell: impl FnMut(&str)) -> Result<LeftOut> {
    answer();
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
                // SAFETY: as the caller promises.
                variables.into_iter().for_each(|(name, value)| unsafe { env::set_var(name, value) });
                left_out._files.push(folder);
            }
            Err(error) => tell(&format!("all {backend} devices are left out, since no file can be made: {error}")),
        }
    }
    Ok(left_out)
}

/// Why registered drivers of a backend would end this process, for those that are known to. Empty if the probe is left out.
#[must_use]
pub fn failures(backend: Backend, settings: &Settings) -> Vec<String> {
    if matches!(timeout(), Ok(None)) || env::var_os(BACKEND).is_some() {
        return Vec::new();
    }
    let cache = settings.program_cache();
    registered(backend).iter().filter_map(|driver| driver.failure(&cache)).collect()
}

/// The time that a driver may take; `None` if nothing is to be probed.
fn timeout() -> Result<Option<Duration>> {
    let Some(text) = env::var_os(TIMEOUT_VARIABLE).filter(|text| !text.is_empty()) else { return Ok(Some(DEFAULT_TIMEOUT)) };
    let seconds = text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        let text = text.display();
        Error::invalid("probe", format!("{TIMEOUT_VARIABLE} = `{text}`: give a whole number of seconds, 0 for no probe"))
    })?;
    Ok(Some(Duration::from_secs(seconds)).filter(|timeout| !timeout.is_zero()))
}

/// A driver that a file registers.
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
    };
    files.into_iter().map(|file| RegisteredDriver { backend, file }).collect()
}

impl RegisteredDriver {
    /// The key in the cache: the text of the manifest, and the size and modification time of the library. For a library that is
    /// not found, these are of the file in which the system's loader lists libraries.
    fn key(&self) -> String {
        let DriverFile { manifest, library } = &self.file;
        let text = fs::read_to_string(manifest).unwrap_or_default();
        let file = library_file(library).unwrap_or_else(|| "/etc/ld.so.cache".into());
        let version = fs::metadata(file).ok().and_then(|about| Some((about.len(), about.modified().ok()?)));
        format!("probe of {}\n{}\n{text}\n{version:?}", library.display(), self.backend)
    }

    /// What is known of the driver: [`OPENS`], or how it ends its process. A driver that hung is not known if it may take longer now.
    fn verdict(&self, cache: &ProgramCache, timeout: Duration) -> Option<String> {
        let verdict = String::from_utf8(cache.load(&self.key())?).ok()?;
        let tried = verdict.strip_prefix(HANGS).and_then(|rest| rest.split(' ').next()?.parse().ok());
        tried.is_none_or(|seconds: u64| seconds >= timeout.as_secs()).then_some(verdict)
    }

    /// Why the driver is left out, if it is known to fail.
    fn failure(&self, cache: &ProgramCache) -> Option<String> {
        let how = self.verdict(cache, Duration::ZERO).filter(|verdict| verdict != OPENS)?;
        let kind = if uses_vulkan(self.backend) { "Vulkan" } else { "OpenCL" };
        let file = self.file.manifest.display();
        Some(format!(
            "the {kind} driver of {file} is left out: {how}; LAPIDARY_PROBE=0 uses it, and `lapidary cache clear` has it tried again"
        ))
    }
}

/// Whether the drivers are those of Vulkan.
fn uses_vulkan(backend: Backend) -> bool {
    match backend {
        Backend::Cpu => false,
        #[cfg(feature = "opencl")]
        Backend::OpenCl => false,
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => true,
    }
}

/// The path at which the system's loader finds a library, if it is one of the usual ones.
fn library_file(library: &Path) -> Option<PathBuf> {
    const USUAL: [&str; 7] =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/local/lib"];
    let named = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let places = env::split_paths(&named).chain(USUAL.map(PathBuf::from)).filter(|place| !place.as_os_str().is_empty());
    // a path that is absolute replaces the place
    places.map(|place| place.join(library)).find(|path| path.exists())
}

/// Opens all drivers of a backend that are not known to fail in one child. If that fails, opens the unknown ones one by one, first
/// alone, then beside those that open. Keeps what is found.
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

/// Variables with which the loaders find these drivers only. The loader of OpenCL takes a folder, which is filled.
fn variables_for(backend: Backend, drivers: &[&RegisteredDriver], folder: &Path) -> io::Result<Vec<(&'static str, OsString)>> {
    let manifests = drivers.iter().map(|driver| driver.file.manifest.as_path());
    if uses_vulkan(backend) {
        let list = env::join_paths(manifests).map_err(io::Error::other)?;
        // an empty list would mean the usual places
        let list = if list.is_empty() { "/dev/null".into() } else { list };
        return Ok(vec![("VK_DRIVER_FILES", list.clone()), ("VK_ICD_FILENAMES", list), ("VK_ADD_DRIVER_FILES", OsString::new())]);
    }
    for manifest in manifests {
        // the text, since the copy of a file that only root may write could not be removed or replaced
        fs::write(folder.join(manifest.file_name().unwrap_or(OsStr::new("driver.icd"))), fs::read(manifest)?)?;
    }
    let folder = || folder.as_os_str().to_owned();
    Ok(vec![("OCL_ICD_VENDORS", folder()), ("OPENCL_VENDOR_PATH", folder()), ("OCL_ICD_FILENAMES", OsString::new())])
}

/// How a child that opens drivers has ended.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Opens,
    /// The drivers crash or hang, as the end of a sentence that begins with the driver.
    Fails(String),
    /// The child was ended from outside, or could not answer.
    Unknown,
}

/// A child that opens drivers.
struct Probe {
    child: Child,
    /// Files of the child; removed with this.
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

    /// Waits for the child.
    fn outcome(mut self) -> Outcome {
        let answer = self.folder.path().join("answer");
        loop {
            match self.child.try_wait() {
                _ if answer.exists() => return Outcome::Opens,
                Ok(Some(status)) if is_its_own(status) => {
                    return Outcome::Fails(format!("it ends the process that opens it ({status})"));
                }
                Ok(None) if Instant::now() < self.end => std::thread::sleep(STEP),
                Ok(None) => return Outcome::Fails(format!("{HANGS}{} s", self.timeout.as_secs())),
                Ok(Some(_)) | Err(_) => return Outcome::Unknown,
            }
        }
    }
}

/// Whether a process has ended by what it did: by an exit status, or by a signal of a fault.
fn is_its_own(status: ExitStatus) -> bool {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        /// `SIGILL`, `SIGABRT`, `SIGBUS`, `SIGFPE`, `SIGSEGV`.
        const FAULTS: [i32; 5] = [4, 6, 7, 8, 11];
        return FAULTS.contains(&signal);
    }
    status.code() != Some(NO_ANSWER)
}

impl Drop for Probe {
    fn drop(&mut self) {
        // crashes and hangs after the answer are ignored
        let _ = self.child.kill();
        let end = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(STEP);
        }
    }
}

/// The error for a selection of which only drivers that fail are left.
pub(crate) fn left_out(backend: Backend, failures: &[String]) -> Error {
    Error::new(ErrorKind::NoSuchDevice, "open", format!("no {backend} device is opened: {}", failures.join("; ")))
}
