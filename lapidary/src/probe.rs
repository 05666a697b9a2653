//! Drivers that crash or hang when they are opened, found in a process of their own.
//!
//! A program that a driver ends can neither say so nor go on. So a program that calls [`leave_out_failing_drivers`] first opens each
//! driver that it does not know in a child process, and keeps the result on disk. [`Machine::open`](crate::Machine::open) reads these results,
//! in any program. Drivers are known on Linux and its kin; elsewhere nothing is tried.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use lapidary_core::{DriverFile, Error, ErrorKind, ProgramCache, Result};

use crate::open::open;
use crate::select::{Backend, Select};
use crate::settings::Settings;

/// Set for a child process: the backend whose drivers it opens, a colon, and the file that it makes afterwards.
const ORDER: &str = "LAPIDARY_PROBE_ORDER";
/// Seconds that a driver may take; 0 leaves out the probe.
const LIMIT: &str = "LAPIDARY_PROBE";
/// The limit if the variable is not set. A driver that starts many GPUs takes ten seconds and more.
const DEFAULT_LIMIT: Duration = Duration::from_secs(60);
/// Time between two looks at a child.
const STEP: Duration = Duration::from_millis(5);
/// What is kept of a driver that opens.
const OPENS: &str = "opens";

/// Opens drivers and ends the process, if it was started for that. Call it first in `main`.
pub fn answer() {
    let Some(order) = env::var_os(ORDER) else { return };
    let order = order.to_string_lossy();
    if let Some((backend, answer)) = order.split_once(':') {
        // an error is an answer too
        let _ = backend.parse::<Select>().and_then(|select| open(&select, &Settings::from_env()?).map(drop));
        let _ = fs::write(answer, []);
    }
    std::process::exit(0);
}

/// Opens each driver that is not known yet in a child process of this program, and takes those that crash or hang out of the
/// environment of this one: OpenCL and Vulkan then do not load them. `tell` gets a sentence before drivers are opened, which may take
/// seconds, and one for each that is left out.
///
/// The variable `LAPIDARY_PROBE` is the number of seconds that a driver may take (60); with `0` nothing is tried. Without a folder for
/// compiled programs nothing is tried either, since it would be tried each time.
///
/// # Safety
/// No other thread runs, since the environment changes. `main` has called [`answer`] before.
///
/// # Errors
/// `LAPIDARY_PROBE` is no number.
pub unsafe fn leave_out_failing_drivers(settings: &Settings, mut tell: impl FnMut(&str)) -> Result<()> {
    let (Some(limit), Some(folder)) = (limit()?, settings.cache_folder()) else { return Ok(()) };
    let folder = folder.join("drivers");
    let cache = settings.program_cache();
    for &backend in Backend::ALL {
        let drivers = drivers(backend);
        let unknown: Vec<&Driver> = drivers.iter().filter(|driver| driver.verdict(&cache).is_none()).collect();
        if !unknown.is_empty() {
            tell(&format!("the drivers of {backend} devices are opened for the first time, in a process of their own"));
        }
        // a folder that cannot be written is told of when programs are compiled
        let _ = try_all(backend, &unknown, &folder, limit, &cache);
        let failing: Vec<String> = drivers.iter().filter_map(|driver| driver.failure(&cache)).collect();
        if failing.is_empty() {
            continue;
        }
        let good: Vec<&Driver> = drivers.iter().filter(|driver| driver.failure(&cache).is_none()).collect();
        let mut hasher = DefaultHasher::new();
        good.iter().for_each(|driver| driver.file.manifest.hash(&mut hasher));
        if let Ok(variables) = only(backend, &good, &folder.join(format!("{:016x}", hasher.finish()))) {
            // SAFETY: as the caller promises.
            variables.into_iter().for_each(|(name, value)| unsafe { env::set_var(name, value) });
            failing.iter().for_each(|why| tell(why));
        }
    }
    Ok(())
}

/// Why drivers of a backend would end this process, if some are known to.
pub(crate) fn failures(backend: Backend, settings: &Settings) -> Option<Vec<String>> {
    if matches!(limit(), Ok(None)) || env::var_os(ORDER).is_some() {
        return None;
    }
    let cache = settings.program_cache();
    let failures: Vec<String> = drivers(backend).iter().filter_map(|driver| driver.failure(&cache)).collect();
    (!failures.is_empty()).then_some(failures)
}

/// The time that a driver may take; `None` if nothing is to be tried.
fn limit() -> Result<Option<Duration>> {
    let Some(text) = env::var_os(LIMIT).filter(|text| !text.is_empty()) else { return Ok(Some(DEFAULT_LIMIT)) };
    let seconds = text.to_str().and_then(|text| text.parse().ok());
    let refused =
        || Error::invalid("probe", format!("{LIMIT} = `{}`: give a whole number of seconds, 0 for no probe", text.display()));
    let limit = Duration::from_secs(seconds.ok_or_else(refused)?);
    Ok((!limit.is_zero()).then_some(limit))
}

/// A registered driver.
struct Driver {
    backend: Backend,
    file: DriverFile,
}

/// The registered drivers of a backend.
fn drivers(backend: Backend) -> Vec<Driver> {
    let files = match backend {
        Backend::Cpu => Vec::new(),
        #[cfg(feature = "opencl")]
        Backend::OpenCl => crate::opencl::drivers(),
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => crate::wgpu::drivers(),
    };
    files.into_iter().map(|file| Driver { backend, file }).collect()
}

