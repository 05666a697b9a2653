//! Why there is no OpenCL, or no driver of it: the loader passes over libraries that do not load
//! without a word.

use std::error::Error;
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

/// The drivers that are registered, where the loaders look for them.
#[must_use]
pub fn drivers() -> Vec<DriverFile> {
    let named = ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"].into_iter().find_map(std::env::var_os);
    let place = named.map_or_else(|| PathBuf::from("/etc/OpenCL/vendors"), PathBuf::from);
    let library = |text: &str| Some(PathBuf::from(text.lines().next()?.trim())).filter(|library| !library.as_os_str().is_empty());
    DriverFile::registered([place], "icd", |text, _| library(text))
}

/// Why a driver does not load, if it does not.
fn refusal(DriverFile { manifest, library }: &DriverFile) -> Option<String> {
    // SAFETY: the library is registered as a driver, and the loader has run its initialisers already if it loads
    let error = unsafe { libloading::Library::new(library) }.err()?;
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    // systems that run 32- and 64-bit programs have drivers for both
    (!why.contains("wrong ELF class")).then(|| format!("the OpenCL driver of {} does not load: {why}", manifest.display()))
}
