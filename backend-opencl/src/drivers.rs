//! Why there is no OpenCL, or no driver of it: the loader passes over libraries that do not load
//! without a word.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use lapidary_core::DriverFile;

/// Why the loader itself is not there.
pub(crate) fn loader() -> String {
    let why = match cl3::load_library() {
        Err(cl3_error) => cl3_error.to_string(),
        Ok(_) => "unknown".to_owned(),
    };
    format!("the OpenCL loader is not there: {why}")
}

/// The drivers that are registered and do not load, each with the reason. On Windows and macOS
/// drivers are registered elsewhere, and none is told of.
pub(crate) fn unloadable() -> Vec<String> {
    drivers().iter().filter_map(refusal).collect()
}

/// The drivers that are registered on Linux and its kin, by the path of their file.
#[must_use]
pub fn drivers() -> Vec<DriverFile> {
    if !cfg!(all(unix, not(target_vendor = "apple"))) {
        return Vec::new();
    }
    let named = |manifest: PathBuf| {
        let text = fs::read_to_string(&manifest).ok()?;
        let library = text.lines().next().map(str::trim).filter(|library| !library.is_empty())?;
        Some(DriverFile { library: library.into(), manifest })
    };
    registered().into_iter().filter_map(named).collect()
}

/// The files that name drivers, where the loaders look for them.
fn registered() -> Vec<PathBuf> {
    let named = ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"].into_iter().find_map(std::env::var_os);
    let place = named.map_or_else(|| PathBuf::from("/etc/OpenCL/vendors"), PathBuf::from);
    let is_named = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "icd");
    let mut files: Vec<PathBuf> = match fs::read_dir(&place) {
        Ok(folder) => folder.filter_map(|file| Some(file.ok()?.path())).collect(),
        Err(_) => vec![place],
    };
    files.retain(is_named);
    files.sort();
    files
}

/// Why a driver does not load, if it does not.
fn refusal(driver: &DriverFile) -> Option<String> {
    // SAFETY: the library is registered as a driver, and the loader has run its initialisers already if it loads
    let error = unsafe { libloading::Library::new(&driver.library) }.err()?;
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    // systems that run 32- and 64-bit programs have drivers for both
    (!why.contains("wrong ELF class")).then(|| format!("the OpenCL driver of {} does not load: {why}", driver.manifest.display()))
}