impl Driver {
    /// What changes with the driver: its manifest, and the file of its library.
    fn key(&self) -> String {
        let DriverFile { manifest, library } = &self.file;
        let text = fs::read_to_string(manifest).unwrap_or_default();
        let about = find(library).and_then(|path| fs::metadata(path).ok());
        let version = about.and_then(|about| Some((about.len(), about.modified().ok()?)));
        format!("probe of {}\n{}\n{text}\n{version:?}", manifest.display(), self.backend)
    }

    /// What is known of the driver: `OPENS`, or how it ends its process.
    fn verdict(&self, cache: &ProgramCache) -> Option<String> {
        String::from_utf8(cache.load(&self.key())?).ok()
    }

    /// Why the driver is left out, if it is known to fail.
    fn failure(&self, cache: &ProgramCache) -> Option<String> {
        let how = self.verdict(cache).filter(|verdict| verdict != OPENS)?;
        let kind = if is_opencl(self.backend) { "OpenCL" } else { "Vulkan" };
        let file = self.file.manifest.display();
        Some(format!(
            "the {kind} driver of {file} is left out: {how}; LAPIDARY_PROBE=0 uses it, and `lapidary cache clear` has it tried again"
        ))
    }
}

/// Whether the drivers are those of OpenCL. wgpu uses those of Vulkan.
fn is_opencl(backend: Backend) -> bool {
    match backend {
        #[cfg(feature = "opencl")]
        Backend::OpenCl => true,
        _ => false,
    }
}

/// The file of a library that is named as the loader of the system finds it.
fn find(library: &Path) -> Option<PathBuf> {
    const USUAL: [&str; 7] =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/local/lib"];
    let named = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let places = env::split_paths(&named).chain(USUAL.map(PathBuf::from));
    // a path that is absolute replaces the place
    places.map(|place| place.join(library)).find(|path| path.exists())
}

/// Opens drivers of a backend in one child; if that fails, each in a child of its own. Keeps what is found.
fn try_all(backend: Backend, drivers: &[&Driver], folder: &Path, limit: Duration, cache: &ProgramCache) -> io::Result<()> {
    if drivers.len() > 1 && Probe::start(backend, drivers, folder, limit)?.failure().is_none() {
        drivers.iter().for_each(|driver| cache.store(&driver.key(), OPENS.as_bytes()));
        return Ok(());
    }
    let probes: Vec<Probe> =
        drivers.iter().map(|driver| Probe::start(backend, &[driver], folder, limit)).collect::<io::Result<_>>()?;
    for (driver, probe) in drivers.iter().zip(probes) {
        let verdict = probe.failure().unwrap_or_else(|| OPENS.to_owned());
        cache.store(&driver.key(), verdict.as_bytes());
    }
    Ok(())
}

/// Variables with which the loaders find these drivers only. The loader of OpenCL takes a folder, which is filled.
fn only(backend: Backend, drivers: &[&Driver], folder: &Path) -> io::Result<Vec<(&'static str, OsString)>> {
    let manifests = drivers.iter().map(|driver| driver.file.manifest.as_path());
    if !is_opencl(backend) {
        let list = env::join_paths(manifests).map_err(io::Error::other)?;
        // an empty list would mean the usual places
        let list = if list.is_empty() { "/dev/null".into() } else { list };
        return Ok(vec![("VK_DRIVER_FILES", list.clone()), ("VK_ICD_FILENAMES", list), ("VK_ADD_DRIVER_FILES", OsString::new())]);
    }
    fs::create_dir_all(folder)?;
    for (number, manifest) in manifests.enumerate() {
        fs::copy(manifest, folder.join(format!("{number}.icd")))?;
    }
    Ok(["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"].map(|name| (name, folder.into())).into())
}

/// A child that opens drivers.
struct Probe {
    child: Child,
    /// Files of the child; removed with this.
    folder: PathBuf,
    end: Instant,
    limit: Duration,
}

impl Probe {
    fn start(backend: Backend, drivers: &[&Driver], folder: &Path, limit: Duration) -> io::Result<Self> {
        let mut hasher = DefaultHasher::new();
        (std::process::id(), backend.to_string()).hash(&mut hasher);
        drivers.iter().for_each(|driver| driver.file.manifest.hash(&mut hasher));
        let folder = folder.join(format!("{:016x}", hasher.finish()));
        fs::create_dir_all(&folder)?;
        let variables = only(backend, drivers, &folder.join("vendors"))?;
        let mut order = OsString::from(format!("{backend}:"));
        order.push(folder.join("answer"));
        let mut command = Command::new(env::current_exe()?);
        command.envs(variables).env(ORDER, order).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
        Ok(Probe { child, folder, end: Instant::now() + limit, limit })
    }

    /// Waits for the child: how it failed, if it did.
    fn failure(mut self) -> Option<String> {
        let answer = self.folder.join("answer");
        loop {
            match self.child.try_wait() {
                _ if answer.exists() => return None,
                Ok(Some(status)) => return Some(format!("it ends the process that opens it ({status})")),
                Ok(None) if Instant::now() < self.end => std::thread::sleep(STEP),
                Ok(None) => return Some(format!("it does not open within {} s", self.limit.as_secs())),
                Err(error) => return Some(format!("its process is lost ({error})")),
            }
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // a child that has answered may crash or hang at its end: that is no matter
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The error for a selection of which only drivers that fail are left.
pub(crate) fn left_out(backend: Backend, failures: &[String]) -> Error {
    Error::new(ErrorKind::NoSuchDevice, "open", format!("no {backend} device is opened: {}", failures.join("; ")))
}
